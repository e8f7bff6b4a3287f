"""Texts that name an attempt's private directories, made independent of where those were.

`$WORK`, `$HOME` and `$ROOT` stand for the directories, `$WORK_SLUG` and so on for the names that Claude Code gives to what it
keeps of a directory (its path, every character but letters and digits a `-`); `$SPEC_DIR` and `$PROJECT` for where the spec lies.
Literal dollars before one of these words are doubled, so that an odd number of dollars always ends in a placeholder and an even
number never does: `localised` is the exact inverse of `portable`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

OUTER = ("PROJECT", "SPEC_DIR")
"""Words of directories that outlive the attempt; where they are the same, the last one stands for both."""
_WORDS = rf"(?:WORK|HOME|ROOT)(?:_SLUG)?|{'|'.join(OUTER)}"
_WORD = re.compile(rf"(\$+)({_WORDS})|\$+")
_SLUG_END = "(?![A-Za-z0-9])"
_PATH_END = r"(?![\w-])"
_OUTER_START = r"(?:(?<![\w.~-])|(?<=\\[nrtbf]))"
"""A project may be `/app`, which is no part of `/opt/app`. A JSON escape ends in a letter too."""


class PrivateDirectories(Protocol):
    """What a Workspace has."""

    @property
    def root(self) -> Path: ...
    @property
    def home(self) -> Path: ...
    @property
    def work(self) -> Path: ...


def portable(text: str, workspace: PrivateDirectories, outer: Mapping[str, Path] | None = None) -> str:
    """`text` with the workspace's paths as placeholders, and those of `outer`, whose keys are among `OUTER`.

    A path counts only where its last name ends: `…/work`, not `…/work2`.
    """
    words = {path: word for word, path in _paths(workspace, outer or {}).items()}
    path_here = "|".join(_pattern(path, word) for path, word in words.items())
    # The last alternative takes dollars that mean nothing, so that a long run of them is read once.
    pattern = re.compile(rf"(\$*)({path_here})|(\$+)({_WORDS})|\$+")

    def encode(match: re.Match[str]) -> str:
        before_path, path, before_word, word = match.groups()
        if path is not None:
            return f"{before_path * 2}${words[path]}"
        return match[0] if word is None else before_word * 2 + word

    return pattern.sub(encode, text)


def localised(text: str, workspace: PrivateDirectories, outer: Mapping[str, Path] | None = None) -> str:
    """The inverse of `portable`, for this workspace or another one. A word of `OUTER` that `outer` lacks stays."""
    paths = _paths(workspace, outer or {})

    def decode(match: re.Match[str]) -> str:
        dollars, word = match.groups()
        if word is None:
            return match[0]
        return dollars[: len(dollars) // 2] + (paths.get(word, f"${word}") if len(dollars) % 2 else word)

    return _WORD.sub(decode, text)


def _pattern(path: str, word: str) -> str:
    start, end = (_OUTER_START if word in OUTER else ""), (_SLUG_END if word.endswith("_SLUG") else _PATH_END)
    return start + re.escape(path) + end


def _paths(workspace: PrivateDirectories, outer: Mapping[str, Path]) -> dict[str, str]:
    """Word -> path or slug, the longest first: it is the one that a regular expression must try first."""
    paths = {"WORK": str(workspace.work), "HOME": str(workspace.home), "ROOT": str(workspace.root)}
    slugs = {f"{word}_SLUG": re.sub("[^A-Za-z0-9]", "-", path) for word, path in paths.items()}
    beyond = {word: str(outer[word]) for word in OUTER if word in outer and outer[word] != Path("/")}
    return dict(sorted((paths | slugs | beyond).items(), key=lambda item: -len(item[1])))
