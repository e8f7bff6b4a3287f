"""Reads what `opencode run --format json` prints, event by event (recorded from 1.18.33).

`step_start`, `text`, `tool_use` (only when the tool is done: a run that is killed loses the call in flight) and `step_finish` for
each request to the model, and `error` events. The stream names no model and says nothing of sub-agents.
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

_OWN_TOOLS = frozenset({"apply_patch", "plan_enter", "plan_exit"})
"""The CLI's own tools whose names look like those of an MCP server."""


@dataclass(kw_only=True, slots=True)
class OpenCodeStream:
    """What one stream said."""

    transcript: Transcript
    servers: tuple[str, ...] = ()
    """Names of the MCP servers that were declared."""
    faults: LineFaults = field(default_factory=LineFaults)
    events: int = 0
    last_ms: float = 0.0
    """When the last event was printed, in milliseconds since the epoch."""
    reason: str | None = None
    """Why the last finished step ended: `stop` is the end of the run."""
    error: Mapping[str, Any] | None = None
    """The last `error` event that no finished step has followed."""
    _said: list[str] = field(default_factory=list)
    """Texts of the step under way."""
    _activated: list[str] = field(default_factory=list)
    _tokens: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return self.reason == "stop" and self.error is None

    @property
    def last_text(self) -> str:
        """What the agent said in its last step."""
        return "\n".join(self._said)

    @property
    def skills_used(self) -> tuple[str, ...]:
        """Skills that were activated, in order, each once."""
        return tuple(dict.fromkeys(self._activated))

    @property
    def usage(self) -> Usage | None:
        """Tokens of all finished steps in four disjoint fields; None when nobody counted, which the CLI writes as zeros.

        Input excludes both caches, output excludes reasoning (from its source). What went into a cache is 0 also where the
        provider does not say (recorded), so that 0 is unknown.
        """
        given, written, thought, read, created = (
            sum(_count(_inside(tokens, *path)) for tokens in self._tokens)
            for path in (("input",), ("output",), ("reasoning",), ("cache", "read"), ("cache", "write"))
        )
        if not (given or written or thought or read or created):
            return None
        return Usage(
            input_tokens=given,
            output_tokens=written + thought,
            cache_read_tokens=read,
            cache_creation_tokens=created or None,
        )

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take in the next event; kinds that are not known are passed over."""
        self.events += 1
        moment = event.get("timestamp")
        self.last_ms = float(moment) if isinstance(moment, (int, float)) else self.last_ms
        kind, part = event.get("type"), _mapping(event.get("part"))
        if kind == "step_start":
            self._said.clear()
            self.reason = None
        elif kind == "text":
            self._said.append(str(part.get("text") or ""))
            self.transcript.say("assistant", self._said[-1])
        elif kind == "tool_use":
            self._tool(part)
        elif kind == "step_finish":
            self.reason, self.error = str(part.get("reason")), None
            self._tokens.append(_mapping(part.get("tokens")))
        elif kind == "error":
            self.error = _mapping(event.get("error"))

    def _tool(self, part: Mapping[str, Any]) -> None:
        state, name = _mapping(part.get("state")), str(part.get("tool"))
        call_id = part.get("callID") if isinstance(part.get("callID"), str) else f"call {self.events}"
        self.transcript.call(call_id, mcp_name(name, self.servers), state.get("input"))
        failed = state.get("status") == "error"
        output = state.get("error" if failed else "output")
        self.transcript.result(call_id, output if isinstance(output, str) else "")
        skill = _mapping(state.get("input")).get("name")
        if name == "skill" and isinstance(skill, str) and not failed:
            self._activated.append(skill)


def read_stream(path: Path, *, servers: tuple[str, ...] = (), bounds: Bounds | None = None) -> OpenCodeStream:
    """Read the file at `path`, one line in memory at a time."""
    stream = OpenCodeStream(transcript=Transcript(bounds), servers=servers)
    for event in json_objects(path, stream.faults):
        stream.feed(event)
    return stream


def mcp_name(name: str, servers: Iterable[str]) -> str:
    """A tool's name with that of an MCP server spelled `mcp__server__tool`; the CLI writes `server_tool` (recorded)."""
    for server in sorted(servers, key=len, reverse=True):
        prefix = f"{re.sub(r'[^A-Za-z0-9_-]', '_', server)}_"
        if name.startswith(prefix) and len(name) > len(prefix) and name not in _OWN_TOOLS:
            return f"mcp__{server}__{name[len(prefix) :]}"
    return name


def _inside(value: Any, *names: str) -> Any:
    for name in names:
        value = _mapping(value).get(name)
    return value


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
