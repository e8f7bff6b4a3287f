"""What a session must hold besides its tests: enough usable attempts, bars that were judged, and no regression."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.bars import share
from pytest_caliper.reporting.figures import planned
from pytest_caliper.reporting.text import one_line
from pytest_caliper.runs.newest import newest_run
from pytest_caliper.runs.reading import RunFileError, load_run
from pytest_caliper.runs.records import Run
from pytest_caliper.scoring import Comparison, Over, bounds

if TYPE_CHECKING:
    from pytest_caliper.reporting.comparing import RunComparison
    from pytest_caliper.running.planning import SpecPlan

WORDS = {"better": "better", "worse": "worse", "no evidence": "no evidence of a difference"}


def thin_coverage(run: Run, least: Fraction, never: Collection[tuple[str, str]]) -> Iterator[str]:
    """A sentence for each task of whose planned attempts with the skill too few were usable.

    Left out are tasks without a usable attempt and those in `never`, as (task id, arm), some of whose attempts pytest never
    reported: that is told elsewhere.
    """
    for result in run.results:
        asked = planned(result)
        if not result.usable or result.usable >= least * asked or (result.task_id, result.arm) in never:
            continue
        limits = bounds(result.successes, result.usable, asked - result.usable)
        between = "" if limits is None else f"{numbers.rate(limits.low)} and {numbers.rate(limits.high)}"
        name = one_line(result.task_name)
        seen = f"coverage {result.usable}/{asked} is below {share(least)} (--caliper-min-coverage)"
        yield f"{name}: {seen}: the rate is between {between}"


def unjudged(tasks: Collection[str]) -> str:
    """The sentence for bars that were not reached."""
    names = ", ".join(one_line(name) for name in tasks)
    return f"{numbers.plural(len(tasks), 'bar')} never judged ({names})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What the regression check says of one spec."""

    text: str
    worse: bool


class NoRegression:
    """`--caliper-no-regression`: the runs that those of this session must not be worse than."""

    def __init__(self, asked: Path | Literal["latest"], plans: Collection[SpecPlan]) -> None:
        """Read the earlier runs, before there is a new one. Raises pytest.UsageError for what cannot be read."""
        if isinstance(asked, Path) and len(plans) > 1:
            raise pytest.UsageError("--caliper-no-regression names one run, but several specs were selected: use latest")
        self.damaged: list[str] = []
        """What was taken for no run, a sentence each."""
        self._runs = {str(plan.spec.path): self._earlier(asked, plan) for plan in plans}

    def _earlier(self, asked: Path | Literal["latest"], plan: SpecPlan) -> Run | None:
        if isinstance(asked, Path):
            try:
                return load_run(asked)
            except RunFileError as error:
                raise pytest.UsageError(f"--caliper-no-regression: {error}") from error
        newest, problems = newest_run(plan.results)
        self.damaged += [f"--caliper-no-regression passed over a file: {error}" for error in problems]
        return newest

    def judge(self, plan: SpecPlan, run: Run) -> Finding:
        """Only "worse" is worse: no evidence, and nothing to compare with, pass and are told."""
        from pytest_caliper.reporting.comparing import compare_runs

        earlier = self._runs.get(str(plan.spec.path))
        if earlier is None:
            return Finding(text="there is no earlier run, so nothing can be worse than it", worse=False)
        compared = compare_runs(earlier, run)
        name = Path(earlier.saved).name if earlier.saved else earlier.meta.id
        others = _not_alike(compared)
        if compared.comparison is None:
            return Finding(text=f"nothing can be compared with {name}{others}", worse=False)
        said = _difference(compared, compared.comparison)
        if compared.comparison.word == "worse":
            return Finding(text=f"worse than {name}: {said}{others} (--caliper-no-regression)", worse=True)
        return Finding(text=f"not worse than {name}, as far as can be told: {said}{others}", worse=False)


def _difference(compared: RunComparison, comparison: Comparison) -> str:
    """`Δ -33.3 pts [-58.2, -1.9]: worse (p = 0.018), over 4 tasks`, and how to learn more where there is no evidence."""
    limits = numbers.signed_interval((comparison.low, comparison.high))
    tasks = len(compared.tasks)
    over = numbers.plural(comparison.tasks, "task") if comparison.tasks == tasks else f"{comparison.tasks} of {tasks} tasks"
    said = (
        f"Δ {numbers.points(comparison.delta)} {limits}: {WORDS[comparison.word]} ({numbers.p_value(comparison.p)}), over {over}"
    )
    more = comparison.more
    if isinstance(more, Over):
        return f"{said}; a difference this small takes {more} attempts per task in both runs to tell"
    return f"{said}; about {numbers.plural(more, 'more attempt')} per task in both runs would tell" if more else said


def _not_alike(compared: RunComparison) -> str:
    changed = [f"{one_line(task.name)} changed" for task in compared.not_comparable]
    said = [*changed, *(difference.text for difference in compared.differences)]
    return f"; not the same: {'; '.join(said)}" if said else ""
