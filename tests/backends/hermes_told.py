"""What the launcher tells, made from what a real Hermes left behind."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from backend_cases import RECORDINGS

from pytest_caliper.backends import hermes_launch
from pytest_caliper.contracts import RawOutput

FOLDER = RECORDINGS / "hermes"


def told(name: str, directory: Path, *, cause: Any = None) -> RawOutput:
    """One recorded invocation as the launcher would have told it; `directory` gets the file."""
    end = json.loads((FOLDER / f"{name}.rc").read_text(encoding="utf-8"))
    lines = io.StringIO()
    with contextlib.redirect_stdout(lines):
        hermes_launch.tell({"type": "usage", "usage": hermes_launch.read_usage(FOLDER / f"{name}.usage.json")})
        hermes_launch.tell({"type": "answer", "text": hermes_launch.read_answer(FOLDER / f"{name}.stdout")})
        if (export := FOLDER / f"{name}.export.jsonl").exists():
            hermes_launch.tell_sessions(hermes_launch.read_export(export))
        hermes_launch.tell({"type": "exit", "code": end["rc"], "export": "cli", "problem": None})
    out = directory / f"{name}.out"
    out.write_text(lines.getvalue(), encoding="utf-8")
    return RawOutput(
        argv=("hermes",),
        stdout=out,
        stderr=(FOLDER / f"{name}.stderr").read_text(encoding="utf-8"),
        exit_code=end["rc"],
        cause=cause or ("timeout" if end["timed_out"] else "exit"),
        duration_s=1.5,
        cli_version="0.19.0",
    )


def lines(path: Path, *events: Any, exit_code: int = 0, stderr: str = "", cause: Any = "exit") -> RawOutput:
    """A written invocation: what the launcher told, line by line."""
    path.write_bytes(b"".join(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n" for event in events))
    return RawOutput(argv=("hermes",), stdout=path, stderr=stderr, exit_code=exit_code, cause=cause, duration_s=2.0)


def session(session_id: str = "s1", **fields: Any) -> dict[str, Any]:
    return {"type": "session", "session": {"id": session_id, "source": "cli", "model": "m", "started_at": 1.0, **fields}}


def message(role: str, content: Any = "", *, session_id: str = "s1", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content, "session_id": session_id, **fields}}


def call(name: str, arguments: Any, call_id: str = "c1") -> list[dict[str, Any]]:
    """`tool_calls` of a message with one call."""
    return [{"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]


def usage(*, completed: Any = True, failed: Any = False, **fields: Any) -> dict[str, Any]:
    numbers = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3, "cache_write_tokens": 2}
    report = {**numbers, "model": "m", "session_id": "s1", "api_calls": 1, "completed": completed, "failed": failed}
    return {"type": "usage", "usage": {**report, **fields}}


def answer(text: str) -> dict[str, Any]:
    return {"type": "answer", "text": text}
