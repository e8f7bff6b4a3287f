"""Which attempts run, and in which order pytest sees them."""

from __future__ import annotations

import pytest

from pytest_caliper.collection import AttemptItem
from pytest_caliper.runs.records import AttemptKey
from pytest_caliper.state import UNOPENED, state_of


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out attempts that nobody opted in to, put the others in rounds, and keep plugins that rerun away from them."""
    state = state_of(config)
    attempts = [item for item in items if isinstance(item, AttemptItem)]
    if not state.opted_in and not config.getoption("collectonly"):
        for item in attempts:
            config.stash[UNOPENED][item.key.spec] = None
        if attempts:
            items[:] = [item for item in items if not isinstance(item, AttemptItem)]
            config.hook.pytest_deselected(items=attempts)
        return
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
    items.sort(key=lambda item: isinstance(item, AttemptItem))
    for item in items:
        if isinstance(item, AttemptItem):
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


def run_once(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """pytest's own protocol for an attempt, before plugins that would rerun it: that would turn a rate into best-of-n."""
    if not isinstance(item, AttemptItem):
        return None
    from _pytest.runner import runtestprotocol  # what those plugins call as well; there is no public name for it

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _neutralise_other_plugins(config: pytest.Config, item: AttemptItem) -> None:
    """pytest-timeout would measure the wait for the pool, and end the process with some of its methods."""
    if config.pluginmanager.has_plugin("timeout"):
        item.add_marker(pytest.mark.timeout(0))


def collected_specs(session: pytest.Session) -> list[AttemptItem]:
    """The selected attempts, in pytest's order."""
    return [item for item in session.items if isinstance(item, AttemptItem)]
