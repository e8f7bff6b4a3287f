"""Bars: the verdict's words at their edges, and how many attempts settle them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_caliper.scoring import Over, attempts_to_settle, flawless_needed, judge_bar, wilson

BARS = st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=100)
COUNTS = st.integers(0, 40).flatmap(lambda usable: st.tuples(st.integers(0, usable), st.just(usable)))


@pytest.mark.parametrize(
    ("successes", "usable", "bar", "word"),
    [
        (4, 5, Fraction(4, 5), "met"),
        (3, 5, Fraction(4, 5), "missed"),
        (2, 3, Fraction(2, 3), "met"),
        (2, 3, Fraction(667, 1000), "missed"),
        (7, 10, Fraction(7, 10), "met"),  # 0.7 as a float is above seven tenths of ten
        (3, 3, Fraction(1), "met"),
        (0, 3, Fraction(1, 100), "missed"),
        (0, 0, Fraction(1, 100), "unmeasured"),
    ],
)
def test_point_compares_the_rate_exactly(successes: int, usable: int, bar: Fraction, word: str) -> None:
    verdict = judge_bar(successes, usable, usable, bar)
    assert verdict.word == word
    assert verdict.needed is None
    assert verdict.reached == (word == "met")


@pytest.mark.parametrize(
    ("successes", "usable", "word", "needed"),
    [
        (3, 3, "inconclusive", 16),
        (15, 15, "inconclusive", 16),
        (16, 16, "met", None),
        (0, 3, "missed", None),
        (1, 3, "missed", None),
        (2, 3, "inconclusive", 36),
        (4, 5, "inconclusive", None),  # the rate is the bar: no number would tell
        (0, 0, "unmeasured", None),
    ],
)
def test_lower_asks_for_the_interval(successes: int, usable: int, word: str, needed: int | None) -> None:
    verdict = judge_bar(successes, usable, usable, Fraction(4, 5), "lower")
    assert (verdict.word, verdict.needed) == (word, needed)
    assert verdict.more == (None if needed is None else needed - usable)


def test_straight_passes_that_clear_a_lower_bound() -> None:
    wanted = {"1/2": 4, "3/5": 6, "2/3": 8, "7/10": 9, "3/4": 12, "4/5": 16, "17/20": 22, "9/10": 35, "19/20": 73}
    assert {bar: flawless_needed(Fraction(bar)) for bar in wanted} == wanted
    assert flawless_needed(Fraction(1)) is None, "no number of passes makes a lower bound of 1"
    assert flawless_needed(Fraction(999, 1000)) == Over(1000)
    assert str(flawless_needed(Fraction(999, 1000))) == "over 1000"


@given(st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100), max_denominator=100))
def test_the_smallest_number_of_straight_passes_is_the_smallest(bar: Fraction) -> None:
    needed = flawless_needed(bar)
    assert isinstance(needed, int)
    cleared = wilson(needed, needed)
    assert cleared is not None
    assert cleared.low >= bar
    if needed > 1:
        short = wilson(needed - 1, needed - 1)
        assert short is not None
        assert short.low < bar


@given(COUNTS, BARS)
def test_what_would_settle_it_does_and_is_more_than_there_is(counts: tuple[int, int], bar: Fraction) -> None:
    successes, usable = counts
    verdict = judge_bar(successes, usable, usable, bar, "lower")
    if verdict.word != "inconclusive" or not isinstance(verdict.needed, int):
        assert verdict.word == "inconclusive" or verdict.needed is None
        return
    assert verdict.needed > usable
    again = verdict.needed * usable  # a multiple, so that the same rate exists
    settled = judge_bar(verdict.needed * successes, again, again, bar, "lower")
    assert settled.word in {"met", "missed"}
    assert (settled.word == "met") == (Fraction(successes, usable) > bar)


@given(COUNTS, BARS)
def test_the_words_of_both_policies_never_contradict(counts: tuple[int, int], bar: Fraction) -> None:
    successes, usable = counts
    point, lower = (judge_bar(successes, usable, usable, bar, policy).word for policy in ("point", "lower"))
    assert (lower, point) in {
        ("met", "met"),
        ("missed", "missed"),
        ("inconclusive", "met"),
        ("inconclusive", "missed"),
        ("unmeasured", "unmeasured"),
    }


def test_lost_attempts_are_bounded_and_may_be_too_many() -> None:
    verdict = judge_bar(1, 1, 3, Fraction(1, 2), min_coverage=Fraction(1, 2))
    assert verdict.word == "met"
    assert not verdict.covered
    assert not verdict.reached, "one of three is no coverage to be green by"
    assert verdict.lost is not None
    assert (verdict.lost.low, verdict.lost.high) == (1 / 3, 1.0)
    assert judge_bar(2, 2, 4, Fraction(1, 2), min_coverage=Fraction(1, 2)).reached, "half is enough for a half"
    assert judge_bar(3, 3, 3, Fraction(1, 2)).lost is None


@pytest.mark.parametrize("bar", [Fraction(0), Fraction(-1, 2), Fraction(11, 10)])
def test_what_is_no_bar_is_refused(bar: Fraction) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        judge_bar(1, 2, 3, bar)
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        attempts_to_settle(1, 2, bar)


def test_impossible_counts_are_refused() -> None:
    for counts in ((3, 2, 3), (1, 3, 2), (-1, 2, 3)):
        with pytest.raises(ValueError, match="must be"):
            judge_bar(*counts, Fraction(1, 2))
