from __future__ import annotations

import pytest

from pytest_caliper.scoring import Over, attempts_needed, stratified_exact
from pytest_caliper.scoring.power import Rates, attempts_to_tell, boschloo_power, mid_p_power


def tables(base: int, skill: int, n: int, tasks: int) -> list[tuple[int, int, int, int]]:
    return [(base, n, skill, n)] * tasks


@pytest.mark.parametrize(("base", "skill", "needed"), [(6, 9, 32), (3, 9, 10)])
def test_one_task_is_enumerated(base: int, skill: int, needed: int) -> None:
    assert attempts_needed(tables(base, skill, 10, 1)) == needed


@pytest.mark.parametrize(
    ("base", "skill", "attempts", "tasks", "power"),
    [
        (0.6, 0.9, 32, 1, 0.811),
        (0.3, 0.9, 10, 1, 0.824),
        (0.6, 0.9, 3, 1, 0.047),
        (0.6, 0.9, 10, 1, 0.291),
        (0.6, 0.9, 20, 1, 0.609),
        (0.6, 0.9, 12, 3, 0.85),
        (0.6, 0.9, 6, 5, 0.78),
        (0.6, 0.9, 4, 10, 0.90),
        (0.6, 0.9, 2, 20, 0.90),
        (0.6, 0.9, 1, 50, 0.95),
        (0.5, 0.8, 8, 5, 0.81),
        (0.7, 0.9, 6, 10, 0.80),
        (0.8, 0.9, 20, 5, 0.51),
    ],
)
def test_power_as_simulated(base: float, skill: float, attempts: int, tasks: int, power: float) -> None:
    error = 0.0006 if tasks == 1 else 0.015

    assert mid_p_power([Rates(base, skill)] * tasks, attempts) == pytest.approx(power, abs=error)


def test_power_of_two_tasks_is_that_of_every_outcome() -> None:
    chances = {0: 0.7**2, 1: 2 * 0.7 * 0.3, 2: 0.3**2}
    real = 0.0
    for y1, a in chances.items():
        for y2, b in chances.items():
            real += a * b * (stratified_exact([(y1, 2, 2, 2), (y2, 2, 2, 2)]).mid_p <= 0.05)

    assert real > 0
    assert mid_p_power([Rates(0.3, 1.0)] * 2, 2) == pytest.approx(real)


@pytest.mark.parametrize(("tasks", "low", "high"), [(3, 10, 12), (5, 7, 8), (10, 3, 4), (20, 2, 2), (50, 1, 1)])
def test_more_tasks_need_fewer_attempts(tasks: int, low: int, high: int) -> None:
    needed = attempts_needed(tables(6, 9, 10, tasks))

    assert isinstance(needed, int)
    assert low <= needed <= high


def test_direction_does_not_matter() -> None:
    assert attempts_needed(tables(9, 6, 10, 3)) == attempts_needed(tables(6, 9, 10, 3))


def test_certain_difference_needs_what_the_test_needs() -> None:
    assert attempts_needed([(0, 3, 3, 3)]) == 3
    assert attempts_needed([(0, 3, 3, 3)] * 3) == 2


def test_saturated_tasks_change_nothing() -> None:
    assert attempts_needed([*tables(1, 2, 3, 3), (3, 3, 3, 3), (0, 3, 0, 3)]) == attempts_needed(tables(1, 2, 3, 3))


@pytest.mark.parametrize("same", [[], [(2, 3, 2, 3)], [(1, 3, 2, 3), (2, 3, 1, 3)], [(0, 0, 3, 3)], [(0, 0, 0, 0)]])
def test_equal_arms_can_never_be_told_apart(same: list[tuple[int, int, int, int]]) -> None:
    assert attempts_needed(same) is None


def test_beyond_the_limit() -> None:
    assert attempts_needed(tables(50, 51, 100, 3)) == Over(200)
    assert attempts_needed(tables(6, 9, 10, 1), limit=20) == Over(20)
    assert str(Over(200)) == "over 200"


def test_large_answers_come_from_the_normal_formula() -> None:
    assert attempts_needed(tables(6, 8, 10, 1)) == 82
    assert attempts_needed(tables(8, 9, 10, 10)) == 20


@pytest.mark.parametrize(("base", "skill", "mid_p", "word"), [(11, 20, 11, 12), (7, 16, 17, 20), (6, 18, 10, 10)])
def test_the_word_of_one_task_takes_what_boschloo_takes(base: int, skill: int, mid_p: int, word: int) -> None:
    table = (base, 20, skill, 20)
    rates = Rates(base / 20, skill / 20)

    assert attempts_needed([table]) == mid_p
    assert attempts_to_tell([table]) == attempts_to_tell([table, (3, 3, 3, 3)]) == word
    assert boschloo_power(rates, word) >= 0.8
    assert word == mid_p or boschloo_power(rates, word - 1) < 0.8


def test_the_word_of_several_tasks_takes_what_mid_p_takes() -> None:
    assert attempts_to_tell(tables(1, 2, 3, 3)) == attempts_needed(tables(1, 2, 3, 3)) == 12
    assert attempts_to_tell(tables(2, 2, 3, 3)) is None
    assert attempts_to_tell(tables(6, 9, 10, 1), limit=20) == Over(20)
    assert attempts_to_tell([(11, 20, 20, 20)], limit=11) == Over(11)


@pytest.mark.parametrize(("option", "message"), [({"power": 1.0}, "power"), ({"alpha": 0.0}, "alpha")])
def test_impossible_demands_are_refused(option: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{message} must be between 0 and 1, got"):
        attempts_needed([(0, 3, 3, 3)], **option)  # type: ignore[arg-type]
