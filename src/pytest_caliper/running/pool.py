"""Runs jobs ahead of the one who will ask for them: bounded, in order, stoppable. Knows nothing of pytest."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class Stopped(Exception):
    """The pool was stopped before this job began."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    key: Hashable
    work: Callable[[], T]
    group: Hashable | None


class Pool(Generic[T]):
    """At most `workers` jobs at a time, a thread each; jobs begin in the order they came, jobs of one group one at a time.

    Threads, since a job only waits for child processes; daemon threads, since the interpreter must not wait for them at its
    end: whoever owns the pool stops the children and calls `join`.
    """

    def __init__(self, workers: int) -> None:
        self._changed = threading.Condition()
        self._queue: deque[_Job[T]] = deque()
        self._known: set[Hashable] = set()
        self._results: dict[Hashable, tuple[T | None, BaseException | None]] = {}
        self._running: dict[Hashable, _Job[T]] = {}
        self._begun: dict[Hashable, float] = {}
        self._workers = workers
        self._paused = self._stopped = False

    def __contains__(self, key: Hashable) -> bool:
        return key in self._known

    @property
    def running(self) -> list[Hashable]:
        """Keys of the jobs under way, oldest first."""
        with self._changed:
            return list(self._running)

    @property
    def running_for(self) -> dict[Hashable, float]:
        """Key -> seconds so far, of the jobs under way, oldest first."""
        now = time.monotonic()
        with self._changed:
            return {key: now - self._begun[key] for key in self._running}

    def submit(self, key: Hashable, work: Callable[[], T], *, group: Hashable | None = None, first: bool = False) -> None:
        """Queue a job, once per key. `first`: somebody waits for it already, so it takes the next free place."""
        job = _Job(key, work, group)
        with self._changed:
            if key in self._known or self._stopped:
                return
            self._known.add(key)
            if first:
                self._queue.appendleft(job)
            else:
                self._queue.append(job)
            self._fill()

    def result(self, key: Hashable, meanwhile: Callable[[], object] = bool) -> T:
        """Wait for a submitted job. Raises what it raised, or Stopped when it never began.

        A job whose turn has come begins even while the pool is paused. `meanwhile` is called every half second; what it raises
        ends the waiting.
        """
        self.wait(key, _never, meanwhile)
        with self._changed:
            value, error = self._results.pop(key)
        if error is not None:
            raise error
        return value  # type: ignore[return-value]

    def wait(self, key: Hashable, until: Callable[[], bool], meanwhile: Callable[[], object] = bool) -> bool:
        """As `result`, until the job has ended or `until` holds, which `look` has asked again. -> whether the job has ended."""
        with self._changed:
            while key not in self._results:
                if until():
                    return False
                queued = next((job for job in self._queue if job.key == key), None)
                if key not in self._running and (self._stopped or queued is None):
                    raise Stopped  # it never comes: forgotten, or taken already
                if queued is not None and self._may_begin(queued):
                    self._queue.remove(queued)
                    self._begin(queued)
                meanwhile()
                self._changed.wait(0.5)  # in slices, so that Ctrl-C is seen at once everywhere
        return True

    def look(self) -> None:
        """Have everybody who waits look again; from a job, when what somebody may wait for has come."""
        with self._changed:
            self._changed.notify_all()

    def pause(self) -> None:
        """Begin no job that nobody waits for."""
        with self._changed:
            self._paused = True

    def stop(self) -> None:
        """Begin nothing more and forget what waits."""
        with self._changed:
            self._stopped = True
            self._queue.clear()
            self._changed.notify_all()

    def join(self, timeout_s: float) -> bool:
        """Whether everything that ran has ended within the time."""
        end = time.monotonic() + timeout_s
        with self._changed:
            while self._running and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)
            return not self._running

    def _may_begin(self, job: _Job[T]) -> bool:
        return len(self._running) < self._workers and (
            job.group is None or all(job.group != other.group for other in self._running.values())
        )

    def _fill(self) -> None:
        if self._paused or self._stopped:
            return
        while (job := next((job for job in self._queue if self._may_begin(job)), None)) is not None:
            self._queue.remove(job)
            self._begin(job)

    def _begin(self, job: _Job[T]) -> None:
        self._running[job.key] = job
        self._begun[job.key] = time.monotonic()
        threading.Thread(target=self._work, args=(job,), name="caliper-attempt", daemon=True).start()

    def _work(self, job: _Job[T]) -> None:
        outcome: tuple[T | None, BaseException | None]
        try:
            outcome = job.work(), None
        except BaseException as error:  # noqa: BLE001  raised again where the result is asked for
            outcome = None, error
        with self._changed:
            self._results[job.key] = outcome
            del self._running[job.key], self._begun[job.key]
            self._fill()
            self._changed.notify_all()
