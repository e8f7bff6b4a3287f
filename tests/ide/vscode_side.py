"""Starts pytest as the Python extension of VS Code does, and reads what its plugin sends back.

How it does: the plugin `vscode_pytest` is on PYTHONPATH; TEST_RUN_PIPE names a FIFO, into which JSON-RPC messages are written with the
headers of the language server protocol. Discovery is `pytest -p vscode_pytest --collect-only --rootdir=… ARGS`. A run goes through the
script `run_pytest_script.py`, which reads the ids, a line each, from the file that RUN_TEST_IDS_PIPE names, and puts them behind
ARGS without paths. The stop button is SIGTERM.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workspace import BOUND_S, Workspace, python

STANDIN = Path(__file__).with_name("standin")
VARIABLE = "CALIPER_VSCODE_PYTHON_FILES"
"""Names the directory `python_files` of an installed extension."""
_PLACES = (".vscode", ".vscode-server", ".vscode-insiders", ".vscode-oss", ".cursor")


def installed() -> Path | None:
    """`python_files` of the extension on this machine: what VARIABLE names, else the newest in a home directory; else None."""
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve(strict=True)
    found = [
        path
        for place in _PLACES
        for path in (Path.home() / place / "extensions").glob("ms-python.python-*/python_files/vscode_pytest/__init__.py")
    ]
    return max(found, key=lambda path: path.stat().st_mtime).parents[1] if found else None


@dataclass
class Told:
    """What one session sent."""

    payloads: list[dict[str, Any]]
    exit_code: int
    output: str

    @property
    def results(self) -> dict[str, str]:
        """id -> outcome. An id is sent once."""
        found: dict[str, str] = {}
        for payload in self.payloads:
            for test, result in (payload.get("result") or {}).items():
                assert test not in found, f"sent twice: {test}"
                found[test] = result["outcome"]
        return found

    @property
    def tracebacks(self) -> dict[str, str]:
        """id -> what the panel shows beside a failure."""
        sent = [item for payload in self.payloads for item in (payload.get("result") or {}).items()]
        return {test: result["message"] or "" for test, result in sent}

    @property
    def errors(self) -> str:
        return "\n".join(str(error) for payload in self.payloads for error in payload.get("error") or ())

    @property
    def tree(self) -> dict[str, Any]:
        """The discovered tree; there is one."""
        (payload,) = [payload for payload in self.payloads if "tests" in payload]
        return payload["tests"]


def leaves(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tests below a node."""
    if "children" not in node:
        yield node
    for child in node.get("children", ()):
        yield from leaves(child)


def outline(node: dict[str, Any]) -> Any:
    """Names alone: (name, [children]) or a name."""
    return (node["name"], [outline(child) for child in node["children"]]) if "children" in node else node["name"]


@dataclass
class VsCode:
    """The Python extension in a workspace."""

    workspace: Workspace
    python_files: Path
    args: Sequence[str] = ()
    """`python.testing.pytestArgs`."""
    env: dict[str, str] = field(default_factory=dict)

    def discover(self) -> Told:
        root = self.workspace.path
        command = [python, "-m", "pytest", "-p", "vscode_pytest", "--collect-only", f"--rootdir={root}", *self.args]
        return self._finish(self.start(command))

    def run(self, ids: Sequence[str]) -> Told:
        return self._finish(self.start_run(ids))

    def start_run(self, ids: Sequence[str]) -> Session:
        """A run in the background, as behind the stop button."""
        listed = self.workspace.path.parent / "ids.txt"
        listed.write_text("\n".join(ids), encoding="utf-8")
        script = self.python_files / "vscode_pytest" / "run_pytest_script.py"
        options = [arg for arg in self.args if arg.startswith("-")]
        command = [python, str(script), *options, f"--rootdir={self.workspace.path}"]
        return self.start(command, RUN_TEST_IDS_PIPE=str(listed))

    def start(self, command: Sequence[str], **more: str) -> Session:
        env = self.workspace.environment(**self.env, **more, PYTHONPATH=str(self.python_files))
        return Session(command, self.workspace.path, env)

    def _finish(self, session: Session) -> Told:
        return session.end()


class Session:
    """A pytest process and the FIFO that it writes to."""

    def __init__(self, command: Sequence[str], cwd: Path, env: dict[str, str]) -> None:
        self._pipe = cwd.parent / f"pipe-{time.monotonic_ns()}"
        os.mkfifo(self._pipe)
        self._reading = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK)
        self._kept = os.open(self._pipe, os.O_WRONLY)  # without a writer, reading would say "the end" at once
        self._read = bytearray()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()
        self._out = cwd.parent / "output.txt"
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=cwd, env={**env, "TEST_RUN_PIPE": str(self._pipe)}, stdout=out, stderr=subprocess.STDOUT
            )

    def _drain(self) -> None:
        while True:
            ended = self._ended.is_set()
            if select.select([self._reading], [], [], 0.05)[0]:
                self._read += os.read(self._reading, 65536)
            elif ended:
                return

    def end(self) -> Told:
        """Wait for its end, and read what it sent."""
        try:
            code = self.process.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the session hangs:\n" + self._out.read_text(errors="replace")) from None
        finally:
            self._ended.set()
            self._thread.join()
            os.close(self._kept)
            os.close(self._reading)
        return Told(list(_messages(bytes(self._read))), code, self._out.read_text(errors="replace"))


def _messages(data: bytes) -> Iterator[dict[str, Any]]:
    """The params of each JSON-RPC message."""
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode("ascii").split("\r\n"))
        size = int(headers["content-length"])
        message = json.loads(rest[:size])
        assert message["jsonrpc"] == "2.0"
        yield message["params"]
        data = rest[size:]
