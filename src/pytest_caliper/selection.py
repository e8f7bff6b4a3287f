"""Which attempts run, and in which order pytest sees them."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

import pytest

from pytest_caliper.collection import AttemptItem, BarItem, attempt_of
from pytest_caliper.running.allure import leave_out_of_allure
from pytest_caliper.running.editors import shows_a_task_once
from pytest_caliper.running.idle import IdleItem
from pytest_caliper.runs.records import AttemptKey
from pytest_caliper.state import ATTEMPT, RECORD, TESTS, UNOPENED, State, state_of

if TYPE_CHECKING:
    from pytest_caliper.collection import Attempt
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.testing.items import FunctionAttempt


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out attempts that nobody opted in to, put the others in rounds, and keep plugins that rerun away from them."""
    state = state_of(config)
    if TESTS in config.stash:
        _adopt_tests(config, state, items)
    if not state.opted_in and not config.getoption("collectonly"):
        attempts = [item for item in items if isinstance(item, AttemptItem)]
        for item in attempts:
            config.stash[UNOPENED][item.key.spec] = None
        if attempts:
            ours = [item for item in items if isinstance(item, (AttemptItem, BarItem))]
            items[:] = [item for item in items if not isinstance(item, (AttemptItem, BarItem))]
            config.hook.pytest_deselected(items=ours)
        return
    if state.cut is not None:
        from pytest_caliper.running.sharding import leave_other_shards

        leave_other_shards(config, items, state.cut)
    found = {item: attempt for item in items if (attempt := attempt_of(item)) is not None}
    for one in found:
        _neutralise_other_plugins(config, one)
    order = {item: n for n, item in enumerate(items)}
    spec = {path: n for n, path in enumerate(dict.fromkeys(attempt.key.spec for attempt in found.values()))}
    by_task = shows_a_task_once()
    turn = {item: 0 if by_task else attempt.key.attempt for item, attempt in found.items()}
    rounds = iter(sorted(found, key=lambda item: (spec[found[item].key.spec], turn[item], order[item])))
    items[:] = [next(rounds) if item in found else item for item in items]


def _adopt_tests(config: pytest.Config, state: State, items: list[pytest.Item]) -> None:
    """Make attempts of the tests that ask for `caliper`; without an opt-in, and where only checks are tried, leave them out."""
    from pytest_caliper.testing.items import adopt, is_ours, leave_out

    if not state.opted_in:
        leave_out(config, items)
    elif state.settings.check:
        ours = [item for item in items if is_ours(item)]
        items[:] = [item for item in items if not is_ours(item)]
        config.hook.pytest_deselected(items=ours)
    if state.opted_in or config.getoption("collectonly"):
        adopt(state, items)


def specs_last(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Other tests first: a failing unit test under `-x` then costs nothing. Otherwise the order stays.

    By now every plugin has had its say: marks that ask for reruns go, see `run_once`, and so does an attempt's second item
    (`--keep-duplicates`), which would run in the same directory.
    """
    _once_each(config, items)
    _leave_known(config, items)
    bars = _take_bars(config, items)
    items.sort(key=lambda item: attempt_of(item) is not None)
    items[:] = _with_bars(items, bars)
    _select_bars_of_tests(config, items)
    for item in items:
        if isinstance(item, BarItem) or attempt_of(item) is not None:
            item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "flaky"]


def _once_each(config: pytest.Config, items: list[pytest.Item]) -> None:
    first: dict[AttemptKey, int] = {}
    again = []
    for n, item in enumerate(items):
        if (attempt := attempt_of(item)) is not None and first.setdefault(attempt.key, n) != n:
            again.append(n)
    if again:
        gone = [items[n] for n in again]
        items[:] = [item for n, item in enumerate(items) if n not in set(again)]
        config.hook.pytest_deselected(items=gone)


def _leave_known(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the attempts that an earlier session of the same run has made: the controller reports them, see `resuming`."""
    state = state_of(config)
    if config.getoption("collectonly") or not (state.settings.resume or state.settings.resume_from):
        return
    found = {item: attempt for item in items if (attempt := attempt_of(item)) is not None}
    known = {plan: state.known_before(plan) for plan in dict.fromkeys(attempt.plan for attempt in found.values())}
    anew = [item for item, attempt in found.items() if known[attempt.plan] is None]
    if anew and state.worker is None and all(keys is None for keys in known.values()):
        specs = ", ".join(dict.fromkeys(os.path.relpath(item.path, config.invocation_params.dir) for item in anew))
        raise pytest.UsageError(f"--caliper-resume: there is no unfinished run of {specs}; leave the option out to start one")
    if anew:
        config.hook.pytest_deselected(items=anew)
        for plan in dict.fromkeys(found[item].plan for item in anew):
            state.left_out(plan)
    items[:] = [item for item in items if item not in found or _is_missing(found[item], known[found[item].plan])]


def _select_bars_of_tests(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have the bars decide that tests in Python ask for. Their verdicts are announced: no IDE can ask for an item of them."""
    if TESTS not in config.stash or config.getoption("collectonly"):
        return
    from pytest_caliper.testing.bars import select_bars

    select_bars(config, [attempt for item in items if (attempt := item.stash.get(ATTEMPT, None)) is not None])


def _take_bars(config: pytest.Config, items: list[pytest.Item]) -> list[BarItem]:
    """Take the bars out and have them decide; those whose attempts a shard or a resumed run leaves out go for good."""
    state = state_of(config)
    bars = list({(item.plan, item.task.task_id): item for item in items if isinstance(item, BarItem)}.values())
    if not bars:
        return []
    items[:] = [item for item in items if not isinstance(item, BarItem)]
    cut = state.cut is not None or bool(state.settings.resume or state.settings.resume_from)
    if cut and not config.getoption("collectonly"):
        here = {(item.plan, item.key.task_id) for item in items if isinstance(item, AttemptItem)}  # only specs have items of bars
        gone = [bar for bar in bars if (bar.plan, bar.task.task_id) not in here and not _is_known(config, bar)]
        if gone:
            config.hook.pytest_deselected(items=gone)
            bars = [bar for bar in bars if bar not in gone]
    for bar in bars:
        state.bars.select(bar.plan, bar.task, bar.nodeid)
    return bars


def _is_known(config: pytest.Config, bar: BarItem) -> bool:
    """Whether an earlier session of the same run made attempts of the bar's task."""
    state = state_of(config)
    resumes = state.settings.resume or state.settings.resume_from
    return bool(resumes) and any(key.task_id == bar.task.task_id for key in state.known_before(bar.plan) or ())


def _with_bars(items: list[pytest.Item], bars: list[BarItem]) -> list[pytest.Item]:
    """The items with the bars of each spec behind its last attempt, or each bar behind its task's: see `editors`."""
    by_task = shows_a_task_once()

    def place(item: AttemptItem | BarItem) -> tuple[SpecPlan, str]:
        return item.plan, item.task.task_id if by_task else ""

    last = {place(item): n for n, item in enumerate(items) if isinstance(item, AttemptItem)}
    out: list[pytest.Item] = []
    for n, item in enumerate(items):
        out.append(item)
        if isinstance(item, AttemptItem) and last[place(item)] == n:
            out += [bar for bar in bars if place(bar) == place(item)]
    return out + [bar for bar in bars if place(bar) not in last]


def bars_behind(items: list[pytest.Item]) -> None:
    """Put the bars of each spec behind its last attempt, whoever has moved them."""
    bars = [item for item in items if isinstance(item, BarItem)]
    if bars:
        items[:] = _with_bars([item for item in items if not isinstance(item, BarItem)], bars)


def _is_missing(item: Attempt, known: Collection[AttemptKey] | None) -> bool:
    """Whether the attempt belongs to an unfinished run, which does not have it."""
    return known is not None and item.key not in known


def run_once(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """pytest's own protocol for an attempt, before plugins that would rerun it: that would turn a rate into best-of-n."""
    if isinstance(item, IdleItem):
        leave_out_of_allure(item)
        return True
    if isinstance(item, BarItem) and state_of(item.config).worker is not None:
        from _pytest.runner import runtestprotocol

        runtestprotocol(item, log=False, nextitem=nextitem)  # it tells nothing, but leaves no set-up of others behind
        leave_out_of_allure(item)
        return True
    attempt = attempt_of(item)
    if attempt is None and not isinstance(item, BarItem):
        return None
    if attempt is not None and state_of(item.config).listener.leaves_out(item.nodeid, attempt.key.pair):
        return True
    from _pytest.runner import runtestprotocol  # what those plugins call as well; there is no public name for it

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=nextitem)
    if RECORD in item.stash:
        del item.stash[RECORD]  # pytest keeps its items to the end
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _neutralise_other_plugins(config: pytest.Config, item: pytest.Item) -> None:
    """pytest-timeout would measure the wait for the pool, and end the process with some of its methods."""
    if config.pluginmanager.has_plugin("timeout"):
        item.add_marker(pytest.mark.timeout(0))


def collected_specs(session: pytest.Session) -> list[AttemptItem]:
    """The selected attempts of specs, in pytest's order."""
    return [item for item in session.items if isinstance(item, AttemptItem)]


def collected_tests(session: pytest.Session) -> list[FunctionAttempt]:
    """The selected attempts in Python, in pytest's order."""
    return [attempt for item in session.items if (attempt := item.stash.get(ATTEMPT, None)) is not None]
