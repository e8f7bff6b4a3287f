"""The real CLIs with a scripted model (`tests/real_cli`): sessions of pytest that run in a network namespace of their own."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import agents
import subjects
from agents import Cli
from cases import Subject
from fault_bench import BOUND_S, Bench
from namespace import CompletedRun, run_in_namespace

REAL: dict[str, tuple[Subject, Callable[[], Cli]]] = {
    "claude-code": (subjects.CLAUDE, agents.claude),
    "codex": (subjects.CODEX, agents.codex),
}


def asked(word: str) -> str:
    """A prompt that no CLI's own prompts and tools hold."""
    return f"TASK: {word}"


def turn(word: str, *, results: int | None = None, **reply: Any) -> dict[str, Any]:
    """What the model says to the agent whose prompt holds `asked(word)`."""
    when: dict[str, Any] = {"all": [asked(word)], "tools": True}
    return {"when": when if results is None else {**when, "tool_results": results}, **reply}


@dataclass(kw_only=True)
class RealBench(Bench):
    """A bench whose agents are real: their model follows `turns`."""

    subject: Subject
    turns: list[Mapping[str, Any]] = field(default_factory=list)

    def shell(self, command: str) -> Mapping[str, Any]:
        """A call of the CLI's shell tool, which notes its tag first."""
        return self.subject.shell(f'echo "$CALIPER_TAG forever" >> {self.ledger}; {command}')

    def command(self, *arguments: str) -> list[str]:
        return super().command(f"--caliper-model={self.backend}:{self.subject.model}", *arguments)

    def begin(self, *arguments: str) -> RealSession:
        return RealSession(self, arguments)

    def run(self, *arguments: str) -> int:
        return self.begin(*arguments).end()


class RealSession:
    """A session of pytest beside its model. The signals go to pytest, not to what serves the model."""

    def __init__(self, bench: RealBench, arguments: tuple[str, ...]) -> None:
        self._bench, self._arguments = bench, arguments
        self._done: list[CompletedRun] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        bench = self._bench
        in_own_session = "import os, sys; os.setsid(); os.execv(sys.argv[1], sys.argv[1:])"
        self._done.append(
            run_in_namespace(
                bench.turns,
                [sys.executable, "-c", in_own_session, *bench.command(*self._arguments)],
                bench.path,
                env={"TMPDIR": str(bench.path / "tmp"), **bench.env, **bench.subject.env},
                files=bench.subject.files,
                timeout_s=2 * BOUND_S,
            )
        )

    @property
    def pid(self) -> int:
        (pid,) = self._bench.pids("main")
        return pid

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else 0

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.killpg(self.pid, signal.SIGINT)

    def end(self) -> int:
        """Its exit status; negative for a signal."""
        self._thread.join(2 * BOUND_S)
        assert self._done, "the session hangs"
        done = self._done[0]
        self._bench.out.write_text(done.stdout + done.stderr, encoding="utf-8")
        return done.returncode if done.returncode < 128 else done.returncode - 256
