"""The full matrix: each plugin alone at its lowest and newest, each pytest, each Python."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest
from environments import PYTHONS, REPOSITORY, Box, available, oldest, python_of, versions_in, wanted
from measured_suite import Done, check_whole
from other_plugins import PLUGINS

pytestmark = pytest.mark.matrix_full

XDIST = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["", "xdist"])
PYTESTS = ("8.4", "9.0", "9.1", "newest")
OURS = ("tests/plugin/test_attempts.py", "tests/plugin/test_contract.py", "tests/spec", "tests/reporting")


@XDIST
@pytest.mark.parametrize("bound", ["lowest", "newest"])
@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_alone(name: str, bound: str, workers: tuple[str, ...], session: Callable[..., Done]) -> None:
    plugin = PLUGINS[name]
    if name == "xdist" and workers:
        pytest.skip("it is what the other variant runs with")
    if bound == "lowest":
        box = Box(f"{name} lowest", oldest(), ("pytest==8.4.0", f"{plugin.project}=={plugin.lowest}"), lowest=True)
    else:
        box = Box(f"{name} newest", available()[-1], (plugin.project,))
    done = session(box, {name: plugin}, *workers)
    check_whole(done, plugin.more, plugin.outside)
    plugin.check(done)


def pytest_of(version: str) -> tuple[str, ...]:
    return () if version == "newest" else (f"pytest=={version}.*",)


@XDIST
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("version", PYTESTS)
def test_a_pytest_on_a_python(version: str, python: str, workers: tuple[str, ...], session: Callable[..., Done]) -> None:
    box = Box(f"pytest {version}, Python {python}", wanted(python), pytest_of(version))
    if version != "newest":
        assert versions_in(python_of(box))["pytest"].startswith(f"{version}.")
    check_whole(session(box, {}, *workers))


@pytest.mark.parametrize("version", PYTESTS)
def test_each_pytest_with_the_newest_plugins_that_take_it(version: str, session: Callable[..., Done]) -> None:
    together = {name: plugin for name, plugin in PLUGINS.items() if not plugin.alone}
    box = Box(f"pytest {version}, plugins", available()[-1], (*pytest_of(version), *(one.project for one in PLUGINS.values())))
    done = session(box, together)
    more = {nodeid: one for plugin in together.values() for nodeid, one in plugin.more.items()}
    check_whole(done, more, tuple(start for plugin in together.values() for start in plugin.outside))
    for plugin in together.values():
        plugin.check(done)


@pytest.mark.parametrize("bound", ["lowest", "newest"])
@pytest.mark.parametrize("python", PYTHONS)
def test_our_own_tests(python: str, bound: str) -> None:
    """The parts of our suite that need no agent CLI. The lowest requirements have wheels for the oldest Python alone."""
    if bound == "lowest" and python != PYTHONS[0]:
        pytest.skip(f"the lowest requirements are tried on Python {PYTHONS[0]}")
    lowest = bound == "lowest"
    box = Box(f"our tests, {bound}, Python {python}", wanted(python), ("hypothesis>=6.100", "markdown-it-py>=3"), lowest=lowest)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "VIRTUAL_ENV"))}
    command = [python_of(box), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not real_cli", *OURS]
    ended = subprocess.run(command, check=False, cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=1800)
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-5_000:]
