"""All plugins in one environment: the lowest release of everything that we allow, and the newest."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from environments import Box, available, dependencies, oldest, python_of, versions_in
from measured_suite import Done, check_whole
from other_plugins import PLUGINS, Plugin

pytestmark = pytest.mark.matrix

TOGETHER = {name: plugin for name, plugin in PLUGINS.items() if not plugin.alone}
BOXES = ("lowest", "newest")


def box(name: str) -> Box:
    """Everything at its lowest on the oldest Python of this machine, or at its newest on the newest."""
    if name == "lowest":
        return Box(name, oldest(), tuple(f"{one.project}=={one.lowest}" for one in PLUGINS.values()), lowest=True)
    return Box(name, available()[-1], tuple(one.project for one in PLUGINS.values()))


def check(done: Done, plugins: dict[str, Plugin]) -> None:
    more = {nodeid: one for plugin in plugins.values() for nodeid, one in plugin.more.items()}
    check_whole(done, more, tuple(start for plugin in plugins.values() for start in plugin.outside))
    for plugin in plugins.values():
        plugin.check(done)


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["", "xdist"])
def test_attempts_are_what_they_are_among_all_plugins(name: str, workers: tuple[str, ...], session: Callable[..., Done]) -> None:
    done = session(box(name), TOGETHER, *workers)
    check(done, TOGETHER)
    assert done.has_workers == bool(workers)


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("alone", ["retry", "split"])
def test_plugins_that_exclude_others(name: str, alone: str, session: Callable[..., Done]) -> None:
    plugins = {alone: PLUGINS[alone]}
    check(session(box(name), plugins), plugins)


def test_the_lowest_box_holds_the_lowest_of_our_own_requirements() -> None:
    """So that the lower bounds of pyproject.toml are true."""
    lowest = box("lowest")
    found = versions_in(python_of(lowest))
    for requirement in dependencies():
        name, least = re.match(r"([A-Za-z0-9-]+)>=([0-9.]+)", requirement).groups()
        if name == "tomli" and lowest.python != "3.10":
            continue
        whole = tuple(int(part) for part in found[name.lower()].split("."))
        assert whole[: least.count(".") + 1] == tuple(int(part) for part in least.split(".")), (requirement, found[name.lower()])
    assert {name: found[plugin.project] for name, plugin in PLUGINS.items()} == {
        name: one.lowest for name, one in PLUGINS.items()
    }
