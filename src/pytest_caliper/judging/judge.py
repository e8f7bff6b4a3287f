"""The standard judge: the assert first, which costs nothing, then the autorater."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_caliper.contracts import AttemptPlan, Backend, EngineError, HarnessResult, Invoker, Verdict, Workspace
from pytest_caliper.judging.assert_client import AssertOutcome, AssertRunner
from pytest_caliper.judging.assertion import compile_assertion
from pytest_caliper.judging.attempt_view import view_data
from pytest_caliper.judging.autorater import Rating, rate
from pytest_caliper.judging.bounding import first_line

ASSERT_TIMEOUT_S = 30.0


class StandardJudge:
    """Decides whether the checks of a task hold: contracts.Judge."""

    def __init__(self, *, invoker: Invoker, backends: Mapping[str, Backend], asserts: AssertRunner) -> None:
        self._invoker = invoker
        self._backends = backends
        self._asserts = asserts

    def __call__(self, plan: AttemptPlan, result: HarnessResult, workspace: Workspace) -> Verdict:
        """What the checks said. Raises Cancelled when the session stops.

        A failed assert settles it. One that was lost does not: the autorater may still fail the task, though not pass it.
        """
        asserted = self._assert(plan, result, workspace)
        failed = asserted is not None and asserted.passed is False
        rating = None if failed or plan.task.expect is None else self._rate(plan, result, workspace)
        return _verdict(asserted, rating)

    def _assert(self, plan: AttemptPlan, result: HarnessResult, workspace: Workspace) -> AssertOutcome | None:
        if plan.task.assertion is None:
            return None
        try:
            code = plan.assert_code or compile_assertion(plan.task.assertion)
        except ValueError as error:
            return AssertOutcome(passed=None, evidence=str(error), duration_s=0.0)
        attempt = view_data(result, workspace)
        return self._asserts.run(code, plan=plan, workspace=workspace, attempt=attempt, timeout_s=ASSERT_TIMEOUT_S)

    def _rate(self, plan: AttemptPlan, result: HarnessResult, workspace: Workspace) -> Rating:
        backend = self._backends.get(plan.judge.backend)
        if backend is None:
            return Rating(passed=None, error=f"the judge's backend {plan.judge.backend!r} is not known")
        try:
            return rate(self._invoker, backend, plan, workspace, result)
        except EngineError as error:  # a stale recording, or a login that ended: later tasks may do better
            return Rating(passed=None, error=f"the judge ({plan.judge}) cannot be used: {first_line(str(error))}")


def _verdict(asserted: AssertOutcome | None, rating: Rating | None) -> Verdict:
    lost = []
    if asserted is not None and asserted.passed is None:
        lost.append(f"the assert gave no verdict: {first_line(asserted.evidence)}")
    if rating is not None and rating.passed is None:
        lost.append(rating.error or "the autorater gave no verdict")
    return Verdict(
        assert_passed=None if asserted is None else asserted.passed,
        assert_evidence=None if asserted is None else asserted.evidence or None,
        autorater_passed=None if rating is None else rating.passed,
        autorater_reasoning=None if rating is None else rating.reasoning,
        error="; ".join(lost) or None,
        fatal=None if rating is None else rating.fatal,
        judge_votes=() if rating is None else rating.votes,
        judge_model=None if rating is None else rating.model,
        judge_cli_version=None if rating is None else rating.cli_version,
        judge_usage=None if rating is None else rating.usage,
        assert_s=None if asserted is None else asserted.duration_s,
        judge_s=None if rating is None else rating.duration_s,
    )
