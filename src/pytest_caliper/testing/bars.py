"""The bars of tests in Python. They have no items: an IDE that asked for one by its id would find nothing to collect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pytest

from pytest_caliper.announcing import expect_more
from pytest_caliper.running.resuming import spec_nodeid
from pytest_caliper.state import state_of

if TYPE_CHECKING:
    from pytest_caliper.runs.records import AttemptKey
    from pytest_caliper.spec.model import Task
    from pytest_caliper.testing.items import FunctionAttempt
    from pytest_caliper.testing.planning import FilePlan


def select_bars(config: pytest.Config, attempts: Iterable[FunctionAttempt]) -> None:
    """Have the bars of the selected tests decide; on the controller, where verdicts are announced."""
    tests: dict[tuple[str, str], list[FunctionAttempt]] = {}
    for attempt in attempts:
        tests.setdefault((attempt.key.spec, attempt.key.task_id), []).append(attempt)
    for members in tests.values():
        if any(attempt.key.arm == "skill" for attempt in members):
            _select(config, members[0].plan, members[0].task, [attempt.nodeid for attempt in members])


def expect_bars(session: pytest.Session) -> None:
    """Count the verdicts among the tests, once pytest has counted its items."""
    if count := state_of(session.config).bars.without_items:
        expect_more(session, count)


def select_told_bars(config: pytest.Config, plan: FilePlan, selected: Mapping[str, AttemptKey]) -> None:
    """The same for a file that an xdist worker told of; `selected` are its attempts by node id."""
    for task in plan.spec.tasks:
        mine = {nodeid: key for nodeid, key in selected.items() if key.task_id == task.task_id}
        session = config.pluginmanager.get_plugin("session")
        if any(key.arm == "skill" for key in mine.values()) and _select(config, plan, task, mine) and session is not None:
            expect_more(session, 1)


def _select(config: pytest.Config, plan: FilePlan, task: Task, nodeids: Iterable[str]) -> bool:
    nodeid = f"{spec_nodeid(config, plan.spec.path)}::{plan.bar_name(task)}"
    return plan.bar(task) is not None and state_of(config).bars.select_test(plan, task, nodeid, nodeids)
