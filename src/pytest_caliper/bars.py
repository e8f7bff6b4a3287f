"""Bars: the verdict over a task's attempts, reported as one more test, `::bar`.

Without xdist the item judges at its turn, after the attempts of its spec. Under xdist the workers run it silently, and the
controller announces the verdict as soon as the task's attempts were reported: only it knows them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_caliper.announcing import announce
from pytest_caliper.collection import BarItem, BarMissed
from pytest_caliper.reporting.bars import bar_reason, bar_text, hopeless, share
from pytest_caliper.scoring import judge_bar
from pytest_caliper.spec.names import node_name

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.runs.records import AttemptKey
    from pytest_caliper.session import Session
    from pytest_caliper.spec.model import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Deciding:
    """A bar that decides in this session."""

    plan: SpecPlan
    task: Task
    nodeid: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What a bar's report says."""

    outcome: Literal["passed", "failed", "skipped"]
    reason: str
    """One line."""
    text: str
    """For the FAILURES section."""


class Bars:
    """The bars of a process's session: those whose items are selected."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._deciding: dict[tuple[str, str], Deciding] = {}
        self._places: dict[str, tuple[str, str]] = {}
        """Node id of a task -> the key of its bar."""
        self._judged: set[tuple[str, str]] = set()
        self._without_item: set[tuple[str, str]] = set()
        self._of_tests: set[tuple[str, str]] = set()

    def select(self, plan: SpecPlan, task: Task, nodeid: str) -> None:
        """Have the bar of a task decide; doing it again changes nothing."""
        place = (str(plan.spec.path), task.task_id)
        self._deciding.setdefault(place, Deciding(plan=plan, task=task, nodeid=nodeid))
        self._places[nodeid.rpartition("::")[0]] = place

    def deciding(self, spec: str) -> list[str]:
        """Task ids of a spec whose bars decide."""
        return [task_id for path, task_id in self._deciding if path == spec]

    def select_without_item(self, plan: SpecPlan, task: Task, nodeid: str) -> bool:
        """Have the bar of a task decide that is part of a resumed run, whatever is selected now. -> whether it did not yet."""
        place = (str(plan.spec.path), task.task_id)
        if place in self._deciding or plan.bar(task) is None:
            return False
        self.select(plan, task, nodeid)
        self._without_item.add(place)
        return True

    def select_test(self, plan: SpecPlan, task: Task, nodeid: str, attempts: Iterable[str]) -> bool:
        """Have the bar of a test in Python decide; `attempts` are the node ids of its items. -> whether it did not yet."""
        place = (str(plan.spec.path), task.task_id)
        self._places.update(dict.fromkeys(attempts, place))
        self._of_tests.add(place)
        return self.select_without_item(plan, task, nodeid)

    @property
    def without_items(self) -> int:
        """How many of them have no item, so that nobody has counted them."""
        return len(self._without_item)

    def tolerates(self, key: AttemptKey) -> str | None:
        """Why a failing attempt does not fail, where a bar decides instead."""
        deciding = self._deciding.get((key.spec, key.task_id))
        bar = None if deciding is None or key.arm == "baseline" else deciding.plan.bar(deciding.task)
        return None if bar is None else f"tolerated: the bar of {share(bar.rate)} decides"

    def hopeless(self, session: Session) -> list[str]:
        """Which bars so few attempts cannot clear, whatever comes of them: a sentence each, before anybody pays."""
        said = []
        for (spec, task_id), deciding in self._deciding.items():
            keys, _ = session.with_the_skill(spec, task_id)
            bar = deciding.plan.bar(deciding.task)
            if keys and bar is not None and bar.policy == "lower" and (why := hopeless(bar.rate, len(keys))) is not None:
                said.append(f"{_shown(self._config, deciding.plan)}: {why}")
        return list(dict.fromkeys(said))

    def judge(self, session: Session, plan: SpecPlan, task: Task, *, alone: bool) -> Judgement:
        """Judge a task's bar by what ran in this session. `alone`: nothing but bars was selected."""
        spec = str(plan.spec.path)
        self._judged.add((spec, task.task_id))
        keys, records = session.with_the_skill(spec, task.task_id)
        path = _shown(self._config, plan)
        asked = plan.bar(task)
        if not keys or asked is None:
            whole = f"{path}::{node_name(task.name, task.task_id)}"
            reason = f"no attempt was selected with the bar; select the whole task: {whole}"
            alone = alone or bool(self._config.getoption("lf", False))  # a skipped test is no last failure any more
            return Judgement(outcome="failed" if alone else "skipped", reason=reason, text=f"{path}:{task.line + 1}: {reason}")
        verdict = judge_bar(
            sum(record.outcome == "pass" for record in records),
            sum(record.usable for record in records),
            len(keys),
            asked.rate,
            asked.policy,
            min_coverage=asked.min_coverage,
        )
        reason = bar_reason(verdict)
        k = plan.k_of(task)
        text = bar_text(verdict, location=f"{path}:{task.line + 1}", selected_of=k if len(keys) < k else None)
        return Judgement(outcome="passed" if verdict.reached else "failed", reason=reason, text=text)

    def announce(self, session: Session, ended: str, *, all_kinds: bool) -> None:
        """Report the bar of the attempt that ended, by its node id, when it was the task's last.

        `all_kinds`: not only of tests in Python, whose bars have no items.
        """
        place = self._places.get(ended) or self._places.get(ended.rpartition("::")[0])
        if place is None or not (all_kinds or place in self._of_tests):
            return
        if place not in self._judged and session.all_reported(*place):
            self._announce(session, self._deciding[place])

    def announce_rest(self, session: Session, *, without_item: bool) -> None:
        """At the end, report the bars that are left: of tasks whose attempts did not all report, or that have no item here."""
        for place, deciding in self._deciding.items():
            if place not in self._judged and (place in self._without_item or not without_item):
                self._announce(session, deciding)

    def unjudged(self, spec: str) -> list[str]:
        """Names of the tasks of a spec whose bars were not reached."""
        left = [deciding for place, deciding in self._deciding.items() if place not in self._judged]
        return [deciding.task.name for deciding in left if str(deciding.plan.spec.path) == spec]

    def _announce(self, session: Session, deciding: Deciding) -> None:
        plan, task = deciding.plan, deciding.task
        judgement = self.judge(session, plan, task, alone=not session.expected)
        domain = f"{node_name(task.name, task.task_id)}.bar"
        longrepr: Any = None
        if judgement.outcome == "failed":
            try:
                raise BarMissed(judgement.reason, judgement.text)
            except BarMissed:
                longrepr = missed_representation(plan, task, pytest.ExceptionInfo.from_current())
        elif judgement.outcome == "skipped":
            longrepr = (str(plan.spec.path), task.line + 1, f"Skipped: {judgement.reason}")
        announce(
            self._config,
            nodeid=deciding.nodeid,
            location=(_shown(self._config, plan), task.line, domain),
            outcome=judgement.outcome,
            longrepr=longrepr,
        )
        manager = self._config.pluginmanager
        main, dsession = manager.get_plugin("session"), manager.get_plugin("dsession")
        if main is not None and main.shouldfail and dsession is not None and not dsession.shouldstop:
            dsession.shouldstop = main.shouldfail  # xdist counts the reports of its workers only


def run_bar(item: BarItem) -> None:
    """The body of a bar's item. In an xdist worker nothing: the controller announces the verdict."""
    from pytest_caliper.state import state_of

    state = state_of(item.config)
    if state.session is None:
        return
    alone = all(isinstance(other, BarItem) for other in item.session.items)
    judgement = state.bars.judge(state.session, item.plan, item.task, alone=alone)
    if judgement.outcome == "skipped":
        pytest.skip(judgement.reason)
    if judgement.outcome == "failed":
        raise BarMissed(judgement.reason, judgement.text)


def _shown(config: pytest.Config, plan: SpecPlan) -> str:
    """The spec's path as pytest has it in locations."""
    from _pytest.pathlib import bestrelpath

    return bestrelpath(config.rootpath, plan.spec.path)


def missed_representation(plan: SpecPlan, task: Task, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
    """pytest's representation of a missed bar with the spec's line and a one-line reason, for summaries and annotations."""
    representation: Any = excinfo.getrepr(style="value")
    representation.reprcrash.path = str(plan.spec.path)
    representation.reprcrash.lineno = task.line + 1
    if isinstance(excinfo.value, BarMissed):
        representation.reprcrash.message = excinfo.value.reason
    return representation
