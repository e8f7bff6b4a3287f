"""A run in the vocabulary of the skill-creator skill: `benchmark.json`, and a `grading.json` for each attempt that was graded.

Field names: https://github.com/anthropics/skills, skills/skill-creator/references/schemas.md; numbers as its
scripts/aggregate_benchmark.py makes them, so that it says the same of the directory. docs/interop.md tells what each is made of.
An attempt without a verdict is among `unusable_runs`, never among `runs`: there it would have passed or failed.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import ArmFigures, arm_figures, baseline_figures
from pytest_caliper.runs.records import Arm, AttemptRecord, Run, TaskResult, Turn

_NO_CHEAT = "No forbidden file is touched"
_PASSES = "The attempt passes"

_TWO_RATES = "An attempt is a success when all its checks hold; pass_rate is the share of checks that hold."

AttemptId = tuple[Arm, str, int]
"""Arm, task id, number."""


@dataclass(kw_only=True)
class Activity:
    """What the transcript of an attempt shows."""

    tools: Counter[str] = field(default_factory=Counter)
    """Calls by the tool's name."""
    turns: int = 0
    chars: int = 0


@dataclass(frozen=True, kw_only=True)
class Graded:
    """One attempt with a verdict, and where it goes."""

    eval_id: int
    task: TaskResult
    record: AttemptRecord
    configuration: str
    grading: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The directory of its `grading.json`, relative to that of `benchmark.json`."""
        return f"eval-{self.eval_id}/{self.configuration}/run-{self.record.key.attempt}"


def activity(turns: Iterable[Turn]) -> Activity:
    """Counts the turns of one attempt."""
    found = Activity()
    for turn in turns:
        found.turns += 1
        found.chars += len(turn.content or turn.tool_output or "")
        if turn.role == "tool_use":
            found.tools[turn.tool_name or "?"] += 1
    return found


def graded(run: Run, activities: Mapping[AttemptId, Activity]) -> list[Graded]:
    """Every usable attempt, by task, arm and number. Without an entry in `activities` nothing is said of its tools."""
    ids = _eval_ids(run)
    return [
        Graded(
            eval_id=ids[task.task_id],
            task=task,
            record=record,
            configuration=configuration,
            grading=grading_json(task, record, activities.get((task.arm, task.task_id, record.key.attempt))),
        )
        for configuration, task in _tasks(run)
        for record in task.attempts
        if record.usable
    ]


def grading_json(task: TaskResult, record: AttemptRecord, seen: Activity | None) -> dict[str, Any]:
    """`grading.json` of one attempt; `seen` is None, or has no turns, where no transcript was kept."""
    expectations = _expectations(task, record)
    passed = sum(one["passed"] for one in expectations)
    metrics: dict[str, Any] = {"errors_encountered": 0, "output_chars": len(record.output)}
    if seen is not None and seen.turns:
        metrics = {
            "tool_calls": dict(sorted(seen.tools.items())),
            "total_tool_calls": seen.tools.total(),
            "total_steps": seen.turns,
            **metrics,
            "transcript_chars": seen.chars,
        }
    return {
        "expectations": expectations,
        "summary": {
            "passed": passed,
            "failed": len(expectations) - passed,
            "total": len(expectations),
            "pass_rate": round(passed / len(expectations), 4),
        },
        "execution_metrics": metrics,
        "timing": _timing(record),
    }


def benchmark_json(run: Run, attempts: Sequence[Graded]) -> dict[str, Any]:
    """`benchmark.json`; `attempts` are all that `graded` gave."""
    ids = _eval_ids(run)
    runs = [_run_json(one) for one in attempts]
    return {
        "metadata": {
            "skill_name": run.skills[0].name if run.skills else None,
            "skill_path": run.skills[0].path if run.skills else None,
            "executor_model": _executor(run),
            "analyzer_model": run.meta.judge_model,
            "timestamp": run.meta.timestamp,
            "evals_run": sorted(ids.values()),
            "runs_per_configuration": run.meta.k,
            "spec": run.meta.spec,
            "run_id": run.meta.id,
        },
        "runs": runs,
        "unusable_runs": list(_unusable(run, ids)),
        "run_summary": _summary(runs),
        "notes": list(_notes(run)),
    }


def _eval_ids(run: Run) -> dict[str, int]:
    """Task id -> number: `task-003` is 3. Tasks called otherwise are counted."""
    order = list(dict.fromkeys(task.task_id for _, task in _tasks(run)))
    tails = [task_id.rpartition("-")[2] for task_id in order]
    given = [int(tail) for tail in tails if tail.isascii() and tail.isdigit()]
    if len(set(given)) == len(order):
        return dict(zip(order, given, strict=True))
    return {task_id: number for number, task_id in enumerate(order, 1)}


def _tasks(run: Run) -> Iterator[tuple[str, TaskResult]]:
    """Each task of each arm with its configuration; both arms of a task together."""
    bare = not run.skills and run.baseline_results is None
    base = {task.task_id: task for task in run.baseline_results or ()}
    for task in run.results:
        yield "without_skill" if bare else "with_skill", task
        if task.task_id in base:
            yield "without_skill", base.pop(task.task_id)
    for task in base.values():
        yield "without_skill", task


def _expectations(task: TaskResult, record: AttemptRecord) -> list[dict[str, Any]]:
    """The checks that gave a verdict; at least one, and one of them false unless the attempt passed."""
    found = []
    if record.assert_passed is not None:
        evidence = record.assert_evidence or ("The assert held." if record.assert_passed else record.reason or "")
        found.append(
            {"text": f"assert: {(task.assert_ or '').strip()}".strip(), "passed": record.assert_passed, "evidence": evidence}
        )
    if record.autorater_passed is not None:
        text = (task.expect or "expect").strip()
        found.append({"text": text, "passed": record.autorater_passed, "evidence": record.autorater_reasoning or ""})
    if record.outcome == "cheat":
        evidence = "; ".join(record.cheat_evidence) or record.reason or ""
        found.append({"text": _NO_CHEAT, "passed": False, "evidence": evidence})
    if not found or all(one["passed"] for one in found) != (record.outcome == "pass"):
        found.append({"text": _PASSES, "passed": record.outcome == "pass", "evidence": record.reason or ""})
    return found


def _timing(record: AttemptRecord) -> dict[str, float]:
    grading = [seconds for seconds in (record.durations.assert_, record.durations.judge) if seconds is not None]
    timing = {"executor_duration_seconds": round(record.duration_seconds, 3)}
    if grading:
        timing["grader_duration_seconds"] = round(sum(grading), 3)
    return {**timing, "total_duration_seconds": round(record.duration_seconds + sum(grading), 3)}


def _run_json(one: Graded) -> dict[str, Any]:
    usage, metrics = one.record.usage, one.grading["execution_metrics"]
    known = usage is not None and any(
        part is not None
        for part in (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_creation_tokens)
    )
    summary = one.grading["summary"]
    return {
        "eval_id": one.eval_id,
        "eval_name": one.task.task_name,
        "configuration": one.configuration,
        "run_number": one.record.key.attempt,
        "result": {
            "pass_rate": summary["pass_rate"],
            "passed": summary["passed"],
            "failed": summary["failed"],
            "total": summary["total"],
            "time_seconds": one.grading["timing"]["total_duration_seconds"],
            "tokens": usage.total_tokens if usage is not None and known else None,
            "tool_calls": metrics.get("total_tool_calls"),
            "errors": metrics["errors_encountered"],
        },
        "expectations": one.grading["expectations"],
        "notes": [] if one.record.outcome == "pass" else [f"{one.record.outcome}: {one.record.reason or 'no reason kept'}"],
    }


def _unusable(run: Run, ids: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for configuration, task in _tasks(run):
        for record in task.attempts:
            if not record.usable:
                yield {
                    "eval_id": ids[task.task_id],
                    "eval_name": task.task_name,
                    "configuration": configuration,
                    "run_number": record.key.attempt,
                    "outcome": record.outcome,
                    "reason": record.reason,
                }


def _summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Statistics of each configuration that has one of the `runs`, and the difference where both have."""
    out: dict[str, Any] = {}
    for configuration in ("with_skill", "without_skill"):
        results = [one["result"] for one in runs if one["configuration"] == configuration]
        if results:
            known = {name: [r[name] for r in results if r[name] is not None] for name in ("pass_rate", "time_seconds", "tokens")}
            out[configuration] = {name: _statistics(values) for name, values in known.items() if values}
    if len(out) == 2:
        out["delta"] = {
            name: f"{_difference(out, name):{style}}"
            for name, style in (("pass_rate", "+.2f"), ("time_seconds", "+.1f"), ("tokens", "+.0f"))
            if all(name in one for one in out.values())
        }
    return out


def _difference(summary: Mapping[str, Any], name: str) -> float:
    difference: float = summary["with_skill"][name]["mean"] - summary["without_skill"][name]["mean"]
    return difference


def _statistics(values: Sequence[float]) -> dict[str, float]:
    """Mean, sample standard deviation (0 for a single value), least and greatest."""
    return {
        "mean": round(statistics.fmean(values), 4),
        "stddev": round(statistics.stdev(values), 4) if len(values) > 1 else 0.0,
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


def _executor(run: Run) -> str:
    models = (record.model for task in run.results for record in task.attempts if record.model)
    return run.meta.model or next(models, None) or run.meta.backend


def _notes(run: Run) -> Iterator[str]:
    arms = {"with_skill": run.results, "without_skill": run.baseline_results}
    if not run.skills and run.baseline_results is None:
        arms = {"without_skill": run.results, "with_skill": None}
    for configuration, results in arms.items():
        if results is not None:
            yield from _arm_notes(configuration, arm_figures(results), results)
    figures = baseline_figures(run)
    if figures is not None and figures.comparison is not None:
        found = figures.comparison
        change = f"{numbers.points(found.delta)} {numbers.signed_interval((found.low, found.high))}, {numbers.p_value(found.p)}"
        yield f"With the skill against without, by success rate: {found.word} ({change})."


def _arm_notes(configuration: str, figures: ArmFigures, results: Sequence[TaskResult]) -> Iterator[str]:
    if figures.suite is not None:
        counts = f"{figures.successes} of {figures.usable} attempts, the mean over tasks"
        yield f"{configuration}: success rate {numbers.rate(figures.suite.rate)} ({counts}). {_TWO_RATES}"
    if figures.unusable:
        words = Counter(record.outcome for task in results for record in task.attempts if not record.usable)
        told = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
        yield f"{configuration}: {figures.unusable} of {figures.planned} attempts got no verdict ({told}); see unusable_runs."
    if missing := figures.lost - figures.unusable:
        yield f"{configuration}: {missing} of {figures.planned} planned attempts did not run."
    if unchecked := sum(len(task.not_checked) for task in results):
        yield f"{configuration}: {unchecked} attempts only told which skills are used and were not checked; they are left out."
