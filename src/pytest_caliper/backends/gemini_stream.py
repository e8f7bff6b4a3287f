"""Reads what `gemini --output-format stream-json` prints, event by event (recorded from 0.61.0).

`init`, the prompt as a `message` of the user, `message` deltas of the assistant, `tool_use` and `tool_result`, `error` warnings,
and one `result` at the end. Tool results are display strings: empty for files read, and a refused command counts as a success.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.backends.transcript import Bounds, Transcript
from pytest_caliper.runs.records import Usage

_MCP_PREFIX = "mcp_"


@dataclass(kw_only=True, slots=True)
class GeminiStream:
    """What one stream said."""

    transcript: Transcript
    servers: tuple[str, ...] = ()
    """Names of the MCP servers that were declared."""
    faults: LineFaults = field(default_factory=LineFaults)
    events: int = 0
    """How many of the lines were events."""
    model: str | None = None
    """The model of the `init` event: what was asked for."""
    result: Mapping[str, Any] | None = None
    warning: str | None = None
    """The last `error` event of severity `error`, which stands in place of the result's own error."""
    _said: list[str] = field(default_factory=list)
    """Deltas since the last tool call or result."""
    _activated: dict[str, str] = field(default_factory=dict)
    """Calls of the skill tool: call id -> skill."""

    @property
    def skills_used(self) -> tuple[str, ...]:
        """Skills that were activated, in order, each once."""
        return tuple(dict.fromkeys(self._activated.values()))

    @property
    def last_text(self) -> str:
        """What the agent said after its last tool call."""
        return "".join(self._said)

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take in the next event; kinds that are not known are passed over."""
        kind = event.get("type")
        self.events += isinstance(kind, str)
        if kind == "init":
            self.model = _text(event.get("model"))
        elif kind == "message" and event.get("role") == "assistant":
            self._said.append(str(event.get("content") or ""))
        elif kind == "tool_use":
            self._call(event)
        elif kind == "tool_result":
            self._tool_result(event)
        elif kind == "error" and event.get("severity") == "error":
            self.warning = _text(event.get("message")) or self.warning
        elif kind == "result":
            self.result = event

    def close(self) -> None:
        """Put what was said last into the transcript."""
        self.transcript.say("assistant", self.last_text)

    def _call(self, event: Mapping[str, Any]) -> None:
        self._turn_over()
        call_id, name, arguments = _text(event.get("tool_id")), str(event.get("tool_name")), event.get("parameters")
        self.transcript.call(call_id, mcp_name(name, self.servers), arguments)
        skill = arguments.get("name") if isinstance(arguments, Mapping) else None
        if name == "activate_skill" and isinstance(skill, str):
            self._activated[call_id or f"call {self.events}"] = skill

    def _tool_result(self, event: Mapping[str, Any]) -> None:
        self._turn_over()
        call_id, error = _text(event.get("tool_id")), event.get("error")
        words = _text(error.get("message")) if isinstance(error, Mapping) else None
        self.transcript.result(call_id, _text(event.get("output")) or words or "")
        if event.get("status") == "error" and call_id is not None:
            self._activated.pop(call_id, None)  # no such skill: nothing was activated

    def _turn_over(self) -> None:
        self.transcript.say("assistant", self.last_text)
        self._said.clear()


def read_stream(path: Path, *, servers: tuple[str, ...] = (), bounds: Bounds | None = None) -> GeminiStream:
    """Read the file at `path`, one line in memory at a time."""
    stream = GeminiStream(transcript=Transcript(bounds), servers=servers)
    for event in json_objects(path, stream.faults):
        stream.feed(event)
    stream.close()
    return stream


def mcp_name(name: str, servers: Iterable[str]) -> str:
    """A tool's name with that of an MCP server spelled `mcp__server__tool`; the CLI writes `mcp_server_tool` (recorded)."""
    for server in sorted(servers, key=len, reverse=True):
        prefix = f"{_MCP_PREFIX}{re.sub(r'[^A-Za-z0-9_.:-]', '_', server)}_"
        if name.startswith(prefix) and len(name) > len(prefix):
            return f"mcp__{server}__{name[len(prefix) :]}"
    return name


def concrete_model(stats: Mapping[str, Any], asked: str | None) -> str | None:
    """The model that did the work, of those that the statistics name: the one asked for, else the one with most output.

    A name such as `auto`, `pro` or `flash` is not among them, and neither is a model that another stood in for.
    """
    used = {str(name): entry for name, entry in _mapping(stats.get("models")).items()}
    if not used or asked in used:
        return asked
    return max(used, key=lambda name: _count(_mapping(used[name]).get("output_tokens")) or 0)


def read_usage(stats: Mapping[str, Any]) -> Usage | None:
    """Tokens of a whole run by the `stats` of its result; None when nobody counted, which the CLI writes as zeros (recorded).

    `input_tokens` holds the cached ones as well. Output is what the total has beyond the input: `output_tokens` leaves thoughts
    out, the total does not. The CLI does not report what was written into a cache.
    """
    total, given, written, cached = (
        _count(stats.get(name)) for name in ("total_tokens", "input_tokens", "output_tokens", "cached")
    )
    if not any((total, given, written)):
        return None
    fresh = given if cached is None or given is None else max(0, given - cached)
    if total is not None and given is not None and written is not None:
        written = max(written, total - given)
    return Usage(input_tokens=fresh, output_tokens=written, cache_read_tokens=cached)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
