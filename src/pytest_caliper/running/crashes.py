"""Attempts whose xdist worker died: run once more, and accounted for as infra_error when that one died too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.reports import tell_of
from pytest_caliper.runs.records import AttemptRecord

if TYPE_CHECKING:
    from pytest_caliper.running.resuming import Known


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """One death of a worker while it ran an attempt."""

    nodeid: str
    known: Known
    worker: str
    node: Any
    """xdist's WorkerController of the dead worker."""
    started: float
    """Seconds since the epoch."""
    seconds: float
    """From there to the death."""

    def record(self, workers: Sequence[str]) -> AttemptRecord:
        """The attempt as an infra_error after the death of these workers: what it had done and used is not known."""
        again = "the session ended before it could run again" if len(workers) == 1 else "it is not run again"
        return AttemptRecord(
            key=self.known.key,
            task_name=self.known.task.name,
            outcome="infra_error",
            reason=f"the xdist worker {' and then '.join(workers)} died while it ran the attempt; {again}",
            output="",
            duration_seconds=0.0,
            started=self.started,
            wall_seconds=self.seconds,
            retries=len(workers) - 1,
            transcript_truncated=True,
        )

    def for_good(self, report: Any, workers: Sequence[str]) -> None:
        """Make the crash's report that of the attempt."""
        report.when, report.outcome = "call", "skipped"
        tell_of(self.known, self.record(workers), report)

    def after_its_end(self, report: Any) -> None:
        """The attempt had been reported: its outcome stands, and what died was its teardown."""
        report.when, report.outcome = "teardown", "failed"
        report.longrepr = f"the xdist worker {self.worker} died after the attempt had ended; the attempt's outcome stands"

    def with_the_session(self, report: Any) -> None:
        """The attempt was about to be cancelled anyway: that makes no record."""
        report.when, report.outcome = "call", "skipped"
        line = self.known.task.line + 1
        report.longrepr = (str(self.known.path), line, "Skipped: the session stopped before this attempt ended")


@dataclass
class Crashes:
    """The attempts that were lost, by node id."""

    _lost: dict[str, list[Lost]] = field(default_factory=dict)
    _given_up: set[str] = field(default_factory=set)

    def add(self, lost: Lost) -> None:
        """Another worker died with an attempt."""
        self._lost.setdefault(lost.nodeid, []).append(lost)

    def times(self, nodeid: str) -> int:
        """How many workers died with it."""
        return len(self._lost.get(nodeid, ()))

    def workers(self, nodeid: str) -> list[str]:
        """Their names."""
        return [lost.worker for lost in self._lost.get(nodeid, ())]

    def first_node(self, nodeid: str) -> Any:
        """xdist's node of the first worker that died with it, or None."""
        return self._lost[nodeid][0].node if nodeid in self._lost else None

    def give_up(self, nodeid: str) -> None:
        """It is accounted for as lost."""
        self._given_up.add(nodeid)

    def given_up(self, nodeid: str) -> bool:
        """Whether it is."""
        return nodeid in self._given_up

    @property
    def all_given_up(self) -> list[str]:
        """All that are, sorted."""
        return sorted(self._given_up)

    def waiting(self) -> Iterator[Lost]:
        """Those that should run once more, by their last death."""
        return iter([lost[-1] for nodeid, lost in self._lost.items() if nodeid not in self._given_up])


def mute(report: pytest.TestReport) -> None:
    """Make a report one that nobody counts or shows: that of a set-up that passed."""
    report.when, report.outcome, report.longrepr = "setup", "passed", None
    report.sections, report.duration = [], 0.0
    for name in ("caliper", "caliper_outcome", "caliper_transcript", "wasxfail"):
        vars(report).pop(name, None)


def tidy_scopes(sched: Any, given_up: Iterable[str]) -> None:
    """Take what need not run out of the queue of xdist's schedulers by scope (`--dist loadscope` and its kin).

    They give a dead worker's scopes to others as they are, with the item that it died of; and a worker that gets a scope with
    nothing left in it waits for ever (pytest-xdist 3.8).
    """
    queue: dict[str, dict[str, bool]] = getattr(sched, "workqueue", {})
    for scope, unit in list(queue.items()):
        unit.update(dict.fromkeys(unit.keys() & set(given_up), True))
        if all(unit.values()):
            del queue[scope]
