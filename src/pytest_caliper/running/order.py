"""In which order attempts run, in the pool and under xdist alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.runs.records import AttemptKey


class Asked(Protocol):
    """An attempt that somebody wants to run."""

    @property
    def key(self) -> AttemptKey: ...

    @property
    def plan(self) -> SpecPlan: ...


A = TypeVar("A", bound=Asked)


def rounds(attempts: Sequence[A]) -> list[A]:
    """Attempt 1 of every task before attempt 2 of any; in a round the longest expected first, arms of a task together.

    A task that never ran is expected to take what the others take on average. Equals keep their order.
    """
    expected = expected_seconds(attempts)
    usual = sum(expected.values()) / len(expected) if expected else 0.0
    return sorted(attempts, key=lambda asked: (asked.key.attempt, -expected.get((asked.key.spec, asked.key.task_id), usual)))


def expected_seconds(attempts: Sequence[Asked]) -> dict[tuple[str, str], float]:
    """(spec, task id) -> mean seconds of its attempts in the spec's last run; nothing where there is no last run."""
    plans = {id(asked.plan): asked.plan for asked in attempts}.values()
    return {(str(plan.spec.path), task_id): mean for plan in plans for task_id, mean in last_seconds(plan).items()}


def last_seconds(plan: SpecPlan) -> dict[str, float]:
    """Task id -> mean seconds of its attempts in the spec's last run; nothing where there is no last run."""
    from pytest_caliper.runs.newest import newest_run

    run, _ = newest_run(plan.results)  # only the order of work depends on it
    if run is None:
        return {}
    names = {task.name: task.task_id for task in plan.spec.tasks}
    return {
        names[result.task_name]: sum(record.wall_seconds for record in result.attempts) / len(result.attempts)
        for result in (() if run.meta.replay else run.results)
        if result.attempts and result.task_name in names
    }
