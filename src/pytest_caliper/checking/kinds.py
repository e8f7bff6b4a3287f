"""What is tried of a task's checks, and how each trial differs from an attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pytest_caliper.contracts import AttemptPlan
from pytest_caliper.spec.model import Task

Kind = Literal["assert-fails", "judge-says-no", "solution-passes"]
"""Also the names of the nodes: each says what must be so."""

NUMBERS: dict[Kind, int] = {"assert-fails": 1, "judge-says-no": 2, "solution-passes": 3}
"""They stand where the number of an attempt does, so that no two trials of a task share a place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One check of a task, tried on an attempt in which no agent ran."""

    kind: Kind

    @property
    def number(self) -> int:
        return NUMBERS[self.kind]

    def task(self, task: Task) -> Task:
        """The task with what this trial looks at, and no more: one check, and a solution only where one is to be applied."""
        if self.kind == "assert-fails":
            return replace(task, expect=None, solution=None)
        if self.kind == "judge-says-no":
            return replace(task, assertion=None, solution=None)
        return replace(task, expect=None)

    def plan(self, plan: AttemptPlan) -> AttemptPlan:
        """The plan of an attempt as one of this trial. It keeps nothing: what it writes goes away with the session."""
        task = self.task(plan.task)
        place = plan.root.with_name(f"{plan.root.name}.jsonl")
        return replace(plan, task=task, transcript_path=place, transcript_spare=None)


def trials(task: Task, *, ask_judge: bool) -> Iterator[Trial]:
    """What can be tried of a task.

    The judge is never asked about a solution. It would have no transcript to judge, and say no to any `expect:` that is about
    the way there; and each yes would cost a call.
    """
    if task.assertion is not None:
        yield Trial(kind="assert-fails")
    if task.expect is not None and ask_judge:
        yield Trial(kind="judge-says-no")
    if task.assertion is not None and task.solution is not None:
        yield Trial(kind="solution-passes")
