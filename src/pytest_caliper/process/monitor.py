"""One thread that keeps time for every process of a session: deadlines, output bounds, cancellation, escalation.

Nobody polls for the end of a process: each caller blocks in the kernel until its own has ended.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from pytest_caliper.process.output import Output
from pytest_caliper.process.reaping import Family

Cause = Literal["exit", "timeout", "cancelled", "output"]

GRACE_S = 1.0
"""From SIGINT (on which a CLI can still report its usage) to SIGTERM, and from there to SIGKILL."""


class Watched:
    """One process group under watch. `cause` says why it ended, or is about to."""

    def __init__(self, timeout_s: float, spare: Callable[[], frozenset[int]]) -> None:
        self._lock = threading.RLock()
        self._timeout_s = timeout_s
        self._spare = spare
        self._deadline = math.inf
        self._cause: Cause = "exit"
        self._signals: list[tuple[float, int]] = []
        self._family: Family | None = None
        self._output: Output | None = None
        self._next_look = math.inf
        self._over = False

    @property
    def cause(self) -> Cause:
        return self._cause

    @property
    def pid(self) -> int | None:
        """The group's leader; None before it was started."""
        return None if self._family is None else self._family.leader

    def begin(self, family: Family, output: Output | None = None) -> None:
        """From now on the time counts. What was asked for before (`stop`) comes at the next tick."""
        with self._lock:
            now = time.monotonic()
            self._family, self._output = family, output
            self._deadline = now + self._timeout_s
            if output is not None:
                self._next_look = output.next_look_s(now)

    def stop(self, cause: Cause, *, at_once: bool = False) -> None:
        """Ask the process to end, or kill it at once. Nothing happens when it has ended already; the first cause stays."""
        with self._lock:
            if self._over:
                return
            now = time.monotonic()
            if self._cause == "exit":
                if self._family is not None and self._family.leader_ended():
                    self._deadline = self._next_look = math.inf
                    return
                self._cause = cause
                steps = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
                self._signals = [(now + step * GRACE_S, number) for step, number in enumerate(steps)]
            if at_once:
                self._signals = [(now, signal.SIGKILL)]

    def end(self) -> None:
        """No signal is sent after this."""
        with self._lock:
            self._over = True

    def tick(self, now: float) -> float:
        """Do what is due; when to come again (monotonic seconds)."""
        with self._lock:
            if self._over or self._family is None:
                return math.inf
            if now >= self._next_look:
                self._look(now)
            if self._cause == "exit":
                if now < self._deadline:
                    return min(self._deadline, self._next_look)
                self.stop("timeout")
            while self._signals and self._signals[0][0] <= time.monotonic():
                self._family.note(self._spare())
                self._family.signal_leaders_group(self._signals.pop(0)[1])
            return min(self._next_look, self._signals[0][0] if self._signals else math.inf)

    def _look(self, now: float) -> None:
        if self._output is None:
            return
        if self._output.too_large():
            # What it could still say would be cut off: no reason to let it fill the disk for two more seconds.
            self.stop("output", at_once=True)
            self._output.cut()
        self._next_look = self._output.next_look_s(now)


class Monitor:
    """The thread, started with the first process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._idle = threading.Condition(self._lock)
        self._watched: set[Watched] = set()
        self._thread: threading.Thread | None = None
        self._nudged = False
        self._closed = False
        self.cancelled = False

    @contextmanager
    def watching(self, watched: Watched) -> Iterator[None]:
        """Keep an eye on `watched`; when all is cancelled already, it is stopped before it begins."""
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="caliper-monitor", daemon=True)
                self._thread.start()
            self._watched.add(watched)
            if self.cancelled:
                watched.stop("cancelled")
        try:
            yield
        finally:
            watched.end()
            with self._lock:
                self._watched.discard(watched)
                self._idle.notify_all()
                if self._closed:
                    self.nudge()

    def nudge(self) -> None:
        """Look at everything again: a process has begun or shall stop."""
        with self._lock:
            self._nudged = True
            self._wake.notify()

    def cancel(self, *, at_once: bool) -> None:
        with self._lock:
            self.cancelled = True
            watched = tuple(self._watched)
        for each in watched:
            each.stop("cancelled", at_once=at_once)
        self.nudge()

    def wait_idle(self, timeout_s: float) -> bool:
        """True when nothing is under watch any more."""
        with self._lock:
            return self._idle.wait_for(lambda: not self._watched, timeout_s)

    def close(self) -> None:
        """End the thread as soon as nothing is under watch."""
        with self._lock:
            self._closed = True
            thread, idle = self._thread, not self._watched
        self.nudge()
        if thread is not None and idle:
            thread.join(5)

    def _run(self) -> None:
        try:
            while self._watched or not self._closed:
                with self._lock:
                    self._nudged = False
                    watched = tuple(self._watched)
                next_s = min((each.tick(time.monotonic()) for each in watched), default=math.inf)
                with self._lock:
                    if not self._nudged:
                        self._wake.wait(max(0.0, min(next_s - time.monotonic(), threading.TIMEOUT_MAX)))
        finally:
            # Should a fault end this thread, nothing would keep time any more: nothing may go on then.
            if not self._closed:
                self.cancelled = True
                for each in tuple(self._watched):
                    each.stop("cancelled", at_once=True)
                    each.tick(time.monotonic())
