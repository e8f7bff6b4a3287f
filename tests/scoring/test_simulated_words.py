"""False alarms of every word on identical arms, coverage, and the power of the advice: `benchmarks/simulations.py` in small.

Where every outcome is counted, limits hold as they are; where attempts or totals are drawn, by four standard errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random

import chances as ch
import covering as cv
import pytest

from pytest_caliper.scoring import BarPolicy, compare_tasks, judge_bar, suite_delta
from pytest_caliper.scoring.power import attempts_to_tell

MID_P, HALF_MID_P, BOSCHLOO = 0.055, 0.0275, 0.05
RATES = ch.rate_grid(16)
EQUAL = [(n, n) for n in (*range(1, 7), 8)]
UNEQUAL = [(a, b) for a in range(1, 5) for b in range(1, 5) if a != b]


@pytest.mark.parametrize("arms", [*EQUAL, *UNEQUAL, (10, 4)])
def test_one_task_is_called_different_in_at_most_one_of_twenty_equal_ones(arms: ch.Arms) -> None:
    assert ch.one_task_error(arms) <= BOSCHLOO
    assert ch.one_task_error(arms, ("worse",)) <= BOSCHLOO / 2


@pytest.mark.parametrize("tasks", [2, 3, 5, 10, 20, 50])
def test_any_task_is_flagged_in_at_most_one_of_twenty_equal_suites(tasks: int) -> None:
    assert max(ch.flag_error(arms, tasks) for arms in [*EQUAL, *UNEQUAL]) <= BOSCHLOO


def test_flags_are_those_of_the_smallest_p() -> None:
    """What `flag_error` counts is what `compare_tasks` says."""
    random, seen = Random(3), set()
    for _ in range(40):
        tables = ch.draw(random, [random.random() for _ in range(3)], (4, 5), 0.0)
        if random.random() < 0.5:
            tables[0] = random.choice([(0, 4, 5, 5), (4, 4, 0, 5), (4, 4, 1, 5)])
        found = any(change and change.word for change in compare_tasks(tables))
        assert found == any(3 * ch.one_task((4, 5))[table].p <= Fraction(1, 20) for table in tables)
        seen.add(found)
    assert seen == {True, False}


@pytest.mark.parametrize(
    "arms",
    [
        *([(k, k)] * 2 for k in (2, 3, 5)),
        [(3, 3)] * 3,
        [(2, 2)] * 5,
        [(3, 2)] * 2,
        [(2, 5)] * 2,
        [(9, 6)] * 2,
        [(8, 2)] * 2,
        [(3, 2)] * 3,
    ],
    ids=str,
)
def test_suites_are_called_different_no_oftener_than_promised(arms: list[ch.Arms]) -> None:
    found = [ch.words(arms, (rate,) * len(arms)) for rate in RATES]

    assert max(said.either for said in found) <= MID_P
    assert max(max(said.worse, said.better) for said in found) <= HALF_MID_P


@pytest.mark.parametrize(
    ("arms", "other"),
    [((3, 2), 0.0), ((3, 2), 0.97), ((5, 6), 1.0), ((10, 4), 0.0), ((10, 4), 0.97), ((17, 17), 1.0)],
)
def test_one_wavering_task_among_steady_ones(arms: ch.Arms, other: float) -> None:
    """The only task that can tell: mid-p alone called such suites different in up to 7.5 %, at 10 attempts against 4."""
    said = ch.words([arms] * 2, (0.5, other))

    assert said.either <= MID_P
    assert max(said.worse, said.better) <= HALF_MID_P


@pytest.mark.parametrize(("attempts", "totals"), [(2, (1, 2, 3)), (3, (0, 3)), (3, (2, 3, 6)), (4, (1, 4, 7)), (5, (5, 5))])
def test_edges_of_words_are_those_of_every_split(attempts: int, totals: tuple[int, ...]) -> None:
    strata = ch.strata([(attempts, attempts)] * len(totals), totals)
    quick, every = ch.given_totals(strata), ch.every_split(strata)

    assert (quick.better, quick.worse) == pytest.approx((every.better, every.worse), abs=1e-12)


@pytest.mark.parametrize(
    ("attempts", "rates", "draws"),
    [(3, ch.beta_rates(10), 150), (5, ch.beta_rates(20), 60), (1, [0.5] * 50, 60), (3, ch.beta_rates(50), 30)],
    ids=["10 x 3", "20 x 5", "50 x 1", "50 x 3"],
)
def test_larger_suites_given_drawn_totals(attempts: int, rates: Sequence[float], draws: int) -> None:
    word, worse = ch.drawn_totals(attempts, rates, draws, Random(1))

    assert word.value <= MID_P + 4 * word.error
    assert worse.value <= HALF_MID_P + 4 * worse.error
    assert word.value > 0.02, "a test that never says anything would pass the rest"


@pytest.mark.parametrize(
    ("rates", "arms", "lost"),
    [([0.5] * 3, (3, 3), 0.15), (5, (3, 3), 0.0), (10, (3, 3), 0.15), (10, (3, 5), 0.0)],
)
def test_suites_with_lost_attempts_or_another_k(rates: list[float] | int, arms: ch.Arms, lost: float) -> None:
    word, worse = ch.simulated(rates, arms, lost, 800, Random(2))

    assert word.value <= MID_P + 4 * word.error
    assert worse.value <= HALF_MID_P + 4 * worse.error


def bar_says(word: str, bar: Fraction, policy: BarPolicy, k: int, rate: float) -> float:
    return sum(p for c, p in enumerate(ch.binomial(k, rate)) if judge_bar(c, k, k, bar, policy).word == word)


@pytest.mark.parametrize(("bar", "most"), [("3/5", 0.05), ("7/10", 0.05), ("4/5", 0.03), ("9/10", 0.03), ("19/20", 0.03)])
def test_a_lower_bound_is_rarely_met_below_the_bar(bar: str, most: float) -> None:
    assert max(bar_says("met", Fraction(bar), "lower", k, float(Fraction(bar))) for k in range(1, 61)) <= most


def test_what_the_pages_say_of_bars() -> None:
    assert bar_says("met", Fraction(1, 2), "lower", 4, 0.5) == 1 / 16
    assert bar_says("missed", Fraction(4, 5), "lower", 1, 0.8) == pytest.approx(0.2)
    assert bar_says("met", Fraction(4, 5), "point", 5, 0.7) == pytest.approx(0.528, abs=0.001)


def test_intervals_cover() -> None:
    uniform = [(i + 0.5) / 100 for i in range(100)]

    for n in range(3, 21):
        assert sum(cv.wilson_coverage(n, rate) for rate in uniform) / len(uniform) >= 0.945
    for tasks, k in product((3, 10, 20), (3, 10)):
        assert min(cv.suite_rate_coverage(k, [rate] * tasks) for rate in (0.5, 0.8, 0.9)) >= 0.925
        assert min(cv.suite_rate_coverage(k, [rate] * tasks) for rate in (0.02, 0.95, 0.98)) >= 0.9
        assert cv.suite_rate_coverage(k, ch.beta_rates(tasks)) >= 0.945
    for tasks, k in product((3, 10), (3, 10)):
        assert min(cv.suite_delta_coverage(k, [rate] * tasks, [rate] * tasks) for rate in (0.5, 0.8, 0.95)) >= 0.93
        assert cv.suite_delta_coverage(k, [0.6] * tasks, [0.9] * tasks) >= 0.94


@pytest.mark.parametrize("rates", [[0.98] * 5, 10])
def test_intervals_cover_when_attempts_are_lost(rates: list[float] | int) -> None:
    for covered in cv.simulated(rates, (3, 3), 0.15, 500, Random(4)):
        assert covered.value >= 0.9 - 4 * covered.error


def test_one_long_task_has_the_interval_of_many_short_ones() -> None:
    random = Random(5)
    for _ in range(20):
        counts = [(random.randint(0, 4), random.randint(0, 4)) for _ in range(6)]
        many = suite_delta([(b, 4, s, 4) for b, s in counts])
        one = suite_delta([(sum(b for b, _ in counts), 24, sum(s for _, s in counts), 24)])
        assert many is not None
        assert one is not None
        assert (many.delta, many.low, many.high) == pytest.approx((one.delta, one.low, one.high), abs=1e-12)


@pytest.mark.parametrize(("base", "skill"), [(0.3, 0.9), (0.55, 1.0), (0.1, 0.55)])
def test_advice_for_one_task_is_enough(base: float, skill: float) -> None:
    """With the attempts that mid-p takes, 55 % to 100 % got its word in 60 % of runs."""
    attempts = attempts_to_tell([(round(20 * base), 20, round(20 * skill), 20)])

    assert isinstance(attempts, int)
    assert ch.one_task_power(base, skill, attempts) >= 0.8


@pytest.mark.parametrize(("tasks", "base", "skill"), [(2, 0.2, 0.8), (3, 0.6, 0.9), (10, 0.6, 0.9)])
def test_advice_for_suites_is_enough(tasks: int, base: float, skill: float) -> None:
    attempts = attempts_to_tell([(round(10 * base), 10, round(10 * skill), 10)] * tasks)

    assert isinstance(attempts, int)
    found = ch.power([base] * tasks, [skill] * tasks, attempts, 600, Random(6))
    assert found.value >= 0.8 - 4 * found.error
