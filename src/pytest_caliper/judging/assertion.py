"""Compiles an `assert:` check with pytest's assertion rewriting and the lines of the file that it stands in."""

from __future__ import annotations

import ast
import marshal
import warnings

from pytest_caliper.spec.model import Assertion

_UNNAMED = "<assert>"
"""The parser would quote line 1 of a real file beside an error; this one does not exist."""


def compile_assertion(assertion: Assertion) -> bytes:
    """The marshalled code object, for this very Python version; its file name is `assertion.path`, its lines are that file's.

    Raises ValueError with one line where the source does not compile.
    """
    try:
        with warnings.catch_warnings():
            # Loading a spec has warned already; under `-W error` these would end the collection.
            warnings.simplefilter("ignore")
            code = compile(_tree(assertion), str(assertion.path), "exec", dont_inherit=True)
    except SyntaxError as error:
        line = (error.lineno or 1) + (0 if error.filename == str(assertion.path) else assertion.line)
        raise ValueError(f"{assertion.path}:{line}: the assert is not valid Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        what = "too deeply nested" if isinstance(error, (RecursionError, MemoryError)) else str(error)
        raise ValueError(f"{assertion.path}:{assertion.line + 1}: the assert does not compile: {what}") from None
    return marshal.dumps(code)


def _tree(assertion: Assertion) -> ast.Module:
    tree = _parse(assertion)
    try:
        from _pytest.assertion.rewrite import rewrite_asserts

        # Private, but the only way to rewrite a tree: pytest.register_assert_rewrite is for importable modules.
        # The same in pytest 8.4 and 9.2; without a config the source bytes are not looked at.
        rewrite_asserts(tree, assertion.source.encode("utf-8", "replace"), str(assertion.path), None)
    except SyntaxError:
        raise
    except Exception:  # noqa: BLE001  the values in a failure's text are lost with it, the verdict is not
        return _parse(assertion)
    return tree


def _parse(assertion: Assertion) -> ast.Module:
    """The tree, moved to where its source stands. Moved before it is rewritten: a rewritten tree shares nodes."""
    tree = ast.parse(assertion.source, filename=_UNNAMED)
    shifts = {"lineno": assertion.line, "end_lineno": assertion.line}
    shifts.update(col_offset=assertion.column, end_col_offset=assertion.column)
    for node in ast.walk(tree):
        for name in node._attributes:
            if name in shifts and getattr(node, name) is not None:
                moved = getattr(node, name) + shifts[name]
                setattr(node, name, moved if assertion.in_lines or not name.endswith("lineno") else assertion.line + 1)
    return tree
