"""What a job on GitHub Actions shows beside its log: a summary of the step, and an annotation per failing task on its line.

Formats: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.markdown import render_markdown
from pytest_caliper.reporting.text import clip, one_line
from pytest_caliper.runs.records import Run

if TYPE_CHECKING:
    import pytest

SUMMARY_BYTES = 1_000_000
"""GitHub refuses a step's summary of more than 1 MiB, which all commands of the step share."""

_SPEC = re.compile(r"\.eval\.ya?ml::")
_SHOWN, _REASON_CHARS = 5, 400
"""Attempts told in an annotation, and characters of each one's reason."""
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = {**_ESCAPES, ":": "%3A", ",": "%2C"}


def on_github(env: Mapping[str, str]) -> bool:
    """Whether this is a job of GitHub Actions."""
    return env.get("GITHUB_ACTIONS") == "true"


def workflow_command(name: Literal["error", "warning", "notice"], message: str, **properties: str | int) -> str:
    """`::error file=a.yaml,line=8,title=…::message`, one line whatever the texts hold."""
    said = ",".join(f"{key}={_escaped(str(value), _PROPERTY_ESCAPES)}" for key, value in properties.items())
    return f"::{name} {said}::{_escaped(message, _ESCAPES)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(char, char) for char in text)


def path_on_github(path: Path, env: Mapping[str, str]) -> str:
    """The path as annotations need it: relative to the workspace, else to the repository; absolute outside of both."""
    path = path.resolve()
    workspace = env.get("GITHUB_WORKSPACE")
    roots = [Path(workspace).resolve()] if workspace else []
    roots += [directory for directory in path.parents if (directory / ".git").exists()][:1]
    return next((path.relative_to(root).as_posix() for root in roots if path.is_relative_to(root)), path.as_posix())


def append_summary(runs: Sequence[Run], path: Path) -> str | None:
    """Append every run's report to the step's summary. -> a sentence on what could not be written; None when all was."""
    written = 0
    try:
        with open(path, "ab") as out:
            there = out.tell()
            for run in runs:
                text = f"{render_markdown(run)}\n".encode("utf-8", "backslashreplace")
                if there + len(text) > SUMMARY_BYTES:
                    left = numbers.plural(len(runs) - written, "run")
                    return f"GITHUB_STEP_SUMMARY is full, {left} left out: GitHub takes 1 MiB per step"
                out.write(text)
                there, written = there + len(text), written + 1
    except OSError as error:
        return f"GITHUB_STEP_SUMMARY cannot be written: {path}: {error.strerror or error}"
    return None


@dataclass(kw_only=True, slots=True)
class _Task:
    """What pytest reported of one task."""

    path: str
    line: int
    """1-based."""
    tried: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Last part of the node id -> reason."""
    lost: dict[str, str] = field(default_factory=dict)
    measured: set[str] = field(default_factory=set)
    """Arms with a usable attempt."""


class Annotations:
    """Plugin object on the controller: what failed, by task, whoever reported it.

    It looks at reports, so it says what pytest says: tolerated attempts are no failures, and a missed `::bar` is one.
    """

    def __init__(self, rootdir: Path, env: Mapping[str, str]) -> None:
        self._rootdir, self._env = rootdir, env
        self._tasks: dict[str, _Task] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what became of an attempt, or of a verdict over a task."""
        if not _SPEC.search(report.nodeid):
            return
        nodeid, _, name = report.nodeid.rpartition("::")
        path, line, _ = report.location
        task = self._tasks.setdefault(nodeid, _Task(path=path, line=(line or 0) + 1))
        arm = "baseline" if name.startswith("baseline-") else "skill"
        if report.failed:
            task.failed.setdefault(name, _reason(report))
        elif name == "bar":
            return
        elif report.when == "call" and report.skipped and not hasattr(report, "wasxfail"):
            task.lost[name] = _reason(report)
        if report.when == "call":
            task.tried += arm == "skill" and name != "bar"
            if name not in task.lost:
                task.measured.add(arm)

    def lines(self, *, failures: bool = True) -> list[str]:
        """A workflow command for every task that failed or was not measured; without the failed ones when `failures` is false.

        In the order of the specs, whatever the order in which attempts ended.
        """
        tasks = sorted(self._tasks.items(), key=lambda pair: (pair[1].path, pair[1].line))
        return [line for nodeid, task in tasks for line in self._line(nodeid, task, failures)]

    def _line(self, nodeid: str, task: _Task, failures: bool) -> Iterator[str]:
        name = one_line(nodeid.rpartition("::")[2])
        place: dict[str, str | int] = {"file": path_on_github(self._rootdir / task.path, self._env), "line": task.line}
        if task.failed:
            if failures:
                yield workflow_command("error", _told(task.failed), **place, title=f"{name}: {_how_failed(task)}")
        elif unmeasured := _unmeasured(task):
            yield workflow_command("warning", _told(unmeasured), **place, title=f"{name}: nothing was measured")


def _how_failed(task: _Task) -> str:
    if "bar" in task.failed:
        return "the bar was not reached"
    return f"{len(task.failed)} of {numbers.plural(max(task.tried, len(task.failed)), 'attempt')} failed"


def _unmeasured(task: _Task) -> dict[str, str]:
    """The lost attempts of the arms that have no other."""
    arms = {name: "baseline" if name.startswith("baseline-") else "skill" for name in task.lost}
    return {name: reason for name, reason in task.lost.items() if arms[name] not in task.measured}


def _told(attempts: Mapping[str, str]) -> str:
    by_number = sorted(attempts.items(), key=lambda told: (len(told[0]), told[0]))  # xdist reports them in any order
    lines = [f"{name}: {reason}" for name, reason in by_number[:_SHOWN]]
    if len(attempts) > _SHOWN:
        lines.append(f"and {len(attempts) - _SHOWN} more")
    return "\n".join(lines)


def _reason(report: pytest.TestReport) -> str:
    """Why, on one line: what pytest's own short summary says."""
    found = report.longrepr
    crash = getattr(found, "reprcrash", None)
    text = (
        crash.message
        if crash is not None
        else found[2].removeprefix("Skipped: ")
        if isinstance(found, tuple)
        else report.longreprtext
    )
    kept, cut = clip(one_line(text), chars=_REASON_CHARS, lines=1)
    return f"{kept}…" if cut else kept
