from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_caliper.scoring import suite_delta, suite_rate, wilson

LADDER = [(3, 3), (2, 3), (1, 3), (3, 3)]


@pytest.mark.parametrize("n", range(1, 201))
def test_wilson_reaches_the_ends_exactly(n: int) -> None:
    none, every = wilson(0, n), wilson(n, n)

    assert none is not None
    assert every is not None
    assert none.low == 0.0
    assert every.high == 1.0
    assert none.high == pytest.approx(1 - every.low)


def test_wilson_at_other_levels_and_sizes() -> None:
    narrow, wide = wilson(6, 10, level=0.5), wilson(6, 10, level=0.999)

    assert narrow is not None
    assert wide is not None
    assert wide.low < 0.312674 < narrow.low < 0.6 < narrow.high < 0.831820 < wide.high
    assert wilson(15, 20) == pytest.approx((0.531299, 0.888138), abs=1e-6)
    assert wilson(0, 0) is None


@pytest.mark.parametrize(
    ("counts", "rate", "n_eff", "low", "high"),
    [
        (LADDER, 0.75, 12, 0.467695, 0.911058),
        ([(3, 3), (2, 2), (1, 3)], 0.777778, 7.714286, 0.428564, 0.942309),
        ([(3, 3)] * 10, 1, 30, 0.886487, 1),
        ([(3, 3), (2, 3)], 0.833333, 6, 0.436497, 0.969947),
    ],
)
def test_suite_rate(counts: list[tuple[int, int]], rate: float, n_eff: float, low: float, high: float) -> None:
    suite = suite_rate(counts)

    assert suite is not None
    assert (suite.rate, suite.n_eff, suite.low, suite.high) == pytest.approx((rate, n_eff, low, high), abs=1e-6)
    assert suite.tasks == len(counts)


def test_unmeasured_tasks_leave_the_suite_rate_alone() -> None:
    assert suite_rate([*LADDER, (0, 0)]) == suite_rate(LADDER)
    assert suite_rate([(0, 0), (0, 0)]) is None
    assert suite_rate([]) is None


@pytest.mark.parametrize("counts", [[(0, 3)] * 7, [(0, 1), (0, 7), (0, 3)]])
def test_suite_rate_is_exact_at_the_ends(counts: list[tuple[int, int]]) -> None:
    none, every = suite_rate(counts), suite_rate([(n, n) for _, n in counts])

    assert none is not None
    assert every is not None
    assert (none.rate, none.low) == (0.0, 0.0)
    assert (every.rate, every.high) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("tables", "delta", "low", "high"),
    [
        ([(1, 3, 3, 3), (0, 3, 2, 3), (2, 3, 3, 3), (1, 3, 2, 3)], 0.5, 0.105835, 0.728991),
        ([(1, 3, 3, 3)] * 2, 0.666667, 0.131120, 0.903229),
        ([(48, 80, 56, 70)], 0.2, 0.052431, 0.333873),
    ],
)
def test_suite_delta(tables: list[tuple[int, int, int, int]], delta: float, low: float, high: float) -> None:
    suite = suite_delta(tables)

    assert suite is not None
    assert (suite.delta, suite.low, suite.high) == pytest.approx((delta, low, high), abs=1e-6)


def test_suite_delta_is_like_for_like() -> None:
    both = suite_delta([(1, 3, 3, 3)])

    assert suite_delta([(1, 3, 3, 3), (0, 0, 3, 3), (0, 3, 0, 0)]) == both
    assert suite_delta([(0, 0, 3, 3)]) is None


def test_what_one_task_gains_and_the_next_loses_is_exactly_nothing() -> None:
    suite = suite_delta([(1, 3, 2, 3), (1, 10, 2, 10), (2, 10, 1, 10), (2, 3, 1, 3)])

    assert suite is not None
    assert suite.delta == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson(4, 3), "successes must be <= n (3), got 4"),
        (lambda: wilson(1, 3, level=1), "level must be between 0 and 1, got 1"),
        (lambda: wilson(1, 3, level=float("nan")), "level must be between 0 and 1, got nan"),
        (lambda: suite_rate([(1, 3), (4, 3)]), "successes must be <= usable (3), got 4"),
        (lambda: suite_delta([(4, 3, 1, 3)]), "c_base must be <= n_base (3), got 4"),
        (lambda: suite_delta([(1, 3, -1, 3)]), "c_skill must be >= 0, got -1"),
    ],
)
def test_impossible_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()

    assert str(caught.value) == message
