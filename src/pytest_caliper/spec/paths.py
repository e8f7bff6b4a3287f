"""Absolute paths of the host that a task names, and that its attempts would therefore share."""

from __future__ import annotations

import re
import unicodedata

from pytest_caliper.spec.model import Task

_PART = r"(?:\$?\{[^}\s]*\}|\$\([^)\n]*\)|\\[ ]|[\w.\-+@%~#=$*?])+"
_PATH = re.compile(rf"/(?=[\w.$]){_PART}(?:/{_PART}){{1,40}}")
"""At least two components: a lone `/word` is a slash command, a closing tag or a regular expression."""

_STARTS_AFTER = frozenset("=(<>|;&,:[{`'\"")
"""A path begins after one of these, a blank, or at the start; after anything else the slash goes on with something
(`and/or`, `$DIR/x`, `~/x`)."""
_QUOTES = frozenset("'\"`")
_FLAG = re.compile(r"(?:^|[\s'\"])-[A-Za-z]$")
_HTTP = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+$")
_FILE_URL = re.compile(r"\bfile://(?:localhost)?(?=/)", re.IGNORECASE)

_SYSTEM = re.compile(r"/(?:dev|proc|sys|bin|sbin|usr|lib(?:32|64|x32|exec)?)/|/opt/homebrew(?:/|$)")
"""Places that tasks read and do not write."""


def absolute_paths(task: Task) -> tuple[str, ...]:
    """Host paths such as `/tmp/app.config.json` in the task's prompt, setup, solution and cleanup: sorted, unique, as written.

    Attempts of a task that has any would meet each other there, so they run one at a time. Read generously: a false alarm costs
    time, a miss costs a wrong result.
    """
    found: set[str] = set()
    for text in (task.prompt, task.setup, task.solution, task.cleanup):
        found.update(_paths_in(text or ""))
    return tuple(sorted(found))


def _paths_in(text: str) -> set[str]:
    text = _FILE_URL.sub(" ", text)
    found = set()
    for slash in re.finditer("/", text):
        match = _PATH.match(text, slash.start()) if _begins(text, slash.start()) else None
        path = match.group().rstrip(".?/") if match else ""
        if path.count("/") > 1 and not _SYSTEM.match(path):
            found.add(path.replace("\\ ", " "))
    return found


def _begins(text: str, at: int) -> bool:
    """True when the slash at `at` begins a path."""
    before = text[max(0, at - 24) : at]
    if not before:
        return True
    if before[-1] in _QUOTES and len(before) > 1 and not _starts_after(before[-2]):
        return False  # the quote closes something, as in "$DIR"/x/y
    if _starts_after(before[-1]):
        return not _HTTP.search(before)
    return _FLAG.search(before) is not None


def _starts_after(char: str) -> bool:
    wide = unicodedata.east_asian_width(char) in "WF"  # scripts that put no blanks between words
    return char in _STARTS_AFTER or char.isspace() or wide or (not char.isascii() and not char.isalnum())
