"""What one pytest process knows of its specs, on `config.stash`: two sessions in one interpreter never meet.

Importing this module must stay cheap; the rooms behind it are imported when a spec is opened.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.options import Settings, opted_in

if TYPE_CHECKING:
    from pytest_caliper.collection import AttemptItem
    from pytest_caliper.contracts import Backend, Harness, Judge, Workspace
    from pytest_caliper.running.ahead import Ahead
    from pytest_caliper.running.heartbeat import Heartbeat
    from pytest_caliper.running.planning import SessionId, SpecPlan
    from pytest_caliper.running.runtime import Runtime
    from pytest_caliper.runs.records import AttemptRecord
    from pytest_caliper.session import Session

SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
STATE: pytest.StashKey[State] = pytest.StashKey()
RECORD: pytest.StashKey[AttemptRecord] = pytest.StashKey()
"""On an item: the record of its attempt."""
UNOPENED = pytest.StashKey[dict[str, None]]()
"""On the config: specs that were met but not run since nobody opted in."""
HEARTBEAT: pytest.StashKey[Heartbeat] = pytest.StashKey()


class State:
    """Made when the first spec is opened."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings: Settings = config.stash[SETTINGS]
        said = worker_input(config)
        self.worker: str | None = None if said is None else str(getattr(config, "workerinput")["workerid"])  # noqa: B009
        self.opted_in: bool = opted_in(config) if said is None else bool(said["opted_in"])
        self.session_id: SessionId = session_id_of(config)
        self.specs: dict[Path, SpecPlan] = {}
        self.session: Session | None = None
        """Where results are gathered and written; None in an xdist worker."""
        self.ahead: Ahead | None = None
        self.unkept: list[str] = []
        """Why recordings could not be kept, here and in xdist workers that ended."""
        self._runtime: Runtime | None = None
        self._backends: Mapping[str, Backend] | None = None
        if said is None:
            from pytest_caliper.reports import Gathering
            from pytest_caliper.session import Session

            self.session = Session(config, self.settings, self.session_id)
            config.pluginmanager.register(Gathering(self.session), "caliper-session")

    def open_spec(self, path: Path) -> SpecPlan:
        """The spec with its skills, loaded once per process. Raises SpecError."""
        from pytest_caliper.running.planning import SpecPlan

        if path not in self.specs:
            self.specs[path] = SpecPlan.open(path, self.settings, self.config.rootpath)
        return self.specs[path]

    @property
    def backends(self) -> Mapping[str, Backend]:
        """All backends by name and alias: ours and those of other plugins. Raises EngineError for a name that is taken."""
        if self._backends is None:
            from pytest_caliper.backends.registry import builtin_backends, by_name

            others = self.config.hook.pytest_caliper_backends(config=self.config)
            self._backends = by_name([*builtin_backends(), *(backend for some in others for backend in _contributed(some))])
        return self._backends

    @property
    def runtime(self) -> Runtime:
        """What attempts of this process share; made on first use, in the main thread at a clean moment."""
        if self._runtime is None:
            from pytest_caliper.running.runtime import Runtime

            self._runtime = Runtime(self.settings, self.session_id, self.backends, dict(os.environ), self.worker)
        return self._runtime

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


def tell_worker(config: pytest.Config) -> str:
    """What a worker must know, as one ASCII string: execnet takes exact builtins only."""
    session_id = session_id_of(config)
    return json.dumps({"id": session_id.id, "stamp": session_id.stamp, "opted_in": opted_in(config)})
