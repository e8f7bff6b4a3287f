"""Several runs of a spec as a line of numbers, and where one of them is more than chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_caliper.reporting.differing import Difference, meta_differences
from pytest_caliper.reporting.style import Style
from pytest_caliper.runs.records import RunMeta
from pytest_caliper.runs.skimming import RunCounts, TaskCounts
from pytest_caliper.scoring import (
    ALPHA,
    Comparison,
    SuiteDelta,
    SuiteRate,
    Table,
    Word,
    compare_arms,
    holm,
    suite_delta,
    suite_rate,
)

_BARS = "▁▂▃▄▅▆▇█"
_DIGITS = "0123456789"
"""Tenths, where the terminal has no bars."""
_GAP = "·"
"""A run in which nothing was usable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One run of the line."""

    counts: RunCounts
    suite: SuiteRate | None
    """None when nothing was usable."""
    skill_delta: SuiteDelta | None
    """With the skill less without it; None without a baseline, or where no task was measured in both arms."""

    @property
    def meta(self) -> RunMeta:
        return self.counts.meta

    @property
    def successes(self) -> int:
        return sum(task.successes for task in self.counts.results)

    @property
    def usable(self) -> int:
        return sum(task.usable for task in self.counts.results)

    @property
    def planned(self) -> int:
        return sum(task.planned for task in self.counts.results)

    @property
    def engine(self) -> str:
        """`backend:model`, as the run file has it."""
        return self.meta.backend if self.meta.model is None else f"{self.meta.backend}:{self.meta.model}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """From one run of the line to the next."""

    differences: tuple[Difference, ...]
    comparison: Comparison | None
    """Over the tasks that both measured and that ask for the same; None when there is none."""
    word: Word
    """The comparison's word, taken back where the number of steps looked at explains it (Holm over all steps of the line)."""


def point(counts: RunCounts) -> Point:
    """The run's numbers."""
    return Point(
        counts=counts,
        suite=suite_rate((task.successes, task.usable) for task in counts.results),
        skill_delta=None if counts.baseline_results is None else suite_delta(_arms(counts)),
    )


def steps(points: Sequence[Point]) -> list[Step]:
    """One fewer than the points, which are in order of time."""
    pairs = [(points[i - 1], points[i]) for i in range(1, len(points))]
    compared = [compare_arms(_tables(before, after), advice=False) for before, after in pairs]
    corrected = iter(holm(found.p for found in compared if found is not None))
    made = []
    for (before, after), found in zip(pairs, compared, strict=True):
        word: Word = "no evidence"
        if found is not None and next(corrected) <= ALPHA:
            word = found.word
        made.append(Step(differences=_differences(before, after), comparison=found, word=word))
    return made


def task_lines(points: Sequence[Point]) -> dict[str, list[float | None]]:
    """By task name, those of the last run first: the task's rate in each run, None where it is unknown."""
    names = dict.fromkeys(task.task_name for one in reversed(points) for task in one.counts.results)
    by_run = [{task.task_name: task for task in one.counts.results} for one in points]
    return {name: [_rate(tasks.get(name)) for tasks in by_run] for name in names}


def sparkline(rates: Iterable[float | None], style: Style, *, width: int) -> str:
    """The last `width` rates, a bar each on a scale of 0 to 1: digits of tenths where the terminal has no bars."""
    levels = _BARS if style.unicode else _DIGITS
    shown = list(rates)[-max(1, width) :]
    return "".join(style.own(_GAP) if rate is None else levels[min(len(levels) - 1, int(rate * len(levels)))] for rate in shown)


def _arms(counts: RunCounts) -> list[Table]:
    skill = {task.task_id: task for task in counts.results}
    pairs = [(base, skill[base.task_id]) for base in counts.baseline_results or () if base.task_id in skill]
    return [(base.successes, base.usable, task.successes, task.usable) for base, task in pairs]


def _tables(before: Point, after: Point) -> list[Table]:
    earlier = {task.task_name: task for task in before.counts.results}
    pairs = [(earlier[task.task_name], task) for task in after.counts.results if task.task_name in earlier]
    return [
        (b.successes, b.usable, a.successes, a.usable)
        for b, a in pairs
        if not _changed(_hash(b, before.meta), _hash(a, after.meta))
    ]


def _changed(before: object, after: object) -> bool:
    """Whether a task is known to ask for something else now."""
    return before is not None and after is not None and before != after


def _hash(task: TaskCounts, meta: RunMeta) -> object:
    hashes = meta.contract.get("tasks")
    return hashes.get(task.task_id) if isinstance(hashes, Mapping) else None


def _differences(before: Point, after: Point) -> tuple[Difference, ...]:
    found = list(meta_differences(before.meta, after.meta))
    if before.counts.skill != after.counts.skill:
        found.append(Difference(kind="skill", text="the skill changed"))
    return tuple(found)


def _rate(task: TaskCounts | None) -> float | None:
    return task.successes / task.usable if task is not None and task.usable else None
