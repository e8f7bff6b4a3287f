from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_caliper.scoring import ALPHA, boschloo, holm, stratified_exact
from pytest_caliper.scoring.exact import boschloo_rejections

ARM = st.integers(0, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
TABLE = st.tuples(ARM, ARM).map(lambda arms: (*arms[0], *arms[1]))


@pytest.mark.parametrize("tables", [[], [(0, 3, 0, 3)], [(3, 3, 3, 3)] * 4, [(0, 0, 2, 3)], [(3, 3, 3, 3), (0, 2, 0, 4)]])
def test_where_one_total_is_possible_every_p_is_one(tables: list[tuple[int, int, int, int]]) -> None:
    test = stratified_exact(tables)

    assert (test.two_sided, test.mid_p, test.less, test.greater) == (1, 1, 1, 1)


def test_a_mid_p_of_one_in_twenty_is_not_rounded() -> None:
    assert stratified_exact([(0, 3, 3, 3)]).mid_p == Fraction(1, 20)


def test_direction() -> None:
    helps, harms = stratified_exact([(1, 5, 4, 5)] * 3), stratified_exact([(4, 5, 1, 5)] * 3)

    assert helps.greater < Fraction(1, 20) < helps.less
    assert helps.excess == Fraction(9, 2)
    assert (harms.less, harms.greater, harms.excess) == (helps.greater, helps.less, -helps.excess)


def test_tables_that_pooling_would_turn_round() -> None:
    """Simpson: the skill is worse in neither task, though the pooled counts say so."""
    test = stratified_exact([(9, 10, 2, 2), (0, 2, 1, 10)])

    assert test.excess > 0


def test_a_large_suite_is_exact() -> None:
    test = stratified_exact([(10, 20, 12, 20)] * 50)

    assert float(test.mid_p) == pytest.approx(9.06428044033851e-06, rel=1e-9)
    assert test.less + test.greater > 1


@given(st.lists(TABLE, max_size=4))
def test_p_values_are_those_of_counting_every_outcome(tables: list[tuple[int, int, int, int]]) -> None:
    chances = {0: Fraction(1)}
    for c_b, n_b, c_s, n_s in tables:
        m, step = c_b + c_s, {}
        if n_b and n_s:
            for x in range(max(0, m - n_b), min(n_s, m) + 1):
                step[x] = Fraction(comb(n_s, x) * comb(n_b, m - x), comb(n_b + n_s, m))
        else:
            step = {0: Fraction(1)}
        sums: dict[int, Fraction] = {}
        for total, chance in chances.items():
            for x, more in step.items():
                sums[total + x] = sums.get(total + x, Fraction(0)) + chance * more
        chances = sums
    seen = sum(c_s for _, n_b, c_s, n_s in tables if n_b and n_s)

    test = stratified_exact(tables)

    assert test.greater == sum(q for x, q in chances.items() if x >= seen)
    assert test.less == sum(q for x, q in chances.items() if x <= seen)
    assert test.two_sided == sum(q for q in chances.values() if q <= chances[seen])
    assert len(chances) == 1 or test.mid_p == test.two_sided - sum(q for q in chances.values() if q == chances[seen]) / 2


@given(
    st.lists(
        st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(0, n), st.just(n))), max_size=4
    )
)
def test_with_equal_arms_both_tails_are_as_improbable(tables: list[tuple[int, int, int, int]]) -> None:
    test = stratified_exact(tables)

    assert test.tails_mid_p == (test.mid_p if test.excess else 1)


@given(st.lists(TABLE, max_size=4))
def test_tails_know_neither_arm_nor_outcome(tables: list[tuple[int, int, int, int]]) -> None:
    exchanged = [(c_s, n_s, c_b, n_b) for c_b, n_b, c_s, n_s in tables]
    failures = [(n_b - c_b, n_b, n_s - c_s, n_s) for c_b, n_b, c_s, n_s in tables]

    p = stratified_exact(tables).tails_mid_p
    assert 0 < p <= 1
    assert stratified_exact(exchanged).tails_mid_p == stratified_exact(failures).tails_mid_p == p


@pytest.mark.parametrize("n", [1, 3, 4, 8, 13])
def test_what_boschloo_rejects(n: int) -> None:
    rejected = boschloo_rejections(n, ALPHA)

    for m, by_skill in enumerate(rejected):
        assert by_skill == {x: boschloo(m - x, n, x, n) <= ALPHA for x in range(max(0, m - n), min(n, m) + 1)}


@given(TABLE)
def test_boschloo_is_symmetric_and_at_least_as_powerful_as_fisher(table: tuple[int, int, int, int]) -> None:
    c_b, n_b, c_s, n_s = table
    p = boschloo(*table)

    assert 0 < p <= 1
    assert boschloo(c_s, n_s, c_b, n_b) == pytest.approx(p, rel=1e-9)
    assert boschloo(n_b - c_b, n_b, n_s - c_s, n_s) == pytest.approx(p, rel=1e-9)
    fisher = stratified_exact([table])
    assert p <= float(min(1, 2 * min(fisher.less, fisher.greater))) + 1e-9


def test_boschloo_of_an_empty_arm_says_nothing() -> None:
    assert boschloo(0, 0, 3, 3) == 1.0


def test_boschloo_of_extreme_tasks() -> None:
    for k in range(1, 21):
        assert boschloo(0, k, k, k) == pytest.approx(2 / 4**k, rel=1e-9)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.03125, 0.21875, 0.5, 0.03125]) == [0.125, 0.4375, 0.5, 0.125]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_holm_refuses_what_is_no_probability(p: float) -> None:
    with pytest.raises(ValueError, match=r"^p must be between 0 and 1, got "):
        holm([0.5, p])


def test_boschloo_refuses_impossible_counts() -> None:
    with pytest.raises(ValueError, match=r"^c_skill must be <= n_skill \(3\), got 4$"):
        boschloo(1, 3, 4, 3)
