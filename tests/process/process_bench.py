"""Ways to run scripts with the processes of a session, and to see what became of them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from pytest_caliper.contracts import Command
from pytest_caliper.process import Ended, Processes


def until(condition: Callable[[], object], *, within_s: float = 20.0) -> None:
    """Wait for a condition; fail when it does not come."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_in(path: Path) -> int:
    """The number that a script writes into a file, once it is there."""
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


@dataclass(kw_only=True)
class Bench:
    """A session's processes, and short ways to run scripts with them."""

    processes: Processes
    dir: Path
    env: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})

    @property
    def tag(self) -> str:
        return self.processes.session_tag + "/attempt-1"

    @property
    def stdout(self) -> Path:
        return self.dir / "stdout"

    @property
    def stderr(self) -> Path:
        return self.dir / "stderr"

    def command(self, *argv: str, stdin: bytes = b"") -> Command:
        return Command(argv=argv, cwd=self.dir, env=self.env, stdin=stdin)

    def run(self, command: Command, *, timeout_s: float = 60.0, max_bytes: int = 64 * 1024 * 1024) -> Ended:
        return self.processes.run(
            command, stdout=self.stdout, stderr=self.stderr, timeout_s=timeout_s, tag=self.tag, max_bytes=max_bytes
        )

    def sh(self, script: str, *, stdin: bytes = b"", timeout_s: float = 60.0) -> Ended:
        return self.run(self.command("sh", "-c", script, stdin=stdin), timeout_s=timeout_s)

    def python(self, script: str, *, timeout_s: float = 60.0, max_bytes: int = 64 * 1024 * 1024) -> Ended:
        return self.run(self.command(sys.executable, "-I", "-S", "-c", script), timeout_s=timeout_s, max_bytes=max_bytes)

    def pid(self, name: str) -> int:
        return pid_in(self.dir / name)
