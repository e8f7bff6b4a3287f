from __future__ import annotations

import pytest
from builders import USAGE, record, run, task

from pytest_caliper.reporting.figures import arm_figures, baseline_figures, paired, spend, status_word
from pytest_caliper.runs.records import Usage


@pytest.mark.parametrize(
    ("strip", "aborted", "word"),
    [
        ("PPP", False, "PASS"),
        ("PPF", False, "PARTIAL"),
        ("PC", False, "PARTIAL"),
        ("FFC", False, "FAIL"),
        ("PUT", False, "PASS"),
        ("UTJ", False, "UNMEASURED"),
        ("---", False, "UNMEASURED"),
        ("UUU--", True, "ABORTED"),
        ("PUU--", True, "ABORTED"),
    ],
)
def test_status_words(strip: str, aborted: bool, word: str) -> None:
    assert status_word(task(strip, aborted=aborted)) == word


def test_every_planned_attempt_that_does_not_count_is_lost() -> None:
    arm = arm_figures([task("PPUU-"), task("FFFFF", number=2)])

    assert (arm.successes, arm.usable, arm.planned, arm.unusable, arm.lost) == (2, 7, 10, 2, 3)
    assert arm.worst == pytest.approx((2 / 5 + 0) / 2)
    assert arm.best == pytest.approx((5 / 5 + 0) / 2)
    assert arm.suite is not None
    assert arm.suite.rate == 0.5


def test_flawless_needs_every_planned_attempt() -> None:
    assert arm_figures([task("PPP"), task("PPU", number=2), task("PP-", number=3), task("", number=4)]).flawless == 1


def test_an_arm_without_a_usable_attempt_has_no_rate() -> None:
    arm = arm_figures([task("UU")])

    assert arm.suite is None
    assert (arm.worst, arm.best) == (0.0, 1.0)


def test_unknown_usage_is_never_zero() -> None:
    assert spend([record(usage=None)]).total_tokens is None
    assert spend([record(usage=Usage())]).total_tokens is None
    assert spend([]).wall_s is None
    only_output = spend([record(usage=Usage(output_tokens=7))])
    assert (only_output.prompt_tokens, only_output.total_tokens, only_output.complete) == (None, 7, False)


def test_usage_that_some_attempts_kept_back_is_incomplete() -> None:
    some = spend([record(usage=USAGE), record(usage=None)])

    assert (some.prompt_tokens, some.output_tokens, some.complete) == (51_000, 2_000, False)
    assert spend([record(), record()]).complete


def test_wall_time_is_the_agents_own() -> None:
    assert spend([record(duration_seconds=3.0, wall_seconds=9.0), record(duration_seconds=5.0)]).wall_per_attempt_s == 4.0


def test_arms_are_matched_by_task() -> None:
    made = run(
        task("PPP"), task("PPP", number=3), baseline=(task("FFF", number=3, arm="baseline"), task("F", number=4, arm="baseline"))
    )

    assert [tuple(r and r.task_id for r in pair) for pair in paired(made)] == [
        ("task-001", None),
        ("task-003", "task-003"),
        (None, "task-004"),
    ]
    figures = baseline_figures(made)
    assert figures is not None
    assert list(figures.changes) == ["task-003"]
    assert figures.comparison is not None
    assert figures.comparison.delta == 1.0


def test_a_run_without_baseline_compares_nothing() -> None:
    assert baseline_figures(run(task("PPP"))) is None
