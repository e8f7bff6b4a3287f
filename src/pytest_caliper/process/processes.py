"""Runs the child processes of one session: bounded, stoppable, and gone to the last grandchild."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_caliper.contracts import Command
from pytest_caliper.process.child import Collected, await_end, collect, spawn
from pytest_caliper.process.guard import Guard
from pytest_caliper.process.interrupts import uninterrupted
from pytest_caliper.process.monitor import Cause, Monitor, Watched
from pytest_caliper.process.output import Output
from pytest_caliper.process.reaping import Family
from pytest_caliper.process.table import process_table

FAREWELL_LOOKS, FAREWELL_S = 5, 0.001


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How one process ended."""

    returncode: int
    """Exit code, or minus the signal's number; -2 (SIGINT) for one that was cancelled before it began."""
    cause: Cause
    """`exit`: by itself; else what made us stop it, even when it then ended politely."""
    duration_s: float
    """From its start to its own end; what it left behind does not count."""
    cpu_s: float
    """User and system time of the process and the children that it waited for."""
    strays: int
    """Processes that still lived when it had ended, and were killed."""


class Processes:
    """The child processes of one pytest session (or xdist worker). Thread-safe.

    `session_tag` must be this object's own: whatever carries it, or a tag below it (`<session_tag>/...`), is killed by `close`.
    Nothing is started before the first process. A fork of this process can neither run anything through it nor end anything.
    """

    def __init__(self, session_tag: str) -> None:
        if not session_tag or "\0" in session_tag:
            raise ValueError("a session tag is a non-empty text without NUL")
        self.session_tag = session_tag
        self._pid = os.getpid()
        self._table = process_table()
        self._monitor = Monitor()
        self._guard = Guard(session_tag)
        self._closing = threading.Lock()
        self._kept: set[str] = set()
        """Tags whose processes were left running on purpose."""
        self._first: dict[str, tuple[int, float]] = {}
        """Tag -> the first process that was given it, and when: what else carries it is younger."""
        self._closed = False

    @property
    def cancelled(self) -> bool:
        """True once everything was told to stop; nothing begins any more."""
        return self._monitor.cancelled

    def run(
        self,
        command: Command,
        *,
        stdout: Path,
        stderr: Path,
        timeout_s: float,
        tag: str,
        max_bytes: int = 64 * 1024 * 1024,
        keep_children: bool = False,
    ) -> Ended:
        """Run `command` to its end and leave none of its descendants behind.

        With `keep_children` what it left running stays, if it ended by itself: a set-up that starts a server. `reap` ends it.

        stdout and stderr are files, emptied first, `max_bytes` together at the most. The run is over when the process is, whoever
        still holds the files. A KeyboardInterrupt in the main thread stops the process politely, a second one kills it; it is
        raised when all is cleared up.

        Raises OSError when the program cannot be started (nothing is left behind then, no files either), ValueError for a tag
        that is not of this session, ChildProcessError when somebody else in this process took the exit status.
        """
        self._check(tag)
        watched = Watched(timeout_s, self._spare)
        with self._monitor.watching(watched):
            return uninterrupted(
                lambda: self._run(command, Output(stdout, stderr, max_bytes), tag, watched, keep_children),
                on_interrupt=lambda times: self._stop(watched, at_once=times > 1),
            )

    @contextmanager
    def watch(self, pid: int, *, timeout_s: float, tag: str) -> Iterator[Watched]:
        """Look after a group leader that somebody else forked: deadline, cancellation; at exit its group and `tag` are killed.

        The caller still waits for it (or lets it be waited for). `Watched.cause` says what made us stop it, else `exit`.
        """
        self._check(tag)
        if pid <= 1 or pid in (os.getpid(), os.getpgrp()):
            raise ValueError(f"process {pid} cannot be looked after: it is not somebody's child")
        watched = Watched(timeout_s, self._spare)
        self._first.setdefault(tag, (pid, time.monotonic()))
        with self._monitor.watching(watched):
            family = self._family(tag, pid)
            if family.born is None:  # gone already: its number may be a stranger's by now
                family.leader = None
            else:
                self._guard.add(pid)
            watched.begin(family)
            self._monitor.nudge()
            try:
                yield watched
            finally:
                uninterrupted(lambda: self._clear_forked(watched, family))

    def reap(self, tag: str) -> int:
        """Kill every process that carries exactly this tag, or one below it (`tag/...`), and its descendants; how many."""
        self._check(tag)
        return uninterrupted(lambda: self._reap(tag))

    def remove_on_death(self, path: Path) -> None:
        """Let the watchdog remove the directory when this process is killed; `close` does not. Starts the watchdog.

        Raises ValueError unless it is an existing directory of ours named `caliper-*`, not a symlink.
        """
        self._check(self.session_tag)
        self._guard.remove_on_death(path)

    def cancel_all(self, *, now: bool = False) -> None:
        """Stop everything: SIGINT, after 1 s SIGTERM, after 2 s SIGKILL; with `now` SIGKILL. Does not wait.

        What begins later ends as cancelled at once, without a process.
        """
        if os.getpid() == self._pid:
            self._monitor.cancel(at_once=now)

    def close(self, *, patience_s: float = 3.0) -> None:
        """Cancel what lives, wait for it, kill what carries the session's tag, end the watchdog. Idempotent.

        An interrupt (a second Ctrl-C) kills at once; it is raised when all is cleared up.
        """
        if os.getpid() == self._pid:
            uninterrupted(lambda: self._close(patience_s), on_interrupt=lambda _: self.cancel_all(now=True))

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, tag: str) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(f"the processes of session {self.session_tag} belong to process {self._pid}, not to its forks")
        if "\0" in tag or (tag != self.session_tag and not tag.startswith(self.session_tag + "/")):
            raise ValueError(f"tag {tag!r} is not below the session's own, {self.session_tag!r}")

    def _run(self, command: Command, output: Output, tag: str, watched: Watched, keep_children: bool) -> Ended:
        with output:
            if watched.cause != "exit":
                return Ended(returncode=-signal.SIGINT, cause=watched.cause, duration_s=0.0, cpu_s=0.0, strays=0)
            started_s = time.monotonic()
            pid = self._spawn(command, output, tag)
            self._first.setdefault(tag, (pid, started_s))
            family = self._family(tag, pid, output)
            collected: Collected | None = None
            try:
                self._guard.add(pid)
                watched.begin(family, output)
                self._monitor.nudge()
                collected = await_end(pid)
            finally:
                duration_s = time.monotonic() - started_s
                ended_by_itself = keep_children and watched.cause == "exit"
                strays = self._release(watched, family) if ended_by_itself else self._clear(watched, family)
                cut = output.cut()
                if collected is None:
                    collected = collect(pid)
            cause = "output" if cut and watched.cause == "exit" else watched.cause
            return Ended(
                returncode=collected.returncode, cause=cause, duration_s=duration_s, cpu_s=collected.cpu_s, strays=strays
            )

    def _spawn(self, command: Command, output: Output, tag: str) -> int:
        try:
            self._guard.start()
            return spawn(command, output, tag)
        except BaseException:
            for path in output.paths:
                path.unlink(missing_ok=True)
            raise

    def _family(self, tag: str, leader: int | None = None, output: Output | None = None) -> Family:
        """`leader` and what it starts; without one, all that carries the tag, and that can only be younger than this process."""
        entry = self._table.entry(os.getpid() if leader is None else leader)
        born = None if entry is None else entry.born
        files = frozenset() if output is None else output.files
        return Family(table=self._table, tag=tag, leader=leader, born=born, files=files)

    def _clear(self, watched: Watched, family: Family) -> int:
        """Kill the family; how many had outlived their leader. The leader's number is free for others only after this."""
        watched.end()
        strays = family.kill(self._spare())
        if family.leader is not None:
            self._guard.discard(family.leader)
        return strays

    def _clear_forked(self, watched: Watched, family: Family) -> int:
        """A fork that has given its answer is about to exit: to wait for that is cheaper than to hunt it."""
        if watched.cause == "exit":
            for _ in range(FAREWELL_LOOKS):
                if family.leader_ended():
                    break
                time.sleep(FAREWELL_S)
        return self._clear(watched, family)

    def _release(self, watched: Watched, family: Family) -> int:
        """Let the family live on; it still carries its tag."""
        watched.end()
        self._kept.add(family.tag)
        if family.leader is not None:
            self._guard.discard(family.leader)
        return 0

    def _stop(self, watched: Watched, *, at_once: bool) -> None:
        watched.stop("cancelled", at_once=at_once)
        self._monitor.nudge()

    def _reap(self, tag: str) -> int:
        given = [known for known in list(self._first) if known == tag or known.startswith(tag + "/")]
        family = self._family(tag)
        firsts = [first for known in given if (first := self._first.pop(known, None)) is not None]
        if given and tag != self.session_tag and not self._kept.intersection(given):
            return 0  # each was cleared to the last process when it ended, and nobody was left to start another
        self._kept.difference_update(given)
        if firsts and tag != self.session_tag:
            family.lowest, family.started_s = min(pid for pid, _ in firsts), min(began for _, began in firsts)
        return family.kill(self._spare(), looks=2 if family.lowest is None else 1)

    def _spare(self) -> frozenset[int]:
        return frozenset(pid for pid in (os.getpid(), self._guard.pid) if pid is not None)

    def _close(self, patience_s: float) -> None:
        with self._closing:
            if self._closed:
                return
            self._monitor.cancel(at_once=False)
            if not self._monitor.wait_idle(patience_s):
                self._monitor.cancel(at_once=True)
                self._monitor.wait_idle(1.0)
            if self._guard.pid is not None:  # else nothing was ever started
                self._reap(self.session_tag)
            self._guard.close()
            self._monitor.close()
            self._closed = True
