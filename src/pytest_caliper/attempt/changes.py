"""What happened to the files below `work/`: for the judge as a list with the beginnings of texts, for a cassette byte by byte."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pytest_caliper.attempt.effects import EffectsTooLarge, FileEffect, UnsafeEffect, apply_effects
from pytest_caliper.attempt.snapshot import Entry, Snapshot, digest_of, read_regular, snapshot
from pytest_caliper.runs.records import ChangedFile

__all__ = [
    "EffectsTooLarge",
    "FileEffect",
    "Snapshot",
    "UnsafeEffect",
    "apply_effects",
    "changed_files",
    "file_effects",
    "snapshot",
]

Change = Literal["added", "modified", "deleted"]

MAX_TOTAL_TEXT = 400_000
"""Characters of all changed files together."""
MAX_EFFECT_BYTES = 16 * 1024 * 1024
_MADE_BY_TOOLS = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".cache", ".npm", "target"}
)
"""Directories whose files are named only where there is room left."""


def changed_files(
    before: Snapshot, work: Path, *, max_files: int = 200, max_text: int = 20_000, max_total: int = MAX_TOTAL_TEXT
) -> tuple[ChangedFile, ...]:
    """The files below `work` that were added, modified or deleted since `before`, sorted by path; at most `max_files`.

    `text` is at most `max_text` characters of a text file, `max_total` of all; a symbolic link's says where it leads. `before`
    is whole or not there, within the same limits. The inside of a repository is one entry, `.git`. Directories, devices and
    pipes are left out. What cannot be read has no text.
    """
    after = snapshot(work, digests=False)
    found: dict[str, tuple[Change, Entry | None, Entry | None]] = {}
    for path, change, entry, old in _differences(before, after, work):
        repository = _repository(path)
        if repository is not None:
            found.setdefault(repository, (_change(repository, before, after), None, None))
        elif not _is_directory(entry or old):
            found[path] = (change, entry, old)
    chosen = sorted(found, key=lambda path: (not _MADE_BY_TOOLS.isdisjoint(path.split("/")), path))[:max_files]
    out: list[ChangedFile] = []
    left = left_before = max_total  # apart: what the judge reads must not depend on what reports show
    for path in sorted(chosen):
        change, entry, old = found[path]
        file = _described(path, change, entry, work, min(max_text, left))
        left -= len(file.text or "")
        if (text := _found(old)) is not None and len(text) <= min(max_text, left_before):
            file = replace(file, before=text)
            left_before -= len(text)
        out.append(file)
    return tuple(out)


def file_effects(before: Snapshot, work: Path, *, max_bytes: int = MAX_EFFECT_BYTES) -> list[FileEffect]:
    """Everything that turns `before` into what `work` is now, `.git` and directories included, sorted by path.

    Raises EffectsTooLarge, before anything is read, when the files hold more than `max_bytes`.
    """
    differences = list(_differences(before, snapshot(work, digests=False), work))
    sizes = {path: entry.size for path, _, entry, _ in differences if entry is not None and stat.S_ISREG(entry.mode)}
    if sum(sizes.values()) > max_bytes:
        raise EffectsTooLarge.of(sizes, max_bytes)
    effects = []
    for path, change, entry, old in differences:
        if entry is None:
            effects.append(FileEffect(path=path, change=change, mode=old.mode if old is not None else 0))
        else:
            data = read_regular(work / path) if stat.S_ISREG(entry.mode) else None
            effects.append(FileEffect(path=path, change=change, mode=entry.mode, data=data, link=entry.link))
    return effects


def _differences(before: Snapshot, after: Snapshot, work: Path) -> Iterator[tuple[str, Change, Entry | None, Entry | None]]:
    """-> (path, change, entry now, entry then), sorted by path."""
    for path in sorted(before.entries.keys() | after.entries.keys()):
        old, new = before.entries.get(path), after.entries.get(path)
        if new is None:
            if not after.unseen(path):
                yield path, "deleted", None, old
        elif old is None:
            if not before.unseen(path):
                yield path, "added", new, None
        elif _differs(old, new, before, work / path):
            yield path, "modified", new, old


def _differs(old: Entry, new: Entry, before: Snapshot, path: Path) -> bool:
    if (old.mode, old.link) != (new.mode, new.link):
        return True
    if not stat.S_ISREG(new.mode):
        return False
    if old.size != new.size:
        return True
    untouched = (old.mtime_ns, old.ctime_ns, old.inode) == (new.mtime_ns, new.ctime_ns, new.inode)
    if untouched and not before.is_racy(old):
        return False
    if old.digest is None:  # too large to have been read: the times decide
        return not untouched
    return digest_of(path) != old.digest


def _change(path: str, before: Snapshot, after: Snapshot) -> Change:
    """What happened to a directory some of whose files differ."""
    if path not in after.entries:
        return "deleted"
    return "modified" if path in before.entries else "added"


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and stat.S_ISDIR(entry.mode)


def _repository(path: str) -> str | None:
    """The `.git` that `path` is or lies in."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(".git") + 1]) if ".git" in parts else None


def _described(path: str, change: Change, entry: Entry | None, work: Path, max_text: int) -> ChangedFile:
    if entry is None:
        return ChangedFile(path=path, change=change, size=0)
    if entry.link is not None:
        return ChangedFile(path=path, change=change, size=entry.size, text=f"symbolic link to {entry.link}")
    # A character takes four bytes at the most; one more byte tells whether the file goes on.
    data = read_regular(work / path, limit=4 * max_text + 1)
    text = None if data is None else _decoded(data)
    if text is None:
        return ChangedFile(path=path, change=change, size=entry.size)
    cut = len(text) > max_text or (data is not None and len(data) < entry.size)
    return ChangedFile(path=path, change=change, size=entry.size, text=text[:max_text], truncated=cut)


def _found(old: Entry | None) -> str | None:
    """The text that the agent found, where it was kept."""
    if old is None:
        return None
    if old.link is not None:
        return f"symbolic link to {old.link}"
    return None if old.content is None else _decoded(old.content)


def _decoded(data: bytes) -> str | None:
    """Text of a file's beginning; None when it is binary. Single odd bytes become U+FFFD."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:8192]:
        return None
    text = data.decode("utf-8-sig", "replace")
    odd = sum(char == "\ufffd" or (char < " " and char not in "\t\n\r\f\x1b\b") for char in text[:8192])
    return text if odd * 10 <= min(len(text), 8192) else None
