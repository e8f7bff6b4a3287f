"""What an attempt's record means in pytest's own words: report, status, failure text; and its way to the session."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.collection import AttemptItem
from pytest_caliper.reporting.failures import render_failure
from pytest_caliper.reporting.text import one_line
from pytest_caliper.runs.records import AttemptRecord
from pytest_caliper.state import HEARTBEAT, RECORD
from pytest_caliper.terminal import style_of

if TYPE_CHECKING:
    from pytest_caliper.session import Session


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

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One record per report of an attempt's call phase."""
        heartbeat = self._session.config.stash.get(HEARTBEAT, None)
        if heartbeat is not None:
            heartbeat.reported()
        text = getattr(report, "caliper", None)
        if text is None or report.when != "call":
            return
        record = AttemptRecord.from_json(json.loads(text))
        self._session.reported(record)
        if record.fatal is not None:
            self._stop(one_line(f"no attempt can work: {record.fatal}"))

    def _stop(self, reason: str) -> None:
        """End the run loop after this report, here or on the xdist controller."""
        manager = self._session.config.pluginmanager
        for name in ("session", "dsession"):
            if (running := manager.get_plugin(name)) is not None:
                running.shouldstop = reason


def tell(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the record on the report as one ASCII string (that is what crosses processes), and map its outcome."""
    record = item.stash.get(RECORD, None)
    if record is None or not isinstance(item, AttemptItem):
        return
    report.caliper = json.dumps(record.to_json(), ensure_ascii=True, allow_nan=False)  # type: ignore[attr-defined]
    report.caliper_outcome = record.outcome  # type: ignore[attr-defined]
    report.duration = record.wall_seconds
    report.start, report.stop = record.started, record.started + record.wall_seconds
    line = item.task.line + 1
    if not record.usable:
        report.longrepr = (str(item.path), line, f"Skipped: {shown_reason(record)}")
    elif record.key.arm == "baseline":
        failed = record.outcome != "pass"
        report.wasxfail = f"baseline, without the skill: {record.outcome}"
        report.outcome = "skipped" if failed else "passed"


def status(report: pytest.TestReport, outcome: str) -> tuple[str, str, Any] | None:
    """pytest's own categories with our letters and words; None leaves it to pytest."""
    if outcome == "cheat" and report.outcome == "failed":
        return "failed", "c", ("CHEAT", {"red": True})
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        return "skipped", "u", (f"UNUSABLE({outcome})", {"yellow": True})
    return None


def shown_reason(record: AttemptRecord) -> str:
    """Outcome and reason on one line without a control character: pytest prints it as it is, and copies it into JUnit files."""
    reason = one_line(record.reason or "")
    return reason if record.outcome == "task_fail" else f"{record.outcome}: {reason}"


def failure_text(item: AttemptItem, record: AttemptRecord) -> str:
    """What the FAILURES section shows of a failed attempt."""
    from dataclasses import replace

    return render_failure(
        record,
        location=item.location_text,
        expect=item.task.expect,
        transcript=_where_the_transcript_lies(item),
        style=replace(style_of(item.config), color=False),
    )


def failure_representation(item: AttemptItem, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
    """pytest's representation of the failure with the spec's line and a one-line reason, for summaries and annotations.

    Changed in place: a replaced `reprcrash` would leave the chain, which xdist sends, with the old one.
    """
    record = item.stash[RECORD]
    representation: Any = excinfo.getrepr(style="value")
    representation.reprcrash.path = str(item.path)
    representation.reprcrash.lineno = item.task.line + 1
    representation.reprcrash.message = shown_reason(record)
    return representation


def _where_the_transcript_lies(item: AttemptItem) -> str:
    shown = os.path.relpath(item.plan.results, item.config.invocation_params.dir)
    shown = str(item.plan.results) if shown.startswith("..") else shown
    return f"in the run file below {shown}, {item.key.task_id}, {item.name}"
