"""Texts that name an attempt's private directories, made independent of where those were.

`$WORK`, `$HOME` and `$ROOT` stand for the directories, `$WORK_SLUG` and so on for the names that Claude Code gives to what it keeps
of a directory (its path, every character but letters and digits a `-`). Literal dollars before one of these words are doubled, so
that an odd number of dollars always ends in a placeholder and an even number never does: `localised` is the exact inverse of
`portable`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

_WORDS = r"(?:WORK|HOME|ROOT)(?:_SLUG)?"
_WORD = re.compile(rf"(\$+)({_WORDS})|\$+")
_SLUG_END = "(?![A-Za-z0-9])"
_PATH_END = r"(?![\w-])"


class PrivateDirectories(Protocol):
    """What a Workspace has."""

    @property
    def root(self) -> Path: ...
    @property
    def home(self) -> Path: ...
    @property
    def work(self) -> Path: ...


def portable(text: str, workspace: PrivateDirectories) -> str:
    """`text` with the workspace's paths as placeholders. A path counts only where its last name ends: `…/work`, not `…/work2`."""
    words = {path: word for word, path in _paths(workspace).items()}
    path_here = "|".join(re.escape(path) + (_SLUG_END if path.startswith("-") else _PATH_END) for path in words)
    # The last alternative takes dollars that mean nothing, so that a long run of them is read once.
    pattern = re.compile(rf"(\$*)({path_here})|(\$+)({_WORDS})|\$+")

    def encode(match: re.Match[str]) -> str:
        before_path, path, before_word, word = match.groups()
        if path is not None:
            return f"{before_path * 2}${words[path]}"
        return match[0] if word is None else before_word * 2 + word

    return pattern.sub(encode, text)


def localised(text: str, workspace: PrivateDirectories) -> str:
    """The inverse of `portable`, for this workspace or another one."""
    paths = _paths(workspace)

    def decode(match: re.Match[str]) -> str:
        dollars, word = match.groups()
        if word is None:
            return match[0]
        return dollars[: len(dollars) // 2] + (paths[word] if len(dollars) % 2 else word)

    return _WORD.sub(decode, text)


def _paths(workspace: PrivateDirectories) -> dict[str, str]:
    """Word -> path or slug, the longest first: it is the one that a regular expression must try first."""
    paths = {"WORK": str(workspace.work), "HOME": str(workspace.home), "ROOT": str(workspace.root)}
    slugs = {f"{word}_SLUG": re.sub("[^A-Za-z0-9]", "-", path) for word, path in paths.items()}
    return dict(sorted((paths | slugs).items(), key=lambda item: -len(item[1])))
