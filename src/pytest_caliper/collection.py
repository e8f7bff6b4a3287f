"""`.eval.yaml` -> SpecFile -> TaskNode -> AttemptItem: the tree that pytest, its plugins and IDEs see.

Public node classes only, no callspec and no originalname: why is told in docs/decisions/0001-attempts-are-nodes.md.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.contracts import Harness, Judge, Workspace
from pytest_caliper.runs.records import AttemptKey, AttemptRecord
from pytest_caliper.spec.model import SpecError, Task
from pytest_caliper.spec.names import node_name
from pytest_caliper.state import ATTEMPT, RECORD, state_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.testing.items import FunctionAttempt

    Attempt: TypeAlias = "AttemptItem | FunctionAttempt"
    """An attempt as everything behind collection sees it."""


class AttemptFailed(AssertionError):
    """The agent had its chance and failed: `task_fail` or `cheat`. Its text is what the FAILURES section shows."""

    def __init__(self, record: AttemptRecord, text: str) -> None:
        super().__init__(text)
        self.record = record


class BarMissed(AssertionError):
    """A task does not reach its bar, or nobody can tell. Its text is what the FAILURES section shows."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class SpecFile(pytest.Module):
    """A spec. Its module object is empty: fixtures of module scope and `request.module` need one."""

    plan: SpecPlan

    @classmethod
    def from_parent(cls, parent: pytest.Collector, *, path: Path) -> SpecFile:  # type: ignore[override]
        # pytest gives files outside the rootdir ids that other files have too, down to the empty one: theirs begin with the path.
        nodeid = None if path.is_relative_to(parent.config.rootpath) else path.as_posix()
        self: SpecFile = super().from_parent(parent, path=path, nodeid=nodeid)
        module = types.ModuleType("caliper_spec_" + re.sub(r"\W", "_", path.name))
        module.__file__ = str(path)
        self.obj = module
        return self

    def collect(self) -> Iterator[TaskNode]:
        """One node per task. A mistake in the spec is a collection error with all mistakes, a line each."""
        try:
            self.plan = state_of(self.config).open_spec(self.path)
        except SpecError as error:
            lines = "\n".join(f"{self._shown(d.path)}:{d.line}: {d.message}" for d in error.diagnostics)
            raise self.CollectError(lines) from None
        for task in self.plan.spec.tasks:
            yield TaskNode.from_parent(self, task=task)

    def _shown(self, path: Path) -> str:
        """`path` as the user typed or sees it: relative to the rootdir where it is below it."""
        try:
            return str(path.relative_to(self.config.rootpath))
        except ValueError:
            return str(path)


class _NoClass(type):
    """A class that is false: pytest would take the first fixture of an attempt for the `self` of a true one, and plugins such as
    pytest-asyncio before 1.1 keep things on the class of a node, which None does not let them."""

    def __bool__(cls) -> bool:
        return False


class TaskNode(pytest.Class):
    """A task. It stands where a class stands, so class scope means "per task"; no Python class is behind it."""

    task: Task
    plan: SpecPlan

    @classmethod
    def from_parent(cls, parent: SpecFile, *, task: Task) -> TaskNode:  # type: ignore[override]
        self: TaskNode = super().from_parent(parent, name=node_name(task.name, task.task_id))
        self.task, self.plan = task, parent.plan
        self.obj = _NoClass("NoClass", (), {"__doc__": None})
        return self

    def newinstance(self) -> None:
        """There is nothing to make an instance of."""

    def collect(self) -> Iterator[AttemptItem | BarItem]:
        """The attempts of each arm, attempt 1 of both arms first, then the bar, if there is one; or the grader check's trials."""
        if state_of(self.config).settings.check:
            from pytest_caliper.checking.items import checks_of

            yield from checks_of(self)
            return
        for key in self.plan.keys(self.task):
            yield AttemptItem.from_parent(self, key=key)
        if self.plan.bar(self.task) is not None:
            yield BarItem.from_parent(self)


class AttemptItem(pytest.Function):
    """One attempt in one arm: `attempt-2` with the skill, `baseline-2` without it."""

    key: AttemptKey
    task: Task
    plan: SpecPlan

    @classmethod
    def from_parent(cls, parent: TaskNode, *, key: AttemptKey) -> AttemptItem:  # type: ignore[override]
        word = "attempt" if key.arm == "skill" else "baseline"
        self: AttemptItem = super().from_parent(parent, name=f"{word}-{key.attempt}", callobj=run_attempt)
        self.key, self.task, self.plan = key, parent.task, parent.plan
        return self

    def reportinfo(self) -> tuple[Path, int, str]:
        """The task's line; the domain ends in `.attempt-2`, which is what IDEs show."""
        parent = self.parent
        return self.path, self.task.line, f"{parent.name if parent else ''}.{self.name}"

    @property
    def location_text(self) -> str:
        """`path/x.eval.yaml:8`, the form that editors and CI logs turn into a link."""
        path, line, _ = self.location
        return f"{path}:{(line or 0) + 1}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002
        """An attempt's failure as people need it; anything else as pytest shows it."""
        if isinstance(excinfo.value, AttemptFailed):
            from pytest_caliper.reports import failure_representation

            return failure_representation(self, excinfo.value.record, excinfo)
        return super().repr_failure(excinfo)


class BarItem(pytest.Item):
    """The verdict over a task's attempts. It asks for no fixture: nothing is set up for it."""

    task: Task
    plan: SpecPlan
    fixturenames: list[str]
    funcargs: dict[str, object]
    """None of either; other people's hooks look at them (pytest-benchmark 5.0 ends the session where there is no `funcargs`)."""

    @classmethod
    def from_parent(cls, parent: TaskNode) -> BarItem:  # type: ignore[override]
        self: BarItem = super().from_parent(parent, name="bar")
        self.task, self.plan = parent.task, parent.plan
        self.fixturenames, self.funcargs = [], {}
        return self

    def reportinfo(self) -> tuple[Path, int, str]:
        """The task's line; the domain ends in `.bar`."""
        parent = self.parent
        return self.path, self.task.line, f"{parent.name if parent else ''}.{self.name}"

    def runtest(self) -> None:
        """Judge what ran in this session."""
        from pytest_caliper.bars import run_bar

        run_bar(self)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002
        """A missed bar as people need it; anything else as pytest shows it."""
        if isinstance(excinfo.value, BarMissed):
            from pytest_caliper.bars import missed_representation

            return missed_representation(self.plan, self.task, excinfo)
        return super().repr_failure(excinfo)


def attempt_of(item: pytest.Item) -> Attempt | None:
    """The attempt that an item is: of a spec, or of a test in Python; None for any other item."""
    return item if isinstance(item, AttemptItem) else item.stash.get(ATTEMPT, None)


def run_attempt(
    request: pytest.FixtureRequest,
    caliper_workspace: Workspace,
    caliper_harness: Harness,
    caliper_judge: Judge,
) -> None:
    """The body of every attempt: take or make its record, then pass, fail or skip by its outcome."""
    item = request.node
    record = state_of(request.config).take(item, caliper_workspace, caliper_harness, caliper_judge)
    item.stash[RECORD] = record
    if not record.usable:
        from pytest_caliper.reports import shown_reason

        pytest.skip(shown_reason(record))
    if record.outcome != "pass" and record.key.arm == "skill":
        from pytest_caliper.reports import failure_text

        raise AttemptFailed(record, failure_text(item, record))
