"""What one answer of a model API amounts to: an attempt's result, or the judge's reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_caliper.backends.api_errors import reported_failure, silent_failure
from pytest_caliper.backends.api_vendors import Vendor
from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.backends.transcript import Transcript, cut, plain
from pytest_caliper.contracts import HarnessResult, JudgeReply, RawOutput
from pytest_caliper.runs.records import Usage

_ANSWER_CHARACTERS = 1_000_000
_USAGE = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_tokens": "cache_read",
    "cache_creation_tokens": "cache_write",
}


def read_agent(raw: RawOutput, vendor: Vendor) -> HarnessResult:
    """The attempt's result: the text of the one answer. A text that was cut stands in the transcript and is no answer."""
    reply = _reply(raw)
    failure = None if reply is None and raw.cause == "timeout" else _failure(reply, raw, vendor)
    text = "" if reply is None else plain(str(reply.get("text") or ""))
    finished = reply is not None and failure is None
    transcript = Transcript()
    transcript.say("assistant", text)
    return HarnessResult(
        answer=cut(text, _ANSWER_CHARACTERS) if finished else "",
        finished=finished,
        transcript=transcript.turns(),
        usage=_usage(reply),
        model=_model(reply),
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        timed_out=raw.cause == "timeout" and reply is None,
        duration_s=raw.duration_s,
        cli_version=raw.cli_version,
        skills_reported=(),
        mcp_reported=(),
        transcript_truncated=transcript.truncated or len(text) > _ANSWER_CHARACTERS,
    )


def read_judge(raw: RawOutput, vendor: Vendor) -> JudgeReply:
    """The reply: structured where the server took the schema and kept to it, and as text in any case."""
    reply = _reply(raw)
    failure = _failure(reply, raw, vendor)
    usable = reply if failure is None and reply is not None else {}
    return JudgeReply(
        text=plain(str(usable.get("text") or "")),
        structured=usable.get("structured"),
        model=_model(reply),
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=_usage(reply),
    )


def _reply(raw: RawOutput) -> dict[str, Any] | None:
    """The client's last line, by which it says that it is done; None when it came to no end."""
    found = None
    for data in json_objects(raw.stdout, LineFaults()):
        if data.get("type") == "reply":
            found = data
    return found


def _failure(reply: Mapping[str, Any] | None, raw: RawOutput, vendor: Vendor) -> Failure | None:
    if reply is not None:
        error = reply.get("error")
        return reported_failure(error, vendor) if isinstance(error, Mapping) else None
    if raw.cause == "timeout":
        return Failure(error=f"{vendor.title} gave no answer within {raw.duration_s:.0f} s")
    if raw.cause == "output":
        return Failure(error=f"{vendor.title} answered with too much ({raw.stdout.stat().st_size / 2**20:.0f} MB)")
    return silent_failure(raw.exit_code, raw.stderr)


def _model(reply: Mapping[str, Any] | None) -> str | None:
    model = (reply or {}).get("model")
    return model if isinstance(model, str) and model else None


def _usage(reply: Mapping[str, Any] | None) -> Usage | None:
    """None where the answer counted nothing at all."""
    given = (reply or {}).get("usage")
    counts = {name: given.get(key) if isinstance(given, Mapping) else None for name, key in _USAGE.items()}
    known = {name: count for name, count in counts.items() if isinstance(count, int) and not isinstance(count, bool)}
    return Usage(**known) if known else None
