"""Saved runs for the commands that read them; the runs are those of `tests/reporting/builders.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.cli import main
from pytest_caliper.runs.records import TaskResult
from pytest_caliper.runs.store import save_run

sys.path.append(str(Path(__file__).parents[1] / "reporting"))

from builders import run


@dataclass
class Saved:
    """A project with results."""

    root: Path

    def run(
        self, spec: str, *results: TaskResult, day: int = 1, baseline: tuple[TaskResult, ...] | None = None, **meta: Any
    ) -> Path:
        """Save a run of `<spec>.eval.yaml` made on a day of July 2026; its id is `day-<day>`."""
        stamp = f"2026-07-{day:02}T10:00:00Z"
        made = run(*results, baseline=baseline, **{"id": f"day-{day}", "timestamp": stamp, "spec": f"{spec}.eval.yaml", **meta})
        return save_run(made, self.root / ".caliper" / "results" / spec)


@dataclass
class Told:
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Saved:
    """A project that is its own repository; the current directory."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Saved(root=root)


@pytest.fixture
def caliper(capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """Call the command in this process."""

    def call(*words: str) -> Told:
        status = main(list(words))
        said = capsys.readouterr()
        return Told(status=status, out=said.out, err=said.err)

    return call
