"""The fixtures of an attempt. A conftest may override each; the attempt then runs at its turn, never ahead."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_caliper.state import state_of

if TYPE_CHECKING:
    from pytest_caliper.contracts import Harness, Judge, Workspace
    from pytest_caliper.testing.api import Caliper


_NO_ATTEMPT = (
    "caliper_workspace belongs to attempts: those of a .eval.yaml spec, and those of a test that has `caliper` as a parameter"
)


@pytest.fixture
def caliper_workspace(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """The private directories of this attempt: `root`, `home`, `work`. Removed after the attempt."""
    ahead = state_of(request.config).ahead
    if ahead is None and getattr(request.config.option, "setuponly", False):  # nothing will run in it
        from pytest_caliper.contracts import Workspace

        yield Workspace.at(Path(tempfile.gettempdir(), "caliper-setup-only"))
        return
    if ahead is None:
        raise pytest.UsageError(_NO_ATTEMPT)
    from pytest_caliper.collection import attempt_of

    attempt = attempt_of(request.node)
    if attempt is None:
        raise pytest.UsageError(_NO_ATTEMPT)
    with ahead.workspace(attempt) as workspace:
        yield workspace


@pytest.fixture
def caliper(
    request: pytest.FixtureRequest,
    caliper_workspace: Workspace,
    caliper_harness: Harness,
    caliper_judge: Judge,
) -> Caliper:
    """One attempt in plain Python: the test runs once per attempt, in each arm. See docs/python.md.

    Example::

        @pytest.mark.caliper(k=5, bar=0.8, baseline=True)
        def test_commit(caliper):
            run = caliper.run("Commit the staged change.", skill="./SKILL.md")
            assert run.ok
            assert caliper.judge(run, "The message says what changed and why.")
    """
    from pytest_caliper.testing.fixture import make

    return make(request, caliper_workspace, caliper_harness, caliper_judge)


@pytest.fixture
def caliper_harness(request: pytest.FixtureRequest) -> Harness:
    """Runs the agent: a function `(plan, workspace) -> HarnessResult`. Override it to run another agent.

    Example, in a conftest.py::

        @pytest.fixture
        def caliper_harness():
            def run(plan, workspace):
                return HarnessResult(answer="42", finished=True)
            return run
    """
    return state_of(request.config).runtime.harness


@pytest.fixture
def caliper_judge(request: pytest.FixtureRequest) -> Judge:
    """Decides whether the checks hold: a function `(plan, result, workspace) -> Verdict`. Override it to judge otherwise."""
    return state_of(request.config).runtime.judge
