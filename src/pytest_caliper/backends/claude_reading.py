"""What an invocation of Claude Code amounts to: an attempt's result, or the judge's reply."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_caliper.backends.claude_errors import pending_failure, reported_failure, silent_failure
from pytest_caliper.backends.claude_stream import ClaudeStream, main_model, read_stream, read_usage
from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.backends.transcript import Bounds, cut, plain
from pytest_caliper.contracts import AttemptPlan, HarnessResult, JudgeReply, RawOutput

_ANSWER_CHARACTERS = 1_000_000
_BROKEN_SERVER = frozenset({"failed", "needs-auth", "disabled"})


def read_agent(raw: RawOutput, plan: AttemptPlan, *, bounds: Bounds | None = None) -> HarnessResult:
    """The attempt's result, by the CLI's own end marker and error fields. `duration_s` and `cli_version` are `raw`'s.

    `finished` needs a `result` event without error. A result after our own SIGINT (`aborted_tools`) is none; its usage counts.
    """
    stream = read_stream(raw.stdout, bounds=bounds)
    failure = _failure(stream, raw)
    finished = stream.result is not None and reported_failure(stream.result) is None
    answer = plain(str(stream.result.get("result") or "")) if finished and stream.result is not None else ""
    broken = _broken_servers(stream, plan)
    return HarnessResult(
        answer=cut(answer, _ANSWER_CHARACTERS),
        finished=finished,
        transcript=stream.transcript.turns(),
        usage=read_usage(stream.result),
        model=main_model(stream.result, stream.last_model, _init_model(stream)),
        error=failure.error if failure is not None else broken,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        timed_out=raw.cause == "timeout" and not finished,
        duration_s=raw.duration_s,
        cli_version=raw.cli_version,
        skills_reported=_skills_reported(stream, plan),
        skills_used=_skills_used(stream, plan),
        mcp_reported=None if stream.servers is None else tuple(f"{name}:{status}" for name, status in stream.servers.items()),
        transcript_truncated=stream.transcript.truncated or stream.faults.too_long > 0 or len(answer) > _ANSWER_CHARACTERS,
    )


def read_judge(raw: RawOutput) -> JudgeReply:
    """The reply by the `result` object: `structured_output` when the model used the schema, else just `result`."""
    result = _result_object(raw.stdout)
    failure = _judge_failure(result, raw)
    structured = None if result is None else result.get("structured_output")
    return JudgeReply(
        text="" if failure is not None or result is None else plain(str(result.get("result") or "")),
        structured=None if failure is not None else structured,
        model=main_model(result),
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=read_usage(result),
    )


def _failure(stream: ClaudeStream, raw: RawOutput) -> Failure | None:
    """What failed; None for a finished answer, and for a time-out that met no error of the provider."""
    if stream.result is not None and reported_failure(stream.result) is None:
        return None
    if raw.cause == "timeout":
        return pending_failure(stream.retrying)
    if raw.cause == "output":
        return _too_much(raw)
    if stream.result is not None:
        return reported_failure(stream.result, code=stream.error_code, limit=stream.limit)
    return pending_failure(stream.retrying) or silent_failure(raw.exit_code, raw.stderr)


def _judge_failure(result: Mapping[str, Any] | None, raw: RawOutput) -> Failure | None:
    if result is not None:
        return reported_failure(result)
    if raw.cause == "timeout":
        return Failure(error=f"the judge gave no answer within {raw.duration_s:.0f} s")
    return _too_much(raw) if raw.cause == "output" else silent_failure(raw.exit_code, raw.stderr)


def _too_much(raw: RawOutput) -> Failure:
    return Failure(error=f"Claude Code printed too much ({raw.stdout.stat().st_size / 2**20:.0f} MB on standard output alone)")


def _result_object(path: Path) -> dict[str, Any] | None:
    """The last `result` object of the output, whatever was printed around it."""
    found = None
    for data in json_objects(path, LineFaults()):
        if data.get("type") == "result":
            found = data
    return found


def _skills_reported(stream: ClaudeStream, plan: AttemptPlan) -> tuple[str, ...] | None:
    """The CLI's list of skills, with those commands of the plan that it lists among its slash commands only (recorded)."""
    if stream.skills is None:
        return None
    ours = {*(skill.name for skill in plan.skills), *plan.absent_skills}
    commands = [name for name in stream.commands if name in ours and name not in stream.skills]
    return (*stream.skills, *commands)


def _skills_used(stream: ClaudeStream, plan: AttemptPlan) -> tuple[str, ...]:
    """Skills that were activated. A prompt that begins with `/name` activates one with no event in the stream (recorded)."""
    first = plan.task.prompt.split(maxsplit=1)[:1]
    name = first[0].removeprefix("/") if first and first[0].startswith("/") else None
    expanded = (name,) if name is not None and name in (_skills_reported(stream, plan) or ()) else ()
    return tuple(dict.fromkeys([*expanded, *stream.skills_used]))


def _broken_servers(stream: ClaudeStream, plan: AttemptPlan) -> str | None:
    """One line when an MCP server of the spec did not start: the CLI goes on without it, but then the attempt was no fair one."""
    servers = stream.servers or {}
    broken = [f"{server.name} ({servers[server.name]})" for server in plan.mcp if servers.get(server.name) in _BROKEN_SERVER]
    return f"mcp server did not start: {', '.join(broken)}: try its command in a shell" if broken else None


def _init_model(stream: ClaudeStream) -> str | None:
    model = (stream.init or {}).get("model")
    return model if isinstance(model, str) and model else None
