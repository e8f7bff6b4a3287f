"""What an invocation of Codex amounts to: an attempt's result, or the judge's reply."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_caliper.backends.codex_errors import pending_failure, silent_failure, turn_failure
from pytest_caliper.backends.codex_home import codex_home
from pytest_caliper.backends.codex_rollout import Rollouts, read_rollouts
from pytest_caliper.backends.codex_skills import SkillWatch
from pytest_caliper.backends.codex_stream import CodexStream, read_stream
from pytest_caliper.backends.codex_usage import usage_of
from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.jsonl import parse_json
from pytest_caliper.backends.transcript import Bounds, cut, plain
from pytest_caliper.contracts import AttemptPlan, HarnessResult, JudgeReply, RawOutput, Workspace

SCHEMA_NAME = "verdict-schema.json"
"""Stands in the judge's CODEX_HOME, and is named in its command line."""
_ANSWER_CHARACTERS = 1_000_000


def read_agent(raw: RawOutput, plan: AttemptPlan, workspace: Workspace, *, bounds: Bounds | None = None) -> HarnessResult:
    """The attempt's result: finished with `turn.completed`, failed by `turn.failed`. `duration_s` and `cli_version` are `raw`'s.

    Its stream names neither its model, its skills nor its servers, and on none of the signals that stop it does it print usage:
    what the rollout in the attempt's home holds by then counts.
    """
    stream = read_stream(raw.stdout, SkillWatch(plan.skills, plan.task.prompt), bounds=bounds)
    rollouts = read_rollouts(codex_home(workspace), stream.thread)
    failure = None if stream.completed else _failure(stream, raw)
    answer = plain(stream.answer) if stream.completed else ""
    return HarnessResult(
        answer=cut(answer, _ANSWER_CHARACTERS),
        finished=stream.completed,
        transcript=stream.transcript.turns(),
        usage=usage_of(rollouts.tokens(stream.tokens)),
        model=rollouts.model,
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        timed_out=raw.cause == "timeout" and not stream.completed,
        duration_s=raw.duration_s,
        cli_version=raw.cli_version,
        skills_reported=rollouts.skills,
        skills_used=stream.skills.used,
        transcript_truncated=stream.transcript.truncated or stream.faults.too_long > 0 or len(answer) > _ANSWER_CHARACTERS,
    )


def read_judge(raw: RawOutput) -> JudgeReply:
    """The reply is the last message, JSON by the schema of the question."""
    stream = read_stream(raw.stdout, SkillWatch((), ""))
    rollouts = _judge_rollouts(raw, stream)
    failure = None if stream.completed else _failure(stream, raw)
    if failure is None and not stream.completed:
        failure = Failure(error=f"the judge gave no answer within {raw.duration_s:.0f} s")
    text = "" if failure is not None else plain(stream.answer)
    structured = parse_json(text.encode()) if text else None
    return JudgeReply(
        text=text,
        structured=structured if isinstance(structured, Mapping) else None,
        model=rollouts.model,
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=usage_of(rollouts.tokens(stream.tokens)),
    )


def _failure(stream: CodexStream, raw: RawOutput) -> Failure | None:
    """What failed; None for a time-out that met no error of the provider."""
    if stream.failed is not None:
        return turn_failure(stream.failed)
    if raw.cause == "timeout":
        return pending_failure(stream.reconnecting)
    if raw.cause == "output":
        return Failure(error=f"Codex printed too much ({raw.stdout.stat().st_size / 2**20:.0f} MB on standard output alone)")
    return pending_failure(stream.reconnecting) or silent_failure(raw.exit_code, raw.stderr)


def _judge_rollouts(raw: RawOutput, stream: CodexStream) -> Rollouts:
    """What the judge's CODEX_HOME holds. The command line says where that is, in the schema's path."""
    schema = next((Path(word) for word in raw.argv if word.endswith(f"/{SCHEMA_NAME}")), None)
    return Rollouts() if schema is None else read_rollouts(schema.parent, stream.thread)
