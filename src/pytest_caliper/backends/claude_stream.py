"""Reads what `claude -p --output-format stream-json --verbose` prints, event by event (recorded from 2.1.197 and 2.1.332).

`system/init`, then `assistant` events with one content block each, `user` events with tool results, and one `result` at the end.
Synthetic assistant events are the CLI itself speaking: they are never part of the transcript, only of the error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.backends.transcript import Bounds, Transcript
from pytest_caliper.runs.records import Usage

SYNTHETIC = "<synthetic>"
_SKILL_BODY = re.compile(r"Base directory for this skill: (.+)")
_INTERRUPTED = "[Request interrupted by user"  # our own SIGINT, in the CLI's words
_SUB_AGENT = "sub-agent"


@dataclass(kw_only=True, slots=True)
class ClaudeStream:
    """What one stream said."""

    transcript: Transcript
    faults: LineFaults = field(default_factory=LineFaults)
    events: int = 0
    init: Mapping[str, Any] | None = None
    """The `system/init` event: model, skills, slash commands, MCP servers."""
    result: Mapping[str, Any] | None = None
    """The last `result` event."""
    error_code: str | None = None
    """`error` of the last synthetic message: the CLI's own word for what failed."""
    retrying: Mapping[str, Any] | None = None
    """The `system/api_retry` event that nothing has followed yet."""
    limit: Mapping[str, Any] | None = None
    """`rate_limit_info` of a refusal by the account's usage limit."""
    last_model: str | None = None
    """The model of the main agent's last message."""
    _launched: dict[str, str] = field(default_factory=dict)
    """Skill tool calls: call id -> skill."""
    _expanded: list[str] = field(default_factory=list)
    """Skills whose body the CLI put into the conversation."""

    @property
    def skills_used(self) -> tuple[str, ...]:
        """Skills that were activated, in order, each once."""
        return tuple(dict.fromkeys([*self._launched.values(), *self._expanded]))

    @property
    def skills(self) -> tuple[str, ...] | None:
        """Skills that the CLI listed at its start; None without an init event."""
        return _names(self.init, "skills")

    @property
    def commands(self) -> tuple[str, ...]:
        """Slash commands that the CLI listed: its own, one for each skill, and those of `commands/`."""
        return _names(self.init, "slash_commands") or ()

    @property
    def servers(self) -> dict[str, str] | None:
        """MCP servers and their status as the CLI reported it; None without an init event."""
        if self.init is None:
            return None
        entries = [entry for entry in _list(self.init.get("mcp_servers")) if isinstance(entry, Mapping)]
        return {str(entry.get("name")): str(entry.get("status")) for entry in entries}

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take in the next event; kinds that are not known are passed over."""
        self.events += 1
        kind, subtype = event.get("type"), event.get("subtype")
        if kind == "system" and subtype == "init":
            self.init = event
        elif kind == "system" and subtype == "api_retry":
            self.retrying = event
        elif kind == "assistant":
            self._assistant(event)
        elif kind == "user":
            self._user(event)
        elif kind == "rate_limit_event":
            info = event.get("rate_limit_info")
            self.limit = info if isinstance(info, Mapping) and info.get("status") == "rejected" else None
        elif kind == "result":
            self.result = event

    def _assistant(self, event: Mapping[str, Any]) -> None:
        message = _mapping(event.get("message"))
        self.retrying = None
        if message.get("model") == SYNTHETIC or event.get("is_api_error_message"):
            self.error_code = _text_or_none(event.get("error")) or self.error_code
            return
        nested = event.get("parent_tool_use_id") is not None
        if not nested:
            self.last_model = _text_or_none(message.get("model")) or self.last_model
        for block in _blocks(message.get("content")):
            kind = str(block.get("type"))
            if kind == "text":
                text = str(block.get("text", ""))
                self.transcript.say("assistant", f"[{_SUB_AGENT}] {text}" if nested else text)
            elif kind.endswith("tool_use"):
                self._call(block, nested)
            elif kind.endswith("tool_result"):
                self._tool_result(block)

    def _call(self, block: Mapping[str, Any], nested: bool) -> None:
        call_id, name, arguments = _text_or_none(block.get("id")), str(block.get("name")), block.get("input")
        self.transcript.call(call_id, name, arguments, note=_SUB_AGENT if nested else "")
        skill = _mapping(arguments).get("skill")
        if name == "Skill" and isinstance(skill, str):
            self._launched[call_id or f"call {self.events}"] = skill.lstrip("/")

    def _user(self, event: Mapping[str, Any]) -> None:
        nested = event.get("parent_tool_use_id") is not None
        for block in _blocks(_mapping(event.get("message")).get("content")):
            if block.get("type") == "tool_result":
                self._tool_result(block)
            elif block.get("type") == "text" and not event.get("isReplay"):
                text = str(block.get("text", ""))
                if event.get("isSynthetic") and (body := _SKILL_BODY.match(text)):
                    self._expanded.append(Path(body[1].strip()).name)
                if not nested and not text.startswith(_INTERRUPTED):  # a sub-agent's prompt stands in its tool call already
                    self.transcript.say("user", text)

    def _tool_result(self, block: Mapping[str, Any]) -> None:
        call_id = _text_or_none(block.get("tool_use_id"))
        self.transcript.result(call_id, content_text(block.get("content")))
        if block.get("is_error") is True and call_id is not None:
            self._launched.pop(call_id, None)  # no such skill: nothing was activated


def read_stream(path: Path, *, bounds: Bounds | None = None) -> ClaudeStream:
    """Read the file at `path`, one line in memory at a time."""
    stream = ClaudeStream(transcript=Transcript(bounds))
    for event in json_objects(path, stream.faults):
        stream.feed(event)
    return stream


def main_model(result: Mapping[str, Any] | None, *candidates: str | None) -> str | None:
    """The concrete model that did the work.

    `modelUsage` of the result names every model that was asked, also for side calls and by sub-agents: the first of `candidates`
    among them counts, else the one that wrote most. Without `modelUsage`, the first candidate there is.
    """
    used = _mapping(_mapping(result).get("modelUsage"))
    known = [name for name in candidates if name is not None]
    if not used:
        return next(iter(known), None)
    bare = {name.partition("[")[0]: name for name in used}
    for candidate in known:
        if (name := candidate if candidate in used else bare.get(candidate)) is not None:
            return name
    return str(max(used, key=lambda name: _count(_mapping(used[name]).get("outputTokens")) or 0))


def read_usage(result: Mapping[str, Any] | None) -> Usage | None:
    """Tokens of a whole run by its `result` event, in four disjoint fields; None when it reports none.

    `modelUsage` is preferred: it has the sub-agents' tokens, which `usage` leaves out. Both exclude the cache from the input.
    """
    if result is None:
        return None
    models = [_mapping(entry) for entry in _mapping(result.get("modelUsage")).values()]
    if models:
        return _usage(models, "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    usage = _mapping(result.get("usage"))
    if not usage or str(result.get("terminal_reason")).startswith("aborted"):
        return None  # interrupted in its first reply: the zeros mean that nobody counted
    return _usage([usage], "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def content_text(content: Any) -> str:
    """A tool result's content, which may be a string or a list of blocks, as text; what is no text is named in brackets."""
    if isinstance(content, str):
        return content
    parts = []
    for block in _blocks(content):
        text = block.get("text")
        parts.append(text if isinstance(text, str) else f"[{block.get('type', 'unknown')}]")
    return "\n".join(parts)


def _usage(entries: list[Mapping[str, Any]], *names: str) -> Usage:
    sums = []
    for name in names:
        counts = [count for entry in entries if (count := _count(entry.get(name))) is not None]
        sums.append(sum(counts) if counts else None)
    given, written, read, created = sums
    return Usage(input_tokens=given, output_tokens=written, cache_read_tokens=read, cache_creation_tokens=created)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in _list(content) if isinstance(block, Mapping)]


def _names(event: Mapping[str, Any] | None, name: str) -> tuple[str, ...] | None:
    return None if event is None else tuple(entry for entry in _list(event.get(name)) if isinstance(entry, str))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
