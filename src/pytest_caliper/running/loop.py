"""Around pytest's run loop: preflight before it, the pool beside it, and nothing left running after it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_caliper.attempt.redaction import Redactor
from pytest_caliper.collection import AttemptItem
from pytest_caliper.contracts import Engine, EngineError
from pytest_caliper.options import spec_part
from pytest_caliper.reports import Gathering
from pytest_caliper.running.ahead import Ahead, is_replaced
from pytest_caliper.running.heartbeat import Heartbeat
from pytest_caliper.running.preflight import NOTHING, Unharnessed, check
from pytest_caliper.selection import collected_specs
from pytest_caliper.spec.env_refs import references
from pytest_caliper.spec.model import SpecError
from pytest_caliper.spec.names import node_name
from pytest_caliper.state import HEARTBEAT, State, state_of
from pytest_caliper.terminal import shows_progress

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.runs.records import AttemptKey


@contextmanager
def attempts(session: pytest.Session) -> Iterator[None]:
    """Everything that attempts need, for as long as the loop runs. Raises pytest.UsageError before anything is paid for."""
    config = session.config
    option = config.option
    failed = session.testsfailed and not config.getoption("continue_on_collection_errors")
    items = collected_specs(session)
    is_controller = config.pluginmanager.has_plugin("dsession")
    if failed or is_controller or not items or option.collectonly or getattr(option, "setuponly", False):
        yield
        return
    state = state_of(config)
    with ExitStack() as stack:
        stack.callback(state.close)
        if state.worker is None:
            plans = {item.plan: None for item in items}
            prepare(state, list(plans), [item.key for item in items], overridden(items))
        at_turn_only = state.worker is not None or option.usepdb or getattr(option, "trace", False)
        ahead = state.ahead = Ahead(state, items, at_turn_only=at_turn_only)
        stack.callback(ahead.close)
        stack.enter_context(terminable())
        if state.worker is None:
            stack.enter_context(_heartbeat(config, _running_of(ahead)))
        yield


def controller_saw(config: pytest.Config, ids: Sequence[str]) -> None:
    """An xdist worker told what it collected; the first one is enough. Raises pytest.UsageError before anything runs."""
    state = state_of(config)
    if state.session is None or state.session.expected or not state.opted_in:
        return
    if config.getoption("dist", None) == "each":
        raise pytest.UsageError("--dist each would pay for every attempt once per worker: use --dist load, or leave -n out")
    stack = ExitStack()
    stack.enter_context(terminable())
    gathering = config.pluginmanager.get_plugin("caliper-session")
    if isinstance(gathering, Gathering):
        stack.enter_context(_heartbeat(config, gathering.running))
    config.add_cleanup(stack.close)
    known = _keys_by_nodeid(config, state, ids)
    keys = [known[nodeid] for nodeid in ids if nodeid in known]
    prepare(state, [plan for path, plan in state.specs.items() if any(key.spec == str(path) for key in keys)], keys)
    state.runtime.share_places()


def prepare(state: State, plans: Sequence[SpecPlan], keys: list[AttemptKey], unharnessed: Unharnessed = NOTHING) -> None:
    """Preflight, then say what will run. Raises pytest.UsageError with the remedies."""
    if state.session is None:
        return
    if state.settings.output is not None and len(plans) > 1:
        raise pytest.UsageError("--caliper-output names one file, but several specs were selected; use --caliper-results DIR")
    try:
        engines: Mapping[SpecPlan, tuple[Engine, Engine]] = {plan: state.runtime.engines(plan) for plan in plans}
        found = check(engines, keys, state.runtime, unharnessed)
    except EngineError as error:
        state.close()
        names = (reference.name for plan in plans for reference in references(plan.spec))
        text = Redactor.from_environment(os.environ, names, {state.config.rootpath: "."}).redact(str(error))
        raise pytest.UsageError(text) from None
    state.session.notes += [str(warning) for plan in plans for warning in plan.warnings]
    state.session.notes += [
        f"{plan.spec.path.name}: there is no skill to leave out, so there is no baseline" for plan in plans if plan.lacks_baseline
    ]
    state.session.notes += found.notes
    _say(state.config, found.lines)
    state.session.expect(engines, keys)


def _keys_by_nodeid(config: pytest.Config, state: State, ids: Sequence[str]) -> dict[str, AttemptKey]:
    """Node id -> attempt, for all attempts of the specs that the ids name."""
    known: dict[str, AttemptKey] = {}
    for prefix in dict.fromkeys(filter(None, map(spec_part, ids))):
        try:
            plan = state.open_spec(config.rootpath / prefix)
        except SpecError:
            continue  # the workers report it as a collection error
        for task in plan.spec.tasks:
            for key in plan.keys(task):
                word = "attempt" if key.arm == "skill" else "baseline"
                known[f"{prefix}::{node_name(task.name, task.task_id)}::{word}-{key.attempt}"] = key
    return known


def _say(config: pytest.Config, lines: Sequence[str]) -> None:
    """What preflight found, before the first attempt."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and config.get_verbosity() >= 0:
        for line in lines:
            reporter.write_line(f"caliper: {line}")


def overridden(items: Sequence[AttemptItem]) -> Unharnessed:
    """The attempts that run without our agent or judge: their conftest brings its own and does not ask for ours."""
    return Unharnessed(
        agent=frozenset(item.key for item in items if is_replaced(item, "caliper_harness")),
        judge=frozenset(item.key for item in items if is_replaced(item, "caliper_judge")),
    )


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM (an IDE's stop button, a cancelled CI job) ends the session as Ctrl-C does, unless somebody handles it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminated(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt("SIGTERM")

    signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _heartbeat(config: pytest.Config, running: Callable[[], list[tuple[str, float]]]) -> Iterator[None]:
    """Speaks where no terminal shows progress, or when asked to be verbose."""
    if config.get_verbosity() < 0 or (shows_progress(config) and config.get_verbosity() < 1):
        yield
        return
    heartbeat = config.stash[HEARTBEAT] = Heartbeat(running)
    try:
        yield
    finally:
        heartbeat.close()


def _running_of(ahead: Ahead) -> Callable[[], list[tuple[str, float]]]:
    begun: dict[AttemptItem, float] = {}

    def running() -> list[tuple[str, float]]:
        now = time.monotonic()
        items = [item for item in ahead.pool.running if isinstance(item, AttemptItem)]
        return [(item.nodeid, now - begun.setdefault(item, now)) for item in items]

    return running
