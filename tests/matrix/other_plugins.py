"""The plugins that pytest-caliper is tried with: the one table. docs/running.md is held to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import plugin_checks as check
from measured_suite import FAIL, PASS, Done


@dataclass(frozen=True)
class Plugin:
    """One plugin, how it is switched on, what it adds to the suite, and what must hold."""

    project: str
    """Its name in the package index."""
    lowest: str
    """The oldest release that is tried: with pytest 8.4.0, on Python 3.10."""
    why: str
    """Why none older."""
    check: Callable[[Done], None]
    options: tuple[str, ...] = ()
    ini: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    """Lines that the ini file needs wherever the plugin is installed, so that it does not warn by itself."""
    filters: tuple[str, ...] = ()
    """Warnings that are its own fault. All others are errors."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    """The tests that `files` add, and their outcomes; empty where `outside` names them."""
    outside: tuple[str, ...] = ()
    """Beginnings of ids whose reports are not one per test."""
    alone: bool = False
    """It does not go together with another plugin of the table."""


FLAKY = """
from pathlib import Path


def test_flaky():
    tries = Path(__file__).with_suffix(".tries")
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    assert len(tries.read_text()) == 3
"""

SLOW = """
import time


def test_slow():
    time.sleep(30)
"""

ASYNCIO = """
import asyncio


async def test_on_asyncio():
    await asyncio.sleep(0)
"""

ANYIO = """
import anyio
import pytest


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.anyio
async def test_on_anyio():
    await anyio.sleep(0)
"""

PROPERTY = """
from hypothesis import given, settings, strategies as st

import shop


@settings(database=None, max_examples=20, deadline=None)
@given(st.lists(st.integers()))
def test_property(prices):
    assert shop.total(prices + [1]) == shop.total(prices) + 1
"""

BENCHMARK = """
import shop


def test_is_fast(benchmark):
    assert benchmark.pedantic(shop.total, args=([1, 2],), rounds=3) == 3
"""

SNAPSHOT = """
import shop


def test_snapshot(snapshot):
    assert shop.total([1, 2]) == snapshot
"""

KEPT = """# serializer version: 1
# name: test_snapshot
  3
# ---
"""

PLUGINS: Mapping[str, Plugin] = {
    "xdist": Plugin("pytest-xdist", "3.6.1", "what pytest-caliper requires", check.spread, options=("-n", "2"), alone=True),
    "html": Plugin(
        "pytest-html",
        "4.0.0",
        "3.x does not know pytest's reports since 8",
        check.html,
        options=("--html=report.html", "--self-contained-html"),
    ),
    "json-report": Plugin(
        "pytest-json-report",
        "1.5.0",
        "older ones end in an internal error on reports that pytest-xdist makes itself",
        check.json_report,
        options=("--json-report", "--json-report-file=report.json"),
    ),
    "reportlog": Plugin(
        "pytest-reportlog", "0.3.0", "older ones were not tried", check.reportlog, options=("--report-log=report.jsonl",)
    ),
    "cov": Plugin(
        "pytest-cov", "5.0.0", "older ones were not tried", check.cov, options=("--cov=shop", "--cov-report=json:coverage.json")
    ),
    "timeout": Plugin(
        "pytest-timeout",
        "2.2.0",
        "older ones were not tried",
        check.timeout,
        options=("--timeout=2.5",),
        files={"test_slow.py": SLOW},
        more={"test_slow.py::test_slow": FAIL},
    ),
    "randomly": Plugin("pytest-randomly", "3.15.0", "older ones were not tried", check.randomly),
    "rerunfailures": Plugin(
        "pytest-rerunfailures",
        "14.0",
        "older ones were not tried",
        check.rerunfailures,
        options=(
            "--reruns=2",
            "--only-rerun=AssertionError",
        ),  # it would try a test anew that pytest-timeout has ended, and not time it
        files={"test_flaky.py": FLAKY},
        more={"test_flaky.py::test_flaky": PASS},
    ),
    "retry": Plugin(
        "pytest-retry",
        "1.6.3",
        "older ones were not tried",
        check.retry,
        options=("--retries=2",),
        files={"test_flaky.py": FLAKY},
        outside=("test_flaky.py", "test_unit.py::test_fails"),
        filters=("ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning",),  # it leaves one open
        alone=True,
    ),
    "split": Plugin(
        "pytest-split", "0.8.2", "older ones were not tried", check.split, options=("--splits=1", "--group=1"), alone=True
    ),
    "sugar": Plugin("pytest-sugar", "1.0.0", "older ones were not tried", check.sugar, options=("--force-sugar",)),
    "asyncio": Plugin(
        "pytest-asyncio",
        "0.24.0",
        "older ones were not tried",
        check.nothing_more,
        ini=("asyncio_mode = auto",),
        always=("asyncio_default_fixture_loop_scope = function",),
        files={"test_asyncio.py": ASYNCIO},
        more={"test_asyncio.py::test_on_asyncio": PASS},
    ),
    "anyio": Plugin(
        "anyio",
        "4.4.0",
        "older ones were not tried",
        check.nothing_more,
        files={"test_anyio.py": ANYIO},
        more={"test_anyio.py::test_on_anyio": PASS},
    ),
    "hypothesis": Plugin(
        "hypothesis",
        "6.100.0",
        "older ones were not tried",
        check.nothing_more,
        options=("--hypothesis-seed=1",),
        files={"test_property.py": PROPERTY},
        more={"test_property.py::test_property": PASS},
    ),
    "allure": Plugin("allure-pytest", "2.13.5", "older ones were not tried", check.allure, options=("--alluredir=allure",)),
    "github-actions-annotate-failures": Plugin(
        "pytest-github-actions-annotate-failures",
        "0.2.0",
        "older ones were not tried",
        check.annotations,
        env={"GITHUB_ACTIONS": "true"},
    ),
    "benchmark": Plugin(
        "pytest-benchmark",
        "5.0.0",
        "older ones were not tried",
        check.benchmark,
        filters=("ignore:Benchmarks are automatically disabled",),  # 5.0 warns of workers; they measure none
        options=("--benchmark-enable", "--benchmark-json=benchmark.json"),
        files={"test_benchmark.py": BENCHMARK},
        more={"test_benchmark.py::test_is_fast": PASS},
    ),
    "syrupy": Plugin(
        "syrupy",
        "4.6.1",
        "older ones were not tried",
        check.syrupy,
        files={"test_snapshot.py": SNAPSHOT, "__snapshots__/test_snapshot.ambr": KEPT},
        more={"test_snapshot.py::test_snapshot": PASS},
    ),
}
