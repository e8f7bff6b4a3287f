"""What a report says of a run, as numbers: derived from its records each time, never stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_caliper.runs.records import AttemptRecord, Run, TaskResult
from pytest_caliper.scoring import Comparison, SuiteRate, Table, TaskChange, bounds, compare_arms, compare_tasks, suite_rate

Status = Literal["PASS", "PARTIAL", "FAIL", "ABORTED", "UNMEASURED"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spend:
    """What attempts cost. None where no attempt reported it."""

    attempts: int
    prompt_tokens: int | None
    """Input and both cache fields."""
    output_tokens: int | None
    complete: bool
    """True when every attempt reported its usage."""
    wall_s: float | None
    """The agents' own time, seconds; None without any attempt."""

    @property
    def total_tokens(self) -> int | None:
        if self.prompt_tokens is None and self.output_tokens is None:
            return None
        return (self.prompt_tokens or 0) + (self.output_tokens or 0)

    @property
    def wall_per_attempt_s(self) -> float | None:
        return None if self.wall_s is None else self.wall_s / self.attempts


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmFigures:
    """One arm of a run, all tasks together."""

    suite: SuiteRate | None
    """None when nothing was usable."""
    successes: int
    usable: int
    planned: int
    unusable: int
    """Attempts that ran and do not count."""
    worst: float | None
    """Mean of the tasks' rates had every planned attempt that does not count failed; None when nothing was planned."""
    best: float | None
    """The same, had they all passed."""
    tasks: int
    flawless: int
    """Tasks whose every planned attempt passed."""
    spend: Spend
    """All attempts."""
    usable_spend: Spend
    unusable_spend: Spend

    @property
    def lost(self) -> int:
        """Planned attempts that do not count: unusable ones and those that never ran."""
        return self.planned - self.usable


def status_word(result: TaskResult) -> Status:
    """The task in one word: ABORTED when stopped early, UNMEASURED when nothing was usable, else by its usable attempts."""
    if result.aborted:
        return "ABORTED"
    if not result.usable:
        return "UNMEASURED"
    if result.successes == result.usable:
        return "PASS"
    return "PARTIAL" if result.successes else "FAIL"


def planned(result: TaskResult) -> int:
    """Attempts asked for; never fewer than there are."""
    return max(result.planned, len(result.attempts))


def spend(records: Iterable[AttemptRecord]) -> Spend:
    """What these attempts cost together."""
    attempts = list(records)
    usages = [record.usage for record in attempts if record.usage is not None]
    prompts = [
        usage.prompt_tokens
        for usage in usages
        if (usage.input_tokens, usage.cache_read_tokens, usage.cache_creation_tokens) != (None, None, None)
    ]
    outputs = [usage.output_tokens for usage in usages if usage.output_tokens is not None]
    return Spend(
        attempts=len(attempts),
        prompt_tokens=sum(prompts) if prompts else None,
        output_tokens=sum(outputs) if outputs else None,
        complete=len(prompts) == len(outputs) == len(attempts),
        wall_s=sum(record.duration_seconds for record in attempts) if attempts else None,
    )


def arm_figures(results: Sequence[TaskResult]) -> ArmFigures:
    """The arm's numbers over all its tasks."""
    limits = [b for r in results if (b := bounds(r.successes, r.usable, planned(r) - r.usable)) is not None]
    records = [record for result in results for record in result.attempts]
    return ArmFigures(
        suite=suite_rate((r.successes, r.usable) for r in results),
        successes=sum(r.successes for r in results),
        usable=sum(r.usable for r in results),
        planned=sum(map(planned, results)),
        unusable=sum(r.unusable for r in results),
        worst=sum(b.low for b in limits) / len(limits) if limits else None,
        best=sum(b.high for b in limits) / len(limits) if limits else None,
        tasks=len(limits),
        flawless=sum(0 < planned(r) == r.successes for r in results),
        spend=spend(records),
        usable_spend=spend(r for r in records if r.usable),
        unusable_spend=spend(r for r in records if not r.usable),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineFigures:
    """The skill arm against the baseline arm of the same run."""

    comparison: Comparison | None
    """None when no task was measured in both arms."""
    changes: dict[str, TaskChange | None]
    """By task id; None for a task not measured in both arms."""


def baseline_figures(run: Run) -> BaselineFigures | None:
    """The comparison of the run's arms, tasks matched by id; None when the run has no baseline."""
    if run.baseline_results is None:
        return None
    base = {result.task_id: result for result in run.baseline_results}
    pairs = [(base[skill.task_id], skill) for skill in run.results if skill.task_id in base]
    tables: list[Table] = [(b.successes, b.usable, s.successes, s.usable) for b, s in pairs]
    changes = compare_tasks(tables)
    return BaselineFigures(
        comparison=compare_arms(tables),
        changes={skill.task_id: change for (_, skill), change in zip(pairs, changes, strict=True)},
    )


Arms = list[tuple[str, ArmFigures]]
"""The run's arms with their names for people; without a baseline one, named ``."""


def arms_of(run: Run) -> Arms:
    """The numbers of the arms that the run has."""
    if run.baseline_results is None:
        return [("", arm_figures(run.results))]
    return [("skill", arm_figures(run.results)), ("no skill", arm_figures(run.baseline_results))]


def paired(run: Run) -> list[tuple[TaskResult | None, TaskResult | None]]:
    """Each task of the run as (skill, baseline), in the order of the spec; None for an arm that does not have it."""
    skill = {result.task_id: result for result in run.results}
    base = {result.task_id: result for result in run.baseline_results or ()}
    return [(skill.get(task_id), base.get(task_id)) for task_id in {**skill, **base}]
