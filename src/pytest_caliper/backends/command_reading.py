"""Reads what a program of the user's printed: JSON lines in the format of docs/command-backend.md, else an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends.jsonl import MAX_LINE_BYTES, LineFaults, json_objects, parse_json
from pytest_caliper.backends.transcript import Bounds, Transcript, cut, one_line, plain
from pytest_caliper.contracts import AttemptPlan, HarnessResult, JudgeReply, RawOutput
from pytest_caliper.runs.records import Usage

_ANSWER_CHARACTERS = 1_000_000
_BROKEN_SERVER = frozenset({"failed", "needs-auth", "disabled"})
_USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


@dataclass(kw_only=True, slots=True)
class Events:
    """What one program's output said."""

    transcript: Transcript
    plain_text: bool
    """Whether there were no events: the text is the answer then, once the program has ended well."""
    faults: LineFaults = field(default_factory=LineFaults)
    answer: str | None = None
    """The text, or that of the `result` event; None without one."""
    error: Mapping[str, Any] | None = None
    """The last `error` that nothing followed."""
    model: str | None = None
    skills: tuple[str, ...] | None = None
    skills_used: list[str] = field(default_factory=list)
    servers: dict[str, str] | None = None
    _said: str = ""
    _tokens: dict[str, int] = field(default_factory=dict)

    @property
    def usage(self) -> Usage | None:
        """The sum of all `usage` events, field by field; None without any."""
        return Usage(**{name: self._tokens.get(name) for name in _USAGE}) if self._tokens else None

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take in the next event; kinds that are not known are passed over."""
        kind = event.get("type")
        if kind in ("assistant", "tool_use", "result"):
            self.error = None
        if kind == "assistant":
            self._said = plain(_text(event.get("text")))
            self.transcript.say("assistant", self._said)
        elif kind == "tool_use":
            self.transcript.call(_word(event.get("id")), str(event.get("name")), event.get("input", {}))
        elif kind == "tool_result":
            self.transcript.result(_word(event.get("id")), _text(event.get("output")))
        elif kind == "usage":
            for name in _USAGE:
                self._count(name, event.get(name))
        elif kind == "model":
            self.model = _word(event.get("name")) or self.model
        elif kind == "skills":
            self.skills = tuple(name for name in _list(event.get("names")) if isinstance(name, str))
        elif kind == "skill_used" and (used := _word(event.get("name"))):
            self.skills_used.append(used)
        elif kind == "mcp" and isinstance(servers := event.get("servers"), Mapping):
            self.servers = {str(name): str(status) for name, status in servers.items()}
        elif kind == "error":
            self.error = event
        elif kind == "result":
            self.answer = self._said if event.get("text") is None else plain(_text(event.get("text")))

    def _count(self, name: str, amount: Any) -> None:
        if isinstance(amount, int) and not isinstance(amount, bool) and amount >= 0:
            self._tokens[name] = self._tokens.get(name, 0) + amount


@dataclass(frozen=True, kw_only=True, slots=True)
class _Failure:
    error: str
    fatal: str | None = None
    transient: bool = False


def read_events(path: Path, *, bounds: Bounds | None = None) -> Events:
    """Read JSON lines, one in memory at a time, or a plain text, which becomes the answer and the only turn."""
    events = Events(transcript=Transcript(bounds), plain_text=not _speaks_json(path))
    if events.plain_text:
        events.answer = path.read_bytes().decode("utf-8", "replace").strip("\n")
        events.transcript.say("assistant", events.answer)
    else:
        for event in json_objects(path, events.faults):
            events.feed(event)
    return events


def read_agent(raw: RawOutput, plan: AttemptPlan, *, bounds: Bounds | None = None) -> HarnessResult:
    """The attempt's result: finished by a `result` event, or where there are no events by exit status 0."""
    events = read_events(raw.stdout, bounds=bounds)
    failure = _failure(events, raw)
    finished = failure is None and _finished(events, raw)
    answer = (events.answer or "") if finished else ""
    return HarnessResult(
        answer=cut(answer, _ANSWER_CHARACTERS),
        finished=finished,
        transcript=events.transcript.turns(),
        usage=events.usage,
        model=events.model,
        error=failure.error if failure is not None else _broken_servers(events, plan),
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        timed_out=raw.cause == "timeout" and not finished,
        duration_s=raw.duration_s,
        cli_version=raw.cli_version,
        skills_reported=events.skills,
        skills_used=_skills_used(events, plan),
        mcp_reported=None if events.servers is None else tuple(f"{name}:{status}" for name, status in events.servers.items()),
        transcript_truncated=events.transcript.truncated or events.faults.too_long > 0 or len(answer) > _ANSWER_CHARACTERS,
    )


def read_judge(raw: RawOutput) -> JudgeReply:
    """The reply is the answer."""
    events = read_events(raw.stdout)
    failure = _failure(events, raw)
    return JudgeReply(
        text="" if failure is not None else events.answer or "",
        model=events.model,
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=events.usage,
    )


def _speaks_json(path: Path) -> bool:
    """Whether the first line that is not blank is an event: a JSON object whose `type` is a text."""
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            if line.strip():
                first = parse_json(line)
                return isinstance(first, dict) and isinstance(first.get("type"), str)
    return False


def _finished(events: Events, raw: RawOutput) -> bool:
    """Whether the end marker was seen: a `result` event, or exit status 0 behind a text."""
    return events.answer is not None and (not events.plain_text or (raw.cause == "exit" and raw.exit_code == 0))


def _failure(events: Events, raw: RawOutput) -> _Failure | None:
    """What failed; None for a finished answer, and for a time-out that met no error."""
    if _finished(events, raw):
        return None
    if raw.cause == "output":
        return _Failure(
            error=f"the program printed too much ({raw.stdout.stat().st_size / 2**20:.0f} MB on standard output alone)"
        )
    if events.error is not None:
        return _told(events.error)
    if raw.cause == "timeout":
        return None
    lines = [line for line in raw.stderr.split("\n") if line.strip()]
    if raw.exit_code != 0 and lines:
        return _Failure(error=one_line(f"exit code {raw.exit_code}: {lines[-1]}"))
    if raw.exit_code != 0:
        return _Failure(error=f"the program failed with exit code {raw.exit_code}")
    return _Failure(error="the program ended without a result event")


def _told(event: Mapping[str, Any]) -> _Failure:
    """What an `error` event means; its `remedy` is for errors that would meet every later attempt too."""
    error = one_line(_text(event.get("message"))) or "the program reported an error without a message"
    fatal = (one_line(_text(event.get("remedy"))) or error) if event.get("fatal") is True else None
    return _Failure(error=error, fatal=fatal, transient=fatal is None and event.get("transient") is True)


def _skills_used(events: Events, plan: AttemptPlan) -> tuple[str, ...]:
    """Skills that the program said it used, and those of whose files the input of a tool names one."""
    inputs = [json.dumps(turn.tool_input) for turn in events.transcript.turns() if turn.role == "tool_use"]
    read = [skill.name for skill in plan.skills if any(f".agents/skills/{skill.name}/" in text for text in inputs)]
    return tuple(dict.fromkeys([*events.skills_used, *read]))


def _broken_servers(events: Events, plan: AttemptPlan) -> str | None:
    """One line when an MCP server of the spec did not start by the program's own word."""
    servers = events.servers or {}
    broken = [f"{server.name} ({servers[server.name]})" for server in plan.mcp if servers.get(server.name) in _BROKEN_SERVER]
    return f"mcp server did not start: {', '.join(broken)}: try its command in a shell" if broken else None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
