"""Runs a task's `setup:` and `cleanup:`, and its `solution:` under the grader check."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pytest_caliper.contracts import AttemptPlan, Cancelled, Command, Workspace

HOOK_TIMEOUT_S = 60.0
MAX_OUTPUT = 8 * 1024 * 1024
"""Bytes that a hook may print."""
MAX_ARGUMENT = 100 * 1024
"""Bytes of a script that is given as an argument; Linux takes 128 KiB in one."""
MAX_SHOWN = 300
"""Characters of what a hook said last."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")

Kind = Literal["setup", "solution", "cleanup"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HookOutcome:
    """How a hook ended."""

    error: str | None
    """One line; None when it ended with status 0."""
    duration_s: float


class _Ended(Protocol):
    @property
    def returncode(self) -> int: ...
    @property
    def cause(self) -> Literal["exit", "timeout", "cancelled", "output"]: ...
    @property
    def duration_s(self) -> float: ...


class RunsProcesses(Protocol):
    """What a hook needs of `process.Processes`."""

    def run(
        self,
        command: Command,
        *,
        stdout: Path,
        stderr: Path,
        timeout_s: float,
        tag: str,
        max_bytes: int,
        keep_children: bool,
    ) -> _Ended: ...


def run_hook(
    kind: Kind,
    script: str,
    *,
    plan: AttemptPlan,
    workspace: Workspace,
    processes: RunsProcesses,
    timeout_s: float = HOOK_TIMEOUT_S,
) -> HookOutcome:
    """Run `script` with `/bin/sh` in `work/`, in the host's environment with the attempt's own HOME and TMPDIR.

    What `setup` leaves running in the background goes on, under the tag `<plan.tag>/setup`, until the attempt's tag is reaped.
    Raises Cancelled when the session stops. What goes wrong is in the outcome, in one line.
    """
    started = time.monotonic()
    stdout, stderr = (workspace.root / f"{kind}.{stream}" for stream in ("stdout", "stderr"))
    try:
        command = Command(argv=_argv(kind, script, workspace), cwd=workspace.work, env=hook_environment(plan, workspace))
        ended = processes.run(
            command,
            stdout=stdout,
            stderr=stderr,
            timeout_s=timeout_s,
            tag=f"{plan.tag}/{kind}",
            max_bytes=MAX_OUTPUT,
            keep_children=kind == "setup",
        )
    except (OSError, ValueError) as error:  # no shell, no directory, a NUL in the script or in the environment
        return HookOutcome(error=f"{kind} could not be started: {_one_line(str(error))}", duration_s=time.monotonic() - started)
    if ended.cause == "cancelled":
        raise Cancelled
    said = _last_line(stderr) or _last_line(stdout)
    return HookOutcome(error=_error(kind, ended, said, timeout_s), duration_s=ended.duration_s)


def hook_environment(plan: AttemptPlan, workspace: Workspace) -> dict[str, str]:
    """The host's environment, in which `extra_path` comes first on PATH and HOME and TMPDIR are the attempt's own."""
    return {
        **plan.env,
        "PATH": _path(plan.env, plan.sandbox.extra_path),
        "HOME": str(workspace.home),
        "TMPDIR": str(workspace.tmp),
        "PWD": str(workspace.work),
        "CALIPER_WORKDIR": str(workspace.work),
        "CALIPER_SPEC_DIR": str(plan.spec_dir),
    }


def _path(env: Mapping[str, str], extra_path: tuple[Path, ...]) -> str:
    return os.pathsep.join([*map(str, extra_path), env.get("PATH") or os.defpath])


def _argv(kind: Kind, script: str, workspace: Workspace) -> tuple[str, ...]:
    """A script too long for an argument goes into a file beside `work/`."""
    if len(script.encode("utf-8", "surrogateescape")) <= MAX_ARGUMENT:
        return ("/bin/sh", "-c", script)
    path = workspace.root / f"{kind}.sh"
    path.write_text(script, encoding="utf-8", errors="surrogateescape")
    return ("/bin/sh", str(path))


def _error(kind: Kind, ended: _Ended, said: str, timeout_s: float) -> str | None:
    if ended.cause == "timeout":
        what = f"{kind} did not end within {timeout_s:g} s"
    elif ended.cause == "output":
        what = f"{kind} printed more than {MAX_OUTPUT // 1024 // 1024} MiB"
    elif ended.returncode < 0:
        what = f"{kind} was killed by {_signal_name(-ended.returncode)}"
    elif ended.returncode > 0:
        what = f"{kind} failed with exit status {ended.returncode}"
    else:
        return None
    return f"{what}: {said}" if said else what


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(path: Path) -> str:
    """The last line of a file that says something, printable and bounded; empty when there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 16 * 1024))
            tail = file.read()
    except OSError:
        return ""
    lines = (_one_line(line) for line in reversed(tail.decode("utf-8", "replace").split("\n")))
    return next((line for line in lines if line), "")


def _one_line(text: str) -> str:
    shown = " ".join("".join(char if char.isprintable() else " " for char in _ESCAPES.sub("", text)).split())
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 1] + "…"
