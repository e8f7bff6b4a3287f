"""What pi prints with `--mode json`, event by event (docs/json.md of pi 1.6; recorded from 1.6.0 and 0.74.2).

The stream of pi >= 1 begins with the system prompt in sections and the tools it declares, which tell what skills and MCP servers
the model was told of. Older ones have no such message.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.backends.pi_mcp import tool_name
from pytest_caliper.backends.transcript import Bounds, Transcript
from pytest_caliper.runs.records import Usage

_SKILL = re.compile(r"<skill>\s*<name>(.*?)</name>.*?<location>(.*?)</location>", re.DOTALL)
_EXPANDED = re.compile(r'<skill name="([^"]+)" location="')
_SERVER = re.compile(r"^- mcp__(\S+) \(([\w-]+)\)", re.MULTILINE)
_COUNTS = ("input", "output", "cacheRead", "cacheWrite")
_COUNTS_CACHE_WRITES = frozenset({"anthropic-messages", "bedrock-converse-stream"})
"""Protocols whose zero for written cache tokens is a count; in the others there may be no field for it."""


@dataclass(kw_only=True, slots=True)
class ToolCall:
    """A call of the last assistant message, with its result once there is one."""

    call_id: str
    name: str
    arguments: Any
    details: Any = None
    output: str | None = None
    is_error: bool = False


@dataclass(kw_only=True, slots=True)
class PiStream:
    """What one stream said."""

    transcript: Transcript
    prompt: str = ""
    """What the user asked: its echo in the stream is no turn."""
    server_names: tuple[str, ...] = ()
    """MCP servers as the spec spells them."""
    faults: LineFaults = field(default_factory=LineFaults)
    events: int = 0
    last: Mapping[str, Any] | None = None
    """The last assistant message, failed or not."""
    settled: bool | None = None
    """True when pi said that nothing follows, False when it said so of a cancelled run."""
    ended: bool = False
    """Whether an `agent_end` is the last thing that happened."""
    retrying: str | None = None
    """What pi waits to try again for; None when it does not wait."""
    retried: bool = False
    """Whether pi has tried again after failures that stand."""
    listed: dict[str, str] | None = None
    """Skills in the system prompt: name -> path of the SKILL.md. None when no system prompt was shown."""
    tools: list[str] = field(default_factory=list)
    """Tools declared to the model."""
    exposed: dict[str, str] = field(default_factory=dict)
    """MCP servers that the system prompt lists: name -> exposure."""
    calls: list[ToolCall] = field(default_factory=list)
    """All calls whose message stands, for whoever looks for used skills."""
    expanded: list[str] = field(default_factory=list)
    """Skills that a `/skill:NAME` prompt put into the conversation."""
    model: str | None = None
    _texts: list[str | ToolCall] = field(default_factory=list)
    """The last assistant message, in order: not a part of the transcript until it is sure to stand."""
    _usages: list[Mapping[str, Any]] = field(default_factory=list)
    _cache_writes_counted: bool = False
    _uncounted: bool = False

    @property
    def usage(self) -> Usage | None:
        """Tokens of all messages that did not fail, in four disjoint fields; None when a provider did not count."""
        if not self._usages or self._uncounted:
            return None
        given, written, read, created = (sum(_count(usage.get(name)) for usage in self._usages) for name in _COUNTS)
        return Usage(
            input_tokens=given,
            output_tokens=written,
            cache_read_tokens=read,
            cache_creation_tokens=created if created or self._cache_writes_counted else None,
        )

    @property
    def answer(self) -> str:
        """The text of the last assistant message."""
        blocks = _blocks((self.last or {}).get("content"))
        return "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take in the next event; kinds that are not known are passed over."""
        self.events += 1
        kind = event.get("type")
        if kind == "message_end":
            self._message(_mapping(event.get("message")))
        elif kind == "tool_execution_end":
            result = _mapping(event.get("result"))
            self._result(event.get("toolCallId"), result, event.get("isError") is True)
        elif kind == "agent_start":
            self.ended, self.settled, self.retrying = False, None, None
        elif kind == "agent_end":
            self.ended = event.get("willRetry") is not True
        elif kind == "agent_settled":
            self.settled = event.get("aborted") is not True
        elif kind == "auto_retry_start":
            self.ended, self.retrying, self.retried = False, str(event.get("errorMessage") or ""), True
        elif kind == "auto_retry_end":
            self.retrying = None
            self.retried = event.get("success") is not True
        elif kind == "entry_appended":
            self._edit(_mapping(event.get("entry")))
        elif kind == "compaction_end":
            self._count(_mapping(_mapping(event.get("result")).get("usage")), required=False)

    def close(self) -> None:
        """The stream is at its end."""
        self._flush()

    def _message(self, message: Mapping[str, Any]) -> None:
        role = message.get("role")
        if role == "toolResult":
            self._result(message.get("toolCallId"), message, message.get("isError") is True)
            return
        if role == "system":
            self._system(message)
        elif role == "user":
            self._flush()
            self._user(content_text(message.get("content")))
        elif role == "assistant":
            self._flush()
            self._assistant(message)

    def _system(self, message: Mapping[str, Any]) -> None:
        sections = _mapping(message.get("sections"))
        self.listed = self.listed or {}
        for name, location in _SKILL.findall(str(sections.get("skills", ""))):
            self.listed[html.unescape(name)] = html.unescape(location)
        self.exposed |= dict(_SERVER.findall(str(sections.get("mcp_servers", ""))))
        added = message.get("toolsAdded")
        self.tools += [str(_mapping(tool).get("name")) for tool in (added if isinstance(added, list) else [])]

    def _user(self, text: str) -> None:
        if (match := _EXPANDED.match(text)) is not None:
            self.expanded.append(html.unescape(match[1]))
        if text.strip() != self.prompt.strip():
            self.transcript.say("user", text)

    def _assistant(self, message: Mapping[str, Any]) -> None:
        self.last, self.retrying = message, None
        if message.get("stopReason") == "error":
            return  # a failed try: its partial text and its calls are no part of the conversation
        self.retried = False
        if isinstance(name := message.get("responseModel") or message.get("model"), str) and name:
            provider = message.get("provider")
            self.model = f"{provider}/{name}" if isinstance(provider, str) and provider else name
        self._cache_writes_counted |= message.get("api") in _COUNTS_CACHE_WRITES
        self._count(_mapping(message.get("usage")), required=message.get("stopReason") != "aborted")
        for block in _blocks(message.get("content")):
            if block.get("type") == "text":
                self._texts.append(str(block.get("text", "")))
            elif block.get("type") == "toolCall":
                call = ToolCall(
                    call_id=str(block.get("id")),
                    name=str(block.get("name")),
                    arguments=block.get("arguments"),
                )
                self._texts.append(call)

    def _count(self, usage: Mapping[str, Any], *, required: bool) -> None:
        """Add what a message took. All zeros mean that nobody counted; then the whole is not known."""
        if any(_count(usage.get(name)) for name in _COUNTS):
            self._usages.append(usage)
        elif required:
            self._uncounted = True

    def _result(self, call_id: Any, result: Mapping[str, Any], is_error: bool) -> None:
        for call in self._texts:
            if isinstance(call, ToolCall) and call.call_id == call_id:
                call.output = content_text(result.get("content"))
                call.details = result.get("details")
                call.is_error = is_error

    def _edit(self, entry: Mapping[str, Any]) -> None:
        """pi takes its last message, and the results of its calls, out of the conversation."""
        if entry.get("type") == "context_edit" and entry.get("replacement", "") is None:
            self._texts.clear()

    def _flush(self) -> None:
        for part in self._texts:
            if isinstance(part, str):
                self.transcript.say("assistant", part)
                continue
            self.transcript.call(part.call_id, tool_name(part.name, part.details, self.server_names), part.arguments)
            if part.output is not None:
                self.transcript.result(part.call_id, part.output)
            self.calls.append(part)
        self._texts.clear()


def read_stream(path: Path, *, prompt: str = "", servers: Iterable[str] = (), bounds: Bounds | None = None) -> PiStream:
    """Read the file at `path`, one line in memory at a time."""
    stream = PiStream(transcript=Transcript(bounds), prompt=prompt, server_names=tuple(servers))
    for event in json_objects(path, stream.faults):
        stream.feed(event)
    stream.close()
    return stream


def content_text(content: Any) -> str:
    """A message's content, which may be a string or a list of blocks, as text; what is no text is named in brackets."""
    parts = []
    for block in _blocks(content):
        text = block.get("text")
        parts.append(text if isinstance(text, str) else f"[{block.get('type', 'unknown')}]")
    return "\n".join(parts)


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
