"""What stands where the agent does: nothing, or the task's own solution."""

from __future__ import annotations

from pathlib import Path

from pytest_caliper.attempt.hooks import run_hook
from pytest_caliper.contracts import AttemptPlan, HarnessResult, Workspace
from pytest_caliper.process import Processes


class SolutionHarness:
    """contracts.Harness: runs `solution:` where the planned task has one, and else does nothing. Calls no agent."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def __call__(self, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:
        """An attempt whose answer is what the solution printed; empty without one. Raises Cancelled when the session stops."""
        script = plan.task.solution
        if script is None:
            return HarnessResult(answer="", finished=True)
        done = run_hook("solution", script, plan=plan, workspace=workspace, processes=self._processes)
        if done.error is not None:
            return HarnessResult(answer="", finished=False, error=done.error, duration_s=done.duration_s)
        return HarnessResult(answer=_printed(workspace.root / "solution.stdout"), finished=True, duration_s=done.duration_s)


def _printed(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""
