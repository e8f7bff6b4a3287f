"""Two runs of one spec, or the two arms of one run, side by side: what can be compared, and what the difference says.

Pure: facts in, numbers out. Rows read before -> after everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pytest_caliper.reporting.differing import Difference, run_differences, task_changes, unverified
from pytest_caliper.reporting.figures import ArmFigures, arm_figures, planned
from pytest_caliper.runs.records import Run, TaskResult
from pytest_caliper.scoring import Bounds, Comparison, Table, TaskChange, bounds, compare_arms, compare_tasks, success_rate


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of the two: a run's skill arm, or one arm of a run with a baseline."""

    label: str
    """`before` and `after`, or `no skill` and `with skill`."""
    run: Run
    results: tuple[TaskResult, ...]
    """All of the side's tasks."""
    figures: ArmFigures
    """Over all of them."""
    compared: ArmFigures
    """Over those that the headline covers: on both sides, comparable, and measured on both."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedTask:
    """A task that both sides have."""

    name: str
    before: TaskResult
    after: TaskResult
    changed: tuple[str, ...]
    """What the task asks for or judges by that is not the same: `prompt`, `expect`, `assert`, `setup or cleanup`."""
    change: TaskChange | None
    """None where the task is not comparable, or was not measured on both sides."""

    @property
    def comparable(self) -> bool:
        return not self.changed

    @property
    def measured(self) -> bool:
        """Whether both sides have a usable attempt."""
        return bool(self.before.usable and self.after.usable)

    @property
    def before_rate(self) -> float | None:
        return success_rate(self.before.successes, self.before.usable)

    @property
    def after_rate(self) -> float | None:
        return success_rate(self.after.successes, self.after.usable)

    @property
    def delta(self) -> float | None:
        """Difference of the rates, -1 to 1; None where `change` is."""
        return None if self.change is None else self.change.delta

    @property
    def regression(self) -> bool:
        """caliper-eval's rule: a rate below the one before, by however little. Chance is `change.word`'s business."""
        return self.delta is not None and self.delta < 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunComparison:
    """Everything a report says of two sides."""

    before: Side
    after: Side
    tasks: tuple[ComparedTask, ...]
    """Tasks that both have, matched by name, in the order of `after`."""
    unmatched_before: tuple[TaskResult, ...]
    unmatched_after: tuple[TaskResult, ...]
    comparison: Comparison | None
    """The headline over comparable tasks measured on both sides; None when there is none."""
    delta_bounds: Bounds | None
    """Least and greatest difference that the attempts lost in those tasks leave possible; None when none was lost there."""
    differences: tuple[Difference, ...]
    """What else is not the same, a sentence each. Empty for the arms of one run."""

    @property
    def has_regression(self) -> bool:
        """caliper-eval's rule: any task below."""
        return any(task.regression for task in self.tasks)

    @property
    def regressions(self) -> tuple[ComparedTask, ...]:
        return tuple(task for task in self.tasks if task.regression)

    @property
    def not_comparable(self) -> tuple[ComparedTask, ...]:
        return tuple(task for task in self.tasks if not task.comparable)

    @property
    def unmeasured(self) -> tuple[ComparedTask, ...]:
        """Comparable tasks that have no usable attempt on at least one side."""
        return tuple(task for task in self.tasks if task.comparable and not task.measured)

    @property
    def token_delta(self) -> int | None:
        """All tokens of the second side less those of the first; None where one side told none. Never a regression."""
        before, after = self.before.figures.spend.total_tokens, self.after.figures.spend.total_tokens
        return None if before is None or after is None else after - before

    @property
    def wall_delta_s(self) -> float | None:
        """The agents' own time, all attempts, seconds."""
        before, after = self.before.figures.spend.wall_s, self.after.figures.spend.wall_s
        return None if before is None or after is None else after - before


def compare_runs(before: Run, after: Run) -> RunComparison:
    """The skill arms of two runs, tasks matched by name."""
    return _compared(
        ("before", before, before.results),
        ("after", after, after.results),
        _matched(before.results, after.results),
        differences=run_differences(before, after),
    )


def baseline_comparison(run: Run) -> RunComparison | None:
    """No skill -> with skill, within one run, tasks matched by their ids; None when the run has no baseline."""
    if run.baseline_results is None:
        return None
    base = {result.task_id: result for result in run.baseline_results}
    pairs = [(base[result.task_id], result) for result in run.results if result.task_id in base]
    return _compared(("no skill", run, run.baseline_results), ("with skill", run, run.results), pairs, differences=())


_Pair = tuple[TaskResult, TaskResult]


def _matched(before: Sequence[TaskResult], after: Sequence[TaskResult]) -> list[_Pair]:
    """Tasks of the same name; the first of a name meets the first, the second the second."""
    waiting: dict[str, list[TaskResult]] = defaultdict(list)
    for result in reversed(before):
        waiting[result.task_name].append(result)
    return [(waiting[result.task_name].pop(), result) for result in after if waiting[result.task_name]]


def _compared(
    before: tuple[str, Run, tuple[TaskResult, ...]],
    after: tuple[str, Run, tuple[TaskResult, ...]],
    pairs: Sequence[_Pair],
    *,
    differences: tuple[Difference, ...],
) -> RunComparison:
    changed = [() if before[1] is after[1] else task_changes(one, other, before[1], after[1]) for one, other in pairs]
    same = [pair for pair, what in zip(pairs, changed, strict=True) if not what]
    tables: list[Table] = [(b.successes, b.usable, a.successes, a.usable) for b, a in same]
    changes = iter(compare_tasks(tables))
    tasks = tuple(
        ComparedTask(name=a.task_name, before=b, after=a, changed=what, change=None if what else next(changes))
        for (b, a), what in zip(pairs, changed, strict=True)
    )
    headline = [(b, a) for b, a in same if b.usable and a.usable]
    doubts = () if before[1] is after[1] else unverified(same, before[1], after[1])
    return RunComparison(
        before=_side(*before, headline=[b for b, _ in headline]),
        after=_side(*after, headline=[a for _, a in headline]),
        tasks=tasks,
        unmatched_before=_without(before[2], (b for b, _ in pairs)),
        unmatched_after=_without(after[2], (a for _, a in pairs)),
        comparison=compare_arms(tables),
        delta_bounds=_delta_bounds(headline),
        differences=(*differences, *doubts),
    )


def _side(label: str, run: Run, results: tuple[TaskResult, ...], *, headline: Sequence[TaskResult]) -> Side:
    return Side(label=label, run=run, results=results, figures=arm_figures(results), compared=arm_figures(headline))


def _without(results: Iterable[TaskResult], matched: Iterable[TaskResult]) -> tuple[TaskResult, ...]:
    taken = {id(result) for result in matched}
    return tuple(result for result in results if id(result) not in taken)


def _delta_bounds(headline: Sequence[_Pair]) -> Bounds | None:
    """Means over the tasks of the extremes: everything lost passed on one side and failed on the other."""
    if not any(planned(result) > result.usable for pair in headline for result in pair):
        return None
    limits = [(_limits(before), _limits(after)) for before, after in headline]
    low = sum(after[0] - before[1] for before, after in limits) / len(limits)
    high = sum(after[1] - before[0] for before, after in limits) / len(limits)
    return Bounds(float(low), float(high))


def _limits(result: TaskResult) -> tuple[Fraction, Fraction]:
    limits = bounds(result.successes, result.usable, planned(result) - result.usable)
    if limits is None:
        raise ValueError(f"{result.task_id} has no attempt")
    return Fraction(limits.low), Fraction(limits.high)
