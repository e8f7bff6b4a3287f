"""Coverage of the 95 % intervals, by design."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from random import Random

import chances as ch
import covering as cv
from simulated_row import Row, described, percent, worst

ABOUT_COVERAGE = "95% intervals: share that covers the true value"
SIZES = [(tasks, k) for tasks in (3, 5, 10, 20, 50) for k in (3, 5, 10, 20)]
UNIFORM = [(i + 0.5) / 100 for i in range(100)]


def coverage_row(what: str, least: float | None, found: Iterable[tuple[float, str]]) -> Row:
    chance, where = worst(found, low=True)
    return Row(about=ABOUT_COVERAGE, what=f"{what}; least at {where}", how="exact", chance=chance, least=least)


def task_coverage(_: int, __: Random) -> list[Row]:
    def mean(n: int) -> float:
        return sum(cv.wilson_coverage(n, rate) for rate in UNIFORM) / len(UNIFORM)

    def at(n: int) -> list[tuple[float, str]]:
        return [(cv.wilson_coverage(n, i / 100), f"{i}%") for i in range(5, 96)]

    return [
        coverage_row("a task's rate, mean over all rates, k = 3..20", 0.945, ((mean(n), f"k={n}") for n in range(3, 21))),
        coverage_row("a task's rate, each rate of 5..95%, k = 3", None, at(3)),
        coverage_row("a task's rate, each rate of 5..95%, k = 20", None, at(20)),
    ]


def suite_coverage(_: int, __: Random) -> list[Row]:
    def mean(tasks: int, k: int) -> float:
        return sum(cv.suite_rate_coverage(k, [rate] * tasks) for rate in UNIFORM[::4]) / len(UNIFORM[::4])

    def at(rates: Callable[[int], list[float]]) -> list[tuple[float, str]]:
        return [(cv.suite_rate_coverage(k, rates(t)), f"{t} x k={k}") for t, k in SIZES]

    def equal(*values: float, sizes: list[tuple[int, int]] = SIZES) -> list[tuple[float, str]]:
        cells = product(values, sizes)
        return [(cv.suite_rate_coverage(k, [rate] * t), f"{t} x k={k}, all {percent(rate)}") for rate, (t, k) in cells]

    means = ((mean(t, k), f"{t} x k={k}") for t, k in [*SIZES, (1, 3), (1, 10), (2, 3), (2, 10)] if t * k <= 200)
    small = [(tasks, k) for tasks in (1, 2) for k in (3, 5, 10, 20)]
    return [
        coverage_row("all tasks, mean over all rates, 1..50 tasks, k = 3..20", 0.945, means),
        coverage_row("all tasks at 50%, 80% or 90%, 3..50 tasks", 0.925, equal(0.5, 0.8, 0.9)),
        coverage_row("all tasks near 0 or 1 (2%, 95%, 98%), 3..50 tasks", 0.9, equal(0.02, 0.95, 0.98)),
        coverage_row("rates spread as Beta(2, 1), 3..50 tasks", 0.945, at(ch.beta_rates)),
        coverage_row("half the tasks always, half 5%, 3..50 tasks", 0.945, at(lambda t: [(1.0, 0.05)[i % 2] for i in range(t)])),
        coverage_row("1 or 2 tasks at 50%, 80%, 95% or 98%", None, equal(0.5, 0.8, 0.95, 0.98, sizes=small)),
    ]


def delta_coverage(_: int, __: Random) -> list[Row]:
    sizes = [(tasks, k) for tasks, k in SIZES if tasks * k <= 500]

    def at(base: float, skill: float) -> list[tuple[float, str]]:
        name = f"{percent(base)} and {percent(skill)}"
        return [(cv.suite_delta_coverage(k, [base] * t, [skill] * t), f"{t} x k={k}, {name}") for t, k in sizes]

    def spread(power: float) -> list[tuple[float, str]]:
        rates = {t: ch.beta_rates(t) for t, _ in sizes}
        moved = {t: [rate**power for rate in rates[t]] for t in rates}
        return [(cv.suite_delta_coverage(k, rates[t], moved[t]), f"{t} x k={k}") for t, k in sizes]

    return [
        coverage_row("Δ of identical arms at 50%, 80%, 95% or 98%", 0.93, [p for r in (0.5, 0.8, 0.95, 0.98) for p in at(r, r)]),
        coverage_row("Δ of identical arms, rates spread as Beta(2, 1)", 0.945, spread(1)),
        coverage_row("Δ of 60% and 90%, and of 90% and 98%", 0.94, [*at(0.6, 0.9), *at(0.9, 0.98)]),
        coverage_row("Δ of Beta(2, 1) and better rates", 0.945, spread(0.3)),
        coverage_row("Δ of 2% and 98%", 0.9, at(0.02, 0.98)),
    ]


def lost_coverage(replicates: int, random: Random) -> list[Row]:
    rows = []
    for rates, k, share, least in (([0.5] * 3, 3, 1, 0.925), ([0.98] * 5, 3, 1, 0.9), (10, 5, 1, 0.945), (50, 3, 10, 0.945)):
        draws = replicates // share
        both = cv.simulated(rates, (k, k), 0.15, draws, random)
        for name, chance in zip(("all tasks", "Δ of identical arms"), both, strict=True):
            what = f"{name}, {described(rates)}, k={k}, 15% of the attempts lost"
            rows.append(Row(about=ABOUT_COVERAGE, what=what, how=f"{draws:,} drawn", chance=chance, least=least))
    return rows
