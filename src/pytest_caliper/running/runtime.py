"""What the attempts of one process share: processes, temporary root, backends, harness and judge."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.attempt.lifecycle import Lifecycle
from pytest_caliper.attempt.redaction import Redactor
from pytest_caliper.attempt.replay import RecordingInvoker, ReplayInvoker
from pytest_caliper.attempt.workspace import PREFIX, own, remove, session_root
from pytest_caliper.backends.driver import RETRY_WAITS_S, PatientInvoker, ProcessInvoker, StandardHarness
from pytest_caliper.contracts import (
    AttemptPlan,
    Backend,
    Cancelled,
    CliInfo,
    Engine,
    Harness,
    Invoker,
    Judge,
    Workspace,
)
from pytest_caliper.judging.assert_client import AssertRunner
from pytest_caliper.judging.judge import StandardJudge
from pytest_caliper.process import Processes
from pytest_caliper.running.slots import held
from pytest_caliper.runs.records import AttemptKey, AttemptRecord
from pytest_caliper.spec.env_refs import references

if TYPE_CHECKING:
    from pytest_caliper.options import Settings
    from pytest_caliper.running.planning import SessionId, SpecPlan


class FoundClis(Mapping[str, CliInfo]):
    """Backend name -> its CLI on this machine, looked for once. Raises EngineError where it cannot be used."""

    def __init__(self, backends: Mapping[str, Backend], env: Mapping[str, str]) -> None:
        self._backends, self._env = backends, env
        self._found: dict[str, CliInfo] = {}
        self._locks = {name: threading.Lock() for name in backends}

    def __getitem__(self, name: str) -> CliInfo:
        with self._locks[name]:
            if name not in self._found:
                self._found[name] = self._backends[name].find(self._env)
            return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._backends)

    def __len__(self) -> int:
        return len(self._backends)


class Runtime:
    """Made when the first attempt is about to run; `close` leaves nothing behind."""

    def __init__(
        self,
        settings: Settings,
        session: SessionId,
        backends: Mapping[str, Backend],
        env: Mapping[str, str],
        worker: str | None,
    ) -> None:
        self.settings, self.session, self.backends, self.env = settings, session, backends, env
        self.worker = worker
        self.beside_the_controller = True
        """False in an xdist worker that was started elsewhere: on another machine, or in another checkout."""
        self.processes = Processes(f"{session.id}-{worker or 'main'}")
        self.clis = FoundClis(backends, env)
        self._root: Path | None = None
        self._marks: list[int] = []
        """Descriptors that say that our temporary directories are in use."""
        self._root_lock = threading.Lock()
        self.asserts = AssertRunner(self.processes, env)
        self.invoker = self._invoker()
        self.harness: Harness = StandardHarness(
            invoker=self.invoker,
            backends=backends,
            waits_s=() if settings.replay else RETRY_WAITS_S,
            pause=self._pause,
        )
        self.judge: Judge = StandardJudge(invoker=self.invoker, backends=backends, asserts=self.asserts)
        self._engines: dict[str, tuple[Engine, Engine]] = {}
        self._rites = itertools.count(1)

    def _pause(self, seconds: float) -> None:
        """Wait, but not longer than the session lives. Raises Cancelled."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.processes.cancelled:
                raise Cancelled
            time.sleep(min(left, 0.2))

    def _invoker(self) -> Invoker:
        if self.settings.replay:
            return ReplayInvoker()
        real = PatientInvoker(ProcessInvoker(self.processes, self.clis), waits_s=RETRY_WAITS_S, pause=self._pause)
        return RecordingInvoker(real) if self.settings.record else real

    @property
    def root(self) -> Path:
        """The process's own directory, made on first use."""
        with self._root_lock:
            if self._root is None:
                self._root = session_root()
                self._marks.append(own(self._root, self.processes.session_tag))
                self.processes.remove_on_death(self._root)
            return self._root

    def engines(self, spec: SpecPlan) -> tuple[Engine, Engine]:
        """The engine under test and the judge of a spec. Raises EngineError."""
        path = str(spec.spec.path)
        if path not in self._engines:
            self._engines[path] = spec.engine(self.backends), spec.judge(self.backends)
        return self._engines[path]

    def plan(self, spec: SpecPlan, key: AttemptKey, env: Mapping[str, str]) -> AttemptPlan:
        """The plan of an attempt; `env` is the host's environment at a clean moment."""
        plan = spec.plan(
            key,
            engines=self.engines(spec),
            env=env,
            root=self.root,
            tag=self.processes.session_tag,
            session=self.session,
        )
        return plan if self.worker is None else self._with_side_file(plan)

    def _with_side_file(self, plan: AttemptPlan) -> AttemptPlan:
        """Under xdist an attempt may run twice, when a worker died: each worker writes to files of its own."""
        if not self.shares_files:
            return replace(plan, transcript_path=self.root / "transcripts" / plan.transcript_path.name, transcript_spare=None)
        name = f"{plan.transcript_path.stem}-{self.worker}.jsonl"
        spare = plan.transcript_spare
        return replace(
            plan,
            transcript_path=plan.transcript_path.with_name(name),
            transcript_spare=None if spare is None else spare.with_name(name),
        )

    @cached_property
    def shares_files(self) -> bool:
        """Whether the controller finds what this process writes. Asked before any attempt has run here."""
        return self.worker is None or (self.beside_the_controller and self._places.is_dir())

    def run(
        self,
        spec: SpecPlan,
        plan: AttemptPlan,
        workspace: Workspace,
        harness: Harness | None = None,
        judge: Judge | None = None,
    ) -> AttemptRecord:
        """Run an attempt to its record, with the standard harness and judge unless others are given. Raises Cancelled."""
        names = tuple(reference.name for reference in references(spec.spec))
        redactor = Redactor.from_environment(plan.env, names, {spec.project: "$PROJECT"})
        lifecycle = Lifecycle(processes=self.processes, redactor=redactor, last_rites=self._last_rites)
        with ExitStack() as shared:
            self._take_places(shared, spec, plan)
            return lifecycle.run(plan, workspace, harness or self.harness, judge or self.judge)

    def _last_rites(self) -> Processes:
        return Processes(f"{self.processes.session_tag}-end-{next(self._rites)}")

    def _take_places(self, stack: ExitStack, spec: SpecPlan, plan: AttemptPlan) -> None:
        """Under xdist no pool spans the workers: files do what the pool does elsewhere."""
        if self.worker is None:
            return
        directory = self._places
        if spec.shares_paths(plan.task):
            group = f"task-{self.session.run_id(plan.spec_path)}-{plan.task.task_id}"
            stack.enter_context(held(directory, group, 1, lambda: self.processes.cancelled))
        if self.settings.workers_said:
            stack.enter_context(held(directory, "worker", self.settings.workers, lambda: self.processes.cancelled))

    @property
    def unkept(self) -> list[str]:
        """Why recordings could not be kept, a line each."""
        return self.invoker.problems if isinstance(self.invoker, RecordingInvoker) else []

    @property
    def _places(self) -> Path:
        """The directory of the files that xdist workers of this session share."""
        return Path(tempfile.gettempdir()) / f"{PREFIX}{self.session.id}-places"

    def share_places(self) -> None:
        """Make the directory of the workers' places in the process that outlives them: it goes also when that one is killed."""
        self._places.mkdir(mode=0o700, exist_ok=True)
        self._marks.append(own(self._places, self.processes.session_tag))
        self.processes.remove_on_death(self._places)

    def close(self) -> None:
        """End every process of ours and remove what is temporary."""
        try:
            self.asserts.close()
            self.processes.close()
        finally:
            if self._root is not None:
                remove(self._root)
            while self._marks:
                os.close(self._marks.pop())
            if self.worker is None or not self.shares_files:  # the controller ends last
                shutil.rmtree(self._places, ignore_errors=True)
