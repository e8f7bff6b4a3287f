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


@pytest.fixture
def caliper_workspace(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """The private directories of this attempt: `root`, `home`, `work`. Removed after the attempt."""
    ahead = state_of(request.config).ahead
    if ahead is None and getattr(request.config.option, "setuponly", False):  # nothing will run in it
        from pytest_caliper.contracts import Workspace

        yield Workspace.at(Path(tempfile.gettempdir(), "caliper-setup-only"))
        return
    if ahead is None:
        raise pytest.UsageError("caliper_workspace belongs to the attempts of a .eval.yaml spec; a test cannot ask for it")
    with ahead.workspace(request.node) as workspace:
        yield workspace


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
