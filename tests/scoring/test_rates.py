from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_caliper.scoring import bounds, pass_at, pass_at_k, pass_hat, pass_hat_k, success_rate


def test_the_rate_is_successes_over_usable() -> None:
    assert success_rate(2, 3) == 2 / 3
    assert success_rate(0, 3) == 0.0
    assert success_rate(3, 3) == 1.0


@pytest.mark.parametrize("function", [success_rate, pass_at_k, pass_hat_k])
def test_nothing_usable_is_no_number(function: Callable[[int, int], float | None]) -> None:
    assert function(0, 0) is None


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize("n", range(1, 21))
def test_plug_in_is_exact_at_the_ends(function: Callable[[int, int], float | None], n: int) -> None:
    assert function(0, n) == 0.0
    assert function(n, n) == 1.0


@pytest.mark.parametrize("function", [pass_at, pass_hat])
@pytest.mark.parametrize("n", range(1, 21))
def test_unbiased_is_exact_at_the_ends(function: Callable[[int, int, int], float | None], n: int) -> None:
    for j in range(1, n + 1):
        assert function(j, 0, n) == 0.0
        assert function(j, n, n) == 1.0


def test_unbiased_estimators_of_larger_samples() -> None:
    assert pass_at(5, 15, 20) == 15503 / 15504
    assert pass_hat(5, 15, 20) == 1001 / 5168
    assert pass_hat(10, 18, 20) == 9 / 38


@pytest.mark.parametrize("function", [pass_at, pass_hat])
def test_more_attempts_than_were_usable_cannot_be_judged(function: Callable[[int, int, int], float | None]) -> None:
    assert function(3, 1, 2) is None
    assert function(1, 0, 0) is None


def test_bounds_count_lost_attempts_both_ways() -> None:
    assert bounds(2, 2, 3) == (0.4, 1.0)
    assert bounds(2, 3, 0) == (2 / 3, 2 / 3)
    assert bounds(0, 0, 3) == (0.0, 1.0)
    assert bounds(0, 0, 0) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: success_rate(4, 3), "successes must be <= usable (3), got 4"),
        (lambda: success_rate(-1, 3), "successes must be >= 0, got -1"),
        (lambda: success_rate(0, -3), "usable must be >= 0, got -3"),
        (lambda: pass_at_k(4, 3), "successes must be <= usable (3), got 4"),
        (lambda: pass_hat_k(1.0, 3), "successes must be a whole number, got 1.0"),  # type: ignore[arg-type]
        (lambda: success_rate(True, 3), "successes must be a whole number, got True"),
        (lambda: pass_at(0, 1, 3), "j must be >= 1, got 0"),
        (lambda: pass_hat(-1, 1, 3), "j must be >= 1, got -1"),
        (lambda: pass_at(2, 4, 3), "successes must be <= usable (3), got 4"),
        (lambda: bounds(1, 2, -1), "unusable must be >= 0, got -1"),
    ],
)
def test_impossible_counts_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()

    assert str(caught.value) == message
