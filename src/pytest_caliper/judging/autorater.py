"""Asks the judge's CLI whether `expect:` holds."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_caliper.contracts import (
    AttemptPlan,
    Backend,
    Cancelled,
    HarnessResult,
    Invoker,
    JudgeReply,
    RawOutput,
    Workspace,
)
from pytest_caliper.judging.bounding import cut_middle, first_line
from pytest_caliper.judging.prompt import ask_again, judge_prompt_hash, judge_request
from pytest_caliper.judging.verdict import NoVerdict, parse_verdict

__all__ = ["MAX_REASONING", "Rating", "judge_prompt_hash", "rate", "read_reply"]

MAX_REASONING = 16_000
"""Bytes of reasoning that are kept."""

ASKS = 2
"""The question and one re-ask."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rating:
    """What the autorater said."""

    passed: bool | None
    """None when there is no verdict; then `error` says why."""
    reasoning: str | None = None
    error: str | None = None
    """One line."""
    fatal: str | None = None
    """The remedy when no later call could work either."""
    model: str | None = None
    cli_version: str | None = None
    duration_s: float = 0.0
    """Both calls together, where there were two."""


def rate(invoker: Invoker, backend: Backend, plan: AttemptPlan, workspace: Workspace, result: HarnessResult) -> Rating:
    """Ask, and ask once more where the reply holds no verdict. A CLI that failed is not asked again: it has retried by itself.

    Raises Cancelled when the session stops.
    """
    request = judge_request(plan, result)
    spent, model, version, reason = 0.0, None, None, ""
    for _ in range(ASKS):
        raw = invoker.judge(backend, plan, workspace, request)
        reply = read_reply(backend, raw)
        spent += raw.duration_s
        model, version = reply.model or model, reply.cli_version or version
        if reply.error is not None or reply.fatal is not None:
            error = f"the judge ({plan.judge}) failed: {first_line(reply.error or reply.fatal or '')}"
            return Rating(passed=None, error=error, fatal=reply.fatal, model=model, cli_version=version, duration_s=spent)
        try:
            verdict = parse_verdict(reply.text, reply.structured, evidence=request.prompt)
        except NoVerdict as why:
            reason = str(why)
            request = ask_again(request, reason)
            continue
        reasoning = cut_middle(verdict.reasoning, MAX_REASONING)
        return Rating(passed=verdict.passed, reasoning=reasoning, model=model, cli_version=version, duration_s=spent)
    error = f"the judge ({plan.judge}) gave no verdict, asked {ASKS} times: {reason}"
    return Rating(passed=None, error=error, model=model, cli_version=version, duration_s=spent)


def read_reply(backend: Backend, raw: RawOutput) -> JudgeReply:
    """The reply of a judge that ended by itself, or one with an error where it was ended. Raises Cancelled."""
    if raw.cause == "cancelled":
        raise Cancelled
    if raw.cause == "timeout":
        return _lost(raw, f"no reply within {raw.duration_s:.0f} s")
    if raw.cause == "output":
        return _lost(raw, "it printed more than a reply can be")
    return backend.read_judge(raw)


def _lost(raw: RawOutput, error: str) -> JudgeReply:
    return JudgeReply(text="", error=error, cli_version=raw.cli_version, duration_s=raw.duration_s)
