"""Reports that no item of this process makes: attempts known from before, attempts that will not run, verdicts over a whole task.

pytest, its terminal, JUnit, IDEs and other plugins see them as they see any test. Only the controller announces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pytest

_MORE = pytest.StashKey[int]()
"""On the config: tests that are announced, not collected."""


def announce(
    config: pytest.Config,
    *,
    nodeid: str,
    location: tuple[str, int | None, str],
    outcome: Literal["passed", "failed", "skipped"],
    longrepr: Any = None,
    duration_s: float = 0.0,
    started: float | None = None,
    properties: Sequence[tuple[str, object]] = (),
    attributes: Mapping[str, Any] | None = None,
    finish: Callable[[pytest.TestReport], None] | None = None,
) -> None:
    """Report one test from its start to its end: what a set-up, a call and a teardown of an item would have reported.

    `longrepr` is as pytest has it: text (or a representation) of a failure, `(path, line, reason)` of a skip. `started` is in
    seconds since the epoch, now without one. `attributes` are set on the report of the call, which `finish` may then change.
    Call it in the main thread.
    """
    began = time.time() if started is None else started
    told = list(properties)
    config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for when in ("setup", "call", "teardown"):
        called = when == "call"
        report = pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome=outcome if called else "passed",
            longrepr=longrepr if called else None,
            when=when,
            duration=duration_s if called else 0.0,
            start=began,
            stop=began + duration_s,
            user_properties=[] if when == "setup" else told,
        )
        for name, value in (attributes or {}).items() if called else ():
            setattr(report, name, value)
        if called and finish is not None:
            finish(report)
            told = report.user_properties  # pytest's JUnit writer takes those of the teardown
        config.hook.pytest_runtest_logreport(report=report)
    config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)


def expect_more(session: pytest.Session, count: int) -> None:
    """Count tests that will be announced among the collected ones: progress is measured against them."""
    session.testscollected += count
    session.config.stash[_MORE] = session.config.stash.get(_MORE, 0) + count


def recount(session: pytest.Session, collected: int) -> None:
    """Say again how many tests there are: xdist forgets the announced ones whenever one of its workers has collected.

    `collected` is what a worker told, 0 when none has.
    """
    more = session.config.stash.get(_MORE, 0)
    if more and session.testscollected == collected:
        session.testscollected += more


def has_announced(config: pytest.Config) -> bool:
    """Whether tests were announced: then a session without a collected item is not one in which no test ran."""
    return config.stash.get(_MORE, 0) > 0
