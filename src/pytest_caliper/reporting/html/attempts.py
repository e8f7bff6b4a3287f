"""One attempt as the page's script gets it: every text made visible, every number already written.

The script only lays out; it computes nothing that a report says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.evidence import attempt_name
from pytest_caliper.reporting.html.markup import on_one_line, shown
from pytest_caliper.runs.records import AttemptKey, AttemptRecord, ChangedFile, Turn, Usage

OUTCOME_WORDS = {
    "pass": "passed",
    "task_fail": "failed",
    "cheat": "cheated",
    "timeout": "timed out: does not count",
    "infra_error": "was lost to a fault around it: does not count",
    "judge_error": "got no verdict: does not count",
}
KINDS = {
    "pass": "pass",
    "task_fail": "fail",
    "cheat": "cheat",
    "timeout": "unusable",
    "infra_error": "unusable",
    "judge_error": "unusable",
}
"""How an outcome is drawn: one shape and colour each."""

_SUMMARY_CHARS = 200
_TELLING = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "skill", "description", "prompt", "name")
"""Members of a tool's input that say best what the call is about, the best first."""


def attempt_key(key: AttemptKey, prefix: str = "") -> str:
    """The attempt's place in the page, behind the `#` of a link: `task-003/attempt-2`, `before/task-003/attempt-2`."""
    return f"{prefix}{quote(key.task_id, safe='')}/{attempt_name(key)}"


def attempt_title(key: AttemptKey) -> str:
    """`Attempt 2` or `Baseline attempt 2`."""
    return f"{'Attempt' if key.arm == 'skill' else 'Baseline attempt'} {key.attempt}"


def attempt_json(record: AttemptRecord) -> dict[str, Any]:
    """All that the page shows of one attempt, without its transcript."""
    return {
        "title": attempt_title(record.key),
        "kind": KINDS[record.outcome],
        "word": OUTCOME_WORDS[record.outcome],
        "outcome": record.outcome,
        "reason": _line(record.reason),
        "checks": list(_checks(record)),
        "cheat": [shown(evidence) for evidence in record.cheat_evidence],
        "answer": shown(record.output),
        "files": [_file(file) for file in record.changed_files],
        "facts": [[name, shown(text)] for name, text in _facts(record)],
        "brief": [shown(text) for text in _brief(record)],
        "warnings": [shown(text) for text in _warnings(record)],
    }


def turn_json(turn: Turn) -> dict[str, Any]:
    """One turn: its role, and as far as it has them text, tool, a line on the call, its input by member, and its output."""
    out: dict[str, Any] = {"role": turn.role}
    if turn.content:
        out["text"] = shown(turn.content)
    if turn.tool_name is not None:
        out["tool"] = _line(turn.tool_name)
    if turn.tool_input is not None:
        out["about"] = call_summary(turn.tool_input)
        out["input"] = [[shown(name), shown(_value(value))] for name, value in turn.tool_input.items()]
    if turn.tool_output is not None:
        out["output"] = shown(turn.tool_output)
    return out


def call_summary(tool_input: Mapping[str, Any]) -> str:
    """What a tool call is about, on one line: its command, file or question; else the first text of its input."""
    texts = [value for name in _TELLING if isinstance(value := tool_input.get(name), str) and value.strip()]
    texts += [value for value in tool_input.values() if isinstance(value, str) and value.strip()]
    return _line(texts[0], _SUMMARY_CHARS) or "" if texts else ""


def _line(text: str | None, chars: int | None = None) -> str | None:
    if text is None:
        return None
    # A megabyte on one line is not split into words for the sake of its first ones.
    line = on_one_line(text if chars is None else text[: 4 * chars])
    return line if chars is None or len(line) <= chars else f"{line[:chars]}…"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _checks(record: AttemptRecord) -> Iterator[dict[str, Any]]:
    if record.assert_passed is not None or record.assert_evidence is not None:
        yield {"check": "assert", "passed": record.assert_passed, "text": shown(record.assert_evidence or "")}
    if record.autorater_passed is not None or record.autorater_reasoning is not None:
        yield {
            "check": "judge",
            "passed": record.autorater_passed,
            "text": shown(record.autorater_reasoning or ""),
            "votes": list(record.judge_votes),
            "model": _line(record.judge_model),
        }


def _file(file: ChangedFile) -> dict[str, Any]:
    return {
        "path": _line(file.path),
        "change": file.change,
        "size": "" if file.change == "deleted" else numbers.plural(file.size, "byte"),
        "text": None if file.text is None else shown(file.text),
        "before": None if file.before is None else shown(file.before),
        "truncated": file.truncated,
    }


def _brief(record: AttemptRecord) -> Iterator[str]:
    yield f"{numbers.duration(record.duration_seconds)} of the agent's time"
    if record.usage is not None:
        yield f"{numbers.tokens(record.usage.total_tokens)} tokens"
    if record.retries:
        yield numbers.plural(record.retries, "retry").replace("retrys", "retries")
    if record.model is not None:
        yield record.model


def _facts(record: AttemptRecord) -> Iterator[tuple[str, str]]:
    spent = record.durations
    phases = (
        ("setup", spent.setup),
        ("agent", spent.agent),
        ("assert", spent.assert_),
        ("judge", spent.judge),
        ("cleanup", spent.cleanup),
    )
    told = " · ".join(f"{name} {_fine(seconds)}" for name, seconds in phases if seconds is not None)
    yield "Time", f"{numbers.duration(record.wall_seconds)} in all" + (f" · {told}" if told else "")
    yield "Tokens", _tokens(record.usage)
    yield "Model", _with_version(record.model, record.cli_version)
    if record.judge_model is not None or record.judge_cli_version is not None:
        yield "Judge", _with_version(record.judge_model, record.judge_cli_version)
    if record.judge_usage is not None:
        yield "Judge's tokens", _tokens(record.judge_usage)
    yield "Retries", str(record.retries)
    if record.skills_reported is not None:
        yield "Skills seen", ", ".join(record.skills_reported) or "none"
    yield "Skills used", ", ".join(record.skills_used) or "none"
    if record.mcp_reported:
        yield "MCP servers", ", ".join(record.mcp_reported)
    if record.redactions:
        yield "Redacted", numbers.plural(record.redactions, "secret")


def _tokens(usage: Usage | None) -> str:
    if usage is None:
        return numbers.UNKNOWN
    return (
        f"{numbers.tokens(usage.input_tokens)} in · {numbers.tokens(usage.cache_read_tokens)} read from cache"
        f" · {numbers.tokens(usage.cache_creation_tokens)} written to cache · {numbers.tokens(usage.output_tokens)} out"
    )


def _fine(seconds: float) -> str:
    """Checks take milliseconds: `10ms` says more than `0.0s`."""
    return f"{1000 * seconds:.0f}ms" if 0 <= seconds < 0.0995 else numbers.duration(seconds)


def _with_version(model: str | None, version: str | None) -> str:
    name = model or numbers.UNKNOWN
    return name if version is None else f"{name} (CLI {version})"


def _warnings(record: AttemptRecord) -> Iterator[str]:
    if record.fatal is not None:
        yield f"The session was stopped: {record.fatal}"
    if record.cleanup_error is not None:
        yield f"The task's cleanup failed: {record.cleanup_error}"
    if record.transcript_truncated:
        yield "The transcript is not complete."
