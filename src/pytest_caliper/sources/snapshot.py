"""What was installed, as it was: texts and hashes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pytest_caliper.runs.place import path_in
from pytest_caliper.runs.records import SkillSnapshot
from pytest_caliper.sources import git

MAX_TEXT = 200_000
"""Bytes of one file's text that are kept."""
MAX_TEXTS = 2_000_000
"""Bytes of all texts of a skill; files beyond have their hash alone. `SKILL.md` is always kept."""


def take_snapshot(
    *, name: str, kind: Literal["directory", "command"], root: Path, main: str, files: Sequence[str], project: Path
) -> SkillSnapshot:
    """The snapshot of a skill's files. `main` is its SKILL.md or command file. Raises OSError for what cannot be read."""
    entries: dict[str, dict[str, str]] = {}
    room = MAX_TEXTS
    for path in sorted(files, key=lambda path: (path != main, path)):
        data = (root / path).read_bytes()
        text = _text(data, min(MAX_TEXT, room))
        room -= len(text.encode())
        entries[_shown(path)] = {"content": text, "hash": f"sha256:{hashlib.sha256(data).hexdigest()}"}
    versioned = git.in_repository(root)
    return SkillSnapshot(
        name=name,
        path=path_in(project, root if kind == "directory" else root / main, outside=name),
        kind=kind,
        files=dict(sorted(entries.items())),
        git_repo=git.remote(root) if versioned else None,
        git_sha=git.head(root) if versioned else None,
    )


def _text(data: bytes, room: int) -> str:
    """The text of a file, marked where it is cut; empty for what is no text and where there is no room."""
    if b"\0" in data or room <= 0:
        return ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    if len(data) <= room:
        return text
    return data[:room].decode("utf-8", "ignore") + f"\n[cut: {len(data):,} bytes in all]\n"


def _shown(path: str) -> str:
    """A path that can be written as UTF-8, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
