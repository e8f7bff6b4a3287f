"""The format of codex' `apply_patch`, as far as it names files."""

from __future__ import annotations

import re

_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)[ \t\r]*$", re.MULTILINE)


def is_patch(text: str) -> bool:
    """Whether `text` is a patch in that format."""
    return text.lstrip().startswith("*** Begin Patch")


def patched_paths(text: str) -> list[str]:
    """The files that a patch names, in order, as written."""
    return _PATCHED.findall(text)
