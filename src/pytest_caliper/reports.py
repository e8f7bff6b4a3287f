"""What an attempt's record means in pytest's own words: report, status, failure text; and its way to the session."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_caliper.collection import BarItem, attempt_of
from pytest_caliper.reporting.failures import render_failure
from pytest_caliper.reporting.junit import properties
from pytest_caliper.reporting.text import inert_in_logs, one_line
from pytest_caliper.runs.records import AttemptKey, AttemptRecord
from pytest_caliper.state import ATTEMPT, HEARTBEAT, RECORD, REFUSED, state_of
from pytest_caliper.terminal import style_of

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.session import Session
    from pytest_caliper.spec.model import Task


class Attempted(Protocol):
    """What a report needs of an attempt: its item has it, and so has `resuming.Known` where there is no item."""

    @property
    def config(self) -> pytest.Config: ...
    @property
    def plan(self) -> SpecPlan: ...
    @property
    def task(self) -> Task: ...
    @property
    def key(self) -> AttemptKey: ...
    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str: ...
    @property
    def location_text(self) -> str: ...


class Gathering:
    """Plugin object on the controller: takes the records off the reports, whichever process made them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._begun: dict[str, float] = {}

    def running(self) -> list[tuple[str, float]]:
        """(node id, seconds so far) of the items that xdist workers run now."""
        now = time.monotonic()
        return [(nodeid, now - begun) for nodeid, begun in list(self._begun.items())]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """An item begins, here or in a worker."""
        self._begun[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """An item has ended."""
        self._begun.pop(nodeid, None)
        bars = state_of(self._session.config).bars
        # Without xdist the bars of specs are items that judge at their turn.
        bars.announce(self._session, nodeid, all_kinds=self._session.config.pluginmanager.has_plugin("dsession"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One record per report of an attempt's call phase."""
        heartbeat = self._session.config.stash.get(HEARTBEAT, None)
        if heartbeat is not None:
            heartbeat.reported()
        if (withdrawn := vars(report).pop("caliper_withdrawn", None)) is not None:
            self._withdraw(report.nodeid, AttemptKey(**json.loads(withdrawn)))
        text = getattr(report, "caliper", None)
        if text is None or report.when != "call":
            return
        record = AttemptRecord.from_json(json.loads(text))
        if (distribution := self._session.config.pluginmanager.get_plugin("caliper-distribution")) is not None:
            record = distribution.arrived(report, record)
        if (skills := vars(report).pop("caliper_skills", None)) is not None:
            self._session.learn(record.key, json.loads(skills))
        del report.caliper  # pytest keeps its reports to the end
        self._session.reported(record)
        if record.fatal is not None:
            self._stop(one_line(f"no attempt can work: {record.fatal}"))

    def _withdraw(self, nodeid: str, key: AttemptKey) -> None:
        distribution = self._session.config.pluginmanager.get_plugin("caliper-distribution")
        known = None if distribution is None else distribution.key_of(nodeid)  # a worker elsewhere has another path
        self._session.withdrawn(known or key)

    def _stop(self, reason: str) -> None:
        """End the run loop after this report, here or on the xdist controller."""
        manager = self._session.config.pluginmanager
        for name in ("session", "dsession"):
            if (running := manager.get_plugin(name)) is not None:
                running.shouldstop = reason


def tell(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the record of an item that has run on its report."""
    refused, attempt = item.stash.get(REFUSED, None), attempt_of(item)
    if refused is not None and attempt is not None:
        tell_refused(attempt, refused, report)
    if isinstance(item, BarItem) and report.skipped:
        report.longrepr = (str(item.path), item.task.line + 1, report.longrepr[2])  # type: ignore[index]
    record = item.stash.get(RECORD, None)
    if record is not None and attempt is not None:
        state = state_of(item.config)
        if state.worker is not None and not state.runtime.shares_files:
            from pytest_caliper.running.carrying import pack

            record = pack(report, record)
        if (test := item.stash.get(ATTEMPT, None)) is not None:
            if report.failed:
                report.sections.append(("caliper", failure_text(attempt, record)))  # beside the test's own traceback
            if test.named and state.worker is not None:
                report.caliper_skills = json.dumps(test.named)  # type: ignore[attr-defined]
        tell_of(attempt, record, report)
        item.user_properties += report.user_properties[len(item.user_properties) :]  # those of the teardown go into JUnit files


def tell_withdrawn(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put on the report of a test's set-up that its attempt is not to be made: a mark or a fixture skips the test."""
    report.caliper_withdrawn = json.dumps(asdict(item.stash[ATTEMPT].key))  # type: ignore[attr-defined]


def make_sections_inert(item: pytest.Item, report: pytest.TestReport) -> None:
    """What was captured while an attempt ran may be an agent's words: none of it is a command to who reads the log."""
    if attempt_of(item) is not None:
        report.sections = [(title, inert_in_logs(text)) for title, text in report.sections]


def tell_refused(item: Attempted, reason: str, report: pytest.TestReport) -> None:
    """Make the report that of an attempt which was not let begin."""
    report.outcome = "skipped"
    report.longrepr = (str(item.path), item.task.line + 1, f"Skipped: {_unwrappable(reason)}")
    report.caliper_outcome = "aborted"  # type: ignore[attr-defined]


def tell_of(item: Attempted, record: AttemptRecord, report: pytest.TestReport) -> None:
    """Put the record on the report as one ASCII string (that is what crosses processes), and map its outcome."""
    report.caliper = json.dumps(record.to_json(), ensure_ascii=True, allow_nan=False)  # type: ignore[attr-defined]
    report.caliper_outcome = record.outcome  # type: ignore[attr-defined]
    report.duration = record.wall_seconds
    report.start, report.stop = record.started, record.started + record.wall_seconds
    engine = item.plan.engine(state_of(item.config).backends)
    report.user_properties += properties(record, engine=str(engine))
    line = item.task.line + 1
    if not record.usable:
        if not report.failed:  # a test in Python that broke is shown as it broke
            report.longrepr = (str(item.path), line, f"Skipped: {shown_reason(record)}")
    elif record.key.arm == "baseline":
        failed = record.outcome != "pass"
        report.wasxfail = f"baseline, without the skill: {record.outcome}"
        report.outcome = "skipped" if failed else "passed"
    elif record.outcome != "pass" and (tolerated := state_of(item.config).bars.tolerates(record.key)) is not None:
        report.wasxfail = f"{tolerated} ({shown_reason(record)})"
        report.outcome = "skipped"


def status(report: pytest.TestReport, outcome: str) -> tuple[str, str, Any] | None:
    """pytest's own categories with our letters and words; None leaves it to pytest."""
    if outcome == "cheat" and report.outcome == "failed":
        return "failed", "c", ("CHEAT", {"red": True})
    if outcome == "aborted":
        return "skipped", "a", ("ABORTED", {"yellow": True})
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        return "skipped", "u", (f"UNUSABLE({outcome})", {"yellow": True})
    return None


def shown_reason(record: AttemptRecord) -> str:
    """Outcome and reason on one line without a control character: pytest prints it as it is, and copies it into JUnit files."""
    reason = _unwrappable(one_line(record.reason or ""))
    return reason if record.outcome == "task_fail" else f"{record.outcome}: {reason}"


def _unwrappable(reason: str) -> str:
    """At `-vv` pytest wraps reasons into lines of its own: on GitHub none of them may begin with a workflow command."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return reason
    return re.sub(r"::(?=[A-Za-z])", r"\\x3a:", reason)


def failure_text(item: Attempted, record: AttemptRecord) -> str:
    """What the FAILURES section shows of a failed attempt."""
    from dataclasses import replace

    return render_failure(
        record,
        location=item.location_text,
        expect=item.task.expect,
        transcript=_where_the_transcript_lies(item),
        style=replace(style_of(item.config), color=False),
    )


def failure_representation(item: Attempted, record: AttemptRecord, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
    """pytest's representation of the failure with the spec's line and a one-line reason, for summaries and annotations.

    Changed in place: a replaced `reprcrash` would leave the chain, which xdist sends, with the old one.
    """
    representation: Any = excinfo.getrepr(style="value")
    representation.reprcrash.path = str(item.path)
    representation.reprcrash.lineno = item.task.line + 1
    representation.reprcrash.message = shown_reason(record)
    return representation


def _where_the_transcript_lies(item: Attempted) -> str:
    shown = os.path.relpath(item.plan.results, item.config.invocation_params.dir)
    shown = str(item.plan.results) if shown.startswith("..") else shown
    return f"in the run file below {shown}, {item.key.task_id}, {item.name}"
