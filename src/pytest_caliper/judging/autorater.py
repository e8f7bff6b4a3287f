"""Asks the judge's CLI whether `expect:` holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_caliper.contracts import (
    AttemptPlan,
    Backend,
    Cancelled,
    HarnessResult,
    Invoker,
    JudgeReply,
    JudgeRequest,
    RawOutput,
    Workspace,
)
from pytest_caliper.judging.bounding import cut_middle, first_line
from pytest_caliper.judging.prompt import PROMPT_LIMIT, ask_again, judge_prompt_hash, judge_request
from pytest_caliper.judging.verdict import NoVerdict, parse_verdict
from pytest_caliper.runs.records import Usage

__all__ = ["MAX_REASONING", "Rating", "judge_prompt_hash", "rate", "read_reply"]

MAX_REASONING = 16_000
"""Bytes of reasoning that are kept."""

_RULES = 8_000
"""Bytes kept free for the rules, the frame of a question and a re-ask."""

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
    """All calls together."""
    calls: int = 0
    usage: Usage | None = None
    """All calls together, as far as they told."""
    votes: tuple[bool | None, ...] = ()
    """What each vote said, where there was more than one."""


def rate(invoker: Invoker, backend: Backend, plan: AttemptPlan, workspace: Workspace, result: HarnessResult) -> Rating:
    """What the autorater says; with `plan.judge_votes`, what the majority of that many independent questions says.

    A vote without a verdict counts for neither side. Raises Cancelled when the session stops.
    """
    request = judge_request(plan, result, limit=_limit(backend))
    ratings: list[Rating] = []
    for _ in range(plan.judge_votes):
        called = sum(rating.calls for rating in ratings)
        ratings.append(_vote(invoker, backend, plan, workspace, request, called=called))
        if ratings[-1].fatal is not None:
            break
    return ratings[0] if plan.judge_votes == 1 else _majority(ratings, plan.judge_votes)


def _limit(backend: Backend) -> int:
    """Bytes of a question: fewer for a CLI that takes its prompt as an argument (`max_prompt_bytes`), with room for the rules."""
    bound: int | None = getattr(backend, "max_prompt_bytes", None)
    return PROMPT_LIMIT if bound is None else min(PROMPT_LIMIT, bound - _RULES)


def _majority(ratings: Sequence[Rating], votes: int) -> Rating:
    said = tuple(rating.passed for rating in ratings)
    winner = next((verdict for verdict in (True, False) if said.count(verdict) * 2 > votes), None)
    counted = f"{said.count(True)} of {votes} votes said yes, {said.count(False)} no"
    lost = next((rating for rating in ratings if rating.passed is None), None)
    speaker = next((rating for rating in ratings if rating.passed is winner), ratings[0])
    split = "" if len(set(said)) == 1 else f" [{counted}]"
    return replace(
        speaker,
        passed=winner,
        reasoning=None if winner is None else f"{speaker.reasoning}{split}",
        error=None if winner is not None else f"no majority: {counted}" + (f"; {lost.error}" if lost is not None else ""),
        fatal=None if winner is not None or lost is None else lost.fatal,
        duration_s=sum(rating.duration_s for rating in ratings),
        calls=sum(rating.calls for rating in ratings),
        usage=Usage.sum(rating.usage for rating in ratings),
        votes=said,
    )


def _vote(
    invoker: Invoker, backend: Backend, plan: AttemptPlan, workspace: Workspace, request: JudgeRequest, *, called: int
) -> Rating:
    """Ask, and ask once more where the reply holds no verdict. A CLI that failed is not asked again: it has retried by itself."""
    rating, reason = Rating(passed=None), ""
    for asked in range(1, ASKS + 1):
        request = replace(request, number=called + asked)
        raw = invoker.judge(backend, plan, workspace, request)
        reply = read_reply(backend, raw)
        rating = replace(
            rating,
            model=reply.model or rating.model,
            cli_version=reply.cli_version or raw.cli_version or rating.cli_version,
            duration_s=rating.duration_s + raw.duration_s,
            calls=asked,
            usage=Usage.sum((rating.usage, reply.usage)),
        )
        if reply.error is not None or reply.fatal is not None:
            error = f"the judge ({plan.judge}) failed: {first_line(reply.error or reply.fatal or '')}"
            return replace(rating, error=error, fatal=reply.fatal)
        try:
            verdict = parse_verdict(reply.text, reply.structured, evidence=request.prompt)
        except NoVerdict as why:
            reason = str(why)
            request = ask_again(request, reason)
            continue
        return replace(rating, passed=verdict.passed, reasoning=cut_middle(verdict.reasoning, MAX_REASONING))
    return replace(rating, error=f"the judge ({plan.judge}) gave no verdict, asked {ASKS} times: {reason}")


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
