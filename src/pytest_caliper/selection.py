"""Which attempts run, and in which order pytest sees them."""

from __future__ import annotations

import os
from collections.abc import Collection

import pytest

from pytest_caliper.collection import AttemptItem, BarItem
from pytest_caliper.running.idle import IdleItem
from pytest_caliper.runs.records import AttemptKey
from pytest_caliper.state import RECORD, UNOPENED, state_of


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out attempts that nobody opted in to, put the others in rounds, and keep plugins that rerun away from them."""
    state = state_of(config)
    attempts = [item for item in items if isinstance(item, AttemptItem)]
    if not state.opted_in and not config.getoption("collectonly"):
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
        attempts = [item for item in items if isinstance(item, AttemptItem)]
    for item in attempts:
        _neutralise_other_plugins(config, item)
    order = {item: n for n, item in enumerate(items)}
    spec = {path: n for n, path in enumerate(dict.fromkeys(item.key.spec for item in attempts))}
    rounds = iter(sorted(attempts, key=lambda item: (spec[item.key.spec], item.key.attempt, order[item])))
    items[:] = [next(rounds) if isinstance(item, AttemptItem) else item for item in items]


def specs_last(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Other tests first: a failing unit test under `-x` then costs nothing. Otherwise the order stays.

    By now every plugin has had its say: marks that ask for reruns go, see `run_once`, and so does an attempt's second item
    (`--keep-duplicates`), which would run in the same directory.
    """
    _once_each(config, items)
    _leave_known(config, items)
    bars = _take_bars(config, items)
    items.sort(key=lambda item: isinstance(item, AttemptItem))
    items[:] = _with_bars(items, bars)
    for item in items:
        if isinstance(item, (AttemptItem, BarItem)):
            item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "flaky"]


def _once_each(config: pytest.Config, items: list[pytest.Item]) -> None:
    first: dict[AttemptKey, int] = {}
    for n, item in enumerate(items):
        if isinstance(item, AttemptItem):
            first.setdefault(item.key, n)
    again = [item for n, item in enumerate(items) if isinstance(item, AttemptItem) and first[item.key] != n]
    if again:
        items[:] = [item for n, item in enumerate(items) if not isinstance(item, AttemptItem) or first[item.key] == n]
        config.hook.pytest_deselected(items=again)


def _leave_known(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the attempts that an earlier session of the same run has made: the controller reports them, see `resuming`."""
    state = state_of(config)
    if config.getoption("collectonly") or not (state.settings.resume or state.settings.resume_from):
        return
    attempts = [item for item in items if isinstance(item, AttemptItem)]
    known = {item.plan: state.known_before(item.plan) for item in attempts}
    anew = [item for item in attempts if known[item.plan] is None]
    if anew and state.worker is None and all(keys is None for keys in known.values()):
        specs = ", ".join(dict.fromkeys(os.path.relpath(item.path, config.invocation_params.dir) for item in anew))
        raise pytest.UsageError(f"--caliper-resume: there is no unfinished run of {specs}; leave the option out to start one")
    if anew:
        config.hook.pytest_deselected(items=anew)
        for plan in dict.fromkeys(item.plan for item in anew):
            state.left_out(plan)
    items[:] = [item for item in items if not isinstance(item, AttemptItem) or _is_missing(item, known[item.plan])]


def _take_bars(config: pytest.Config, items: list[pytest.Item]) -> list[BarItem]:
    """Take the bars out and have them decide; those whose attempts a shard or a resumed run leaves out go for good."""
    state = state_of(config)
    bars = list({(item.plan, item.task.task_id): item for item in items if isinstance(item, BarItem)}.values())
    if not bars:
        return []
    items[:] = [item for item in items if not isinstance(item, BarItem)]
    cut = state.cut is not None or bool(state.settings.resume or state.settings.resume_from)
    if cut and not config.getoption("collectonly"):
        here = {(item.plan, item.key.task_id) for item in items if isinstance(item, AttemptItem)}
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
    """The items with the bars of each spec behind its last attempt."""
    last = {item.plan: n for n, item in enumerate(items) if isinstance(item, AttemptItem)}
    out: list[pytest.Item] = []
    for n, item in enumerate(items):
        out.append(item)
        if isinstance(item, AttemptItem) and last[item.plan] == n:
            out += [bar for bar in bars if bar.plan is item.plan]
    return out + [bar for bar in bars if bar.plan not in last]


def bars_behind(items: list[pytest.Item]) -> None:
    """Put the bars of each spec behind its last attempt, whoever has moved them."""
    bars = [item for item in items if isinstance(item, BarItem)]
    if bars:
        items[:] = _with_bars([item for item in items if not isinstance(item, BarItem)], bars)


def _is_missing(item: AttemptItem, known: Collection[AttemptKey] | None) -> bool:
    """Whether the attempt belongs to an unfinished run, which does not have it."""
    return known is not None and item.key not in known


def run_once(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """pytest's own protocol for an attempt, before plugins that would rerun it: that would turn a rate into best-of-n."""
    if isinstance(item, IdleItem):
        return True
    if isinstance(item, BarItem) and state_of(item.config).worker is not None:
        from _pytest.runner import runtestprotocol

        runtestprotocol(item, log=False, nextitem=nextitem)  # it tells nothing, but leaves no set-up of others behind
        return True
    if not isinstance(item, (AttemptItem, BarItem)):
        return None
    if state_of(item.config).listener.leaves_out(item.nodeid):
        return True
    from _pytest.runner import runtestprotocol  # what those plugins call as well; there is no public name for it

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=nextitem)
    if RECORD in item.stash:
        del item.stash[RECORD]  # pytest keeps its items to the end
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _neutralise_other_plugins(config: pytest.Config, item: AttemptItem) -> None:
    """pytest-timeout would measure the wait for the pool, and end the process with some of its methods."""
    if config.pluginmanager.has_plugin("timeout"):
        item.add_marker(pytest.mark.timeout(0))


def collected_specs(session: pytest.Session) -> list[AttemptItem]:
    """The selected attempts, in pytest's order."""
    return [item for item in session.items if isinstance(item, AttemptItem)]
