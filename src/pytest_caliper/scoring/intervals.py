"""How sure a rate or a difference is: intervals that hold at a handful of attempts.

All of them are conditional on these tasks: they cover the noise of sampling attempts, not the choice of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import hypot, sqrt
from statistics import NormalDist
from typing import NamedTuple

from pytest_caliper.scoring._counts import Table, check_pair, check_share, matched


class Interval(NamedTuple):
    """Lower and upper limit of a rate, 0 to 1."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteRate:
    """The rate over several tasks, every task counting the same."""

    rate: float
    """Mean of the tasks' rates."""
    low: float
    high: float
    n_eff: float
    """Attempts of one task that would be as informative: T^2 / sum(1/n_t)."""
    tasks: int
    """Tasks with a usable attempt: T."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteDelta:
    """The skill's rate less the baseline's over the tasks measured in both arms, -1 to 1."""

    delta: float
    low: float
    high: float
    tasks: int
    """Tasks measured in both arms."""


def wilson(successes: int, n: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval of successes/n. None when n is 0.

    Wilson 1927; good at small n where Wald is not (Brown, Cai, DasGupta 2001). ValueError for impossible counts or levels.
    """
    check_pair(successes, n, n_name="n")
    check_share("level", level)
    return _score_interval(successes / n, n, level) if n else None


def suite_rate(tasks: Iterable[tuple[int, int]], level: float = 0.95) -> SuiteRate | None:
    """The rate of `[(successes, usable), …]`: mean of the tasks' rates, Wilson at n_eff. None when nothing was usable.

    Tasks without a usable attempt are left out. With the same n in T tasks n_eff is T*n. Never an average of the tasks' own
    intervals: that pays their prior once per task.
    """
    check_share("level", level)
    counts = list(tasks)
    for c, n in counts:
        check_pair(c, n)
    return _suite([(c, n) for c, n in counts if n], level)


def suite_delta(tables: Iterable[Table], level: float = 0.95) -> SuiteDelta | None:
    """The difference over `[(c_base, n_base, c_skill, n_skill), …]`. None when no task was measured in both arms.

    Newcombe 1998, method 10, on the two suite intervals: delta - sqrt((p_S - l_S)^2 + (u_B - p_B)^2) and
    delta + sqrt((u_S - p_S)^2 + (p_B - l_B)^2).
    """
    check_share("level", level)
    same = matched(tables)
    base = _suite([(c, n) for c, n, _, _ in same], level)
    skill = _suite([(c, n) for _, _, c, n in same], level)
    if base is None or skill is None:
        return None
    # Summed exactly: 1/3 gained in one task and lost in the next is no difference at all.
    delta = float(sum(Fraction(c_s, n_s) - Fraction(c_b, n_b) for c_b, n_b, c_s, n_s in same) / len(same))
    low = delta - hypot(skill.rate - skill.low, base.high - base.rate)
    high = delta + hypot(skill.high - skill.rate, base.rate - base.low)
    return SuiteDelta(delta=delta, low=max(-1.0, low), high=min(1.0, high), tasks=len(same))


def _suite(counts: list[tuple[int, int]], level: float) -> SuiteRate | None:
    if not counts:
        return None
    rate = float(sum(Fraction(c, n) for c, n in counts) / len(counts))
    n_eff = float(len(counts) ** 2 / sum(Fraction(1, n) for _, n in counts))
    low, high = _score_interval(rate, n_eff, level)
    return SuiteRate(rate=rate, low=low, high=high, n_eff=n_eff, tasks=len(counts))


def _score_interval(rate: float, n: float, level: float) -> Interval:
    z = NormalDist().inv_cdf(0.5 + level / 2)
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # In floating point the formula misses these two for 8 of the 20 values n = 1..20.
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return Interval(low, high)
