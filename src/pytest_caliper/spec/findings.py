"""Collects the mistakes and warnings of one file, so that all are reported at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

from pytest_caliper.spec.model import Diagnostic, SpecError

_SHOWN_CHARS = 60
"""Enough of a user's text to recognise it; messages stay one line."""


class Findings:
    """Errors and warnings of one spec, in any order; sorted when they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._errors: dict[Diagnostic, None] = {}
        self._warnings: dict[Diagnostic, None] = {}

    def error(self, line: int, message: str, *, path: Path | None = None) -> None:
        """Note a mistake on 1-based `line` of `path` (the spec itself by default). The same one is kept once."""
        self._errors[Diagnostic(path=path or self.path, line=line, message=message)] = None

    def warn(self, line: int, message: str, *, path: Path | None = None) -> None:
        """Note something that is allowed and probably not meant."""
        self._warnings[Diagnostic(path=path or self.path, line=line, message=message)] = None

    def fail(self, line: int, message: str) -> NoReturn:
        """Note a mistake after which nothing more can be read. Raises SpecError."""
        self.error(line, message)
        raise SpecError(self._sorted(self._errors))

    def raise_errors(self) -> None:
        """Raises SpecError with every mistake noted so far, if there is one."""
        if self._errors:
            raise SpecError(self._sorted(self._errors))

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """In the order of their lines; those in other files come last."""
        return self._sorted(self._warnings)

    def _sorted(self, found: dict[Diagnostic, None]) -> tuple[Diagnostic, ...]:
        return tuple(sorted(found, key=lambda one: (one.path != self.path, str(one.path), one.line)))


def shown(text: str) -> str:
    """The beginning of `text` in double quotes on one line, with everything that does not print escaped."""
    cut = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    quoted = json.dumps(cut, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in quoted)


def in_line(text: str) -> str:
    """`text` without line breaks or anything else that does not print, and bounded: a key or name within a message."""
    return shown(text)[1:-1]
