"""How often 95 % intervals cover the true value: every outcome counted where all arms are equally long, else drawn attempts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import sqrt
from random import Random

from chances import Arms, Chance, binomial, draw, share

from pytest_caliper.scoring import Interval, SuiteDelta, suite_delta, suite_rate, wilson

_NOTHING = 1e-9
"""Totals less probable than this are left out, and count as not covered."""


def wilson_coverage(n: int, rate: float) -> float:
    """Coverage of a task's interval, all outcomes."""
    limits = (wilson(c, n) for c in range(n + 1))
    return sum(p for p, limit in zip(binomial(n, rate), limits, strict=True) if limit is not None and _inside(rate, limit))


def suite_rate_coverage(attempts: int, rates: Sequence[float]) -> float:
    """Coverage of the interval over several tasks with so many attempts each, all outcomes."""
    rate = sum(rates) / len(rates)
    found = 0.0
    for passes, p in enumerate(sum_of_binomials(attempts, tuple(rates))):
        if p > _NOTHING:
            suite = suite_rate(_filled(passes, attempts, len(rates)))
            found += p * (suite is not None and _inside(rate, Interval(suite.low, suite.high)))
    return found


def suite_delta_coverage(attempts: int, base: Sequence[float], skill: Sequence[float]) -> float:
    """Coverage of the interval of a difference, all outcomes.

    With so many attempts in every task and arm it depends on the two sums alone, so one long task stands for all of them.
    """
    delta, n = sum(skill) / len(skill) - sum(base) / len(base), attempts * len(base)
    arms = [[(c, p) for c, p in enumerate(sum_of_binomials(attempts, tuple(rates))) if p > _NOTHING] for rates in (base, skill)]
    return sum(p * q for (b, p), (s, q) in product(*arms) if _covers(_long_delta(b, s, n), delta))


@cache
def _long_delta(c_base: int, c_skill: int, n: int) -> SuiteDelta | None:
    return suite_delta([(c_base, n, c_skill, n)])


def simulated(rates: Sequence[float] | int, arms: Arms, lost: float, draws: int, random: Random) -> tuple[Chance, Chance]:
    """Coverage of suite_rate in the second arm, and of suite_delta between identical arms; attempts lost at random.

    A number of tasks instead of rates: each draw has its own, Beta(2, 1). Draws in which some task has lost all attempts count for
    the tasks that are left, as a report would.
    """
    of_rate = of_delta = 0
    for _ in range(draws):
        these = [sqrt(random.random()) for _ in range(rates)] if isinstance(rates, int) else list(rates)
        tables = draw(random, these, arms, lost)
        suite = suite_rate((c, n) for _, _, c, n in tables)
        left = [rate for rate, (_, _, _, n) in zip(these, tables, strict=True) if n]
        of_rate += suite is not None and _inside(sum(left) / len(left), Interval(suite.low, suite.high))
        of_delta += _covers(suite_delta(tables), 0.0)
    return share(of_rate, draws), share(of_delta, draws)


@cache
def sum_of_binomials(attempts: int, rates: tuple[float, ...]) -> tuple[float, ...]:
    """Distribution of the passes of all tasks together."""
    chances = [1.0]
    for rate in rates:
        one, both = binomial(attempts, rate), [0.0] * (len(chances) + attempts)
        for i, p in enumerate(chances):
            for c, q in enumerate(one, i):
                both[c] += p * q
        chances = both
    return tuple(chances)


def _filled(passes: int, attempts: int, tasks: int) -> list[tuple[int, int]]:
    """Any counts of so many tasks with this sum."""
    return [(min(attempts, max(0, passes - t * attempts)), attempts) for t in range(tasks)]


def _inside(rate: float, limits: Interval) -> bool:
    return limits.low - 1e-12 <= rate <= limits.high + 1e-12


def _covers(found: SuiteDelta | None, delta: float) -> bool:
    return found is not None and found.low - 1e-12 <= delta <= found.high + 1e-12
