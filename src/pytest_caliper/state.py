"""What one pytest process knows of its specs, on `config.stash`: two sessions in one interpreter never meet.

Importing this module must stay cheap; the rooms behind it are imported when a spec is opened.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.options import Settings, opted_in
from pytest_caliper.running.line import Listener

if TYPE_CHECKING:
    from pytest_caliper.collection import AttemptItem
    from pytest_caliper.contracts import Backend, Harness, Judge, Workspace
    from pytest_caliper.running.ahead import Ahead
    from pytest_caliper.running.baselines import Baselines, Reused
    from pytest_caliper.running.distribution import Distribution
    from pytest_caliper.running.heartbeat import Heartbeat
    from pytest_caliper.running.planning import SessionId, SpecPlan
    from pytest_caliper.running.resuming import Resuming
    from pytest_caliper.running.runtime import Runtime
    from pytest_caliper.running.sharding import Cut
    from pytest_caliper.runs.records import AttemptKey, AttemptRecord
    from pytest_caliper.session import Session
    from pytest_caliper.testing.course import Course
    from pytest_caliper.testing.items import FunctionAttempt

SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
STATE: pytest.StashKey[State] = pytest.StashKey()
RECORD: pytest.StashKey[AttemptRecord] = pytest.StashKey()
"""On an item: the record of its attempt."""
ATTEMPT: pytest.StashKey[FunctionAttempt] = pytest.StashKey()
"""On the item of a test in Python: the attempt that it is."""
COURSE: pytest.StashKey[Course] = pytest.StashKey()
"""On the same, while it runs: how far the attempt is."""
TESTS = pytest.StashKey[None]()
"""On the config: there are tests in Python that ask for an attempt."""
REFUSED: pytest.StashKey[str] = pytest.StashKey()
"""On an item: why its attempt was not let begin."""
UNOPENED = pytest.StashKey[dict[str, None]]()
"""On the config: specs, and node ids of tests, that were met but not run since nobody opted in."""
HEARTBEAT: pytest.StashKey[Heartbeat] = pytest.StashKey()


class State:
    """Made when the first spec is opened."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings: Settings = config.stash[SETTINGS]
        from pytest_caliper.running.stopping import Stopping

        said = worker_input(config)
        self._beside_the_controller = said is None or (said.get("local", True) and said.get("rootdir") == str(config.rootpath))
        self.worker: str | None = None if said is None else str(getattr(config, "workerinput")["workerid"])  # noqa: B009
        self.opted_in: bool = opted_in(config) if said is None else bool(said["opted_in"])
        self.session_id: SessionId = session_id_of(config)
        self.specs: dict[Path, SpecPlan] = {}
        self.session: Session | None = None
        """Where results are gathered and written; None in an xdist worker."""
        self.ahead: Ahead | None = None
        self.stopping = Stopping(fail_fast=self.settings.fail_fast, max_tokens=self.settings.max_tokens)
        """Told of every attempt by the controller's `session`; in xdist workers of none, so that it refuses none."""
        self.resuming: Resuming | None = None
        """On the controller, when `--caliper-resume` or `--caliper-resume-from` was given."""
        self.baselines: Baselines | None = None
        """On the controller, when `--caliper-baseline-from` was given."""
        self._told: Mapping[str, Any] = {} if said is None else said.get("resume", {})
        self.listener = Listener.of(config)
        """What the xdist controller says meanwhile."""
        from pytest_caliper.bars import Bars

        self.bars = Bars(config)
        self.unkept: list[str] = []
        """Why recordings could not be kept, here and in xdist workers that ended."""
        self._cut: Cut | None = None
        self._runtime: Runtime | None = None
        self._backends: Mapping[str, Backend] | None = None
        if said is None:
            from pytest_caliper.reports import Gathering
            from pytest_caliper.session import Session

            self.session = Session(config, self.settings, self.session_id, self.stopping)
            if self.settings.baseline_from is not None:
                from pytest_caliper.running.baselines import Baselines

                self.baselines = Baselines(self, self.settings.baseline_from)
            if self.settings.resume or self.settings.resume_from:
                from pytest_caliper.running.resuming import Resuming

                self.resuming = Resuming(config, self.session_id, self.settings.resume_from)
            config.pluginmanager.register(Gathering(self.session), "caliper-session")
            if os.environ.get("GITHUB_ACTIONS") == "true":
                from pytest_caliper.reporting.github import Annotations

                config.pluginmanager.register(Annotations(config.rootpath, dict(os.environ)), "caliper-github")

    def open_spec(self, path: Path) -> SpecPlan:
        """The spec with its skills, loaded once per process. Raises SpecError."""
        from pytest_caliper.running.planning import SpecPlan

        if path not in self.specs:
            plan = SpecPlan.open(path, self.settings, self.config.rootpath)
            self.specs[path] = replace(plan, baseline_known=self._knows_baseline(plan))
        return self.specs[path]

    def _knows_baseline(self, plan: SpecPlan) -> bool:
        """Whether the spec's baseline is taken from a saved run: the controller decides, workers were told."""
        if self.settings.baseline_from is None or not plan.skills:
            return False
        if self.baselines is not None:
            return self.baselines.of(plan) is not None
        from pytest_caliper.running.resuming import spec_nodeid

        return spec_nodeid(self.config, plan.spec.path) in (worker_input(self.config) or {}).get("baselines", ())

    def reused(self, plan: SpecPlan) -> Reused | None:
        """The baseline arm that is taken from a saved run; None where it runs, or nobody asked for one. On the controller."""
        return None if self.baselines is None or not plan.baseline_known else self.baselines.of(plan)

    def known_before(self, plan: SpecPlan) -> Collection[AttemptKey] | None:
        """The attempts that the spec's unfinished run has; None when it has no unfinished run. Raises pytest.UsageError."""
        if self.resuming is not None:
            unfinished = self.resuming.find(plan)
            return None if unfinished is None else unfinished.records
        from pytest_caliper.running.resuming import known_as_told

        return known_as_told(self.config, plan, self._told, self.session_id)

    def left_out(self, plan: SpecPlan) -> None:
        """Note that a spec has nothing to resume."""
        if self.session is not None:
            shown = os.path.relpath(plan.spec.path, self.config.invocation_params.dir)
            self.session.notes.append(f"{shown}: there is no unfinished run, so nothing of it ran")

    @property
    def cut(self) -> Cut | None:
        """How `--caliper-shard` deals out the tasks, made once per session by the controller; None without the option."""
        wanted = self.opted_in or self.config.getoption("collectonly")
        if self._cut is None and self.settings.shard is not None and wanted:
            from pytest_caliper.running.sharding import Cut, make_cut

            told = worker_input(self.config)
            self._cut = make_cut(self, self.settings.shard) if told is None else Cut.from_json(told["shard"])
        return self._cut

    @property
    def backends(self) -> Mapping[str, Backend]:
        """All backends by name and alias: ours and those of other plugins. Raises EngineError for a name that is taken."""
        if self._backends is None:
            self._backends = self.gathered_backends()
        return self._backends

    def gathered_backends(self) -> Mapping[str, Backend]:
        """The same, asked for anew: while specs are being collected not every conftest is there yet. Raises EngineError."""
        from pytest_caliper.backends.registry import builtin_backends, by_name

        others = self.config.hook.pytest_caliper_backends(config=self.config)
        return by_name([*builtin_backends(), *(backend for some in others for backend in _contributed(some))])

    @property
    def runtime(self) -> Runtime:
        """What attempts of this process share; made on first use, in the main thread at a clean moment."""
        if self._runtime is None:
            from pytest_caliper.running.runtime import Runtime

            self._runtime = Runtime(self.settings, self.session_id, self.backends, dict(os.environ), self.worker)
            self._runtime.beside_the_controller = self._beside_the_controller
        return self._runtime

    @property
    def distribution(self) -> Distribution | None:
        """On the controller of xdist workers: who knows where attempts run, and can withdraw or stop them."""
        found: Distribution | None = self.config.pluginmanager.get_plugin("caliper-distribution")
        return found

    @property
    def ahead_stops(self) -> bool:
        """Whether attempts under way are being cancelled."""
        return self.ahead is not None and self.ahead.cancelled

    def take(self, item: AttemptItem, workspace: Workspace, harness: Harness, judge: Judge) -> AttemptRecord:
        """The record of the item whose turn has come."""
        if self.ahead is None:
            raise pytest.UsageError("an attempt of a .eval.yaml spec can only run inside pytest's own run loop")
        return self.ahead.take(item, workspace, harness, judge)

    def close(self) -> None:
        """End what runs and remove what is temporary. Doing it again changes nothing."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            runtime.close()
            self.unkept += runtime.unkept


def _contributed(answer: object) -> Iterable[Backend]:
    """The backends in one answer to `pytest_caliper_backends`. Raises EngineError for anything else."""
    from pytest_caliper.contracts import Backend, EngineError

    if answer is not None and not isinstance(answer, (list, tuple)):
        raise EngineError(f"a hook pytest_caliper_backends returned {answer!r}: it must return a list of backends")
    for backend in answer or ():
        if isinstance(backend, type) or not isinstance(backend, Backend):
            raise EngineError(
                f"a hook pytest_caliper_backends returned {backend!r}, which is no object with all that Backend names"
            )
        yield backend


def state_of(config: pytest.Config) -> State:
    """The state of this process, made if need be."""
    state = config.stash.get(STATE, None)
    if state is None:
        state = config.stash[STATE] = State(config)
    return state


_SESSION_ID: pytest.StashKey[SessionId] = pytest.StashKey()


def session_id_of(config: pytest.Config) -> SessionId:
    """The session's identity: made by the controller, handed to xdist workers."""
    from pytest_caliper.running.planning import SessionId

    if _SESSION_ID not in config.stash:
        said = worker_input(config)
        config.stash[_SESSION_ID] = (
            SessionId(id=secrets.token_hex(6), stamp=time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime()))
            if said is None
            else SessionId(id=said["id"], stamp=said["stamp"])
        )
    return config.stash[_SESSION_ID]


def worker_input(config: pytest.Config) -> dict[str, Any] | None:
    """What the controller told this xdist worker; None on the controller and without xdist."""
    given = getattr(config, "workerinput", None)
    if given is None:
        return None
    told: dict[str, Any] = json.loads(given.get("caliper", "{}"))
    return told


def tell_worker(config: pytest.Config, *, local: bool = True) -> str:
    """What a worker must know, as one ASCII string: execnet takes exact builtins only."""
    if not opted_in(config):
        return json.dumps({"id": "", "stamp": "", "opted_in": False})
    session_id = session_id_of(config)
    told = {"id": session_id.id, "stamp": session_id.stamp, "opted_in": opted_in(config), **_place(config, local)}
    if config.stash[SETTINGS].resume or config.stash[SETTINGS].resume_from:
        from pytest_caliper.running.resuming import tell

        told["resume"] = tell(config)
    if config.stash[SETTINGS].baseline_from is not None:
        from pytest_caliper.running import baselines

        told["baselines"] = baselines.tell(state_of(config))
    if config.stash[SETTINGS].shard is not None and opted_in(config) and (cut := state_of(config).cut) is not None:
        told["shard"] = cut.to_json()
    return json.dumps(told)


def _place(config: pytest.Config, local: bool) -> dict[str, Any]:
    """Where the controller is, for workers that may be elsewhere, and whether the scheduler gives idle items out."""
    return {"local": local, "rootdir": str(config.rootpath), "one_at_a_time": config.getoption("dist", None) == "load"}
