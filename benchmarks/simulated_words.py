"""False alarms of the words on identical arms, by design."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations_with_replacement, product
from math import prod
from random import Random

import builders
import chances as ch
from simulated_row import Row, described, percent, worst

from pytest_caliper.reporting.comparing import compare_runs
from pytest_caliper.scoring import Table, compare_tasks

MID_P, HALF_MID_P, ONE_TASK, FLAGS = 0.055, 0.0275, 0.05, 0.05
TENTHS = [i / 10 for i in range(11)]

ABOUT_WORD = 'identical arms: share called "better" or "worse"'
ABOUT_WORSE = 'identical runs: share called "worse" (--caliper-no-regression fails)'
ABOUT_FLAG = "identical arms: share in which any single task is flagged"


def one_task(_: int, __: Random) -> list[Row]:
    equal = [(n, n) for n in range(1, 21)]
    unequal = [(a, b) for a in range(1, 9) for b in range(1, 9) if a != b]
    rows = []
    for name, arms in (("k = 1..20 in both arms", equal), ("1..8 attempts, not the same in both arms", unequal)):
        for about, words, most in ((ABOUT_WORD, ("better", "worse"), ONE_TASK), (ABOUT_WORSE, ("worse",), ONE_TASK / 2)):
            chance, where = worst((ch.one_task_error(two, words), f"{two[0]} and {two[1]}") for two in arms)
            what = f"a spec with one task (Boschloo), {name}, all rates; most at {where}"
            rows.append(Row(about=about, what=what, how="exact", chance=chance, most=most))
    for tasks in (3, 5, 10, 20, 50):
        chance, where = worst((ch.flag_error(two, tasks), f"{two[0]} and {two[1]}") for two in [*equal, *unequal])
        what = f"{tasks} tasks, k = 1..20 in both arms, or 1..8 not the same, all rates; most at {where}"
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


def word_row(what: str, how: str, chance: ch.Chance) -> Row:
    return Row(about=ABOUT_WORD, what=what, how=how, chance=chance, most=MID_P)


def worse_row(what: str, how: str, chance: ch.Chance) -> Row:
    return Row(about=ABOUT_WORSE, what=what, how=how, chance=chance, most=HALF_MID_P)


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
    (word, at), (less, at_less) = worst(words), worst(worse)
    return [word_row(f"{name}; most at {at}", "exact", word), worse_row(f"{name}; most at {at_less}", "exact", less)]


def two_equal_tasks(_: int, __: Random) -> list[Row]:
    return counted_suites("2 tasks, k = 1..20, all rates", (([(k, k)] * 2, f"k={k}") for k in range(1, 21)))


def few_equal_tasks(_: int, __: Random) -> list[Row]:
    three = counted_suites("3 tasks, k = 1..8, common rates", (([(k, k)] * 3, f"k={k}") for k in range(1, 9)))
    return three + counted_suites("5 tasks, k = 1..4, common rates", (([(k, k)] * 5, f"k={k}") for k in range(1, 5)))


def unequal_tasks(_: int, __: Random) -> list[Row]:
    pairs = [*((a, b) for a in range(1, 7) for b in range(1, a)), (10, 3), (10, 5), (12, 5)]
    rows = counted_suites(
        "2 tasks, k not the same in both arms, all rates", (([two] * 2, f"{two[0]} and {two[1]}") for two in pairs)
    )
    lost = [(k, k - less) for k in (3, 5, 8, 10) for less in (1, 3) if less < k]
    rows += counted_suites("2 tasks, one lost 1 or 3 attempts, all rates", (([(a, a), (a, b)], f"{b} of {a}") for a, b in lost))
    return rows + counted_suites(
        "3 tasks, 3 attempts against 2 or 5", (([two] * 3, f"{two[0]} and {two[1]}") for two in ((3, 2), (5, 3)))
    )


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
    return [word_row(what + where, "exact", chance), worse_row(what + where_less, "exact", less)]


def drawn_totals(replicates: int, random: Random) -> list[Row]:
    """Arms are equal here, so that "worse" is half of it."""
    rows = []
    designs = [([0.95] * 10, 5), ([0.5] * 20, 3), ([0.5] * 50, 1), ([0.95] * 50, 3)]
    designs += [(ch.beta_rates(tasks), k) for tasks, k in ((5, 20), (10, 3), (20, 5), (50, 3), (50, 10))]
    for rates, k in designs:
        draws = max(20, replicates // (50 if len(rates) * k < 400 else 200))
        word, _ = ch.drawn_totals(k, rates, draws, random)
        what = f"{described(rates)}, k={k}"
        rows.append(word_row(what, f"{draws:,} totals", word))
    return rows


def drawn_attempts(replicates: int, random: Random) -> list[Row]:
    rows = []
    cells: list[tuple[list[float] | int, ch.Arms, float, int]] = [
        ([0.5] * 3, (3, 3), 0.15, replicates),
        (5, (3, 3), 0.0, replicates),
        (5, (5, 5), 0.15, replicates),
        ([0.9] * 10, (5, 5), 0.15, replicates),
        (10, (3, 5), 0.0, replicates),
        (20, (3, 3), 0.15, replicates // 4),
    ]
    for rates, arms, lost, draws in cells:
        word, worse = ch.simulated(rates, arms, lost, draws, random)
        k = f"k={arms[0]}" if arms[0] == arms[1] else f"k={arms[0]} against {arms[1]}"
        what = f"{described(rates)}, {k}" + (f", {percent(lost)} of the attempts lost" if lost else "")
        rows += [word_row(what, f"{draws:,} drawn", word), worse_row(what, f"{draws:,} drawn", worse)]
    return rows
