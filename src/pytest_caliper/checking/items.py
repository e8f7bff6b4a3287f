"""`--caliper-check` in pytest's own words: a node per trial, below its task, which passes or fails with what was found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.checking.findings import Finding, findings_of
from pytest_caliper.checking.kinds import Trial, trials
from pytest_caliper.collection import AttemptItem, TaskNode
from pytest_caliper.contracts import Judge, Workspace
from pytest_caliper.reporting.text import one_line, printable
from pytest_caliper.runs.records import AttemptKey
from pytest_caliper.state import state_of

FOUND: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
"""On an item that was tried: what its report carries to the controller."""


class CheckFailed(AssertionError):
    """A task's checks are not what they must be."""

    def __init__(self, findings: Sequence[Finding], text: str) -> None:
        super().__init__(text)
        self.findings = tuple(findings)


class CheckItem(AttemptItem):
    """One trial of a task's checks. It is scheduled as an attempt is, and never is one."""

    trial: Trial

    @classmethod
    def of(cls, parent: TaskNode, trial: Trial) -> CheckItem:
        """The node of a trial, named after what must be so: `assert-fails`."""
        # Not by way of AttemptItem, which would name it after an attempt and run one.
        self: CheckItem = super(AttemptItem, cls).from_parent(parent, name=trial.kind, callobj=run_check)
        self.key = key_of(parent, trial)
        self.task, self.plan, self.trial = parent.task, parent.plan, trial
        return self

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What was found, at its own line; anything else as pytest shows it."""
        if not isinstance(excinfo.value, CheckFailed):
            return super().repr_failure(excinfo, style)
        first = excinfo.value.findings[0]
        representation: Any = excinfo.getrepr(style="value")
        representation.reprcrash.path, representation.reprcrash.lineno = first.path, first.line
        representation.reprcrash.message = one_line(f"{first.fault}: {first.message}")
        return representation


def key_of(node: TaskNode, trial: Trial) -> AttemptKey:
    """What tells a trial from the others of a session."""
    return AttemptKey(spec=str(node.plan.spec.path), task_id=node.task.task_id, arm="skill", attempt=trial.number)


def checks_of(node: TaskNode) -> Iterator[CheckItem]:
    """The nodes of a task's trials; a note where there is nothing to try."""
    state = state_of(node.config)
    found = list(trials(node.task, ask_judge=not state.settings.no_judge))
    if not found and state.session is not None:
        where = f"{shown(node.config, str(node.path))}:{node.task.line + 1}"
        state.session.notes.append(f"{where}: there is nothing to check without the judge: leave --caliper-no-judge out")
    for trial in found:
        yield CheckItem.of(node, trial)


def run_check(request: pytest.FixtureRequest, caliper_workspace: Workspace, caliper_judge: Judge) -> None:
    """The body of every trial: run it, or take what ran ahead, and say what was found."""
    item: CheckItem = request.node
    state = state_of(request.config)
    started, clock = time.time(), time.monotonic()
    record = state.take(item, caliper_workspace, state.runtime.harness, caliper_judge)
    said = getattr(state.ahead, "said", {}).get(item.key, "")
    findings = findings_of(item.trial.kind, item.task, item.plan.spec.path, record, said=said)
    item.stash[FOUND] = {
        "findings": [finding.to_json() for finding in findings],
        "task": item.task.name,
        "fatal": record.fatal,
        "duration_s": record.wall_seconds or time.monotonic() - clock,
        "started": record.started or started,
    }
    if findings:
        raise CheckFailed(findings, "\n\n".join(told(request.config, finding) for finding in findings))


def told(config: pytest.Config, finding: Finding) -> str:
    """A finding as people read it: one line with its place, and the details indented below."""
    lines = [one_line(f"{shown(config, finding.path)}:{finding.line}: {finding.fault}: {finding.message}")]
    lines += [f"    {line}" for line in printable(finding.detail).strip("\n").split("\n") if finding.detail.strip()]
    return "\n".join(lines)


def shown(config: pytest.Config, path: str) -> str:
    """A path as people type it: relative to where pytest was started, if it lies below."""
    try:
        return Path(path).relative_to(config.invocation_params.dir).as_posix()
    except ValueError:
        return path


def tell(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put what a trial found on its report, as one ASCII string: that is what crosses processes."""
    found = item.stash.get(FOUND, None)
    if found is not None:
        report.caliper_check = json.dumps(found, ensure_ascii=True, allow_nan=False)  # type: ignore[attr-defined]
        report.duration = found["duration_s"]
        report.start, report.stop = found["started"], found["started"] + found["duration_s"]
