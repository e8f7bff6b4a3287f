"""Exact tests of skill against baseline, and Holm's correction.

P values of the stratified test are Fractions: whether 1/20 is at most 0.05 is decided by integers, not by rounding.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, exp, lgamma, log, log1p, pi, sin, sqrt

from pytest_caliper.scoring._counts import Table, check_table, matched


@dataclass(frozen=True, kw_only=True, slots=True)
class ExactTest:
    """P values of the exact stratified test, as exact Fractions (`float()` them to print)."""

    two_sided: Fraction
    """Chance, without any effect, of a total as improbable as the observed one or more so."""
    mid_p: Fraction
    """The same, the equally improbable counted half."""
    less: Fraction
    """One-sided: chance of a total as low as observed (the skill harms)."""
    greater: Fraction
    """One-sided: chance of a total as high as observed (the skill helps)."""
    excess: Fraction
    """Successes of the skill arm above what no effect would give."""

    @property
    def tails_mid_p(self) -> Fraction:
        """Twice the smaller one-sided mid-p: what the verdict's word is taken from.

        With equally long arms this is `mid_p`, but 1 where the total is the one expected. With others the improbable totals may
        all lie on one side, and `mid_p` says "worse" of equal arms up to twice as often as it says "better".
        """
        return 1 - abs(self.less - self.greater)


def stratified_exact(same: Iterable[Table]) -> ExactTest:
    """Exact test that the arms differ in no task, given each task's total: `same` is `[(c_base, n_base, c_skill, n_skill), …]`.

    The skill's successes are hypergeometric in every task; their sum is compared with its exact distribution. One task gives
    Fisher's test, one attempt per task McNemar's. Where only one total is possible (all pass, all fail, no task) every p is 1.
    """
    tables = matched(same)
    weights, lowest = _null_weights(tables)
    total = sum(weights)
    seen = sum(c_skill for _, _, c_skill, _ in tables) - lowest
    expected = sum((Fraction((c_b + c_s) * n_s, n_b + n_s) for c_b, n_b, c_s, n_s in tables), Fraction(0))
    excess = seen + lowest - expected
    one = Fraction(1)
    if len(weights) == 1:
        return ExactTest(two_sided=one, mid_p=one, less=one, greater=one, excess=excess)
    below = sum(w for w in weights if w < weights[seen])
    equal = sum(w for w in weights if w == weights[seen])
    return ExactTest(
        two_sided=Fraction(below + equal, total),
        mid_p=Fraction(2 * below + equal, 2 * total),
        less=Fraction(sum(weights[: seen + 1]), total),
        greater=Fraction(sum(weights[seen:]), total),
        excess=excess,
    )


def _null_weights(tables: Sequence[Table]) -> tuple[list[int], int]:
    """How many ways give each total of the skill arm, and the lowest possible total."""
    weights, lowest = [1], 0
    for c_base, n_base, c_skill, n_skill in tables:
        m = c_base + c_skill
        first = max(0, m - n_base)
        weights = convolve(weights, [comb(n_skill, x) * comb(n_base, m - x) for x in range(first, min(n_skill, m) + 1)])
        lowest += first
    return weights, lowest


def convolve(a: list[int], b: list[int]) -> list[int]:
    """The distribution of a sum of two independent counts, as weights from the lowest total on."""
    out = [0] * (len(a) + len(b) - 1)
    for j, weight in enumerate(b):
        for i, value in enumerate(a, j):
            out[i] += value * weight
    return out


def boschloo(c_base: int, n_base: int, c_skill: int, n_skill: int) -> float:
    """Two-sided p of Boschloo's test for one task: min(1, twice the smaller one-sided p). 1.0 when an arm is empty.

    Boschloo 1970: the one-sided Fisher p is the statistic, and its probability is maximised over the common success rate.
    Uniformly more powerful than Fisher's test.
    """
    check_table(c_base, n_base, c_skill, n_skill)
    if not n_base or not n_skill:
        return 1.0
    helps = _boschloo_greater(c_base, n_base, c_skill, n_skill)
    harms = _boschloo_greater(n_base - c_base, n_base, n_skill - c_skill, n_skill)
    return min(1.0, 2 * min(helps, harms))


def _boschloo_greater(c_base: int, n_base: int, c_skill: int, n_skill: int) -> float:
    tails, m = _fisher_tails(n_base, n_skill), c_base + c_skill
    return _size(Fraction(tails[m][c_skill], comb(n_base + n_skill, m)), tails)


def boschloo_rejections(attempts: int, alpha: Fraction) -> list[dict[int, bool]]:
    """By total, then by successes of the skill arm: whether Boschloo's two-sided p is at most `alpha`, `attempts` in each arm."""
    tails = _fisher_tails(attempts, attempts)
    fisher = [{x: Fraction(tail, comb(2 * attempts, m)) for x, tail in by_skill.items()} for m, by_skill in enumerate(tails)]
    # The larger Fisher's p of a table, the more tables are as extreme: Boschloo's p has the same order.
    ordered = sorted({p for by_skill in fisher for p in by_skill.values()})
    fishers = bisect_right(ordered, alpha / 2)  # what Fisher's test rejects, Boschloo's does
    rejected = set(ordered[: bisect_right(ordered, float(alpha), lo=fishers, key=lambda p: 2 * _size(p, tails))])
    # With arms of the same length, harm is help with the arms exchanged.
    return [{x: p in rejected or by_skill[m - x] in rejected for x, p in by_skill.items()} for m, by_skill in enumerate(fisher)]


_Tails = list[dict[int, int]]


def _size(limit: Fraction, tails: _Tails) -> float:
    """Largest chance, over all rates that both arms may share, of a one-sided Fisher p of at most `limit`."""
    n, shares = len(tails) - 1, []
    above, below = limit.numerator, limit.denominator
    for m, by_skill in enumerate(tails):
        ways = comb(n, m)
        # A tail holds all the tables beyond it, so the largest tail that is still as extreme is all of them together.
        extreme = max((tail for tail in by_skill.values() if tail * below <= above * ways), default=0)
        shares.append(extreme / ways)
    return _largest(lambda rate: _mixed(shares, rate), steps=16 * (2 + int(sqrt(n))))


def _fisher_tails(n_base: int, n_skill: int) -> _Tails:
    """By total, then by successes of the skill arm: the ways to have that total and as many of them or more."""
    base, skill = [comb(n_base, y) for y in range(n_base + 1)], [comb(n_skill, x) for x in range(n_skill + 1)]
    tails: _Tails = []
    for m in range(n_base + n_skill + 1):
        by_skill, ways = {}, 0
        for x in range(min(n_skill, m), max(0, m - n_base) - 1, -1):
            ways += skill[x] * base[m - x]
            by_skill[x] = ways
        tails.append(by_skill)
    return tails


def _mixed(shares: list[float], rate: float) -> float:
    """Mean of `shares[m]` over a binomial number m of successes; terms below 1e-18 of the largest are left out."""
    n = len(shares) - 1
    if rate in (0.0, 1.0):
        return shares[round(rate) * n]
    mode = min(n, int((n + 1) * rate))
    peak = exp(lgamma(n + 1) - lgamma(mode + 1) - lgamma(n - mode + 1) + mode * log(rate) + (n - mode) * log1p(-rate))
    odds, total = rate / (1 - rate), peak * shares[mode]
    for step in (1, -1):
        term, m = peak, mode
        while 0 <= m + step <= n and term > peak * 1e-18:
            term *= (n - m) / (m + 1) * odds if step == 1 else m / (n - m + 1) / odds
            m += step
            total += term * shares[m]
    return total


def _largest(f: Callable[[float], float], steps: int) -> float:
    """Maximum over rates 0 to 1: a grid even in arcsin(sqrt(rate)), where bumps are equally wide; good peaks are then refined."""

    def at(angle: float) -> float:
        return f(sin(angle) ** 2)

    width = pi / 2 / steps
    values = [at(i * width) for i in range(steps + 1)]
    best = max(values)
    for i in range(1, steps):
        if values[i] >= 0.9 * best and values[i - 1] <= values[i] >= values[i + 1]:
            best = max(best, _golden(at, (i - 1) * width, (i + 1) * width))
    return min(1.0, best)


def _golden(f: Callable[[float], float], low: float, high: float) -> float:
    """Maximum of a function with one peak between `low` and `high` (golden-section search)."""
    ratio = (sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if f(left) < f(right):
            low = left
        else:
            high = right
    return f((low + high) / 2)


def holm(ps: Iterable[float]) -> list[float]:
    """P values adjusted for having asked several questions (Holm 1979), in the order given, each at most 1.

    ValueError for a p outside 0 to 1.
    """
    given = list(ps)
    for p in given:
        if not 0 <= p <= 1:
            raise ValueError(f"p must be between 0 and 1, got {p}")
    adjusted, floor = [0.0] * len(given), 0.0
    for rank, index in enumerate(sorted(range(len(given)), key=given.__getitem__)):
        floor = max(floor, min(1.0, (len(given) - rank) * given[index]))
        adjusted[index] = floor
    return adjusted
