"""The machine's processes as they are now: who descends from whom, and whose environment carries a tag.

Linux reads /proc; elsewhere psutil does. On macOS the environment of Apple's own binaries cannot be read: those are found by
their group, their session or their parents.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Protocol

from pytest_caliper.process import watchdog

TAG_VARIABLE = "CALIPER_TAG"

FileId = tuple[int, int]
"""Device and inode."""


class Entry(NamedTuple):
    """One process at one moment. `pid` and `born` together name a process for good; a pid alone may be used again."""

    pid: int
    parent: int
    group: int
    session: int
    born: float
    """Start time; comparable within one table only."""
    ended: bool
    """True for a zombie."""


class Table(Protocol):
    """Reads the processes of this machine."""

    ordered: bool
    """True when `born` never goes backwards: a descendant is then never older than its ancestor."""

    def entries(self, since: int = 0) -> dict[int, Entry]:
        """All processes with a pid of at least `since`, by pid."""
        ...

    def entry(self, pid: int) -> Entry | None:
        """One process; None when there is none with this number (any more)."""
        ...

    def carries(self, pid: int, tag: str) -> bool | None:
        """True when the process was started with exactly this tag, or one below it (`tag/...`).

        None when its environment is empty or cannot be read, as for a moment while it starts another program.
        """
        ...

    def writes(self, pid: int, files: frozenset[FileId]) -> bool:
        """True when stdout or stderr of the process is one of these files. False where that cannot be told."""
        ...

    def send(self, entry: Entry, number: int) -> bool:
        """Signal exactly this process. False when it has gone or is not ours to signal."""
        ...


class ProcTable:
    """Linux: proc(5)."""

    ordered = True

    def entries(self, since: int = 0) -> dict[int, Entry]:
        pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - Path.iterdir costs twice as much
        found = (self.entry(pid) for pid in pids if pid >= since)
        return {entry.pid: entry for entry in found if entry is not None}

    def entry(self, pid: int) -> Entry | None:
        stat = watchdog.read_stat(pid)
        return None if stat is None else Entry(pid, *stat)

    def carries(self, pid: int, tag: str) -> bool | None:
        environ = watchdog.read_environ(pid)
        return watchdog.carries(environ, os.fsencode(f"{TAG_VARIABLE}={tag}")) if environ else None

    def writes(self, pid: int, files: frozenset[FileId]) -> bool:
        return any(_file_id(f"/proc/{pid}/fd/{number}") in files for number in (1, 2))

    def send(self, entry: Entry, number: int) -> bool:
        return watchdog.send(entry.pid, number, lambda: _is(entry, self.entry(entry.pid)))


class PsutilTable:
    """macOS and others: psutil. Start times are wall-clock times, which a clock adjustment may set back."""

    ordered = False

    def entries(self, since: int = 0) -> dict[int, Entry]:
        import psutil

        found = (self.entry(pid) for pid in psutil.pids() if pid >= since)
        return {entry.pid: entry for entry in found if entry is not None}

    def entry(self, pid: int) -> Entry | None:
        import psutil

        try:
            process = psutil.Process(pid)
            ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
            return Entry(pid, process.ppid(), os.getpgid(pid), os.getsid(pid), process.create_time(), ended)
        except (psutil.Error, OSError):
            return None

    def carries(self, pid: int, tag: str) -> bool | None:
        import psutil

        try:
            environ = psutil.Process(pid).environ()
        except (psutil.Error, OSError):
            return None
        if not environ:
            return None
        value = environ.get(TAG_VARIABLE)
        return value is not None and (value == tag or value.startswith(tag + "/"))

    def writes(self, pid: int, files: frozenset[FileId]) -> bool:  # noqa: ARG002
        return False

    def send(self, entry: Entry, number: int) -> bool:
        return watchdog.send(entry.pid, number, lambda: _is(entry, self.entry(entry.pid)))


def process_table() -> Table:
    """The right table for this machine."""
    return ProcTable() if Path("/proc/self/stat").exists() else PsutilTable()


def last_pid() -> int | None:
    """The pid that was given out last (proc_loadavg(5)); None where that cannot be told."""
    try:
        return int(Path("/proc/loadavg").read_bytes().split()[4])
    except (OSError, IndexError, ValueError):
        return None


def _is(entry: Entry, now: Entry | None) -> bool:
    return now is not None and now.born == entry.born and not now.ended


def _file_id(path: str) -> FileId | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - on the path of every process
    except OSError:
        return None
    return status.st_dev, status.st_ino
