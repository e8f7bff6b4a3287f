"""Runs asserts in processes of their own, forked from a warm helper."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_caliper.contracts import AttemptPlan, Cancelled, Command, Workspace
from pytest_caliper.judging.assert_helper import SERVER, Call, End, Helper, HelperError
from pytest_caliper.judging.assert_request import AssertRequest
from pytest_caliper.judging.bounding import cut_middle
from pytest_caliper.process import TAG_VARIABLE

if TYPE_CHECKING:
    from pytest_caliper.process import Cause, Processes

MAX_EVIDENCE = 8_000
"""Bytes."""
MAX_OUTPUT = 2_000
"""Bytes of what an assert printed, within its evidence."""

_GRACE_S = 10.0
"""After its deadline the process monitor has killed an assert within 2 s."""

_MEASURES_COVERAGE = ("COV_CORE_", "COVERAGE_PROCESS_")
"""Variables by which pytest-cov (before 7) and coverage measure child processes: the helper would leave a data file behind."""

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
"""Where an object lies in memory, as Python shows it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AssertOutcome:
    """What became of an assert."""

    passed: bool | None
    """None when there is no verdict."""
    evidence: str
    """Empty for a pass; else why, in the first line, then the code that led there, and what it printed."""
    duration_s: float


class AssertRunner:
    """Runs the asserts of a session. Thread-safe; the helper is started by the first assert."""

    def __init__(self, processes: Processes, env: Mapping[str, str]) -> None:
        """`env` is the helper's environment. The module search path of all asserts is this process's own, as it is now."""
        self._processes = processes
        self._env = {name: value for name, value in env.items() if not name.startswith(_MEASURES_COVERAGE)}
        # Read here, in the main thread: a test that changes directory must not change what another task's assert imports.
        self._cwd = Path.cwd()
        self._path = tuple(os.path.join(self._cwd, entry) for entry in sys.path)  # noqa: PTH118  "" is a valid entry
        self._lock = threading.Lock()
        self._helper: Helper | None = None
        self._closed = False

    def run(
        self,
        code: bytes,
        *,
        plan: AttemptPlan,
        workspace: Workspace,
        attempt: Mapping[str, Any],
        timeout_s: float = 30.0,
    ) -> AssertOutcome:
        """Run `compile_assertion`'s code in `workspace.work`; `attempt` is `attempt_view.view_data`. Leaves no process behind.

        Raises Cancelled when the session stops.
        """
        request = self._request(code, plan=plan, workspace=workspace, attempt=attempt)
        for _ in range(2):  # a helper that was killed is replaced once
            with ExitStack() as stack:
                if (begun := self._begin(request.to_bytes(), stack)) is not None:
                    return self._warm(*begun, plan=plan, timeout_s=timeout_s)
        return self._cold(request, plan=plan, workspace=workspace, timeout_s=timeout_s)

    def close(self) -> None:
        """End the helper, and with it what it runs. Idempotent."""
        with self._lock:
            self._closed = True
            helper, self._helper = self._helper, None
        if helper is not None:
            helper.close()

    def _request(self, code: bytes, *, plan: AttemptPlan, workspace: Workspace, attempt: Mapping[str, Any]) -> AssertRequest:
        spec_dir = str(plan.spec_dir)
        assertion = plan.task.assertion
        first = str(assertion.path.parent) if assertion is not None and assertion.is_script else spec_dir
        env = {
            **plan.env,
            "HOME": str(workspace.home),
            "TMPDIR": str(workspace.tmp),
            "PATH": os.pathsep.join([*map(str, plan.sandbox.extra_path), plan.env.get("PATH", os.defpath)]),
            "CALIPER_WORKDIR": str(workspace.work),
            "CALIPER_SPEC_DIR": spec_dir,
            TAG_VARIABLE: _tag(plan),
        }
        path = (first, *self._path)
        return AssertRequest(code=code, cwd=str(workspace.work), env=env, path=path, spec_dir=spec_dir, attempt=attempt)

    def _begin(self, request: bytes, stack: ExitStack) -> tuple[Call, int] | None:
        """The call, which `stack` ends, and its process id; None when no helper can be had, and then nothing of it has run."""
        if self._processes.cancelled:
            raise Cancelled
        helper: Helper | None = None
        try:
            helper = self._started()
            call = stack.enter_context(Call.begin(helper, request))
            pid = call.wait_for_pid(lambda: self._processes.cancelled)
        except (HelperError, OSError):
            self._discard(helper)
            return None
        if pid is None:
            raise Cancelled
        return call, pid

    def _warm(self, call: Call, pid: int, *, plan: AttemptPlan, timeout_s: float) -> AssertOutcome:
        began_s = time.monotonic()
        # Leaving this kills what is left of the group; only then the call hangs up, and the helper gives the group's id away.
        with self._processes.watch(pid, timeout_s=timeout_s, tag=_tag(plan)) as watched:
            end = call.wait_for_end(timeout_s + _GRACE_S)
            duration_s = time.monotonic() - began_s
        return _outcome(end, watched.cause, plan=plan, duration_s=duration_s, timeout_s=timeout_s)

    def _cold(self, request: AssertRequest, *, plan: AttemptPlan, workspace: Workspace, timeout_s: float) -> AssertOutcome:
        """Without the helper: some 0.2 s slower, and otherwise the same."""
        with tempfile.TemporaryDirectory(prefix="assert-", dir=workspace.root) as directory:
            answers, printed, errors = (Path(directory, name) for name in ("answer", "stdout", "stderr"))
            command = Command(
                argv=(sys.executable, str(SERVER), "--once", str(answers)),
                cwd=workspace.work,
                env=request.env,
                stdin=request.to_bytes(),
            )
            ended = self._processes.run(command, stdout=printed, stderr=errors, timeout_s=timeout_s, tag=_tag(plan))
            said = answers.read_bytes() if answers.exists() else b""
            output = b"".join(path.read_bytes() for path in (printed, errors) if path.exists())
        end = End(answer=json.loads(said) if said.endswith(b"\n") else None, exit=ended.returncode, printed=output)
        return _outcome(end, ended.cause, plan=plan, duration_s=ended.duration_s, timeout_s=timeout_s)

    def _started(self) -> Helper:
        with self._lock:
            if self._closed:
                raise Cancelled
            if self._helper is None:
                env = {**self._env, TAG_VARIABLE: f"{self._processes.session_tag}/asserts"}
                self._helper = Helper.start(env, self._cwd)
            return self._helper

    def _discard(self, helper: Helper | None) -> None:
        """Give up a helper that failed, unless another thread has done so, or it still serves others."""
        with self._lock:
            if helper is None or helper is not self._helper or helper.usable:
                return
            self._helper = None
        helper.close()


def _tag(plan: AttemptPlan) -> str:
    """Its own below the attempt's: what set-up left running does not end with an assert."""
    return f"{plan.tag}/assert"


def _outcome(end: End, cause: Cause, *, plan: AttemptPlan, duration_s: float, timeout_s: float) -> AssertOutcome:
    """Raises Cancelled when the session stops."""
    if cause == "cancelled":
        raise Cancelled
    if cause == "timeout" or (end.answer is None and end.exit is None):
        reason = f"the assert ran longer than {timeout_s:g} s" if cause == "timeout" else "the assert ended without a verdict"
        return _lost(reason, end, plan, duration_s)
    if cause == "output":
        return _lost("the assert printed too much", end, plan, duration_s)
    if end.answer is None:
        return _lost(f"the assert's process {_how_it_died(end.exit or 0)} before the assert had ended", end, plan, duration_s)
    passed, evidence, duration_s = (end.answer[name] for name in ("passed", "evidence", "duration_s"))
    if passed is True:
        return AssertOutcome(passed=True, evidence="", duration_s=duration_s)
    evidence = ADDRESS.sub(" at 0x…>", evidence)  # two runs of one assert say the same
    return AssertOutcome(passed=passed, evidence=_with_output(evidence, end.printed), duration_s=duration_s)


def _lost(reason: str, end: End, plan: AttemptPlan, duration_s: float) -> AssertOutcome:
    """No verdict, with the line of the assert's own file at which it was, where the process could still tell."""
    path = plan.spec_path if plan.task.assertion is None else plan.task.assertion.path
    try:
        where = path.relative_to(plan.spec_dir).as_posix()
    except ValueError:
        where = str(path)
    line = end.line_in(path)
    evidence = f"{where}{'' if line is None else f':{line}'}: {reason}"
    return AssertOutcome(passed=None, evidence=_with_output(evidence, end.printed), duration_s=duration_s)


def _how_it_died(code: int) -> str:
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _with_output(evidence: str, printed: bytes) -> str:
    output = printed.decode("utf-8", "replace").strip("\n")
    output = f"\n\ncaptured output:\n{cut_middle(output, MAX_OUTPUT)}" if output.strip() else ""
    return cut_middle(evidence, MAX_EVIDENCE - len(output.encode())) + output
