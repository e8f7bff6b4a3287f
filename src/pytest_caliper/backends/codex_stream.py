"""Reads what `codex exec --json` prints, event by event (recorded from 0.171.0).

`thread.started`, `turn.started`, then items that start and complete under one id, and `turn.completed` with the usage or
`turn.failed` with a message. An item of the type `error` is a warning and no tool call, `reasoning` neither.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends.codex_skills import SkillWatch
from pytest_caliper.backends.codex_usage import read_tokens
from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.backends.transcript import Bounds, Transcript

_NO_CALLS = frozenset({"agent_message", "reasoning", "error", "plan", "user_message", "hook_prompt", "context_compaction"})
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})
_MESSAGE_FIELDS = frozenset({"id", "type", "status"})


@dataclass(kw_only=True, slots=True)
class CodexStream:
    """What one stream said."""

    transcript: Transcript
    skills: SkillWatch
    faults: LineFaults = field(default_factory=LineFaults)
    thread: str | None = None
    """The main thread's id."""
    answer: str = ""
    """The agent's last message."""
    completed: bool = False
    """Whether the last turn came to its end: only then is `answer` an answer."""
    failed: str | None = None
    """The message of a failed turn."""
    reconnecting: str | None = None
    """The last top-level `error` that nothing has followed yet."""
    tokens: dict[str, int] | None = None
    """Codex's own numbers, of the whole thread so far."""
    _begun: set[str] = field(default_factory=set)

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take in the next event; kinds that are not known are passed over."""
        kind = event.get("type")
        if kind == "thread.started":
            self.thread = self.thread or _text(event.get("thread_id")) or None
        elif kind == "turn.started":
            self.completed, self.failed = False, None
        elif kind == "turn.completed":
            self.completed, self.failed, self.reconnecting = True, None, None
            self.tokens = read_tokens(event.get("usage")) or self.tokens
        elif kind == "turn.failed":
            self.completed, self.failed = False, _text(_mapping(event.get("error")).get("message"))
        elif kind == "error":
            self.reconnecting = _text(event.get("message"))
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._item(_mapping(event.get("item")), done=kind == "item.completed")

    def _item(self, item: Mapping[str, Any], *, done: bool) -> None:
        kind = _text(item.get("type"))
        if kind == "error":
            return
        self.reconnecting = None
        if kind == "agent_message" and done:
            self.answer = _text(item.get("text"))
            self.transcript.say("assistant", self.answer)
        elif kind and kind not in _NO_CALLS:
            self._tool(kind, item, done=done)

    def _tool(self, kind: str, item: Mapping[str, Any], *, done: bool) -> None:
        call = _text(item.get("id")) or None
        if call is None or call not in self._begun:
            name, arguments = _call(kind, item)
            self.transcript.call(call, name, arguments)
            self._begun |= set() if call is None else {call}
        if done:
            self.transcript.result(call, _result(kind, item))
            if kind == "command_execution":
                self.skills.command(script_of(_text(item.get("command"))), _text(item.get("aggregated_output")))


def read_stream(path: Path, skills: SkillWatch, *, bounds: Bounds | None = None) -> CodexStream:
    """What the file at `path` says, one line in memory at a time."""
    stream = CodexStream(transcript=Transcript(bounds), skills=skills)
    for event in json_objects(path, stream.faults):
        stream.feed(event)
    return stream


def script_of(command: str) -> str:
    """The command as the agent wrote it: Codex tells the shell that it gave it to, `/bin/bash -lc 'SCRIPT'`, in its place."""
    if " -" not in command[:64]:
        return command
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    shell = len(words) == 3 and Path(words[0]).name in _SHELLS and words[1] in ("-lc", "-c")
    return words[2] if shell else command


def content_text(content: Any) -> str:
    """The blocks of an MCP tool's result as text; what is no text is named in brackets."""
    parts = []
    for block in content if isinstance(content, list) else []:
        text = _mapping(block).get("text")
        parts.append(text if isinstance(text, str) else f"[{_mapping(block).get('type', 'unknown')}]")
    return "\n".join(parts)


def _call(kind: str, item: Mapping[str, Any]) -> tuple[str, Any]:
    """Name and arguments of the tool that an item stands for."""
    if kind == "command_execution":
        return kind, {"command": script_of(_text(item.get("command")))}
    if kind == "mcp_tool_call":
        return f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments") or {}
    if kind == "collab_tool_call":
        given = {name: item[name] for name in ("prompt", "receiver_thread_ids") if item.get(name)}
        return _text(item.get("tool")) or kind, given
    given = {name: value for name, value in item.items() if name not in _MESSAGE_FIELDS}
    return kind, {"items": given["items"]} if kind == "todo_list" and "items" in given else given


def _result(kind: str, item: Mapping[str, Any]) -> str:
    """What the tool returned, with how it ended where it did not end well."""
    status = _text(item.get("status"))
    if kind == "command_execution":
        output, code = _text(item.get("aggregated_output")), item.get("exit_code")
        ended = f"[exit code {code}]" if isinstance(code, int) and code != 0 else "" if status == "completed" else f"[{status}]"
        return f"{output.rstrip()}\n{ended}".strip() if ended else output
    if kind == "mcp_tool_call":
        if message := _mapping(item.get("error")).get("message"):
            return f"error: {message}"
        result = _mapping(item.get("result"))
        structured = result.get("structured_content")
        return content_text(result.get("content")) or ("" if structured is None else _json(structured))
    if kind == "collab_tool_call":
        return _json(item.get("agents_states") or {})
    if kind == "todo_list":
        return "\n".join(f"[{'x' if entry.get('completed') else ' '}] {entry.get('text')}" for entry in _entries(item))
    return status


def _entries(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = item.get("items")
    return [_mapping(entry) for entry in items] if isinstance(items, list) else []


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
