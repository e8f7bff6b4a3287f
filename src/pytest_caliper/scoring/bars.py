"""Whether a task's rate reaches the bar that was set for it, and how many attempts that takes to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import NormalDist
from typing import Literal

from pytest_caliper.scoring._counts import check_count, check_pair
from pytest_caliper.scoring.intervals import Interval, wilson
from pytest_caliper.scoring.power import Over
from pytest_caliper.scoring.rates import Bounds, bounds

BarPolicy = Literal["point", "lower"]
"""`point`: the rate itself must reach the bar. `lower`: the lower end of its 95 % interval must."""
BarWord = Literal["met", "missed", "inconclusive", "unmeasured"]

_LEVEL = 0.95
_LIMIT = 1000
"""More attempts than anybody runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BarVerdict:
    """One task against its bar. Only `reached` is green."""

    word: BarWord
    bar: Fraction
    policy: BarPolicy
    min_coverage: Fraction
    successes: int
    usable: int
    planned: int
    interval: Interval | None
    """Wilson's, at 95 %; None when nothing was usable."""
    lost: Bounds | None
    """The rate had every lost attempt failed, and had every one passed; None when none was lost."""
    needed: int | Over | None
    """With "inconclusive": usable attempts in all that would settle it at the rate seen. None otherwise, and where none would."""

    @property
    def rate(self) -> Fraction | None:
        return Fraction(self.successes, self.usable) if self.usable else None

    @property
    def covered(self) -> bool:
        """Whether enough of the planned attempts were usable."""
        return self.usable > 0 and self.usable >= self.min_coverage * self.planned

    @property
    def reached(self) -> bool:
        return self.word == "met" and self.covered

    @property
    def more(self) -> int | Over | None:
        """Usable attempts still missing: `needed` less `usable`."""
        return self.needed - self.usable if isinstance(self.needed, int) else self.needed


def judge_bar(
    successes: int,
    usable: int,
    planned: int,
    bar: Fraction,
    policy: BarPolicy = "point",
    *,
    min_coverage: Fraction = Fraction(0),
) -> BarVerdict:
    """The verdict on one task. Raises ValueError for impossible counts or a bar that is not above 0 and at most 1.

    `point`: met when successes/usable >= bar, compared exactly, else missed. `lower`: met when Wilson's lower bound >= bar,
    missed when the upper one < bar, else inconclusive. Without a usable attempt: unmeasured.
    """
    check_pair(successes, usable)
    check_pair(usable, planned, "usable", "planned")
    _check_bar(bar)
    interval = wilson(successes, usable, _LEVEL)
    word: BarWord
    if interval is None:
        word = "unmeasured"
    elif policy == "point":
        word = "met" if Fraction(successes, usable) >= bar else "missed"
    else:
        word = "met" if interval.low >= bar else "missed" if interval.high < bar else "inconclusive"
    return BarVerdict(
        word=word,
        bar=bar,
        policy=policy,
        min_coverage=min_coverage,
        successes=successes,
        usable=usable,
        planned=planned,
        interval=interval,
        lost=bounds(successes, usable, planned - usable) if planned > usable else None,
        needed=attempts_to_settle(successes, usable, bar) if word == "inconclusive" else None,
    )


def attempts_to_settle(successes: int, usable: int, bar: Fraction, *, limit: int = _LIMIT) -> int | Over | None:
    """Smallest number of usable attempts in all at which the interval would lie on one side of the bar, at the rate seen.

    From Wilson's score test: (rate - bar)^2 n >= z^2 bar (1 - bar). None when the rate is the bar itself (no number would tell)
    or unknown; `Over(limit)` beyond `limit`.
    """
    check_pair(successes, usable)
    check_count("limit", limit, least=1)
    _check_bar(bar)
    if not usable or Fraction(successes, usable) == bar:
        return None
    rate = Fraction(successes, usable)
    z = NormalDist().inv_cdf(0.5 + _LEVEL / 2)
    about = z * z * float(bar * (1 - bar) / (rate - bar) ** 2)
    if about > limit:
        return Over(limit)
    # Only whole numbers of successes exist, and the interval is computed in floating point: ask it, near the answer.
    return _first(lambda n: _settled(rate, n, bar), start=max(1, ceil(about) - 2), limit=limit)


def flawless_needed(bar: Fraction, *, limit: int = _LIMIT) -> int | Over | None:
    """Smallest n for which n passes of n clear the bar by their lower bound. None for a bar of 1, which none clears."""
    return attempts_to_settle(1, 1, bar, limit=limit)


def _settled(rate: Fraction, n: int, bar: Fraction) -> bool:
    """Whether n attempts at this rate, rounded towards the bar, are all on one side of it."""
    above = rate > bar
    successes = int(rate * n) if above else ceil(rate * n)
    interval = wilson(successes, n, _LEVEL)
    assert interval is not None  # n is 1 or more
    return interval.low >= bar if above else interval.high < bar


def _first(holds: Callable[[int], bool], *, start: int, limit: int) -> int | Over:
    return next((n for n in range(start, limit + 1) if holds(n)), Over(limit))


def _check_bar(bar: Fraction) -> None:
    if not 0 < bar <= 1:
        raise ValueError(f"a bar must be above 0 and at most 1, got {bar}")
