"""What an invocation of Gemini CLI amounts to: an attempt's result, or the judge's reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.gemini_errors import classified, reported_failure, silent_failure
from pytest_caliper.backends.gemini_stream import GeminiStream, concrete_model, read_stream, read_usage
from pytest_caliper.backends.jsonl import parse_json
from pytest_caliper.backends.transcript import Bounds, cut, plain
from pytest_caliper.contracts import AttemptPlan, HarnessResult, JudgeReply, RawOutput

_ANSWER_CHARACTERS = 1_000_000
_DOCUMENT_BYTES = 16 * 1024 * 1024
_SERVER_TROUBLE = re.compile(r"^(\[\w+\] )?MCP issues detected\.", re.MULTILINE)


def read_agent(raw: RawOutput, plan: AttemptPlan, *, bounds: Bounds | None = None) -> HarnessResult:
    """The attempt's result, by the CLI's own end marker and error fields. `duration_s` and `cli_version` are `raw`'s.

    `finished` needs a `result` event with status `success`. The CLI lists neither skills nor MCP servers.
    """
    stream = read_stream(raw.stdout, servers=tuple(server.name for server in plan.mcp), bounds=bounds)
    failure = _failure(stream, raw)
    finished = _finished(stream)
    answer = plain(stream.last_text) if finished else ""
    stats = _stats(stream)
    return HarnessResult(
        answer=cut(answer, _ANSWER_CHARACTERS),
        finished=finished,
        transcript=stream.transcript.turns(),
        usage=read_usage(stats),
        model=concrete_model(stats if finished else {}, stream.model),
        error=failure.error if failure is not None else _broken_server(stream, raw),
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        timed_out=raw.cause == "timeout" and not finished,
        duration_s=raw.duration_s,
        cli_version=raw.cli_version,
        skills_used=stream.skills_used,
        transcript_truncated=stream.transcript.truncated or stream.faults.too_long > 0 or len(answer) > _ANSWER_CHARACTERS,
    )


def read_judge(raw: RawOutput) -> JudgeReply:
    """The reply by the stream's last text, or by the document that `--output-format json` prints."""
    stream = read_stream(raw.stdout)
    if stream.events == 0 and (document := _document(raw)) is not None:
        return _document_reply(document, raw)
    failure = _failure(stream, raw)
    if failure is None and raw.cause == "timeout" and not _finished(stream):
        failure = Failure(error=f"the judge gave no answer within {raw.duration_s:.0f} s")
    return JudgeReply(
        text="" if failure is not None else plain(stream.last_text),
        model=concrete_model(_stats(stream), stream.model) if failure is None else None,
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=read_usage(_stats(stream)),
    )


def _finished(stream: GeminiStream) -> bool:
    return stream.result is not None and stream.result.get("status") == "success" and stream.result.get("error") is None


def _failure(stream: GeminiStream, raw: RawOutput) -> Failure | None:
    """What failed; None for a finished answer, and for a time-out, whose retries the CLI tells on standard error alone."""
    if _finished(stream):
        return None
    if stream.result is not None:
        code = raw.exit_code if raw.cause == "exit" else 0
        return reported_failure(stream.result, warning=stream.warning, exit_code=code, stderr=raw.stderr)
    if raw.cause == "timeout":
        return None
    if raw.cause == "output":
        size = raw.stdout.stat().st_size / 2**20
        return Failure(error=f"Gemini CLI printed too much ({size:.0f} MB on standard output alone)")
    return silent_failure(raw.exit_code, raw.stderr)


def _broken_server(stream: GeminiStream, raw: RawOutput) -> str | None:
    """One line when the CLI says that an MCP server failed. It does not say which: one that was called did not."""
    called = {turn.tool_name or "" for turn in stream.transcript.turns() if turn.role == "tool_use"}
    silent = [name for name in stream.servers if not any(tool.startswith(f"mcp__{name}__") for tool in called)]
    if not silent or _SERVER_TROUBLE.search(raw.stderr) is None:
        return None
    return f"an mcp server failed, and Gemini CLI does not say which: {', '.join(silent)}: try its command in a shell"


def _document(raw: RawOutput) -> Mapping[str, Any] | None:
    with raw.stdout.open("rb") as file:
        data = parse_json(file.read(_DOCUMENT_BYTES))
    return data if isinstance(data, Mapping) and ("response" in data or "error" in data) else None


def _document_reply(document: Mapping[str, Any], raw: RawOutput) -> JudgeReply:
    error, response = document.get("error"), document.get("response")
    failure = None
    if isinstance(error, Mapping):
        failure = classified(str(error.get("message") or ""), status=None, kind=str(error.get("type") or ""))
    elif not isinstance(response, str):
        failure = Failure(error="the document holds no response")
    models = document.get("stats", {}).get("models") if isinstance(document.get("stats"), Mapping) else None
    return JudgeReply(
        text="" if failure is not None else plain(str(response)),
        model=next(iter(models), None) if isinstance(models, Mapping) and failure is None else None,
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=read_usage(_summed(models if isinstance(models, Mapping) else {})),
    )


def _summed(models: Mapping[str, Any]) -> dict[str, int]:
    """The tokens of a document's models, under the names that the stream's `stats` have them by."""
    names = {"total": "total_tokens", "prompt": "input_tokens", "candidates": "output_tokens", "cached": "cached"}
    sums: dict[str, int] = {}
    for entry in models.values():
        tokens = entry.get("tokens") if isinstance(entry, Mapping) else None
        for name, told in names.items():
            count = tokens.get(name) if isinstance(tokens, Mapping) else None
            if isinstance(count, int) and not isinstance(count, bool):
                sums[told] = sums.get(told, 0) + count
    return sums


def _stats(stream: GeminiStream) -> Mapping[str, Any]:
    stats = (stream.result or {}).get("stats")
    return stats if isinstance(stats, Mapping) else {}
