"""What the controller of a `--caliper-check` hears and says: findings of all processes, their number, their JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.checking.findings import Finding
from pytest_caliper.checking.items import shown
from pytest_caliper.reporting.text import one_line, printable

if TYPE_CHECKING:
    from pytest_caliper.session import Session

NAME = "caliper-check"
"""Of the plugin object."""


class Telling:
    """Plugin object on the controller."""

    def __init__(self, config: pytest.Config, session: Session) -> None:
        self._config, self._session = config, session
        self._found: dict[Finding, str] = {}
        """Each finding once, with the name of its task: a `setup:` that fails is met by every trial."""
        self._tried = 0
        self._tasks: set[tuple[str, str]] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One trial has ended."""
        text = getattr(report, "caliper_check", None)
        if text is None or report.when != "call":
            return
        data = json.loads(text)
        self._tried += 1
        self._tasks.add((report.nodeid.rpartition("::")[0], data["task"]))
        for entry in data["findings"]:
            self._found.setdefault(Finding.from_json(entry), data["task"])
        if data["fatal"]:
            self._stop(one_line(f"no judge can answer: {data['fatal']}"))

    def _stop(self, reason: str) -> None:
        for name in ("session", "dsession"):
            if (running := self._config.pluginmanager.get_plugin(name)) is not None:
                running.shouldstop = reason

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the findings where `--caliper-output` says."""
        output = self._session.settings.output
        if output is None:
            return
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="ascii")
        except OSError as error:
            what = f"{output}: the findings cannot be written ({error.strerror or error}): name another file"
            self._session.problems.append(what)
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def to_json(self) -> dict[str, Any]:
        """Numbers, and the findings in the order of their lines."""
        return {
            "tasks": len(self._tasks),
            "checks": self._tried,
            "findings": [
                {
                    "fault": finding.fault,
                    "file": shown(self._config, finding.path),
                    "line": finding.line,
                    "task": task,
                    "message": finding.message,
                    "detail": finding.detail,
                }
                for finding, task in sorted(self._found.items(), key=lambda one: (one[0].path, one[0].line))
            ],
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """One line: pytest has shown every finding."""
        faults = ", ".join(sorted({finding.fault for finding in self._found}))
        found = f"{_count(len(self._found), 'finding')} ({faults})" if self._found else "nothing is wrong with them"
        line = f"caliper: tried {_count(self._tried, 'check')} of {_count(len(self._tasks), 'task')}: {found}"
        terminalreporter.write_line(printable(line), red=bool(self._found), green=not self._found)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
