"""What a comparison of two arms says, in words: better, worse, or no evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pytest_caliper.scoring._counts import Table, check_table, informative, matched
from pytest_caliper.scoring.exact import boschloo, holm, stratified_exact
from pytest_caliper.scoring.intervals import suite_delta
from pytest_caliper.scoring.power import Over, attempts_to_tell

Word = Literal["better", "worse", "no evidence"]

ALPHA = Fraction(1, 20)
"""A p value of at most this is evidence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The second arm against the first, over the tasks measured in both."""

    delta: float
    """Mean difference of the tasks' rates, -1 to 1."""
    low: float
    high: float
    """95 % interval of `delta`."""
    p: float
    """What the word is taken from: stratified mid-p, or Boschloo's p where one task alone can tell."""
    word: Word
    needed: int | Over | None
    """With "no evidence": about how many attempts per task and arm would tell. None otherwise, and where no number would."""
    attempts: int
    """Most usable attempts that a task has in an arm."""
    tasks: int
    """Tasks measured in both arms."""

    @property
    def more(self) -> int | Over | None:
        """Attempts per task and arm still missing: `needed` less `attempts`, at least 1."""
        return max(1, self.needed - self.attempts) if isinstance(self.needed, int) else self.needed


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskChange:
    """One task's second arm against its first."""

    delta: float
    """Difference of the rates, -1 to 1."""
    p: float
    """Boschloo's p, corrected by Holm over the tasks compared."""
    word: Literal["better", "worse"] | None
    """None: the change is shown, not judged."""


def compare_arms(tables: Iterable[Table], *, advice: bool = True) -> Comparison | None:
    """The verdict over `[(c_base, n_base, c_skill, n_skill), …]`. None when no task was measured in both arms.

    Without `advice` nobody asks how many attempts would tell, which takes most of the time: `needed` is None.

    "better" and "worse" need p <= 0.05, the exact p compared without rounding, and a `delta` of the same direction.
    """
    same = matched(tables)
    delta = suite_delta(same)
    if delta is None:
        return None
    p, direction = _evidence(same)
    word: Word = "no evidence"
    if p <= ALPHA and direction * delta.delta > 0:
        word = "better" if direction > 0 else "worse"
    return Comparison(
        delta=delta.delta,
        low=delta.low,
        high=delta.high,
        p=float(p),
        word=word,
        needed=attempts_to_tell(same) if advice and word == "no evidence" else None,
        attempts=max(max(n_base, n_skill) for _, n_base, _, n_skill in same),
        tasks=delta.tasks,
    )


def compare_tasks(tables: Iterable[Table]) -> list[TaskChange | None]:
    """Each task on its own, in order; None for one not measured in both arms.

    A word only where Boschloo's p, corrected by Holm over all the tasks compared, is at most 0.05: 3/3 to 2/3 never is.
    """
    given = list(tables)
    for table in given:
        check_table(*table)
    kinds = [_kind(table) for table in given]
    known = {kind: boschloo(*kind) for kind in set(kinds)}
    compared = [i for i, (_, n_base, _, n_skill) in enumerate(given) if n_base and n_skill]
    changes: list[TaskChange | None] = [None] * len(given)
    for i, p in zip(compared, holm(known[kinds[i]] for i in compared), strict=True):
        changes[i] = _task_change(given[i], p)
    return changes


def _kind(table: Table) -> Table:
    """The least of the tables with the same two-sided p: passes for failures, and arm for arm where they are equally long."""
    c_base, n_base, c_skill, n_skill = table
    same = [table, (n_base - c_base, n_base, n_skill - c_skill, n_skill)]
    if n_base == n_skill:
        same += [(c_skill, n_skill, c_base, n_base) for c_base, n_base, c_skill, n_skill in same]
    return min(same)


def _evidence(same: list[Table]) -> tuple[Fraction | float, Fraction]:
    """The p of the verdict, and a number whose sign is the direction in which the skill differs.

    Where one task alone can tell, because all others passed or failed every attempt, it is as good as alone: mid-p would say
    "better" or "worse" of equal arms in up to 7.5 % of runs, Boschloo's p keeps to 5 %.
    """
    telling = informative(same)
    if len(telling) == 1:
        c_base, n_base, c_skill, n_skill = telling[0]
        return boschloo(*telling[0]), Fraction(c_skill, n_skill) - Fraction(c_base, n_base)
    test = stratified_exact(telling)
    return test.tails_mid_p, test.excess


def _task_change(table: Table, p: float) -> TaskChange:
    c_base, n_base, c_skill, n_skill = table
    delta = float(Fraction(c_skill, n_skill) - Fraction(c_base, n_base))
    word: Literal["better", "worse"] | None = None
    if p <= ALPHA and delta:
        word = "better" if delta > 0 else "worse"
    return TaskChange(delta=delta, p=p, word=word)
