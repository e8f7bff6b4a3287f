"""What a file of caliper-eval tells that a run of ours does not have: in sentences, beside numbers that it has no part in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_caliper.reporting import numbers
from pytest_caliper.runs.records import Run, RunMeta, TaskResult

_SINCE_DISCOVERY = "era"
"""caliper-eval 0.10 and later write it: the agent finds an installed skill by itself. Before, it was given the skill."""


def foreign_notices(run: Run) -> list[str]:
    """One sentence for each fact; nothing for a run of ours."""
    return list(_notices(run)) if run.meta.foreign else []


def writer(meta: RunMeta) -> str:
    """Which program wrote the file."""
    if meta.pytest_caliper:
        return f"pytest-caliper {meta.pytest_caliper}"
    return str(meta.foreign.get("written_by") or "another program")


def loads_otherwise(before: RunMeta, after: RunMeta) -> bool:
    """Whether agents were given their skill in one of the runs and found it in the other: such rates measure different things."""
    given = ["written_by" in meta.foreign and _SINCE_DISCOVERY not in meta.foreign for meta in (before, after)]
    return given[0] != given[1]


def _notices(run: Run) -> Iterator[str]:
    found = run.meta.foreign
    yield f"written by {writer(run.meta)}; its numbers are counted anew"
    if ablated := found.get("ablated"):
        yield f"without {_names(ablated)}: left out on purpose (--ablate)"
    baseline = found.get("baseline")
    if isinstance(baseline, Mapping):
        score = baseline.get("avg_pass_at_k")
        value = f", {numbers.rate(score)}" if isinstance(score, (int, float)) and 0 <= score <= 1 else ""
        yield f"the file keeps no attempts of its baseline, only a mean pass@k{value}: nothing is compared with it"
    failures = found.get("hook_failures")
    if isinstance(failures, list):
        yield f"{numbers.plural(len(failures), 'setup or cleanup command')} failed"
    for result in run.results:
        if result.not_checked:
            yield _unchecked(result)


def _unchecked(result: TaskResult) -> str:
    verdicts = [one.foreign.get("activation_passed") for one in result.not_checked]
    told = [verdict for verdict in verdicts if isinstance(verdict, bool)]
    right = f", the expected ones in {sum(told)} of {len(told)}" if told else ""
    count = numbers.plural(len(result.not_checked), "attempt")
    return f"{result.task_name}: {count} without a check, only of which skills are used{right}; not counted"


def _names(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
