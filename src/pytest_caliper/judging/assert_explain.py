"""Makes pytest's assertion rewriting explain comparisons outside a pytest session, as far as this pytest can."""

from __future__ import annotations

import inspect
from itertools import islice
from typing import Any

_MAX_LINES = 40
"""Lines of a diff."""
_MAX_ITEMS = 500
_MAX_REPR = 8_000
"""Beyond these no diff is tried: difflib's time grows with the square, and an assert that runs out of time is no verdict."""


def install_compare() -> None:
    """Give comparisons the diffs that pytest's runner would add. Where this pytest has no place for them, there are none.

    The rewritten code calls `_pytest.assertion.util._reprcompare`, which pytest sets per test item; here is no item.
    """
    try:
        from _pytest.assertion import util

        parameters = inspect.signature(util.assertrepr_compare).parameters
    except (ImportError, AttributeError, TypeError, ValueError):
        return

    explain: Any = util.assertrepr_compare
    if "config" in parameters:  # pytest 8

        def lines(op: str, left: object, right: object) -> Any:
            return explain(_Config(), op, left, right)
    else:

        def lines(op: str, left: object, right: object) -> Any:
            return explain(op=op, left=left, right=right, verbose=1, highlighter=_plain, assertion_text_diff_style="ndiff")

    def compare(op: str, left: object, right: object) -> str | None:
        try:
            if not (_is_small(left) and _is_small(right)):
                return None
            shown = list(islice(lines(op, left, right) or (), _MAX_LINES + 1))
        except Exception:  # noqa: BLE001  a value that cannot be shown must not become the assert's own error
            return None
        if len(shown) > _MAX_LINES:
            shown[_MAX_LINES:] = ["[… more lines cut …]"]
        # The rewriter's own little language: "\n~" is a line break, and the text goes through the % operator.
        return "\n~".join(line.replace("\n", "\\n") for line in shown).replace("%", "%%") or None

    util._reprcompare = compare


def _is_small(value: object) -> bool:
    if isinstance(value, (str, bytes)):
        return len(value) <= _MAX_REPR
    if isinstance(value, (list, tuple, dict, set, frozenset)) and len(value) > _MAX_ITEMS:
        return False
    return len(repr(value)) <= _MAX_REPR


def _plain(source: str, lexer: str = "python") -> str:  # noqa: ARG001  pytest passes the lexer by name
    return source


class _Writer:
    """The part of pytest's TerminalWriter that pytest 8's comparisons ask for."""

    @staticmethod
    def _highlight(source: str, lexer: str = "python") -> str:
        return _plain(source, lexer)


class _Config:
    """The part of pytest's Config that pytest 8's comparisons ask for."""

    VERBOSITY_ASSERTIONS = "assertions"

    def get_verbosity(self, _kind: object = None) -> int:
        return 1

    def get_terminal_writer(self) -> _Writer:
        return _Writer()
