"""Runs a backend's CLI for real: the standard invoker and the standard harness."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_caliper.backends.customizations import carry_customizations
from pytest_caliper.backends.pristine import keep, restore
from pytest_caliper.contracts import (
    AttemptPlan,
    Backend,
    Cancelled,
    CliInfo,
    Command,
    EngineError,
    HarnessResult,
    Invoker,
    JudgeRequest,
    RawOutput,
    Workspace,
)
from pytest_caliper.process import Processes

RETRY_WAITS_S = (5.0, 20.0)
"""Seconds before the second and the third invocation of a throttled agent; not part of the agent's own time."""
STDERR_BYTES = 64 * 1024
"""How much of the end of standard error is kept."""


class ProcessInvoker:
    """Runs CLIs as processes of the session. Thread-safe."""

    def __init__(self, processes: Processes, clis: Mapping[str, CliInfo], *, judge_timeout_s: float = 120.0) -> None:
        """`clis` has the CLI of each backend in use, by the backend's name."""
        self._processes = processes
        self._clis = clis
        self._judge_timeout_s = judge_timeout_s

    def agent(self, backend: Backend, plan: AttemptPlan, workspace: Workspace) -> RawOutput:
        """One run of the agent; its output stays in `workspace.root/agent.out`.

        Raises EngineError when it cannot be prepared or started, Cancelled when the session stops.
        """
        cli = self._cli(backend)
        command = backend.agent_command(plan, workspace, cli)
        if plan.user_customizations:
            own = getattr(backend, "customizations", None)
            if own is None:
                raise EngineError(f"--caliper-user-customizations: {backend.name} does not say where its user keeps them")
            carry_customizations(own(plan.env), workspace.home)
        return self._run(command, cli, workspace.root / "agent", timeout_s=plan.timeout_s, tag=f"{plan.tag}/agent")

    def judge(self, backend: Backend, plan: AttemptPlan, workspace: Workspace, request: JudgeRequest) -> RawOutput:
        """One question to the judge, in a home of its own below `workspace.root`. Raises as `agent` does."""
        cli = self._cli(backend)
        home = _unused(workspace.root / f"judge-{request.number}")
        command = backend.judge_command(request, plan.judge, plan.env, home, cli)
        tag = f"{plan.tag}/judge-{request.number}"
        return self._run(command, cli, home, timeout_s=self._judge_timeout_s, tag=tag)

    def _cli(self, backend: Backend) -> CliInfo:
        try:
            return self._clis[backend.name]
        except KeyError:
            raise EngineError(f"the CLI of {backend.name!r} was not looked for before the run: please report this") from None

    def _run(self, command: Command, cli: CliInfo, place: Path, *, timeout_s: float, tag: str) -> RawOutput:
        stdout, stderr = place.with_name(f"{place.name}.out"), place.with_name(f"{place.name}.err")
        try:
            ended = self._processes.run(command, stdout=stdout, stderr=stderr, timeout_s=timeout_s, tag=tag)
        except OSError as error:
            raise EngineError(f"{command.argv[0]} cannot be started: {error.strerror or error}") from error
        if ended.cause == "cancelled":
            raise Cancelled(tag)
        return RawOutput(
            argv=command.argv,
            stdout=stdout,
            stderr=_tail(stderr),
            exit_code=ended.returncode,
            cause=ended.cause,
            duration_s=ended.duration_s,
            cli_version=cli.version,
        )


class PatientInvoker:
    """Asks a judge that was throttled again, after each of `waits_s`. The agent's turn is the harness's own matter."""

    def __init__(self, inner: Invoker, *, waits_s: Sequence[float], pause: Callable[[float], None]) -> None:
        """`pause` waits that many seconds, and raises Cancelled when the session stops meanwhile."""
        self._inner = inner
        self._waits_s = tuple(waits_s)
        self._pause = pause

    def agent(self, backend: Backend, plan: AttemptPlan, workspace: Workspace) -> RawOutput:
        """As the inner invoker does it."""
        return self._inner.agent(backend, plan, workspace)

    def judge(self, backend: Backend, plan: AttemptPlan, workspace: Workspace, request: JudgeRequest) -> RawOutput:
        """The first reply that is not lost to throttling, else the last one."""
        raw = self._inner.judge(backend, plan, workspace, request)
        for wait_s in self._waits_s:
            if raw.cause != "exit" or not backend.read_judge(raw).transient:
                break
            self._pause(wait_s)
            raw = self._inner.judge(backend, plan, workspace, request)
        return raw


class StandardHarness:
    """The default `caliper_harness`: runs the plan's backend and reads what it printed.

    An invocation that was throttled is tried again, from where set-up ended, after each of `waits_s`; the record says how often.
    """

    def __init__(
        self,
        *,
        invoker: Invoker,
        backends: Mapping[str, Backend],
        waits_s: Sequence[float] = RETRY_WAITS_S,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`pause` waits that many seconds, and raises Cancelled when the session stops meanwhile."""
        self._invoker = invoker
        self._backends = backends
        self._waits_s = tuple(waits_s)
        self._pause = pause

    def __call__(self, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:
        """Raises EngineError when the agent cannot be started, Cancelled when the session stops."""
        backend = self._backends[plan.engine.backend]
        before = keep(workspace) if self._waits_s else None
        retries = 0
        while True:
            raw = self._invoker.agent(backend, plan, workspace)
            result = backend.read_agent(raw, plan, workspace)
            if retries == len(self._waits_s) or not _may_try_again(result, before, workspace):
                return replace(result, duration_s=raw.duration_s, cli_version=raw.cli_version, retries=retries)
            self._pause(self._waits_s[retries])
            retries += 1


def _may_try_again(result: HarnessResult, before: Path | None, workspace: Workspace) -> bool:
    """Only what may pass, and only where the directories are as set-up left them: what the agent did is undone first."""
    if not result.transient or result.fatal is not None or result.finished or result.timed_out:
        return False
    touched = any(turn.role == "tool_use" for turn in result.transcript)
    return not touched or (before is not None and restore(before, workspace))


def _unused(place: Path) -> Path:
    """`place`, or `place-2`, `place-3`, … where an earlier try was there."""
    number = 1
    while (taken := place if number == 1 else place.with_name(f"{place.name}-{number}")).exists():
        number += 1
    return taken


def _tail(path: Path) -> str:
    """The end of a file of standard error, decoded with replacement."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - STDERR_BYTES))
        return file.read().decode("utf-8", "replace")
