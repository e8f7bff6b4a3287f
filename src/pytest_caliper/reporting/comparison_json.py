"""A comparison as JSON: the fields of caliper-eval 0.9's `compare --format json`, and ours beside them.

Its fields keep its meaning, with one exception: tasks whose prompt or checks changed stay in `matched`, but have no `delta`, are
no `regression` and leave the averages. Rates are 0 to 1, times are seconds, unknown is null. docs/commands.md lists every field.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pytest_caliper.reporting.comparing import ComparedTask, RunComparison, Side
from pytest_caliper.reporting.figures import ArmFigures, planned
from pytest_caliper.reporting.usage import usage_totals
from pytest_caliper.runs.document import meta_json
from pytest_caliper.runs.jsontext import plain
from pytest_caliper.runs.records import TaskResult
from pytest_caliper.scoring import Comparison, Over, bounds, wilson


def comparison_json(comparison: RunComparison) -> dict[str, Any]:
    """The comparison made of JSON's own types."""
    before, after = comparison.before, comparison.after
    kinds = {difference.kind for difference in comparison.differences}
    arms = before.run is after.run
    usage = usage_totals(before.results), usage_totals(after.results)
    theirs = {
        "a": meta_json(before.run.meta),
        "b": meta_json(after.run.meta),
        "a_label": before.label if arms else None,
        "b_label": after.label if arms else None,
        "matched": [_task(task) for task in comparison.tasks],
        "unmatched_a": [result.task_name for result in comparison.unmatched_before],
        "unmatched_b": [result.task_name for result in comparison.unmatched_after],
        "a_matched_avg": before.compared.suite.rate if before.compared.suite else None,
        "b_matched_avg": after.compared.suite.rate if after.compared.suite else None,
        "aggregate_delta": comparison.comparison.delta if comparison.comparison else None,
        "has_regression": comparison.has_regression,
        "k_mismatch": "k" in kinds,
        "spec_mismatch": before.run.meta.spec != after.run.meta.spec,
        "warnings": [difference.text for difference in comparison.differences],
        "a_usage": usage[0],
        "b_usage": usage[1],
        "token_delta": comparison.token_delta,
        "wall_delta": comparison.wall_delta_s,
    }
    ours = {
        "verdict": None if comparison.comparison is None else comparison.comparison.word,
        "comparison": None if comparison.comparison is None else verdict_json(comparison.comparison),
        "delta_bounds": None if comparison.delta_bounds is None else list(comparison.delta_bounds),
        "not_comparable": [task.name for task in comparison.not_comparable],
        "unmeasured": [task.name for task in comparison.unmeasured],
        "differences": [asdict(difference) for difference in comparison.differences],
        "a_file": before.run.saved,
        "b_file": after.run.saved,
        "a_figures": _side(before),
        "b_figures": _side(after),
    }
    result: dict[str, Any] = plain({**theirs, **ours})
    return result


def more_json(value: int | Over | None) -> int | str | None:
    """A number of attempts; `over 200` beyond what is worth counting."""
    return str(value) if isinstance(value, Over) else value


def figures_json(figures: ArmFigures) -> dict[str, Any]:
    """Rate with its interval, counts, coverage, and what the lost attempts leave possible."""
    suite = figures.suite
    return {
        "rate": suite.rate if suite else None,
        "interval": [suite.low, suite.high] if suite else None,
        "successes": figures.successes,
        "usable": figures.usable,
        "planned": figures.planned,
        "coverage": figures.usable / figures.planned if figures.planned else None,
        "worst_case": [figures.worst, figures.best] if figures.worst is not None and figures.lost else None,
    }


def _task(task: ComparedTask) -> dict[str, Any]:
    return {
        "task_name": task.name,
        "a_score": task.before_rate,
        "b_score": task.after_rate,
        "delta": task.delta,
        "regression": task.regression,
        "a_outcomes": [record.outcome for record in task.before.attempts],
        "b_outcomes": [record.outcome for record in task.after.attempts],
        "comparable": task.comparable,
        "changed": list(task.changed),
        "verdict": task.change.word if task.change else None,
        "p": task.change.p if task.change else None,
        "a_counts": _counts(task.before),
        "b_counts": _counts(task.after),
    }


def _counts(result: TaskResult) -> dict[str, Any]:
    lost = planned(result) - result.usable
    limits = wilson(result.successes, result.usable)
    could = bounds(result.successes, result.usable, lost)
    return {
        "task_id": result.task_id,
        "successes": result.successes,
        "usable": result.usable,
        "planned": planned(result),
        "interval": None if limits is None else list(limits),
        "worst_case": list(could) if could is not None and lost else None,
    }


def verdict_json(found: Comparison) -> dict[str, Any]:
    """Δ with its interval, p, word and the attempts that would tell more."""
    return {
        "delta": found.delta,
        "interval": [found.low, found.high],
        "p": found.p,
        "word": found.word,
        "tasks": found.tasks,
        "more_attempts": more_json(found.more),
    }


def _side(side: Side) -> dict[str, Any]:
    return {**figures_json(side.figures), "compared": figures_json(side.compared)}
