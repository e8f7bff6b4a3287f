"""Clears up after a session whose pytest was killed: `python -I -S watchdog.py FD CALIPER_TAG=<session>...`, one per session.

Runs alone, on the standard library only (`-I -S` keeps its start cheap and takes nothing from the user's environment). It reads
lines from the pipe FD until pytest, the only writer, is gone:

- `+<pgid>` / `-<pgid>`: a process group begins / has ended;
- `d<path, hexadecimal>`: a directory to remove;
- `q`: the session has cleared up itself, leave without doing anything.

At end of file (or when its parent is another one, should a fork of pytest still hold the pipe) it kills with SIGKILL: the groups,
the sessions that they lead, everything that carries one of the tags, all their descendants by parent pid, until three looks in a
row find nothing. Then it removes the directories.

Without /proc (macOS) environments cannot be read from here, so only groups and descendants (`ps`) are found: a process that has
left its group and whose parent has ended survives the SIGKILL of pytest there.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterable

Stat = tuple[int, int, int, int, bool]
"""Parent, group, session, start time (clock ticks since boot; 0 where unknown), True for a zombie."""

LOOKS, PAUSE_S, GIVE_UP_S, PARENT_CHECK_MS = 3, 0.02, 20.0, 2000


def read_stat(pid: int) -> Stat | None:
    """What /proc/PID/stat says (proc(5)); None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20:
        return None
    return int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), fields[0] in (b"Z", b"X")


def read_environ(pid: int) -> bytes:
    """The environment that the process was started with; empty when it may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def carries(environ: bytes, needle: bytes) -> bool:
    """True when an entry is `needle` (`CALIPER_TAG=<tag>`) or a tag below it; tag `abc` is not in `abcd`."""
    block = b"\0" + environ + b"\0"
    return b"\0" + needle + b"\0" in block or b"\0" + needle + b"/" in block


def send(pid: int, number: int, still: Callable[[], bool]) -> bool:
    """Signal `pid` if `still()` holds. Where there are pidfds the process is pinned first, so a reused number is never hit."""
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        except OSError:  # an old kernel, or a sandbox that forbids the call
            pass
        else:
            try:
                if not still():
                    return False
                signal.pidfd_send_signal(pidfd, number)
                return True
            except OSError:
                return False
            finally:
                os.close(pidfd)
    try:
        if not still():
            return False
        os.kill(pid, number)
    except OSError:
        return False
    return True


def removable(path: str) -> tuple[int, int] | None:
    """Device and inode of a directory that a session may have made (`caliper-*`, ours, no symlink); None for anything else."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    name = os.path.basename(path)  # noqa: PTH119 - pathlib would double the start-up
    if not name.startswith("caliper-") or not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return None
    return status.st_dev, status.st_ino


def remove(path: str) -> None:
    """Remove a directory tree, also where a tool left directories read-only."""
    import shutil

    for _ in range(3):  # a killed process may still be in its last write
        open_up(path)
        for top, names, _files in os.walk(path):
            for name in names:
                open_up(os.path.join(top, name))  # noqa: PTH118
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        time.sleep(PAUSE_S)


def open_up(directory: str) -> None:
    try:
        if not os.path.islink(directory):  # noqa: PTH114
            os.chmod(directory, 0o700)  # noqa: PTH101
    except OSError:  # gone by now
        return


class Watchdog:
    """What the session has told, and what is done when it is gone."""

    def __init__(self, needles: Iterable[bytes]) -> None:
        self.needles = tuple(needles)
        self.groups: set[int] = set()
        self.directories: dict[str, tuple[int, int]] = {}

    def listen(self, fd: int) -> bool:
        """Take in lines until the session is gone. False when it took its leave."""
        parent, rest = os.getppid(), b""
        poll = select.poll()
        poll.register(fd, select.POLLIN | select.POLLHUP)
        while True:
            if not poll.poll(PARENT_CHECK_MS):
                if os.getppid() != parent:
                    return True
                continue
            read = os.read(fd, 65536)
            if not read:
                return True
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                if line == b"q":
                    return False
                self.take(line)

    def take(self, line: bytes) -> None:
        kind, value = line[:1], line[1:]
        if kind == b"+":
            self.groups.add(int(value))
        elif kind == b"-":
            self.groups.discard(int(value))
        elif kind == b"d":
            path = os.fsdecode(bytes.fromhex(value.decode()))
            identity = removable(path)
            if identity is not None:
                self.directories[path] = identity

    def look(self) -> dict[int, Stat]:
        """Every living process of the session, by pid."""
        stats = stats_of_all()
        found = [pid for pid, entry in stats.items() if entry[1] in self.groups or entry[2] in self.groups or self.tagged(pid)]
        children: dict[int, list[int]] = {}
        for pid, entry in stats.items():
            children.setdefault(entry[0], []).append(pid)
        ours: dict[int, Stat] = {}
        while found:
            pid = found.pop()
            if pid not in ours and pid != os.getpid():
                ours[pid] = stats[pid]
                found += children.get(pid, ())
        return {pid: entry for pid, entry in ours.items() if not entry[4]}

    def tagged(self, pid: int) -> bool:
        environ = read_environ(pid)
        return any(carries(environ, needle) for needle in self.needles)

    def kill(self) -> None:
        end, clean = time.monotonic() + GIVE_UP_S, 0
        while clean < LOOKS and time.monotonic() < end:  # several looks: a fork or exec under way shows up late
            ours = self.look()
            for number in (signal.SIGSTOP, signal.SIGKILL):  # all stand still before the first dies: no fork slips through
                for pid, entry in ours.items():
                    send(pid, number, lambda pid=pid, entry=entry: same(pid, entry))  # type: ignore[misc]
            clean = 0 if ours else clean + 1
            time.sleep(PAUSE_S)

    def clear(self) -> None:
        for path, identity in self.directories.items():
            if removable(path) == identity:
                remove(path)


def stats_of_all() -> dict[int, Stat]:
    if not os.path.exists("/proc/self/stat"):  # noqa: PTH110
        return stats_from_ps()
    stats = {int(name): read_stat(int(name)) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208
    return {pid: entry for pid, entry in stats.items() if entry is not None}


def stats_from_ps() -> dict[int, Stat]:
    """The same from `ps`, which knows neither start times nor (on macOS) session numbers."""
    import subprocess

    listing = subprocess.run(["/bin/ps", "-axo", "pid=,ppid=,pgid=,stat="], stdout=subprocess.PIPE, check=False).stdout
    stats = {}
    for line in listing.splitlines():
        pid, parent, group, state = line.split()[:4]
        stats[int(pid)] = int(parent), int(group), 0, 0, state.startswith(b"Z")
    return stats


def same(pid: int, entry: Stat) -> bool:
    """True while the number still means the process of `entry`."""
    if entry[3] == 0:
        return True
    now = read_stat(pid)
    return now is not None and now[3] == entry[3] and not now[4]


def main(fd: int, needles: Iterable[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    watchdog = Watchdog(needles)
    if watchdog.listen(fd):
        watchdog.kill()
        watchdog.clear()


if __name__ == "__main__":
    main(int(sys.argv[1]), [os.fsencode(needle) for needle in sys.argv[2:]])
