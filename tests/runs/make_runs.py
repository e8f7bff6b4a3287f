"""Records and runs for the tests of this directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_caliper.runs.records import (
    Arm,
    AttemptKey,
    AttemptRecord,
    ChangedFile,
    Durations,
    Outcome,
    Run,
    RunMeta,
    SkillSnapshot,
    TaskResult,
    Usage,
)

SNAPSHOT = SkillSnapshot(
    name="greeter",
    path="skills/greeter",
    kind="directory",
    files={"SKILL.md": {"content": "---\nname: greeter\n---\nGrüße\n", "hash": "sha256:00"}},
    git_repo="https://example.org/r.git",
    git_sha="abc",
)


def record(
    task: str = "task-001", attempt: int = 1, outcome: Outcome = "pass", *, arm: Arm = "skill", **more: Any
) -> AttemptRecord:
    values: dict[str, Any] = {
        "key": AttemptKey(spec="/project/x.eval.yaml", task_id=task, arm=arm, attempt=attempt),
        "task_name": f"Name of {task}",
        "outcome": outcome,
        "reason": None if outcome == "pass" else "one line",
        "output": "done",
        "duration_seconds": 1.5,
        "started": 1_750_000_000.25,
        "wall_seconds": 2.25,
        "durations": Durations(agent=1.5, assert_=0.5),
        "usage": Usage(input_tokens=10, output_tokens=5),
        "cheat_evidence": ("cat x.eval.yaml",) if outcome == "cheat" else (),
        "skills_reported": ("greeter",),
        "changed_files": (ChangedFile(path="a.txt", change="added", size=3, text="abc"),),
    }
    return AttemptRecord(**{**values, **more})


def task(task_id: str, *records: AttemptRecord, arm: Arm = "skill", planned: int = 3) -> TaskResult:
    return TaskResult(
        task_id=task_id,
        task_name=f"Name of {task_id}",
        arm=arm,
        planned=planned,
        attempts=records,
        prompt="Say hi",
        expect="It says hi",
        assert_="assert True",
    )


def meta(**more: Any) -> RunMeta:
    values: dict[str, Any] = {
        "id": "3f9c21ab",
        "spec": "evals/x.eval.yaml",
        "timestamp": "2026-07-01T10:00:00Z",
        "k": 3,
        "backend": "claude-code",
        "model": "claude-x",
        "judge_backend": "claude-code",
        "judge_model": None,
        "pytest_caliper": "0.1.0",
        "workers": 4,
        "baseline": True,
        "interrupted": False,
        "selected_tasks": None,
        "partial": False,
        "contract": {"spec": "sha256:1", "tasks": {"task-001": "sha256:2"}},
    }
    return RunMeta(**{**values, **more})


def run(*results: TaskResult, baseline: Sequence[TaskResult] | None = None, **more: Any) -> Run:
    return Run(
        meta=meta(baseline=baseline is not None, **more),
        results=results or (task("task-001", record()),),
        baseline_results=None if baseline is None else tuple(baseline),
        skills=(SNAPSHOT,),
    )


def side_file(path: Path, *turns: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="ascii")
    return str(path)


def names(directory: Path) -> list[str]:
    """What lies in a directory."""
    return sorted(path.name for path in directory.iterdir())
