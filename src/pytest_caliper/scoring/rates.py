"""How often one task succeeds: the rate, what k attempts promise, and what lost attempts could have changed.

Every function takes counts of one task in one arm. `usable` never contains lost attempts (time-out, infra_error, judge_error).
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

from pytest_caliper.scoring._counts import check_count, check_pair


class Bounds(NamedTuple):
    """Lowest and highest rate that the lost attempts leave possible."""

    low: float
    high: float


def success_rate(successes: int, usable: int) -> float | None:
    """Share of usable attempts that passed, 0 to 1: the headline. None when no attempt was usable."""
    check_pair(successes, usable)
    return successes / usable if usable else None


def pass_at_k(successes: int, usable: int) -> float | None:
    """Chance that at least one of `usable` attempts passes: 1 - (1 - rate)^usable. None when no attempt was usable.

    The plug-in value as caliper-eval defines it. It takes the observed rate for the true one and is biased low; `pass_at` is not.
    """
    rate = success_rate(successes, usable)
    return None if rate is None else 1.0 - (1.0 - rate) ** usable


def pass_hat_k(successes: int, usable: int) -> float | None:
    """Chance that all of `usable` attempts pass: rate^usable. None when no attempt was usable.

    The plug-in value as caliper-eval defines it. It takes the observed rate for the true one and is biased high;
    `pass_hat` is not.
    """
    rate = success_rate(successes, usable)
    return None if rate is None else rate**usable


def pass_at(j: int, successes: int, usable: int) -> float | None:
    """Unbiased chance that at least one of j attempts passes: 1 - C(n-c, j)/C(n, j). None when usable < j.

    Chen et al. 2021, Evaluating Large Language Models Trained on Code (arXiv 2107.03374).
    """
    _check_j(j, successes, usable)
    if usable < j:
        return None
    ways = comb(usable, j)
    return (ways - comb(usable - successes, j)) / ways


def pass_hat(j: int, successes: int, usable: int) -> float | None:
    """Unbiased chance that all of j attempts pass: C(c, j)/C(n, j). None when usable < j.

    Yao et al. 2024, tau-bench (arXiv 2406.12045).
    """
    _check_j(j, successes, usable)
    return comb(successes, j) / comb(usable, j) if usable >= j else None


def bounds(successes: int, usable: int, unusable: int) -> Bounds | None:
    """The rate had every lost attempt failed, and had every one passed: [c/(n+u), (c+u)/(n+u)]. None without any attempt."""
    check_pair(successes, usable)
    check_count("unusable", unusable)
    total = usable + unusable
    return Bounds(successes / total, (successes + unusable) / total) if total else None


def _check_j(j: int, successes: int, usable: int) -> None:
    check_count("j", j, least=1)
    check_pair(successes, usable)
