"""What went wrong, by opencode's own `error` events and its log, and what the user can do about it.

Only what the CLI itself says decides. The log is on standard error (`--print-logs`), one `key=value` line for each entry; an
`error` event without details names the entry that has them by its `ref`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.jsonl import parse_json
from pytest_caliper.backends.transcript import one_line

_BILLING = re.compile(
    r"insufficient_quota|credit balance is too low|billing_not_active|FreeUsageLimitError|GoUsageLimitError|spending (cap|limit)",
    re.IGNORECASE,
)
_MODEL = re.compile(r"model_not_found|ProviderModelNotFoundError|ModelNotFoundError")
_LOGIN = re.compile(r"ProviderAuthError|API key is missing|LoadAPIKeyError|AI_LoadAPIKeyError")
_TRANSIENT = frozenset({408, 409, 425, 429, 529})
_CONNECTION = re.compile(
    r"ECONN|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|ConnectionRefused|socket connection was closed", re.IGNORECASE
)
_ENTRY = re.compile(r"^timestamp=(\S+) level=(\w+) .*$", re.MULTILINE)
_FIELD = re.compile(r'([\w.]+)=("(?:[^"\\]|\\.)*"|\S*)')


def reported_failure(error: Mapping[str, Any], *, stderr: str, model: str | None) -> Failure:
    """What an `error` event stands for, with the log's details where the event has none."""
    data = _mapping(error.get("data"))
    name, text = str(error.get("name") or "error"), str(data.get("message") or "")
    if (entry := _referenced(stderr, data.get("ref"))) is not None:
        name, _, text = entry.partition(": ") if ": " in entry else ("error", "", entry)
    status = data.get("statusCode")
    known = status if isinstance(status, int) and not isinstance(status, bool) else None
    where = f" (HTTP {known})" if known is not None else ""
    line = one_line(f"{name}{where}: {text}" if text else f"{name}{where}")
    all_said = f"{name} {text} {data.get('responseBody') or ''}"
    if fatal := _remedy(all_said, known, model):
        return Failure(error=line, fatal=fatal)
    code = _mapping(data.get("metadata")).get("code") or ""
    passing = data.get("isRetryable") is True or known in _TRANSIENT or (known is not None and known >= 500)
    return Failure(error=line, transient=passing or _CONNECTION.search(f"{code} {text}") is not None)


def silent_failure(exit_code: int, stderr: str, reason: str | None) -> Failure:
    """A run that came to no end and told no error: why its last step ended, else its words on standard error."""
    if reason is not None:
        why = "a tool was not permitted, or the run was cut short" if reason == "tool-calls" else "the reply is incomplete"
        return Failure(error=one_line(f"the run ended with reason {reason!r}: {why}"))
    lines = [line for line in stderr.split("\n") if line.strip() and _ENTRY.match(line) is None]
    if exit_code == 0 or not lines:
        return Failure(error=f"the stream ended before its last step was finished (exit code {exit_code})")
    words = one_line(lines[-1])
    if re.search(r"Unknown arguments?:|^\s*--", stderr, re.MULTILINE) and "Options:" in stderr:
        remedy = "this version of opencode does not know an option: update it with `opencode upgrade`"
        return Failure(error=f"exit code {exit_code}: an option is not known", fatal=remedy)
    return Failure(error=f"exit code {exit_code}: {words}")


def pending_failure(stderr: str, *, since_ms: float) -> Failure | None:
    """What a run that ended while it was trying again had met: the log's last `stream error` after the stream's last event."""
    for entry in reversed([match for match in _ENTRY.finditer(stderr) if match[2] == "ERROR"]):
        fields = _fields(entry[0])
        if fields.get("message") != "stream error":
            continue
        if (_milliseconds(entry[1]) or 0.0) <= since_ms:
            return None
        words = next((value for name, value in fields.items() if name.endswith("error") and value), "an error")
        return Failure(error=one_line(f"{words}: still trying again when it ended"))
    return None


def broken_servers(stderr: str, servers: tuple[str, ...]) -> dict[str, str]:
    """The MCP servers that the log calls unavailable, of those declared, with their status: `failed`, `needs_auth`, …"""
    entries = [_fields(match[0]) for match in _ENTRY.finditer(stderr)]
    return {
        entry["key"]: entry.get("status", "failed")
        for entry in entries
        if entry.get("message") == "server unavailable" and entry.get("key") in servers
    }


def _remedy(said: str, status: int | None, model: str | None) -> str | None:
    if status == 402 or _BILLING.search(said):
        return "the provider's account has no credit or quota left: add some, or use another key or model"
    if status in (401, 403) or _LOGIN.search(said):
        return (
            "opencode is not logged in to the provider, or its key is refused: log in with `opencode auth login`, or set its key"
        )
    if status == 404 or _MODEL.search(said):
        return one_line(
            f"opencode cannot use {model or 'that model'}: name another one of `opencode models` as opencode:PROVIDER/MODEL"
        )
    return None


def _referenced(stderr: str, ref: Any) -> str | None:
    """`error` of the log's entry that has this `ref`."""
    if not isinstance(ref, str) or not ref:
        return None
    for match in _ENTRY.finditer(stderr):
        fields = _fields(match[0])
        if fields.get("ref") == ref:
            return fields.get("error") or None
    return None


def _fields(line: str) -> dict[str, str]:
    """The fields of a log's entry; values in quotes are JSON strings."""
    out: dict[str, str] = {}
    for match in _FIELD.finditer(line):
        value = parse_json(match[2].encode()) if match[2].startswith('"') else match[2]
        out.setdefault(match[1], str(value))
    return out


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _milliseconds(timestamp: str) -> float | None:
    try:
        return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000
    except ValueError:
        return None
