"""From how a test ended to the verdict over its attempt, and to what pytest is to see."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_caliper.attempt.outcome import one_line
from pytest_caliper.contracts import Verdict
from pytest_caliper.runs.records import AttemptRecord
from pytest_caliper.state import COURSE, RECORD, state_of
from pytest_caliper.testing.api import NoVerdict, _Undecided
from pytest_caliper.testing.course import Course, failed, passed, undecided

if TYPE_CHECKING:
    from pytest_caliper.testing.items import FunctionAttempt

_FAILS = (AssertionError, pytest.fail.Exception)
"""What says no, as in an `assert:`; anything else that leaves the test says nothing about the agent's work."""


def conclude(attempt: FunctionAttempt, error: BaseException | None) -> BaseException | None:
    """Make the attempt's record of how the test ended. -> what pytest is to see raised; None when the test is over well."""
    course = attempt.stash.get(COURSE, None)
    if course is not None and isinstance(error, (KeyboardInterrupt, pytest.exit.Exception)):
        course.abandon()
        return error
    if course is None or not course.begun:
        return _without_a_run(attempt, error)
    if course.record is None and (course.over or state_of(attempt.config).ahead_stops):
        course.abandon()
        return error
    try:
        record = attempt.stash[RECORD] = course.end(_verdict(attempt, course, error))
    except pytest.skip.Exception as stopped:
        return stopped
    if record.key.arm == "baseline":
        return None if record.usable else NoVerdict(_shown(record))
    return _seen(record, error)


def _verdict(attempt: FunctionAttempt, course: Course, error: BaseException | None) -> Verdict:
    if error is None:
        lost = next(
            (verdict for verdict in course.judged if verdict.autorater_passed is None), None
        )  # the test caught what it raised
        if lost is not None:
            return undecided(course.judged, lost.error or "the judge gave no verdict", lost.fatal)
        return passed(course.judged)
    if isinstance(error, _Undecided):
        return undecided(course.judged, error.reason, error.fatal)
    if isinstance(error, _FAILS):
        return failed(course.judged, f"{_place(attempt, error)}: AssertionError: {_message(error)}")
    if isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
        return undecided(course.judged, f"the test gave no verdict: {one_line(str(error))}")
    return undecided(course.judged, f"{_place(attempt, error)}: the test gave no verdict: {one_line(repr(error))}")


def _seen(record: AttemptRecord, error: BaseException | None) -> BaseException | None:
    """With the skill: the test's own error where it has one, else what the record says."""
    if error is not None or record.outcome == "pass":
        return error
    if not record.usable:
        return NoVerdict(_shown(record))
    return pytest.fail.Exception(f"{record.outcome}: {record.reason}", pytrace=False)  # a cheat that the test did not look at


def _without_a_run(attempt: FunctionAttempt, error: BaseException | None) -> BaseException | None:
    """The test ended before the agent was called: the attempt got no fair shot, and the test is at fault."""
    if isinstance(error, pytest.skip.Exception):
        reason = f"the test skipped before caliper.run(): {one_line(str(error))}"
    elif error is not None:
        reason = f"the test failed before caliper.run(): {one_line(repr(error))}"
    else:
        reason = "the test never called caliper.run()"
        error = pytest.fail.Exception(f"{reason}: call it once, or leave the fixture `caliper` out", pytrace=False)
    attempt.stash[RECORD] = AttemptRecord(
        key=attempt.key,
        task_name=attempt.task.name,
        outcome="infra_error",
        reason=reason,
        output="",
        duration_seconds=0.0,
        started=time.time(),
        wall_seconds=0.0,
    )
    return error


def _place(attempt: FunctionAttempt, error: BaseException) -> str:
    """`tests/test_x.py:8`: the test's own line that raised."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(attempt.path)]
    return f"{attempt.item.location[0]}:{lines[-1] if lines else attempt.task.line + 1}"


def _message(error: BaseException) -> str:
    """Bounded; pytest's own explanation of an assert among it."""
    text = str(error) or "failed"
    return text if len(text) <= 5_000 else text[:5_000] + " …"


def _shown(record: AttemptRecord) -> str:
    from pytest_caliper.reports import shown_reason

    return shown_reason(replace(record))
