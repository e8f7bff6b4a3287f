"""What stands behind the fixture `caliper`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_caliper.state import ATTEMPT, COURSE, state_of
from pytest_caliper.testing.api import Caliper
from pytest_caliper.testing.course import Course

if TYPE_CHECKING:
    from pytest_caliper.contracts import Harness, Judge, Workspace


def make(request: pytest.FixtureRequest, workspace: Workspace, harness: Harness, judge: Judge) -> Caliper:
    """The fixture's value for the test that asks. Raises pytest.UsageError where there is no attempt to be made."""
    attempt, ahead = request.node.stash.get(ATTEMPT, None), state_of(request.config).ahead
    if attempt is None:
        raise pytest.UsageError("let the test ask for `caliper` as a parameter: attempts are planned before any test runs")
    if ahead is None:  # nothing will run: --setup-only
        return Caliper(attempt, workspace, None, None)  # type: ignore[arg-type]
    course = request.node.stash[COURSE] = Course(ahead, attempt, workspace, harness, judge)
    return Caliper(attempt, workspace, course, ahead.plan(attempt))
