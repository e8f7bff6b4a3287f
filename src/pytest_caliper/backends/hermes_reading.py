"""What a run of Hermes amounts to, read from what `hermes_launch` tells: an attempt's result, or the judge's reply."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.hermes_errors import silent_failure, told_failure
from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.backends.transcript import Bounds, Transcript, cut, plain
from pytest_caliper.contracts import HarnessResult, JudgeReply, RawOutput
from pytest_caliper.runs.records import Usage

_ANSWER_CHARACTERS = 1_000_000
_SKILLS = re.compile(r"<available_skills>\n(.*?)</available_skills>", re.DOTALL)
_SKILL = re.compile(r"^ +- ([^\s:]+)(?::|$)", re.MULTILINE)
_SUB_AGENT = "sub-agent"
_INTERRUPTED = "KeyboardInterrupt"  # our own SIGINT, in Hermes's words


@dataclass(kw_only=True, slots=True)
class HermesRun:
    """What one run told."""

    transcript: Transcript
    faults: LineFaults = field(default_factory=LineFaults)
    report: Mapping[str, Any] | None = None
    """The usage file, when it belongs to this run."""
    answer: str = ""
    sessions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problem: str | None = None
    """Why the sessions could not be exported."""
    _greeted: set[str] = field(default_factory=set)
    """Sessions whose prompt was met."""
    _seen: set[str] = field(default_factory=set)
    _launched: dict[str, str] = field(default_factory=dict)
    """`skill_view` calls: call id -> skill."""

    @property
    def finished(self) -> bool:
        """The positive end marker: `completed` in the usage file, and not `failed`."""
        return self.report is not None and self.report.get("completed") is True and self.report.get("failed") is False

    @property
    def skills_used(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._launched.values()))

    @property
    def skills(self) -> tuple[str, ...] | None:
        """Skills in the list that Hermes gave the model in its system prompt; None without one."""
        lists = [match[1] for each in self._main() if (match := _SKILLS.search(str(each.get("system_prompt") or "")))]
        return tuple(_SKILL.findall(lists[0])) if lists else None

    @property
    def model(self) -> str | None:
        named = [(self.report or {}).get("model"), *(session.get("model") for session in self._main())]
        return next((name for name in named if isinstance(name, str) and name), None)

    def feed(self, line: Mapping[str, Any]) -> None:
        """Take in the next line; kinds that are not known are passed over."""
        kind = line.get("type")
        if kind == "usage" and isinstance(report := line.get("usage"), Mapping):
            self.report = report
        elif kind == "answer":
            self.answer = plain(str(line.get("text") or "")).removesuffix("\n")
        elif kind == "session" and isinstance(session := line.get("session"), Mapping):
            self.sessions[str(session.get("id"))] = session
        elif kind == "message" and isinstance(message := line.get("message"), Mapping):
            self._message(message)
        elif kind == "exit":
            self.problem = line.get("problem") if line.get("export") is None else None

    def settle(self) -> None:
        """Drop a usage file that another run left: it names a session that is none of these."""
        session = (self.report or {}).get("session_id")
        if session is not None and self.sessions and session not in self.sessions:
            self.report = None

    def _main(self) -> list[Mapping[str, Any]]:
        return [session for session in self.sessions.values() if not _delegated(session)]

    def _message(self, message: Mapping[str, Any]) -> None:
        session = str(message.get("session_id"))
        nested = _delegated(self.sessions.get(session, {}))
        if self._repeated(session, message):
            return
        role, text = message.get("role"), _text(message.get("content"))
        if role == "tool":
            self._result(message, text)
        elif role == "user" and session not in self._greeted:  # the prompt; a sub-agent's stands in its tool call
            self._greeted.add(session)
        elif role in ("user", "assistant"):
            self.transcript.say(role, f"[{_SUB_AGENT}] {text}" if nested and text.strip() else text)
            for call in _list(message.get("tool_calls")):
                self._call(_mapping(call), _SUB_AGENT if nested else "")

    def _repeated(self, session: str, message: Mapping[str, Any]) -> bool:
        """Whether a session that continues a compressed one begins with this message of the one before."""
        parts = [message.get(name) for name in ("role", "content", "tool_calls", "tool_call_id")]
        key = json.dumps(parts, sort_keys=True, default=str)
        continued = self.sessions.get(session, {}).get("parent_session_id") is not None
        repeated = continued and key in self._seen
        self._seen.add(key)
        return repeated

    def _call(self, call: Mapping[str, Any], note: str) -> None:
        function = _mapping(call.get("function"))
        call_id, name = _word(call.get("id")), str(function.get("name"))
        arguments = _decoded(function.get("arguments"))
        self.transcript.call(call_id, name, arguments, note=note)
        skill = _mapping(arguments).get("name")
        if name == "skill_view" and isinstance(skill, str):
            self._launched[call_id or f"call {len(self._launched)}"] = skill.rstrip("/").rpartition("/")[2]

    def _result(self, message: Mapping[str, Any], text: str) -> None:
        call_id = _word(message.get("tool_call_id"))
        self.transcript.result(call_id, text)
        if call_id in self._launched and _mapping(_decoded(text)).get("success") is False:
            del self._launched[call_id]  # no such skill: nothing was activated


def read_run(path: Path, *, bounds: Bounds | None = None) -> HermesRun:
    """Read what was told, one line in memory at a time."""
    run = HermesRun(transcript=Transcript(bounds))
    for line in json_objects(path, run.faults):
        run.feed(line)
    run.settle()
    return run


def read_agent(raw: RawOutput, *, bounds: Bounds | None = None) -> HarnessResult:
    """The attempt's result. `duration_s` and `cli_version` are `raw`'s."""
    run = read_run(raw.stdout, bounds=bounds)
    failure = _failure(run, raw)
    answer = run.answer if run.finished else ""
    lost = f"the agent's work cannot be read: {run.problem}" if run.finished and run.problem is not None else None
    return HarnessResult(
        answer=cut(answer, _ANSWER_CHARACTERS),
        finished=run.finished,
        transcript=run.transcript.turns(),
        usage=_usage(run),
        model=run.model,
        error=failure.error if failure is not None else lost,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        timed_out=raw.cause == "timeout" and not run.finished,
        duration_s=raw.duration_s,
        cli_version=raw.cli_version,
        skills_reported=run.skills,
        skills_used=run.skills_used,
        transcript_truncated=run.transcript.truncated or run.faults.too_long > 0 or len(answer) > _ANSWER_CHARACTERS,
    )


def read_judge(raw: RawOutput) -> JudgeReply:
    """The reply is the answer."""
    run = read_run(raw.stdout)
    failure = _failure(run, raw)
    return JudgeReply(
        text=run.answer if run.finished else "",
        model=run.model,
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=_usage(run),
    )


def _failure(run: HermesRun, raw: RawOutput) -> Failure | None:
    """What failed; None for a finished answer, and for a time-out that met no error."""
    if run.finished:
        return None
    if raw.cause == "output":
        return Failure(error=f"Hermes printed too much ({raw.stdout.stat().st_size / 2**20:.0f} MB on standard output alone)")
    if run.report is None:
        return None if raw.cause == "timeout" else silent_failure(raw.exit_code, raw.stderr)
    if run.report.get("failed") is not True:
        calls = run.report.get("api_calls")
        return Failure(error=f"Hermes broke off before the end, after {calls} calls of the model")
    said = str(run.report.get("failure") or "")
    if raw.cause == "timeout" and (said.startswith(_INTERRUPTED) or not (said or run.answer)):
        return None
    return told_failure(said or run.answer) if said or run.answer.strip() else silent_failure(raw.exit_code, raw.stderr)


def _usage(run: HermesRun) -> Usage | None:
    """Tokens by the usage file, else by the sessions. Hermes says 0 where a provider said nothing: 0 is unknown."""
    entries = [run.report] if run.report is not None and run.report.get("input_tokens") is not None else []
    sums = [_tokens(entries or list(run.sessions.values()), name) for name in ("input", "output", "cache_read", "cache_write")]
    given, written, read, created = sums
    if not any(sums):
        return None
    return Usage(input_tokens=given, output_tokens=written, cache_read_tokens=read or None, cache_creation_tokens=created or None)


def _tokens(entries: list[Mapping[str, Any]], name: str) -> int | None:
    counts = [entry.get(f"{name}_tokens") for entry in entries]
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count >= 0]
    return sum(known) if known else None


def _delegated(session: Mapping[str, Any]) -> bool:
    """Whether a session is a sub-agent's."""
    return _mapping(_decoded(session.get("model_config"))).get("_delegate_from") is not None


def _decoded(value: Any) -> Any:
    """The value of a JSON text; what is none stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _text(content: Any) -> str:
    if isinstance(content, list):
        blocks = [_mapping(block) for block in content]
        return "\n".join(str(block.get("text", f"[{block.get('type', 'unknown')}]")) for block in blocks)
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, default=str)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
