"""Runs made by hand: a task is written as its strip, `PPF` or `PU-` (one not run)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_caliper.runs.records import Arm, AttemptKey, AttemptRecord, Outcome, Run, RunMeta, TaskResult, Usage

OUTCOMES: dict[str, Outcome] = {
    "P": "pass",
    "F": "task_fail",
    "C": "cheat",
    "T": "timeout",
    "U": "infra_error",
    "J": "judge_error",
}
REASONS = {
    "F": "assert port == 8080",
    "C": "read the forbidden file secret.txt",
    "T": "no answer within 120 s",
    "U": "rate limit: 429 Too Many Requests",
    "J": "the judge gave no verdict",
}
USAGE = Usage(input_tokens=1_000, output_tokens=2_000, cache_read_tokens=40_000, cache_creation_tokens=10_000)


def record(
    letter: str = "P", *, attempt: int = 1, arm: Arm = "skill", task_id: str = "task-001", **changes: Any
) -> AttemptRecord:
    """One attempt of 53,000 tokens and 20 seconds that ended as the letter says."""
    made = AttemptRecord(
        key=AttemptKey(spec="/project/evals/commit.eval.yaml", task_id=task_id, arm=arm, attempt=attempt),
        task_name="Writes a conventional commit message",
        outcome=OUTCOMES[letter],
        reason=REASONS.get(letter),
        output="I committed the change.",
        duration_seconds=20.0,
        started=1_700_000_000.0,
        wall_seconds=22.0,
        usage=USAGE,
        autorater_passed={"P": True, "F": False}.get(letter),
        autorater_reasoning={"P": "The message follows the convention.", "F": "The message has no type."}.get(letter),
        model="claude-sonnet-4-5",
        judge_model="claude-haiku-4-5",
    )
    return replace(made, **changes)


def task(
    strip: str, *, number: int = 1, name: str = "Writes a conventional commit message", arm: Arm = "skill", **changes: Any
) -> TaskResult:
    """One task in one arm; `changes` with a record's fields apply to every attempt, the others to the result."""
    task_id = f"task-{number:03}"
    of_records = {key: changes.pop(key) for key in list(changes) if key in AttemptRecord.__dataclass_fields__}
    attempts = tuple(
        record(letter, attempt=i, arm=arm, task_id=task_id, task_name=name, **of_records)
        for i, letter in enumerate(strip, 1)
        if letter != "-"
    )
    made = TaskResult(task_id=task_id, task_name=name, arm=arm, planned=len(strip), attempts=attempts, prompt="Commit this.")
    return replace(made, **changes)


def run(
    *results: TaskResult, baseline: tuple[TaskResult, ...] | None = None, saved: str | None = "RESULT", **changes: Any
) -> Run:
    """A run of `commit.eval.yaml`; `changes` are fields of its RunMeta."""
    meta = RunMeta(
        id="7f3a",
        spec="evals/commit.eval.yaml",
        timestamp="2026-11-20T10:00:00Z",
        k=max((result.planned for result in results), default=3),
        backend="claude-code",
        model="claude-sonnet-4-5",
        judge_backend="claude-code",
        judge_model="claude-haiku-4-5",
        pytest_caliper="0.1.0",
        workers=4,
        baseline=baseline is not None,
        interrupted=False,
        selected_tasks=None,
        partial=False,
    )
    path = ".caliper/results/evals/commit/2026-11-20T10-00-00Z-7f3a.json" if saved == "RESULT" else saved
    return Run(meta=replace(meta, **changes), results=results, baseline_results=baseline, skills=(), saved=path)
