from __future__ import annotations

import pytest

from pytest_caliper.scoring import Comparison, Over, boschloo, compare_arms, compare_tasks, stratified_exact

Tables = list[tuple[int, int, int, int]]


def compared(tables: Tables) -> Comparison:
    comparison = compare_arms(tables)
    assert comparison is not None
    return comparison


@pytest.mark.parametrize(
    ("tables", "word"),
    [
        ([(1, 3, 3, 3), (0, 3, 2, 3), (2, 3, 3, 3), (1, 3, 2, 3)], "better"),
        ([(3, 3, 1, 3), (2, 3, 0, 3), (3, 3, 2, 3), (2, 3, 1, 3)], "worse"),
        ([(2, 3, 3, 3), (2, 3, 2, 3)], "no evidence"),
        ([(3, 3, 3, 3)] * 4, "no evidence"),
        ([(3, 3, 2, 3)], "no evidence"),
    ],
)
def test_words(tables: Tables, word: str) -> None:
    assert compared(tables).word == word


def test_a_mid_p_of_exactly_one_in_twenty_is_evidence() -> None:
    comparison = compared([(0, 3, 3, 3), (1, 3, 2, 3)])

    assert (comparison.p, comparison.word) == (0.05, "better")


@pytest.mark.parametrize("table", [(0, 3, 3, 3), (5, 17, 12, 17), (0, 2, 3, 3), (3, 4, 2, 10), (2, 3, 2, 3)])
def test_tasks_that_never_fail_or_never_pass_leave_the_verdict_on_another_alone(table: tuple[int, int, int, int]) -> None:
    alone, among = compared([table]), compared([(3, 3, 3, 3), table, (0, 3, 0, 2)])

    assert (among.word, among.p, among.needed) == (alone.word, alone.p, alone.needed)
    assert among.p == boschloo(*table)


def test_suites_have_twice_the_smaller_one_sided_mid_p() -> None:
    tables = [(6, 9, 1, 4), (7, 9, 2, 4)]
    test = stratified_exact(tables)

    assert compared(tables).p == float(2 * (test.less - (test.less + test.greater - 1) / 2))


def test_one_task_has_boschloos_verdict() -> None:
    comparison = compared([(0, 3, 3, 3), (0, 0, 3, 3)])

    assert comparison.p == boschloo(0, 3, 3, 3)
    assert comparison.word == "better"
    assert comparison.tasks == 1


def test_evidence_against_the_direction_of_delta_is_no_evidence() -> None:
    """A large task that gains outweighs two small ones in the test, not in the mean."""
    comparison = compared([(0, 20, 12, 20), (1, 1, 0, 1), (1, 1, 0, 1)])

    assert comparison.delta < 0
    assert comparison.p <= 0.05
    assert comparison.word == "no evidence"


def test_how_many_more_would_tell() -> None:
    weak, strong = compared([(1, 3, 2, 3)] * 3), compared([(0, 3, 3, 3)] * 3)

    assert (weak.needed, weak.attempts, weak.more) == (12, 3, 9)
    assert (strong.needed, strong.more) == (None, None)


def test_what_no_number_would_tell() -> None:
    assert compared([(2, 3, 2, 3)] * 2).more is None
    assert compared([(50, 100, 51, 100)] * 2).more == Over(200)


def test_at_least_one_more() -> None:
    lost = compared([(0, 1, 1, 1), (2, 20, 3, 20)])

    assert lost.word == "no evidence"
    assert lost.more == 1


def test_nothing_to_compare() -> None:
    assert compare_arms([]) is None
    assert compare_arms([(0, 0, 3, 3), (2, 3, 0, 0)]) is None


def test_single_tasks_are_judged_only_when_they_stand_out_among_all() -> None:
    changes = compare_tasks([(0, 5, 5, 5), (3, 3, 2, 3), (0, 0, 3, 3), (5, 5, 0, 5)])

    assert [change and change.word for change in changes] == ["better", None, None, "worse"]
    assert changes[2] is None
    assert changes[1] is not None
    assert changes[1].delta == pytest.approx(-1 / 3)


def test_the_same_change_among_many_tasks_is_not_judged() -> None:
    alone = compare_tasks([(0, 3, 3, 3)])
    among = compare_tasks([(0, 3, 3, 3)] + [(2, 3, 2, 3)] * 9)

    assert alone[0] is not None
    assert alone[0].word == "better"
    assert among[0] is not None
    assert among[0].word is None


def test_impossible_tables_are_refused() -> None:
    for function in (compare_arms, compare_tasks):
        with pytest.raises(ValueError, match=r"^n_base must be >= 0, got -1$"):
            function([(0, -1, 3, 3)])
