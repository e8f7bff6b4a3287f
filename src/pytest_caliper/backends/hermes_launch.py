"""Runs one Hermes prompt and tells all that came of it on standard output, one JSON object per line. Standard library alone.

    python -I -S hermes_launch.py agent|judge HERMES_HOME HERMES [ARGUMENT ...] < PROMPT

Hermes says what happened in three places: its answer on standard output, the truth in its usage file, what the agent did in a
database that `hermes sessions export -` prints. The lines, in this order:

    {"type": "usage", "usage": {...} or null}      {"type": "answer", "text": "..."}
    {"type": "session", "session": {...}}          each session, without its messages
    {"type": "message", "message": {...}}          of all sessions, in the order in which they were written
    {"type": "exit", "code": N, "export": "cli" or "database" or null, "problem": "..." or null}

Usage and answer come first: they must not be lost with an export that is cut short. Hermes runs in a process group of its own;
SIGINT, SIGTERM and SIGHUP are passed on to it, and this process ends as Hermes did. After a signal there is no time for a second
start of Hermes (0.5 to 2 s), so its database is read directly. A judge's sessions are not exported.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXPORT_S = 60.0
ANSWER_BYTES = 16 * 1024 * 1024
"""So much of an answer is passed on."""
ENCODED = "\x00json:"
"""What Hermes's database puts before a message's content that is no text."""

Sessions = list[tuple[dict[str, Any], list[dict[str, Any]]]]
"""Each session with its messages."""


class Runner:
    """Starts Hermes and passes signals on to it, each once."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.stopped = False
        """True once a signal has come."""
        self._waiting: list[int] = []
        self._group: int | None = None

    def listen(self) -> None:
        for number in PASSED_ON:
            signal.signal(number, self._take)

    def run(self, arguments: list[str], output: Path, timeout_s: float | None = None) -> int:
        """-> the exit status, negative for a signal. Raises OSError, ValueError for NUL in an argument, TimeoutExpired."""
        with output.open("wb") as file:
            child = subprocess.Popen(
                [self.program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                preexec_fn=os.setpgrp,  # noqa: PLW1509 - there is one thread
            )
        self._group = child.pid
        self._deliver()
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        finally:
            self._group = None

    def _take(self, number: int, _frame: object) -> None:
        self.stopped = True
        self._waiting.append(number)
        self._deliver()

    def _deliver(self) -> None:
        while self._group is not None and self._waiting:
            with suppress(ProcessLookupError, PermissionError):  # it has ended; macOS says the latter of a group of zombies
                os.killpg(self._group, self._waiting.pop(0))


def main(mode: str, home: str, program: str, *arguments: str) -> int:
    """-> Hermes's exit status, negative for a signal; 127 when it cannot be started."""
    runner, place = Runner(program), Path(home)
    runner.listen()
    prompt = os.fsdecode(sys.stdin.buffer.read())
    usage, answer = place / "caliper-usage.json", place / "caliper-answer.txt"
    code = -signal.SIGINT
    if not runner.stopped:
        try:
            code = runner.run([f"-z={prompt}", "--usage-file", str(usage), *arguments], answer)
        except (OSError, ValueError) as error:
            print(f"{program} cannot be started: {error}", file=sys.stderr)
            return 127
    tell({"type": "usage", "usage": read_usage(usage)})
    tell({"type": "answer", "text": read_answer(answer)})
    source, problem = (None, None) if mode == "judge" else export(runner, place)
    tell({"type": "exit", "code": code, "export": source, "problem": problem})
    return code


def export(runner: Runner, home: Path) -> tuple[str | None, str | None]:
    """Tell every session and message. -> where they were read from (None: nowhere), and what went wrong."""
    problem = None
    if not runner.stopped:
        printed = home / "caliper-export.jsonl"
        try:
            if runner.run(["sessions", "export", "-"], printed, EXPORT_S) == 0:
                tell_sessions(read_export(printed))
                return "cli", None
            problem = "hermes sessions export failed"
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            problem = f"hermes sessions export: {error}"
    try:
        tell_sessions(read_database(home / "state.db"))
    except (OSError, ValueError, sqlite3.Error) as error:
        return None, problem or f"{type(error).__name__}: {error}"
    return "database", problem


def read_export(path: Path) -> Sessions:
    """What the CLI printed. Raises ValueError."""
    lines = path.read_bytes().split(b"\n")
    sessions = [json.loads(line.decode("utf-8", "replace")) for line in lines if line.strip()]
    if not all(isinstance(session, dict) for session in sessions):
        raise ValueError("it printed something else than sessions")
    return [(session, session.pop("messages", None) or []) for session in sessions]


def read_database(path: Path) -> Sessions:
    """The same from the database itself, under the same names. Raises sqlite3.Error, ValueError."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path, timeout=1.0)) as database:
        database.row_factory = sqlite3.Row
        messages: dict[str, list[dict[str, Any]]] = {}
        for row in database.execute("SELECT * FROM messages ORDER BY id"):
            message = dict(row)
            calls, content = message.get("tool_calls"), message.get("content")
            if isinstance(calls, str):
                message["tool_calls"] = json.loads(calls)
            if isinstance(content, str) and content.startswith(ENCODED):
                message["content"] = json.loads(content[len(ENCODED) :])
            messages.setdefault(message["session_id"], []).append(message)
        return [(dict(row), messages.get(row["id"], [])) for row in database.execute("SELECT * FROM sessions")]


def tell_sessions(sessions: Sessions) -> None:
    for session, _ in sorted(sessions, key=lambda entry: entry[0].get("started_at") or 0):
        tell({"type": "session", "session": session})
    everything = [message for _, messages in sessions for message in messages]
    for message in sorted(everything, key=lambda message: message.get("id") or 0):
        tell({"type": "message", "message": message})


def read_usage(path: Path) -> object:
    """What the usage file holds; None when an interrupted Hermes wrote none, or half of one."""
    try:
        return json.loads(path.read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def read_answer(path: Path) -> str:
    with path.open("rb") if path.exists() else open(os.devnull, "rb") as file:
        return file.read(ANSWER_BYTES).decode("utf-8", "replace")


def tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, default=repr) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    if status < 0:
        with suppress(OSError):  # SIGKILL, which cannot be handled
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)
