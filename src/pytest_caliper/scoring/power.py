"""How many attempts would settle it: the power of the stratified mid-p test at the rates seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from math import ceil, comb, floor, prod, sqrt
from random import Random
from statistics import NormalDist

from pytest_caliper.scoring._counts import Table, check_count, check_share, informative, matched
from pytest_caliper.scoring.exact import boschloo_rejections

_DRAWS = 128
"""Draws of the tasks' totals where all combinations are too many; they move the power by about 0.01 at most."""
_FINE = 80
"""Attempts per arm over all tasks from which the normal approximation is within 5 % of the exact answer."""


@dataclass(frozen=True, slots=True)
class Over:
    """More attempts than are worth counting."""

    limit: int

    def __str__(self) -> str:
        return f"over {self.limit}"


@dataclass(frozen=True, slots=True)
class Rates:
    """True success rates of one task in its two arms, 0 to 1."""

    base: float
    skill: float


def attempts_needed(tables: Iterable[Table], *, power: float = 0.8, alpha: float = 0.05, limit: int = 200) -> int | Over | None:
    """Smallest number of attempts per task and arm at which the mid-p test would tell the arms apart with `power`.

    The rates seen are taken for the true ones. None when they are equal on average (or nothing was measured in both arms): no
    number would tell. `Over(limit)` beyond `limit`.

    Below `_FINE` attempts per arm in all, the power of the exact test is computed: over every combination of the tasks' totals
    where they are few (one task: always), else over a fixed Latin hypercube of them. Above, the usual normal formula is used:
    sqrt(k) = (z_alpha sqrt(2 sum pq) + z_beta sqrt(sum (p_S q_S + p_B q_B))) / |sum (p_S - p_B)|, p = (p_S + p_B)/2.
    """
    check_share("power", power)
    check_share("alpha", alpha)
    check_count("limit", limit)
    same = matched(tables)
    if not sum(Fraction(c_s, n_s) - Fraction(c_b, n_b) for c_b, n_b, c_s, n_s in same):
        return None
    # A task that always passes, or never does, in both arms says nothing at any number of attempts.
    rates = _rates(informative(same))
    about = _normal_attempts(rates, power, alpha)
    if len(rates) * about > _FINE or about > 1.5 * limit:
        return ceil(about) if ceil(about) <= limit else Over(limit)
    for attempts in range(max(1, floor(0.7 * about)), limit + 1):
        if mid_p_power(rates, attempts, alpha) >= power:
            return attempts
    return Over(limit)


def attempts_to_tell(tables: Iterable[Table], *, power: float = 0.8, limit: int = 200) -> int | Over | None:
    """`attempts_needed` at 0.05 for the test that gives the word: where one task alone can tell, that is Boschloo's.

    Boschloo's power is about that of mid-p, but may be lower by as much as 0.2 for few attempts, so that more are needed. Above
    `_FINE` attempts the normal formula stands for both.
    """
    same = matched(tables)
    needed, rates = attempts_needed(same, power=power, limit=limit), _rates(informative(same))
    if len(rates) != 1 or not isinstance(needed, int) or needed > _FINE:
        return needed
    return next((k for k in range(needed, limit + 1) if boschloo_power(rates[0], k) >= power), Over(limit))


def _rates(tables: Iterable[Table]) -> list[Rates]:
    return [Rates(c_b / n_b, c_s / n_s) for c_b, n_b, c_s, n_s in tables]


def _normal_attempts(rates: Sequence[Rates], power: float, alpha: float) -> float:
    z = NormalDist()
    means = [(r.base + r.skill) / 2 for r in rates]
    null = 2 * sum(p * (1 - p) for p in means)
    real = sum(r.base * (1 - r.base) + r.skill * (1 - r.skill) for r in rates)
    effect = abs(sum(r.skill - r.base for r in rates))
    return float(((z.inv_cdf(1 - alpha / 2) * sqrt(null) + z.inv_cdf(power) * sqrt(real)) / effect) ** 2)


def mid_p_power(rates: Sequence[Rates], attempts: int, alpha: float = 0.05) -> float:
    """Chance that the mid-p test rejects with `attempts` per arm in every task."""
    joint = [_by_total(attempts, r) for r in rates]
    null = {m: _null(attempts, m) for totals in joint for m in totals}
    return sum(
        weight * _rejected([null[m] for m in totals], [joint[t][m] for t, m in enumerate(totals)], alpha)
        for totals, weight in _totals(joint)
    )


def boschloo_power(rates: Rates, attempts: int, alpha: Fraction = Fraction(1, 20)) -> float:
    """Chance that Boschloo's test rejects with `attempts` per arm of one task."""
    rejected = boschloo_rejections(attempts, alpha)
    return sum(
        chance
        for m, split in _by_total(attempts, rates).items()
        for x, chance in enumerate(split, max(0, m - attempts))
        if rejected[m][x]
    )


def _by_total(k: int, rates: Rates) -> dict[int, list[float]]:
    """For each total of both arms that is not negligible: the chance of it with 0, 1, … of the successes in the skill arm."""
    base = [comb(k, y) * rates.base**y * (1 - rates.base) ** (k - y) for y in range(k + 1)]
    skill = [comb(k, x) * rates.skill**x * (1 - rates.skill) ** (k - x) for x in range(k + 1)]
    split = {m: [skill[x] * base[m - x] for x in range(max(0, m - k), min(k, m) + 1)] for m in range(2 * k + 1)}
    return {m: chances for m, chances in split.items() if sum(chances) > 1e-9}


def _null(k: int, m: int) -> list[float]:
    ways = comb(2 * k, m)
    return [comb(k, x) * comb(k, m - x) / ways for x in range(max(0, m - k), min(k, m) + 1)]


def _totals(joint: Sequence[dict[int, list[float]]]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Totals of the tasks with their weights: every combination where they are few, else a Latin hypercube."""
    chances = [{m: sum(split) for m, split in totals.items()} for totals in joint]
    if len(joint) == 1 or prod(map(len, joint)) <= _DRAWS:
        for totals in product(*chances):
            yield totals, prod(chances[t][m] for t, m in enumerate(totals))
        return
    columns = [_stratified_draws(task, _DRAWS, Random(t)) for t, task in enumerate(chances)]
    for totals in zip(*columns, strict=True):
        yield totals, 1 / _DRAWS


def _stratified_draws(chances: dict[int, float], draws: int, random: Random) -> list[int]:
    """`draws` values, one from each slice of equal probability, in random order."""
    values, sums = list(chances), list(accumulate(chances.values()))
    picked, at = [], 0
    for i in range(draws):
        while sums[at] < (i + 0.5) / draws * sums[-1]:
            at += 1
        picked.append(values[at])
    random.shuffle(picked)
    return picked


def _rejected(null: Sequence[list[float]], joint: Sequence[list[float]], alpha: float) -> float:
    """Chance of rejection given the tasks' totals: `null` and `joint` are distributions of each task's skill successes."""
    under_null, real = [1.0], [1.0]
    for expected, seen in zip(null, joint, strict=True):
        under_null, real = _convolve(under_null, expected), _convolve(real, seen)
    # With equal arms the null distribution is symmetric with one peak: less probable means further out, the same on both sides.
    out, outside, both = 0.0, 0.0, len(under_null) // 2
    for i in range(both):
        if 2 * outside + under_null[i] > alpha * (1 + 1e-9):
            break
        outside += under_null[i]
        out += real[i] + real[-1 - i]
    return out / sum(real)


def _convolve(a: list[float], b: list[float]) -> list[float]:
    out = [0.0] * (len(a) + len(b) - 1)
    for j, weight in enumerate(b):
        for i, value in enumerate(a, j):
            out[i] += value * weight
    return out
