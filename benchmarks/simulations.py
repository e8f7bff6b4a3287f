"""How often words are wrong and intervals miss: `python benchmarks/simulations.py [--replicates N] [--seed N]`.

A/A: both arms have the same rates, so that every "better", "worse" and flag is a false alarm. Where outcomes are few, every one is
counted ("exact"); else the totals of the tasks are drawn and every split of them between the arms is counted ("N totals"); else
attempts are drawn ("N drawn"). Exact rows say where, of the designs and rates named, the share is worst. Ends with status 1 when a
limit is passed by more than three standard errors.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import prod
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "scoring"), str(ROOT / "tests" / "reporting")]

import builders  # noqa: E402
import chances as ch  # noqa: E402
import covering as cv  # noqa: E402

from pytest_caliper.reporting.comparing import compare_runs  # noqa: E402
from pytest_caliper.scoring import Table, comparison, compare_tasks, judge_bar  # noqa: E402
from pytest_caliper.scoring.power import attempts_to_tell  # noqa: E402

MID_P, HALF_MID_P, FLAGS, BARS = 0.055, 0.0275, 0.05, 0.05
TENTHS = [i / 10 for i in range(11)]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    about: str
    what: str
    how: str
    chance: ch.Chance
    most: float | None = None
    least: float | None = None

    @property
    def fault(self) -> str:
        """`ABOVE` or `BELOW` when a limit is passed by more than simulation explains, else empty."""
        slack = 3 * self.chance.error + 1e-9
        if self.most is not None and self.chance.value > self.most + slack:
            return "ABOVE"
        return "BELOW" if self.least is not None and self.chance.value < self.least - slack else ""

    def __str__(self) -> str:
        error = f"{100 * self.chance.error:.2f}" if self.chance.error else ""
        limit = f"<= {100 * self.most:g}" if self.most is not None else f">= {100 * self.least:g}" if self.least is not None else ""
        verdict = self.fault or ("ok" if limit else "")
        return f"{100 * self.chance.value:6.2f} {error:>5} {limit:>7} {verdict:<5}  {self.how:<12} {self.what}"


def worst(found: Iterable[tuple[float, str]], *, low: bool = False) -> tuple[ch.Chance, str]:
    """The largest (or smallest) share, and where it was found."""
    value, where = (min if low else max)(found)
    return ch.Chance(value), where


def percent(rate: float) -> str:
    return f"{100 * rate:.3g}%"


# -- intervals ------------------------------------------------------------------------------------------------------------------

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

    def at(rates: Callable[[int], list[float]], name: str, sizes: list[tuple[int, int]] = SIZES) -> list[tuple[float, str]]:
        return [(cv.suite_rate_coverage(k, rates(t)), f"{t} tasks, k={k}{name}") for t, k in sizes]

    def equal(*values: float, sizes: list[tuple[int, int]] = SIZES) -> list[tuple[float, str]]:
        return [one for value in values for one in at(lambda t: [value] * t, f", all {percent(value)}", sizes)]

    means = ((mean(t, k), f"{t} tasks, k={k}") for t, k in [*SIZES, (1, 3), (1, 10), (2, 3), (2, 10)] if t * k <= 200)
    small = [(tasks, k) for tasks in (1, 2) for k in (3, 5, 10, 20)]
    return [
        coverage_row("all tasks, mean over all rates, 1..50 tasks, k = 3..20", 0.945, means),
        coverage_row("all tasks at 50%, 80% or 90%, 3..50 tasks", 0.925, equal(0.5, 0.8, 0.9)),
        coverage_row("all tasks near 0 or 1 (2%, 95%, 98%), 3..50 tasks", 0.9, equal(0.02, 0.95, 0.98)),
        coverage_row("rates spread as Beta(2, 1), 3..50 tasks", 0.945, at(ch.beta_rates, "")),
        coverage_row("half the tasks always, half 5%, 3..50 tasks", 0.945, at(lambda t: [(1.0, 0.05)[i % 2] for i in range(t)], "")),
        coverage_row("1 or 2 tasks at 50%, 80%, 95% or 98%", None, equal(0.5, 0.8, 0.95, 0.98, sizes=small)),
    ]


def delta_coverage(_: int, __: Random) -> list[Row]:
    sizes = [(tasks, k) for tasks, k in SIZES if tasks * k <= 500]

    def at(base: float, skill: float) -> list[tuple[float, str]]:
        name = f"{percent(base)} and {percent(skill)}"
        return [(cv.suite_delta_coverage(k, [base] * t, [skill] * t), f"{t} tasks, k={k}, {name}") for t, k in sizes]

    def spread(power: float) -> list[tuple[float, str]]:
        rates = {t: ch.beta_rates(t) for t, _ in sizes}
        moved = {t: [rate**power for rate in rates[t]] for t in rates}
        return [(cv.suite_delta_coverage(k, rates[t], moved[t]), f"{t} tasks, k={k}") for t, k in sizes]

    return [
        coverage_row("Δ of identical arms at 50%, 80%, 95% or 98%", 0.93, [p for r in (0.5, 0.8, 0.95, 0.98) for p in at(r, r)]),
        coverage_row("Δ of identical arms, rates spread as Beta(2, 1)", 0.945, spread(1)),
        coverage_row("Δ of 60% and 90%, and of 90% and 98%", 0.94, [*at(0.6, 0.9), *at(0.9, 0.98)]),
        coverage_row("Δ of Beta(2, 1) and better rates", 0.945, spread(0.3)),
        coverage_row("Δ of 2% and 98%", 0.9, at(0.02, 0.98)),
    ]


def lost_coverage(replicates: int, random: Random) -> list[Row]:
    rows = []
    for rates, k, draws, least in (([0.5] * 3, 3, 1, 0.925), ([0.98] * 5, 3, 1, 0.9), (10, 5, 1, 0.945), (50, 3, 10, 0.945)):
        draws = replicates // draws
        both = cv.simulated(rates, (k, k), 0.15, draws, random)
        for name, chance in zip(("all tasks", "Δ of identical arms"), both, strict=True):
            what = f"{name}, {described(rates)}, k={k}, 15% of the attempts lost"
            rows.append(Row(about=ABOUT_COVERAGE, what=what, how=f"{draws:,} drawn", chance=chance, least=least))
    return rows


def described(rates: list[float] | int) -> str:
    if isinstance(rates, int):
        return f"{rates} tasks drawn from Beta(2, 1)"
    return f"{len(rates)} tasks" + (f" at {percent(rates[0])}" if len(set(rates)) == 1 else " as Beta(2, 1)")


# -- words on identical arms ----------------------------------------------------------------------------------------------------

ABOUT_WORD = 'identical arms: share called "better" or "worse"'
ABOUT_WORSE = 'identical runs: share called "worse" (--caliper-no-regression fails)'
ABOUT_FLAG = "identical arms: share in which any single task is flagged"


def one_task(_: int, __: Random) -> list[Row]:
    equal = [(n, n) for n in range(1, 21)]
    unequal = [(a, b) for a in range(1, 11) for b in range(1, a)]
    rows = []
    for name, arms in (("k = 1..20 in both arms", equal), ("1..10 attempts, not the same in both arms", unequal)):
        chance, where = worst((ch.one_task_error(two), f"{two[0]} and {two[1]}") for two in arms)
        what = f"a spec with one task (Boschloo), {name}, all rates; most at {where}"
        rows.append(Row(about=ABOUT_WORD, what=what, how="exact", chance=chance, most=FLAGS))
    for tasks in (3, 5, 10, 20, 50):
        chance, where = worst((ch.flag_error(two, tasks), f"{two[0]} and {two[1]}") for two in [*equal, *unequal])
        what = f"{tasks} tasks, k = 1..20 in both arms, or 1..10 not the same, all rates; most at {where}"
        rows.append(Row(about=ABOUT_FLAG, what=what, how="exact", chance=chance, most=FLAGS))
    return rows


def drawn_flags(replicates: int, random: Random) -> list[Row]:
    @cache
    def flagged(tables: tuple[Table, ...]) -> bool:
        return any(change is not None and change.word is not None for change in compare_tasks(tables))

    rows = []
    for tasks, k in ((5, 5), (10, 3)):
        drawn = (ch.draw(random, [random.random() ** 0.5 for _ in range(tasks)], (k, k), 0.15) for _ in range(replicates))
        chance = ch.share(sum(flagged(tuple(sorted(tables))) for tables in drawn), replicates)
        what = f"{described(tasks)}, k={k}, 15% of the attempts lost"
        rows.append(Row(about=ABOUT_FLAG, what=what, how=f"{replicates:,} drawn", chance=chance, most=FLAGS))
    return rows


def both_rows(what: str, how: str, word: ch.Chance, worse: ch.Chance) -> list[Row]:
    return [
        Row(about=ABOUT_WORD, what=what, how=how, chance=word, most=MID_P),
        Row(about=ABOUT_WORSE, what=what, how=how, chance=worse, most=HALF_MID_P),
    ]


def counted_suites(name: str, designs: Iterable[tuple[list[ch.Arms], str]]) -> list[Row]:
    """Over all rates common to the tasks, rates of which all but one never fail, and for two tasks any two rates."""
    words, worse = [], []
    for arms, where in designs:
        tasks = len(arms)
        rates = [*((rate,) * tasks for rate in ch.rate_grid(20)), *((rate, *(1.0,) * (tasks - 1)) for rate in TENTHS)]
        rates += list(product(TENTHS, repeat=2)) if tasks == 2 else []
        found = [ch.words(arms, these) for these in rates]
        words.append((max(said.either for said in found), where))
        worse.append((max(max(said.worse, said.better) for said in found), where))  # "better" is "worse" with the arms exchanged
    chances = worst(words), worst(worse)
    return [
        row
        for index, (chance, where) in enumerate(chances)
        for row in both_rows(f"{name}; most at {where}", "exact", chance, chance)[index : index + 1]
    ]


def two_equal_tasks(_: int, __: Random) -> list[Row]:
    return counted_suites("2 tasks, k = 1..20, all rates", (([(k, k)] * 2, f"k={k}") for k in range(1, 21)))


def few_equal_tasks(_: int, __: Random) -> list[Row]:
    three = counted_suites("3 tasks, k = 1..8, common rates", (([(k, k)] * 3, f"k={k}") for k in range(1, 9)))
    return three + counted_suites("5 tasks, k = 1..4, common rates", (([(k, k)] * 5, f"k={k}") for k in range(1, 5)))


def unequal_tasks(_: int, __: Random) -> list[Row]:
    pairs = [*((a, b) for a in range(1, 7) for b in range(1, a)), (10, 3), (10, 5), (12, 5)]
    rows = counted_suites("2 tasks, k not the same in both arms, all rates", (([two] * 2, f"{two[0]} and {two[1]}") for two in pairs))
    lost = [(k, k - less) for k in (3, 5, 8, 10) for less in (1, 3) if less < k]
    rows += counted_suites("2 tasks, one lost 1 or 3 attempts, all rates", (([(a, a), (a, b)], f"{b} of {a}") for a, b in lost))
    return rows + counted_suites("3 tasks, 3 attempts against 2 or 5", (([two] * 3, f"{two[0]} and {two[1]}") for two in ((3, 2), (5, 3))))


def run_against_run(_: int, __: Random) -> list[Row]:
    """Through the comparison of two run files' contents, every pair of outcomes of two tasks with three attempts."""
    k = 3

    def results(passes: Iterable[int]) -> builders.Run:
        tasks = [builders.task("P" * c + "F" * (k - c), number=n, name=f"Task {n}") for n, c in enumerate(passes)]
        return builders.run(*tasks)

    @cache
    def word(tables: tuple[tuple[int, int], ...]) -> str:
        compared = compare_runs(results(b for b, _ in tables), results(a for _, a in tables)).comparison
        assert compared is not None
        return compared.word

    every = list(product(range(k + 1), repeat=4))
    words, worse = [], []
    for rates in combinations_with_replacement(TENTHS, 2):
        one, two = (ch.binomial(k, rate) for rate in rates)
        said = {"better": 0.0, "worse": 0.0, "no evidence": 0.0}
        for b1, a1, b2, a2 in every:
            said[word(tuple(sorted([(b1, a1), (b2, a2)])))] += prod((one[b1], one[a1], two[b2], two[a2]))
        where = " and ".join(map(percent, rates))
        words.append((said["better"] + said["worse"], where))
        worse.append((said["worse"], where))
    what = "run against run (compare_runs), 2 tasks, k=3, all rates; most at "
    (chance, where), (less, where_less) = worst(words), worst(worse)
    return [both_rows(what + where, "exact", chance, chance)[0], both_rows(what + where_less, "exact", less, less)[1]]


def drawn_totals(replicates: int, random: Random) -> list[Row]:
    rows = []
    designs = [([0.5] * 10, 3), ([0.95] * 10, 5), ([0.5] * 20, 3), ([0.5] * 50, 1), ([0.95] * 50, 3)]
    designs += [(ch.beta_rates(tasks), k) for tasks, k in ((5, 10), (5, 20), (10, 3), (10, 10), (20, 5), (50, 3), (50, 10))]
    for rates, k in designs:
        draws = max(20, replicates // (50 if len(rates) * k < 400 else 200))
        word, worse = ch.drawn_totals(k, rates, draws, random)
        rows += both_rows(f"{described(rates)}, k={k}", f"{draws:,} totals", word, worse)
    return rows


def drawn_attempts(replicates: int, random: Random) -> list[Row]:
    rows = []
    cells: list[tuple[list[float] | int, ch.Arms, float]] = [
        ([0.5] * 3, (3, 3), 0.15),
        (5, (3, 3), 0.0),
        (5, (5, 5), 0.15),
        ([0.9] * 10, (5, 5), 0.15),
        (10, (3, 5), 0.0),
        (20, (3, 3), 0.15),
    ]
    for rates, arms, lost in cells:
        word, worse = ch.simulated(rates, arms, lost, replicates, random)
        k = f"k={arms[0]}" if arms[0] == arms[1] else f"k={arms[0]} against {arms[1]}"
        what = f"{described(rates)}, {k}" + (f", {percent(lost)} of the attempts lost" if lost else "")
        rows += both_rows(what, f"{replicates:,} drawn", word, worse)
    return rows


# -- bars -----------------------------------------------------------------------------------------------------------------------

BAR_RATES = [Fraction(text) for text in ("1/2", "3/5", "2/3", "7/10", "3/4", "4/5", "17/20", "9/10", "19/20")]


def bar_chance(word: str, bar: Fraction, policy: comparison.Literal, k: int, rate: float) -> float:
    return sum(p for c, p in enumerate(ch.binomial(k, rate)) if judge_bar(c, k, k, bar, policy).word == word)


def bars(_: int, __: Random) -> list[Row]:
    about = "bars: share of wrong words, k = 1..80"
    rows = []

    def row(what: str, found: Iterable[tuple[float, str]], most: float | None = None) -> None:
        chance, where = worst(found)
        rows.append(Row(about=about, what=f"{what}; most at {where}", how="exact", chance=chance, most=most))

    for bar in BAR_RATES:
        most = BARS if bar > Fraction(1, 2) else None
        met = ((bar_chance("met", bar, "lower", k, float(bar)), f"k={k}") for k in range(1, 81))
        row(f"lower, bar {percent(float(bar))}: met, the rate just below it", met, most)
    for bar in BAR_RATES[::2]:
        missed = ((bar_chance("missed", bar, "lower", k, float(bar)), f"k={k}") for k in range(1, 81))
        row(f"lower, bar {percent(float(bar))}: missed, the rate at it (not met is red too)", missed)
    for k, rate in product((3, 5, 10, 20), (0.8, 0.7)):
        chance = ch.Chance(bar_chance("met", Fraction(4, 5), "point", k, rate))
        below = "just below it" if rate == 0.8 else percent(rate)
        rows.append(Row(about=about, what=f"point, bar 80%: met, the rate {below}, k={k}", how="exact", chance=chance))
    return rows


# -- power ----------------------------------------------------------------------------------------------------------------------

ABOUT_POWER = "advice: share that finds the difference with as many attempts as advised"


def one_task_power(_: int, __: Random) -> list[Row]:
    rows = []
    for b, s, n in ((3, 9, 10), (6, 9, 10), (11, 20, 20), (2, 11, 20), (7, 16, 20), (0, 2, 3), (8, 10, 10), (6, 8, 10)):
        k = attempts_to_tell([(b, n, s, n)])
        chance = ch.Chance(ch.one_task_power(b / n, s / n, k))
        exact = k <= 80
        what = f"1 task, {percent(b / n)} → {percent(s / n)}: {k} attempts" + ("" if exact else " (the normal formula)")
        rows.append(Row(about=ABOUT_POWER, what=what, how="exact", chance=chance, least=0.8 if exact else None))
    return rows


def suite_power(replicates: int, random: Random) -> list[Row]:
    rows = []
    mixed = [(5, 10, 8, 10), (8, 10, 9, 10), (9, 10, 10, 10), (2, 10, 4, 10), (7, 10, 7, 10), (10, 10, 10, 10)]
    designs: list[tuple[str, list[Table]]] = [("6 unlike tasks, one always passes", mixed)]
    for tasks, b, s, n in (
        (2, 1, 2, 3),
        (3, 1, 2, 3),
        (3, 6, 9, 10),
        (5, 3, 4, 5),
        (5, 6, 9, 10),
        (10, 6, 9, 10),
        (10, 7, 9, 10),
        (20, 6, 9, 10),
        (20, 6, 8, 10),
        (50, 6, 9, 10),
        (50, 8, 9, 10),
    ):
        designs.append((f"{tasks} tasks, {percent(b / n)} → {percent(s / n)}", [(b, n, s, n)] * tasks))
    for name, tables in designs:
        k = attempts_to_tell(tables)
        draws = replicates if k * len(tables) < 60 else replicates // 4
        base, skill = [b / n for b, n, _, _ in tables], [s / n for _, _, s, n in tables]
        chance = ch.power(base, skill, k, draws, random)
        what = f"{name}: {k} per task and arm"
        rows.append(Row(about=ABOUT_POWER, what=what, how=f"{draws:,} drawn", chance=chance, least=0.8))
    return rows


JOBS: list[Callable[[int, Random], list[Row]]] = [
    task_coverage,
    suite_coverage,
    delta_coverage,
    lost_coverage,
    one_task,
    two_equal_tasks,
    few_equal_tasks,
    unequal_tasks,
    run_against_run,
    drawn_totals,
    drawn_attempts,
    drawn_flags,
    bars,
    one_task_power,
    suite_power,
]


def do(job: int, replicates: int, seed: int) -> list[Row]:
    """The rows of a job, the same in whatever process it runs."""
    comparison.boschloo = cache(comparison.boschloo)  # the same tables come again and again
    return JOBS[job](replicates, Random(f"{seed} {JOBS[job].__name__}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=20_000, help="draws per row where attempts are drawn (20000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.replicates < 100:
        parser.error("--replicates must be >= 100")
    started = time.monotonic()
    # The long jobs first, so that no process ends up alone with one of them.
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting = {job: pool.submit(do, job, arguments.replicates, arguments.seed) for job in reversed(range(len(JOBS)))}
        rows = [row for job in range(len(JOBS)) for row in waiting[job].result()]
    print(f"{'%':>6} {'±':>5} {'limit':>7} {'':<5}  how")
    for about in dict.fromkeys(row.about for row in rows):
        print(f"\n{about}")
        for row in rows:
            if row.about == about:
                print(row)
    faults = [row for row in rows if row.fault]
    print(f"\n{len(rows)} rows, {len(faults)} beyond their limit; {arguments.replicates:,} replicates, seed {arguments.seed}")
    print(f"{time.monotonic() - started:.0f} s on {os.cpu_count()} cores", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
