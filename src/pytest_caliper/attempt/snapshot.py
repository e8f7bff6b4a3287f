"""How the files below a directory stand at one moment, cheaply: by their metadata, and for small files by their content."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_ENTRIES = 100_000
"""Files and directories that are looked at; a tree with more is told as far as that."""
MAX_DIGESTED = 1024 * 1024
"""Bytes of a file whose content is looked at."""
MAX_DIGESTED_TOTAL = 32 * 1024 * 1024
MAX_KEPT = 20_000
"""Bytes of a file that is kept whole, so that a change can be shown as one."""
MAX_KEPT_TOTAL = 1024 * 1024
RACY_NS = 2_000_000_000
"""A file that changed so shortly before it was looked at may change again without new times: clocks of file systems tick in
milliseconds to 2 seconds. git calls such entries racily clean."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One file, directory or symbolic link."""

    mode: int
    """`st_mode`: type and permissions."""
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    link: str | None = None
    """Where a symbolic link leads."""
    digest: bytes | None = None
    """Of the content; None when it was not read."""
    content: bytes | None = None
    """The content itself, of small files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Everything below a directory but devices, pipes and sockets."""

    entries: Mapping[str, Entry]
    """Path with forward slashes -> entry."""
    taken_ns: int
    closed: frozenset[str] = frozenset()
    """Directories that could not be looked into."""
    complete: bool = True
    """False when there was more than `MAX_ENTRIES`."""

    def unseen(self, path: str) -> bool:
        """Whether `path` may exist though it has no entry."""
        if not self.complete:
            return True
        return any(path.startswith(f"{directory}/") for directory in self.closed)

    def is_racy(self, entry: Entry) -> bool:
        """Whether `entry` may have changed since without a sign of it in its times."""
        return max(entry.mtime_ns, entry.ctime_ns) > self.taken_ns - RACY_NS


def snapshot(work: Path, *, digests: bool = True) -> Snapshot:
    """All below `work`; nothing when it does not exist (any more). Links are not followed, `work` itself included: what lies
    behind one that an agent has put in its place is not the attempt's. Without `digests` no file is read: for the later of two
    snapshots, where only files with other metadata matter."""
    taken_ns = time.time_ns()
    entries: dict[str, Entry] = {}
    if work.is_symlink():
        return Snapshot(entries=entries, taken_ns=taken_ns)
    closed: set[str] = set()
    budget = MAX_DIGESTED_TOTAL if digests else -1
    room = MAX_KEPT_TOTAL
    pending = [""]
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(work / directory) as listing:
                found = sorted(listing, key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        except OSError:  # closed to us, or deeper than a path can be long
            closed.add(directory)
            continue
        for item in found:
            if len(entries) >= MAX_ENTRIES:
                return Snapshot(entries=entries, taken_ns=taken_ns, closed=frozenset(closed), complete=False)
            path = f"{directory}/{item.name}" if directory else item.name
            entry = _entry(item, budget, room)
            if entry is None:
                continue
            entries[path] = entry
            budget -= entry.size if entry.digest is not None else 0
            room -= len(entry.content or b"")
            if stat.S_ISDIR(entry.mode):
                pending.append(path)
    return Snapshot(entries=entries, taken_ns=taken_ns, closed=frozenset(closed))


def _entry(item: os.DirEntry[str], budget: int, room: int) -> Entry | None:
    """The entry; None for what is neither file nor directory nor link, and for what has just gone."""
    try:
        found = item.stat(follow_symlinks=False)
        link = os.readlink(item.path) if stat.S_ISLNK(found.st_mode) else None  # noqa: PTH115 - as it is, not as Path spells it
    except OSError:
        return None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) or link is not None):
        return None
    digest = data = None
    if stat.S_ISREG(found.st_mode) and found.st_size <= min(MAX_DIGESTED, budget):
        data = read_regular(Path(item.path), limit=MAX_DIGESTED + 1)
        digest = None if data is None else _digest(data)
    return Entry(
        mode=found.st_mode,
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        ctime_ns=found.st_ctime_ns,
        inode=found.st_ino,
        link=link,
        digest=digest,
        content=data if data is not None and len(data) <= min(MAX_KEPT, room) else None,
    )


def digest_of(path: Path) -> bytes | None:
    """A digest of the content of a regular file, as far as `MAX_DIGESTED`; None when it cannot be read."""
    data = read_regular(path, limit=MAX_DIGESTED + 1)
    return None if data is None else _digest(data)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def read_regular(path: Path, limit: int | None = None) -> bytes | None:
    """The first `limit` bytes of a regular file; None when it cannot be read or has become something else.

    Something may still be running: a link is not followed and a pipe not waited for.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        try:
            return file.read(-1 if limit is None else limit) if stat.S_ISREG(os.fstat(fd).st_mode) else None
        except OSError:
            return None
