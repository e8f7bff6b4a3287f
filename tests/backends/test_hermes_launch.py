"""The launcher runs Hermes, passes signals on, and tells what came of it, whatever the end."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.backends.hermes import LAUNCHER

TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, model_config TEXT, started_at REAL);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT, active INTEGER);
INSERT INTO sessions VALUES ('s2', 'cli', 'm', NULL, 2.0), ('s1', 'cli', 'm', NULL, 1.0);
"""
CALLS = [{"id": "c1", "function": {"name": "terminal", "arguments": "{}"}}]
MESSAGES = [
    (1, "s1", "user", "Do it.", None, 1),
    (2, "s1", "assistant", "", json.dumps(CALLS), 0),
    (3, "s2", "tool", '\x00json:[{"type": "text", "text": "out"}]', None, 1),
]

FAKE = """\
import json, os, signal, sys, time
from pathlib import Path
home = Path(sys.argv[0]).parent / "home"
if sys.argv[1:3] == ["sessions", "export"]:
{export}
given = Path(sys.argv[0]).parent / "given.json"
given.write_text(json.dumps([sys.argv[1:], os.getcwd()]))
usage = Path(sys.argv[sys.argv.index("--usage-file") + 1])
{run}
"""
EXPORT = """\
    session = {"id": "s1", "started_at": 1.0, "messages": [{"id": 2, "role": "assistant"}, {"id": 1, "role": "user"}]}
    print(json.dumps(session))
    sys.exit(0)
"""
ANSWER = 'usage.write_text(json.dumps({"completed": True, "failed": False})); print("the answer")'


class Launch:
    """A directory with a Hermes that does what a test wants, and the launcher."""

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.program = root, root / "home", root / "hermes"
        self.home.mkdir()

    def write(self, run: str, export: str = EXPORT) -> None:
        self.program.write_text(f"#!{sys.executable}\n" + FAKE.replace("{export}", export).replace("{run}", run))
        self.program.chmod(0o755)

    def database(self) -> None:
        with sqlite3.connect(self.home / "state.db") as database:
            database.executescript(TABLES)
            database.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", MESSAGES)
        database.close()

    def start(self, prompt: bytes = b"Do it.", mode: str = "agent", *arguments: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-I", "-S", str(LAUNCHER), mode, str(self.home), str(self.program), *arguments]
        pipe = subprocess.PIPE
        child = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.root, start_new_session=True)
        assert child.stdin is not None
        child.stdin.write(prompt)
        child.stdin.close()
        child.stdin = None
        return child

    def run(self, prompt: bytes = b"Do it.", mode: str = "agent", *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        return self.end(self.start(prompt, mode, *arguments))

    def end(self, child: subprocess.Popen[bytes]) -> tuple[int, list[dict[str, Any]], str]:
        out, err = child.communicate(timeout=60)
        return child.returncode, [json.loads(line) for line in out.split(b"\n") if line], err.decode()

    def given(self) -> Any:
        return json.loads((self.root / "given.json").read_text())


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch(tmp_path)


def await_file(path: Path) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.01)


def test_everything_is_told_in_order(launch: Launch) -> None:
    launch.write(ANSWER)

    code, lines, err = launch.run(b"Do it.", "agent", "--yolo", "--model", "m")

    assert (code, err) == (0, "")
    assert lines == [
        {"type": "usage", "usage": {"completed": True, "failed": False}},
        {"type": "answer", "text": "the answer\n"},
        {"type": "session", "session": {"id": "s1", "started_at": 1.0}},
        {"type": "message", "message": {"id": 1, "role": "user"}},
        {"type": "message", "message": {"id": 2, "role": "assistant"}},
        {"type": "exit", "code": 0, "export": "cli", "problem": None},
    ]
    arguments, directory = launch.given()
    assert arguments == ["-z=Do it.", "--usage-file", str(launch.home / "caliper-usage.json"), "--yolo", "--model", "m"]
    assert directory == str(launch.root)


@pytest.mark.parametrize("prompt", ["--help", "-z", "", "zwei\nZeilen\u2028é\U0001f3f4", '"$HOME" `id`', "x" * 122_000])
def test_a_prompt_is_one_argument_whatever_it_holds(prompt: str, launch: Launch) -> None:
    launch.write(ANSWER)

    code, _, _ = launch.run(prompt.encode())

    assert code == 0
    assert launch.given()[0][0] == f"-z={prompt}"


def test_bytes_that_are_no_utf8_arrive_as_they_are(launch: Launch) -> None:
    launch.write(ANSWER)

    launch.run(b"caf\xe9")

    assert launch.given()[0][0] == "-z=caf\udce9"


def test_an_answer_may_hold_any_character(launch: Launch) -> None:
    launch.write("sys.stdout.buffer.write('one\\u2028two\\u0085'.encode() + b'\\xff\\x1b[0m')")

    _, lines, _ = launch.run()

    assert lines[1] == {"type": "answer", "text": "one\u2028two\u0085\ufffd\x1b[0m"}


def test_a_judges_sessions_are_not_exported(launch: Launch) -> None:
    launch.write(ANSWER)
    launch.database()

    _, lines, _ = launch.run(mode="judge")

    assert [line["type"] for line in lines] == ["usage", "answer", "exit"]
    assert lines[-1]["export"] is None


def test_the_exit_status_is_hermes_own(launch: Launch) -> None:
    launch.write('print("sorry", file=sys.stderr); sys.exit(3)')

    code, lines, err = launch.run()

    assert (code, err.strip()) == (3, "sorry")
    assert lines[0] == {"type": "usage", "usage": None}
    assert lines[-1]["code"] == 3


def test_a_killed_hermes_ends_the_launcher_the_same_way(launch: Launch) -> None:
    launch.write("os.kill(os.getpid(), signal.SIGKILL)")

    code, lines, _ = launch.run()

    assert code == -signal.SIGKILL
    assert lines[-1]["code"] == -signal.SIGKILL


def test_a_hermes_that_cannot_start_is_said(launch: Launch) -> None:
    code, lines, err = launch.run()

    assert (code, lines) == (127, [])
    assert "hermes cannot be started" in err


def test_a_failed_export_is_made_up_for_by_the_database(launch: Launch) -> None:
    launch.write(ANSWER, export="    sys.exit(1)")
    launch.database()

    code, lines, _ = launch.run()

    assert code == 0
    assert [line["session"]["id"] for line in lines if line["type"] == "session"] == ["s1", "s2"]
    messages = [line["message"] for line in lines if line["type"] == "message"]
    assert [entry["role"] for entry in messages] == ["user", "assistant", "tool"]
    assert messages[1]["tool_calls"] == CALLS
    assert messages[2]["content"] == [{"type": "text", "text": "out"}]
    assert lines[-1] == {"type": "exit", "code": 0, "export": "database", "problem": "hermes sessions export failed"}


@pytest.mark.parametrize("export", ['    print("{"); sys.exit(0)', '    print("[1]"); sys.exit(0)', "    sys.exit(1)"])
def test_what_cannot_be_exported_is_said(export: str, launch: Launch) -> None:
    launch.write(ANSWER, export=export)
    (launch.home / "state.db").write_text("no database")

    code, lines, _ = launch.run()

    assert code == 0
    assert lines[1]["text"] == "the answer\n"
    assert lines[-1]["export"] is None
    assert lines[-1]["problem"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_once_and_the_work_told(number: signal.Signals, launch: Launch) -> None:
    """Hermes has a group of its own, so that a signal to the launcher's group does not reach it twice."""
    launch.write(
        "seen = []\n"
        "for number in (1, 2, 15): signal.signal(number, lambda number, frame: seen.append(number))\n"
        "(home / 'ready').write_text('')\n"
        "while not seen: time.sleep(0.01)\n"
        "time.sleep(0.2)\n"
        "usage.write_text(json.dumps({'failed': True, 'seen': seen}))\n"
        "sys.exit(130)",
        export="    (home / 'exported').write_text('')",
    )
    launch.database()
    child = launch.start()
    await_file(launch.home / "ready")

    os.killpg(child.pid, number)
    code, lines, _ = launch.end(child)

    assert code == 130
    assert lines[0] == {"type": "usage", "usage": {"failed": True, "seen": [number]}}
    assert [line["message"]["role"] for line in lines if line["type"] == "message"] == ["user", "assistant", "tool"]
    assert lines[-1]["export"] == "database"
    assert not (launch.home / "exported").exists(), "there is no time for a second start"


def test_a_signal_that_hermes_dies_of_ends_the_launcher_the_same_way(launch: Launch) -> None:
    launch.write("(home / 'ready').write_text('')\ntime.sleep(600)")
    launch.database()
    child = launch.start()
    await_file(launch.home / "ready")

    os.kill(child.pid, signal.SIGTERM)
    code, lines, _ = launch.end(child)

    assert code == -signal.SIGTERM
    assert [line["type"] for line in lines].count("message") == 3


def test_a_signal_during_the_export_loses_nothing(launch: Launch) -> None:
    launch.write(ANSWER, export="    (home / 'exporting').write_text(''); time.sleep(600)")
    launch.database()
    child = launch.start()
    await_file(launch.home / "exporting")

    os.killpg(child.pid, signal.SIGINT)
    code, lines, _ = launch.end(child)

    assert code == 0
    assert lines[1]["text"] == "the answer\n"
    assert [line["type"] for line in lines].count("message") == 3


def test_a_background_process_does_not_hold_the_launcher_up(launch: Launch) -> None:
    """End of the process ends the run, not end of its output."""
    launch.write(
        "import subprocess\nchild = subprocess.Popen(['sleep', '300'])\n(home / 'pid').write_text(str(child.pid))\n" + ANSWER
    )
    child = launch.start()
    try:
        assert child.wait(60) == 0
    finally:
        os.kill(int((launch.home / "pid").read_text()), signal.SIGKILL)
        for stream in (child.stdout, child.stderr):
            assert stream is not None
            stream.close()
