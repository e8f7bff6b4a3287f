"""What an invocation of opencode amounts to: an attempt's result, or the judge's reply."""

from __future__ import annotations

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.opencode_errors import broken_servers, pending_failure, reported_failure, silent_failure
from pytest_caliper.backends.opencode_stream import OpenCodeStream, read_stream
from pytest_caliper.backends.transcript import Bounds, cut, plain
from pytest_caliper.contracts import AttemptPlan, HarnessResult, JudgeReply, RawOutput

_ANSWER_CHARACTERS = 1_000_000


def read_agent(raw: RawOutput, plan: AttemptPlan, *, bounds: Bounds | None = None) -> HarnessResult:
    """The attempt's result, by the CLI's own end marker and error events. `duration_s` and `cli_version` are `raw`'s.

    `finished` needs a last step that ended with `stop`. The model is the one asked for: the stream names none. Of the MCP servers
    the CLI tells only those that are broken, in its log.
    """
    servers = tuple(server.name for server in plan.mcp)
    stream = read_stream(raw.stdout, servers=servers, bounds=bounds)
    failure = _failure(stream, raw)
    answer = plain(stream.last_text) if stream.finished else ""
    broken = broken_servers(raw.stderr, servers)
    named = ", ".join(f"{name} ({status})" for name, status in broken.items())
    lost = f"mcp server did not start: {named}: try its command in a shell" if broken else None
    return HarnessResult(
        answer=cut(answer, _ANSWER_CHARACTERS),
        finished=stream.finished,
        transcript=stream.transcript.turns(),
        usage=stream.usage,
        model=asked_model(raw),
        error=lost if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        timed_out=raw.cause == "timeout" and not stream.finished,
        duration_s=raw.duration_s,
        cli_version=raw.cli_version,
        skills_used=stream.skills_used,
        transcript_truncated=stream.transcript.truncated or stream.faults.too_long > 0 or len(answer) > _ANSWER_CHARACTERS,
    )


def read_judge(raw: RawOutput) -> JudgeReply:
    """The reply by the text of the last step."""
    stream = read_stream(raw.stdout)
    failure = _failure(stream, raw)
    if failure is None and not stream.finished:
        failure = Failure(error=f"the judge gave no answer within {raw.duration_s:.0f} s")
    return JudgeReply(
        text="" if failure is not None else plain(stream.last_text),
        model=asked_model(raw) if failure is None else None,
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=stream.usage,
    )


def asked_model(raw: RawOutput) -> str | None:
    """The model on the command line; None when it has none."""
    argv = raw.argv
    return argv[argv.index("--model") + 1] if "--model" in argv[:-1] else None


def _failure(stream: OpenCodeStream, raw: RawOutput) -> Failure | None:
    """What failed; None for a finished answer, and for a time-out that met no error of the provider."""
    if stream.finished:
        return None
    if stream.error is not None:
        return reported_failure(stream.error, stderr=raw.stderr, model=asked_model(raw))
    if raw.cause == "timeout":
        return pending_failure(raw.stderr, since_ms=stream.last_ms)
    if raw.cause == "output":
        return Failure(error=f"opencode printed too much ({raw.stdout.stat().st_size / 2**20:.0f} MB on standard output alone)")
    return silent_failure(raw.exit_code, raw.stderr, stream.reason)
