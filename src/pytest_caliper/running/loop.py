"""Around pytest's run loop: preflight before it, the pool beside it, and nothing left running after it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.announcing import expect_more
from pytest_caliper.attempt.redaction import Redactor
from pytest_caliper.contracts import Engine, EngineError
from pytest_caliper.options import spec_part
from pytest_caliper.reports import Gathering
from pytest_caliper.running.ahead import NOT_YET, Ahead, is_replaced, why_not_ahead
from pytest_caliper.running.estimate import tell_beforehand
from pytest_caliper.running.heartbeat import Heartbeat, short_line
from pytest_caliper.running.preflight import NOTHING, Unharnessed, check
from pytest_caliper.running.progress import Progress, Running
from pytest_caliper.running.resuming import report_known, spec_nodeid
from pytest_caliper.running.status_line import can_show, status_line
from pytest_caliper.selection import collected_specs, collected_tests
from pytest_caliper.spec.env_refs import references
from pytest_caliper.spec.model import SpecError
from pytest_caliper.spec.names import node_name
from pytest_caliper.state import HEARTBEAT, State, state_of
from pytest_caliper.terminal import say, shows_progress, style_of

if TYPE_CHECKING:
    from pytest_caliper.collection import Attempt, AttemptItem
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.runs.records import AttemptKey


@contextmanager
def attempts(session: pytest.Session) -> Iterator[None]:
    """Everything that attempts need, for as long as the loop runs. Raises pytest.UsageError before anything is paid for."""
    config = session.config
    option = config.option
    failed = session.testsfailed and not config.getoption("continue_on_collection_errors")
    items, tests = collected_specs(session), collected_tests(session)
    everything: list[Attempt] = [*items, *tests]
    is_controller = config.pluginmanager.has_plugin("dsession")
    state = state_of(config)
    resumed = _resumed(state)
    idle = option.collectonly or getattr(option, "setuponly", False)
    if failed or is_controller or not (everything or resumed) or idle:
        yield
        return
    with ExitStack() as stack:
        stack.callback(state.close)
        if state.worker is None:
            plans = {item.plan: None for item in everything} | dict.fromkeys(resumed)
            if state.settings.check:
                prepare_checks(state, [(item.plan, item.key) for item in items], overridden(items).judge)
            else:
                if tests:
                    from pytest_caliper.testing.bars import expect_bars

                    expect_bars(session)
                keys, alone = [item.key for item in everything], one_by_one(items, tests)
                prepare(state, list(plans), keys, overridden(everything), alone)
        at_turn_only = state.worker is not None or option.usepdb or getattr(option, "trace", False)
        ahead = state.ahead = _kind_of_ahead(state)(state, items, at_turn_only=at_turn_only)
        stack.callback(ahead.close)
        stack.enter_context(terminable())
        if state.worker is None:
            stack.enter_context(_progress(state, _running_of(ahead)))
            ahead.at_start = lambda: announce_known(state, session)
        yield
        ahead.start()  # where no item was left to run


def _kind_of_ahead(state: State) -> type[Ahead]:
    if not state.settings.check:
        return Ahead
    from pytest_caliper.checking.loop import Checks

    return Checks


def _resume_bars(state: State) -> None:
    """The bars that were to decide when a run began decide when it is resumed, though only what is missing may be selected."""
    session = state.config.pluginmanager.get_plugin("session")
    for plan in _resumed(state):
        unfinished = None if state.resuming is None else state.resuming.find(plan)
        for task in plan.spec.tasks if unfinished is not None else ():
            nodeid = f"{spec_nodeid(state.config, plan.spec.path)}::{plan.bar_name(task)}"
            known = unfinished is not None and task.task_id in unfinished.bars
            if known and state.bars.select_without_item(plan, task, nodeid) and session is not None:
                expect_more(session, 1)


def _resumed(state: State) -> list[SpecPlan]:
    """The specs whose earlier run goes on in this session; on the controller."""
    return [] if state.resuming is None else list(state.resuming.plans.values())


def announce_known(state: State, session: pytest.Session) -> None:
    """Report what earlier sessions measured. Raises pytest.Session.Failed when `-x` or `--maxfail` ends the session there."""
    if state.session is None or state.resuming is None:
        return
    known = list(state.session.known())
    expect_more(session, sum(len(records) for _, records in known))
    for plan, records in known:
        report_known(state.config, plan, records)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)


def controller_saw(config: pytest.Config, ids: Sequence[str]) -> None:
    """An xdist worker told what it collected; the first one is enough. Raises pytest.UsageError before anything runs."""
    state = state_of(config)
    seen = state.session is None or state.session.expected or config.pluginmanager.has_plugin("caliper-check")
    if seen or not state.opted_in:
        return
    if config.getoption("dist", None) == "each":
        raise pytest.UsageError("--dist each would pay for every attempt once per worker: use --dist load, or leave -n out")
    stack = ExitStack()
    stack.enter_context(terminable())
    gathering = config.pluginmanager.get_plugin("caliper-session")
    if isinstance(gathering, Gathering):
        stack.enter_context(_progress(state, _running_in_workers(state, gathering)))
    config.add_cleanup(stack.close)
    if state.settings.check:
        from pytest_caliper.checking.loop import keys_of

        prepare_checks(state, list(keys_of(state, ids, config.rootpath).values()))
        state.runtime.share_places()
        return
    if state.distribution is not None:
        state.distribution.collected = len(ids)
    known = _keys_by_nodeid(config, state, ids)
    if state.distribution is not None and (told := state.distribution.tests_told) is not None:
        known |= _tests_by_nodeid(state, told, ids)
    keys = [known[nodeid] for nodeid in ids if nodeid in known]
    _select_bars(config, state, ids)
    if state.distribution is not None:
        state.distribution.learn(known, state.specs)
    resumed = _resumed(state)
    prepare(state, [p for path, p in state.specs.items() if p in resumed or any(key.spec == str(path) for key in keys)], keys)
    state.runtime.share_places()
    if (session := config.pluginmanager.get_plugin("session")) is not None:
        announce_known(state, session)


def prepare(
    state: State,
    plans: Sequence[SpecPlan],
    keys: list[AttemptKey],
    unharnessed: Unharnessed = NOTHING,
    alone: Collection[AttemptKey] = frozenset(),
) -> None:
    """Preflight, then say what will run, and about how long. Raises pytest.UsageError with the remedies.

    `alone` are the attempts that run one after another.
    """
    if state.session is None:
        return
    if state.settings.output is not None and len(plans) > 1 and not state.settings.output_is_directory:
        raise pytest.UsageError("--caliper-output names one file, but several specs were selected; use --caliper-results DIR")
    with _refusing(state, plans):
        engines: Mapping[SpecPlan, tuple[Engine, Engine]] = {plan: state.runtime.engines(plan) for plan in plans}
        if state.baselines is not None:
            state.baselines.check(plans)
        _resume_bars(state)
        try:
            state.session.expect(engines, keys, state.resuming)
            found = check(engines, keys, state.runtime, unharnessed)
        except BaseException:
            state.session.forget()  # nothing has begun, so there is no run to tell of
            raise
    state.session.notes += [str(warning) for plan in plans for warning in plan.warnings]
    state.session.notes += [
        f"{plan.spec.path.name}: there is no skill to leave out, so there is no baseline" for plan in plans if plan.lacks_baseline
    ]
    state.session.notes += found.notes
    if state.config.getoption("splits", None):
        state.session.notes.append("pytest-split cuts through the attempts of a task; --caliper-shard I/N keeps them together")
    decided = [line for plan in plans if state.baselines is not None and (line := state.baselines.line(plan)) is not None]
    hopeless = state.bars.hopeless(state.session)
    state.session.notes += [*decided, *hopeless]
    beforehand = tell_beforehand(state, engines, keys, one_by_one=alone, unjudged=unharnessed.judge)
    say(state.config, [*found.lines, *decided, *hopeless, *beforehand])
    state.session.open()
    state.session.sound_alarms()


def prepare_checks(
    state: State, wanted: Sequence[tuple[SpecPlan, AttemptKey]], replaced: frozenset[AttemptKey] = frozenset()
) -> None:
    """As `prepare`, for what `--caliper-check` tries; `replaced` are the trials that do not ask our judge."""
    from pytest_caliper.checking.loop import prepare as prepare_trials

    with _refusing(state, [plan for plan, _ in wanted]):
        prepare_trials(state, wanted, replaced)


@contextmanager
def _refusing(state: State, plans: Sequence[SpecPlan]) -> Iterator[None]:
    """Tell in pytest's way what is missing, without a secret."""
    try:
        yield
    except EngineError as error:
        state.close()
        names = (reference.name for plan in plans for reference in references(plan.spec))
        text = Redactor.from_environment(os.environ, names, {state.config.rootpath: "."}).redact(str(error))
        raise pytest.UsageError(text) from None


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
    for nodeid in ids:  # --dist loadgroup of older versions puts `@group` behind
        if nodeid not in known and (bare := nodeid.rpartition("@")[0]) in known:
            known[nodeid] = known[bare]
    return known


def _tests_by_nodeid(state: State, told: str, ids: Sequence[str]) -> dict[str, AttemptKey]:
    """Node id -> attempt, for the tests in Python that a worker told of; their bars decide. Raises pytest.UsageError."""
    from pytest_caliper.testing.bars import select_told_bars
    from pytest_caliper.testing.manifest import plans_from

    known: dict[str, AttemptKey] = {}
    collected = {nodeid: nodeid for nodeid in ids} | {nodeid.rpartition("@")[0]: nodeid for nodeid in ids if "@" in nodeid}
    for plan in plans_from(state, told):
        state.specs[plan.spec.path] = plan
        mine = {collected[place.nodeid]: key for key, place in plan.places.items() if place.nodeid in collected}
        known |= mine
        select_told_bars(state.config, plan, mine)
    return known


def _select_bars(config: pytest.Config, state: State, ids: Sequence[str]) -> None:
    """Have those bars decide whose items the workers collected."""
    parts = (nodeid.rpartition("::") for nodeid in ids)
    selected = {task for task, _, name in parts if name.partition("@")[0] == "bar"}  # --dist loadgroup adds `@group`
    for prefix in dict.fromkeys(filter(None, map(spec_part, ids))):
        plan = state.specs.get(config.rootpath / prefix)
        for task in () if plan is None else plan.spec.tasks:
            nodeid = f"{prefix}::{node_name(task.name, task.task_id)}"
            if plan is not None and nodeid in selected:
                state.bars.select(plan, task, f"{nodeid}::bar")


def overridden(items: Sequence[Attempt]) -> Unharnessed:
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


def one_by_one(items: Sequence[AttemptItem], tests: Sequence[Attempt]) -> frozenset[AttemptKey]:
    """The attempts that never run ahead of their turn: tests in Python, and items that somebody's fixture or hook applies to."""
    reasons = {item.key: why_not_ahead(item, set()) for item in items}
    waiting = [key for key, reason in reasons.items() if reason is not None and not reason.endswith(NOT_YET)]
    return frozenset([*waiting, *(test.key for test in tests)])


@contextmanager
def _progress(state: State, running: Callable[[], list[Running]]) -> Iterator[None]:
    """Says how far the session is: on a terminal in a line that comes and goes, in logs when nothing was reported for a while."""
    config, progress = state.config, Progress(state, running)

    def named() -> list[tuple[str, float]]:
        return [(one.nodeid, one.seconds) for one in running()]

    if can_show(config):
        with status_line(config, lambda: short_line(named(), progress.rest()), unicode=style_of(config).unicode):
            yield
        return
    in_ci = bool(os.environ.get("CI"))  # some give their jobs a terminal
    if config.get_verbosity() < 0 or (shows_progress(config) and config.get_verbosity() < 1 and not in_ci):
        yield
        return
    heartbeat = config.stash[HEARTBEAT] = Heartbeat(named, progress.rest)
    try:
        yield
    finally:
        heartbeat.close()


def _running_of(ahead: Ahead) -> Callable[[], list[Running]]:
    def running() -> list[Running]:
        under_way: dict[Any, float] = dict(ahead.pool.running_for)
        return [
            Running(nodeid=item.nodeid, seconds=seconds, key=item.key)
            for item, seconds in under_way.items()
            if hasattr(item, "nodeid")
        ]

    return running


def _running_in_workers(state: State, gathering: Gathering) -> Callable[[], list[Running]]:
    def running() -> list[Running]:
        known = state.distribution
        return [
            Running(nodeid=nodeid, seconds=seconds, key=None if known is None else known.key_of(nodeid))
            for nodeid, seconds in gathering.running()
        ]

    return running
