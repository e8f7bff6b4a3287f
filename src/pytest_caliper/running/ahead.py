"""Between pytest's loop, which asks for one item at a time, and the pool, which runs several attempts at once.

An attempt starts ahead of its turn only where that cannot be seen by anybody's fixtures or hooks; unknown means wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.attempt.workspace import create, remove
from pytest_caliper.collection import AttemptItem
from pytest_caliper.contracts import AttemptPlan, Cancelled, Harness, HarnessResult, Judge, Workspace
from pytest_caliper.running.order import rounds
from pytest_caliper.running.pool import Pool, Stopped
from pytest_caliper.running.stopping import Refused
from pytest_caliper.runs.records import AttemptKey, AttemptRecord
from pytest_caliper.state import REFUSED

if TYPE_CHECKING:
    from pytest_caliper.collection import Attempt
    from pytest_caliper.state import State

OUR_FIXTURES = "pytest_caliper.fixtures"
OURS = frozenset({"caliper_workspace", "caliper_harness", "caliper_judge"})
HARMLESS = frozenset({"pytest_asyncio.plugin", "anyio.pytest_plugin"})
"""Plugins whose autouse fixtures were looked at and do not touch an attempt."""
HOOKS = ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_protocol", "pytest_pyfunc_call")
NOT_YET = "is not set up yet"


def why_not_ahead(item: AttemptItem, live: set[Any]) -> str | None:
    """Why this item must wait for its turn, or None. `live` holds the session fixtures (FixtureDefs) that are set up."""
    for name in ("skip", "skipif", "xfail"):
        if item.get_closest_marker(name) is not None:
            return f"the mark {name}"
    for hook in HOOKS:
        for implementation in getattr(item.ihook, hook).get_hookimpls():
            file = getattr(implementation.plugin, "__file__", None)
            if file and Path(file).name == "conftest.py":
                return f"the hook {hook} in {file}"
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", None)
    if definitions is None:
        return "this version of pytest does not say which fixtures apply"
    for name in item.fixturenames:
        for definition in definitions.get(name, ()):  # all of them: an override may ask for the one it hides
            if reason := _fixture_stands_between(name, definition, live):
                return reason
    return None


def is_replaced(attempt: Attempt, fixture: str) -> bool:
    """Whether the item's fixture of this name is somebody else's, and does not ask for the one it hides."""
    item = attempt if isinstance(attempt, AttemptItem) else attempt.item
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).get(fixture, ())
    if not definitions or getattr(definitions[-1].func, "__module__", None) == OUR_FIXTURES:
        return False
    return fixture not in definitions[-1].argnames


def _fixture_stands_between(name: str, definition: Any, live: set[Any]) -> str | None:
    module = getattr(definition.func, "__module__", "?")
    # An override of ours is what the attempt must run with, whatever its scope; ahead it would get the standard one.
    overrides = name in OURS and module != OUR_FIXTURES
    if module == OUR_FIXTURES or module in HARMLESS or module.startswith("_pytest."):
        return None
    code = getattr(definition.func, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code else module
    if overrides or definition.scope != "session":
        return f"the {definition.scope} fixture {name} ({place})"
    if definition.params:
        return f"the parametrised fixture {name} ({place})"
    if definition not in live:
        return f"the session fixture {name} ({place}) {NOT_YET}"
    return None


class Ahead:
    """One per session that runs attempts in this process."""

    def __init__(self, state: State, items: list[AttemptItem], *, at_turn_only: bool) -> None:
        self._state = state
        self._maxfail = state.config.getoption("maxfail") or 0
        self._failed = 0
        self._waiting = [] if at_turn_only else rounds(items)
        self._pumped_at = -1
        self._parent = os.getppid()
        self._workspaces: dict[Attempt, Workspace] = {}
        self.live: set[Any] = set()
        self.at_start: Callable[[], None] | None = None
        self.reasons: dict[AttemptItem, str] = {}
        """Why items ran at their turn, for those that did not run ahead."""
        self.pool: Pool[AttemptRecord] = Pool(state.settings.workers)

    def before_item(self) -> None:
        """An item is about to begin, and no set-up has changed the process yet."""
        self.start()
        self.pump()

    def start(self) -> None:
        """Do once what must wait for pytest's own loop, which begins with no failure known."""
        first, self.at_start = self.at_start, None
        if first is not None:
            first()

    def pump(self) -> None:
        """Submit what may start. Call it in the main thread at moments when no function-scoped fixture is active:
        what is seen of the process then is clean."""
        if not self._waiting or self._pumped_at == len(self.live):
            return
        env, rest = dict(os.environ), []
        for item in self._waiting:
            reason = why_not_ahead(item, self.live)
            if reason is None:
                self._submit(item, self._plan(item, env), own_workspace=True)
            elif reason.endswith(NOT_YET):
                rest.append(item)  # the only reason that goes away: asking again for the others would be quadratic
            else:
                self.reasons[item] = reason
        self._waiting, self._pumped_at = rest, len(self.live)

    def may_pump_in_call(self, item: pytest.Item) -> bool:
        """Whether the item's own fixtures leave the process clean while it is called."""
        return isinstance(item, AttemptItem) and (item in self.pool or why_not_ahead(item, self.live) is None)

    @contextmanager
    def workspace(self, item: Attempt) -> Iterator[Workspace]:
        """The workspace of an item that is being set up: made and removed here unless its attempt runs ahead."""
        if item in self.pool:
            yield self._workspaces[item]
            return
        workspace = Workspace.at(self._plan(item, dict(os.environ)).root)
        create(workspace)
        try:
            yield workspace
        finally:
            remove(workspace.root)

    def take(self, item: AttemptItem, workspace: Workspace, harness: Harness, judge: Judge) -> AttemptRecord:
        """The record of an item whose turn has come: of the attempt that ran ahead, or of one that runs now.

        In a pool thread too: the main thread only ever waits, so Ctrl-C always finds it.
        """
        if self._state.listener.stops:
            raise self._left(item)
        if item not in self.pool:
            self._waiting = [other for other in self._waiting if other is not item]
            plan = self._plan(item, dict(os.environ))
            if not isinstance(workspace, Workspace):
                harness, workspace = _broken("caliper_workspace", workspace, "a Workspace"), Workspace.at(plan.root)
            elif not callable(harness):
                harness = _broken("caliper_harness", harness, "a function")
            elif not callable(judge):
                harness = _broken("caliper_judge", judge, "a function")  # before the agent is paid for
            self._submit(item, plan, workspace=workspace, harness=harness, judge=judge, first=True)
        return self.record(item)

    def begin(self, item: Attempt, plan: AttemptPlan, workspace: Workspace, harness: Harness, judge: Judge) -> None:
        """Run an attempt that the test itself began: at once, as soon as a place is free."""
        if self._state.listener.stops:
            raise self._left(item)
        for fixture, value in (("caliper_harness", harness), ("caliper_judge", judge)):
            if not callable(value):
                raise TypeError(f"the fixture {fixture} gave {value!r}, not a function")
        self._submit(item, plan, workspace=workspace, harness=harness, judge=judge, first=True)

    def wait(self, item: Attempt, until: Callable[[], bool]) -> bool:
        """Wait until an attempt that began has ended, or `until` holds. -> whether it has ended."""
        try:
            return self.pool.wait(item, until, self._while_waiting)
        except Stopped:
            raise self._left(item) from None

    @property
    def cancelled(self) -> bool:
        """Whether what runs is being stopped."""
        return self._state.listener.stops or self._state.runtime.processes.cancelled

    def record(self, item: Attempt) -> AttemptRecord:
        """The record of an attempt that has begun or waits. Raises pytest.skip.Exception when there will be none."""
        try:
            record = self.pool.result(item, self._while_waiting)
        except Refused as refused:
            if self._state.session is not None:
                self._state.session.refused(item.key, str(refused))
            item.stash[REFUSED] = str(refused)
            raise pytest.skip.Exception(str(refused)) from None
        except (Cancelled, Stopped):
            raise self._left(item) from None
        self._workspaces.pop(item, None)
        return record

    def _left(self, item: Attempt) -> BaseException:
        """What the test of an attempt that was cut short comes to."""
        if self._state.listener.stops:
            item.session.shouldstop = "the xdist controller stops the session"
            self.close()  # before the fixtures of the item are torn down
        return pytest.skip.Exception("the session stopped before this attempt ended")

    def _while_waiting(self) -> None:
        """An xdist worker whose controller was killed would finish its attempt, at the user's cost, for nobody."""
        if self._state.listener.stops:
            raise Stopped
        if self._state.worker is not None and os.getppid() != self._parent:
            raise KeyboardInterrupt("the controller of this worker is gone")

    def plan(self, item: Attempt) -> AttemptPlan:
        """The plan of an attempt in the environment as it is now."""
        return self._plan(item, dict(os.environ))

    def _plan(self, item: Attempt, env: Mapping[str, str]) -> AttemptPlan:
        return self._state.runtime.plan(item.plan, item.key, env)

    def _submit(
        self,
        item: Attempt,
        plan: AttemptPlan,
        *,
        workspace: Workspace | None = None,
        harness: Harness | None = None,
        judge: Judge | None = None,
        own_workspace: bool = False,
        first: bool = False,
    ) -> None:
        where = workspace or Workspace.at(plan.root)
        self._workspaces[item] = where

        def work() -> AttemptRecord:
            self._begin(plan.key)
            try:
                record = self._run(item, plan, where, harness, judge)
            except BaseException:
                self._state.stopping.cancelled(plan.key)
                raise
            finally:
                if own_workspace:
                    remove(where.root)
            self._note(record)
            return record

        group = (plan.key.spec, plan.key.task_id) if item.plan.shares_paths(plan.task) else None
        self.pool.submit(item, work, group=group, first=first)

    def _run(
        self, item: Attempt, plan: AttemptPlan, where: Workspace, harness: Harness | None, judge: Judge | None
    ) -> AttemptRecord:
        return self._state.runtime.run(item.plan, plan, where, harness, judge)

    def _begin(self, key: AttemptKey) -> None:
        """Raises Refused when the session begins no such attempt any more."""
        if (reason := self._state.stopping.begins(key)) is not None:
            raise Refused(reason)

    def _note(self, record: AttemptRecord) -> None:
        """Keep the record the moment it exists, and begin nothing more when the session will stop for it."""
        if self._state.session is not None:
            self._state.session.finished(record)
        failed = record.outcome in {"task_fail", "cheat"} and record.key.arm == "skill"
        if failed and self._state.bars.tolerates(record.key) is None:
            self._failed += 1
        if record.fatal or (self._maxfail and self._failed >= self._maxfail):
            self.pool.pause()

    def close(self) -> None:
        """Stop what runs, within seconds; a second Ctrl-C makes it at once."""
        self.pool.stop()
        processes = self._state.runtime.processes
        processes.cancel_all()
        try:
            clean = self.pool.join(3.5)
        except BaseException:
            processes.cancel_all(now=True)
            self.pool.join(1.0)
            raise
        if not clean:
            processes.cancel_all(now=True)
            self.pool.join(1.0)


def _broken(fixture: str, value: object, wanted: str) -> Harness:
    """A harness that says what is wrong with a fixture of somebody's."""

    def fail(plan: AttemptPlan, workspace: Workspace) -> HarnessResult:  # noqa: ARG001
        raise TypeError(f"the fixture {fixture} gave {value!r}, not {wanted}")

    return fail
