"""Run files made by hand for pages: tasks as strips of letters, attempts with transcripts, and everything hostile at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from pytest_caliper.runs.store import save_run

OUTCOMES: Mapping[str, Outcome] = {
    "P": "pass",
    "F": "task_fail",
    "C": "cheat",
    "T": "timeout",
    "U": "infra_error",
    "J": "judge_error",
}
REASONS = {
    "F": "expect: the message has no type, so release notes cannot be made from it",
    "C": "cheat: read the forbidden file secret.txt",
    "T": "no answer within 120 s",
    "U": "rate limit: 429 Too Many Requests",
    "J": "the judge gave no verdict",
}
TURNS: Sequence[Mapping[str, Any]] = (
    {"role": "assistant", "content": "Let me look at what changed."},
    {"role": "tool_use", "content": "", "tool_name": "Bash", "tool_input": {"command": "git diff --stat", "timeout": 20}},
    {"role": "tool_result", "content": "", "tool_name": "Bash", "tool_output": " src/port.py | 4 ++--\n 1 file changed"},
    {"role": "tool_use", "content": "", "tool_name": "Read", "tool_input": {"file_path": "$WORK/src/port.py"}},
    {"role": "tool_use", "content": "", "tool_name": "Bash", "tool_input": {"command": "git commit -am 'changed the port'"}},
    {"role": "tool_result", "content": "", "tool_name": "Read", "tool_output": "PORT = 8080\nHOST = '0.0.0.0'\n"},
    {"role": "tool_result", "content": "", "tool_name": "Bash", "tool_output": "[main 3f2a] changed the port"},
    {"role": "assistant", "content": "I committed the change."},
)
PATHS = ("src/port.py", "notes.md", "old.cfg", "logo.png")
FILES = (
    ChangedFile(
        path="src/port.py",
        change="modified",
        size=34,
        text="import os\n\nPORT = 8080\nHOST = '0.0.0.0'\n",
        before="import os\n\nPORT = 80\nHOST = '0.0.0.0'\n",
    ),
    ChangedFile(path="notes.md", change="added", size=18, text="# Notes\n\n- ported\n"),
    ChangedFile(path="old.cfg", change="deleted", size=0, before="port=80\n"),
    ChangedFile(path="logo.png", change="added", size=2_048),
)

Turns = Callable[[AttemptRecord], Sequence[Mapping[str, Any]]]


def attempt(letter: str, *, task: str, name: str, number: int, arm: Arm = "skill", **more: Any) -> AttemptRecord:
    failed = letter == "F"
    made = AttemptRecord(
        key=AttemptKey(spec="/project/evals/commit.eval.yaml", task_id=task, arm=arm, attempt=number),
        task_name=name,
        outcome=OUTCOMES[letter],
        reason=REASONS.get(letter),
        output="I committed the change with the message `changed the port`.",
        duration_seconds=18.4,
        started=1_780_000_000.0,
        wall_seconds=22.0,
        durations=Durations(setup=0.2, agent=18.4, assert_=0.012, judge=3.1, cleanup=0.05),
        usage=Usage(input_tokens=1_000, output_tokens=2_000, cache_read_tokens=40_000, cache_creation_tokens=10_000),
        cheat_evidence=("cat ../secret.txt",) if letter == "C" else (),
        assert_passed=True if letter in "PF" else None,
        autorater_passed={"P": True, "F": False}.get(letter),
        autorater_reasoning="The subject line is `changed the port`: it has neither a type nor the imperative."
        if failed
        else "It holds.",
        judge_votes=(False, True, False) if failed else (),
        model="claude-sonnet-4-5",
        judge_model="claude-haiku-4-5",
        cli_version="2.1.332",
        skills_reported=("commit",),
        skills_used=("commit",) if arm == "skill" else (),
        changed_files=FILES,
    )
    return replace(made, **more)


def task(strip: str, *, number: int, name: str, arm: Arm = "skill", **more: Any) -> TaskResult:
    task_id = f"task-{number:03}"
    attempts = (attempt(c, task=task_id, name=name, number=i, arm=arm, **more) for i, c in enumerate(strip, 1) if c != "-")
    return TaskResult(
        task_id=task_id,
        task_name=name,
        arm=arm,
        planned=len(strip),
        attempts=tuple(attempts),
        prompt="Commit the change to the port.",
        expect="The commit message follows the Conventional Commits convention.",
        assert_="assert attempt.commands",
    )


def run(skill: Mapping[str, str], baseline: Mapping[str, str] | None = None, **more: Any) -> Run:
    """A run with a strip per task name."""
    meta = RunMeta(
        id="7f3a",
        spec="evals/commit.eval.yaml",
        timestamp="2026-11-20T10:00:00Z",
        k=max(map(len, skill.values()), default=3),
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
        cli_version="2.1.332",
    )
    snapshot = SkillSnapshot(name="commit", path="skills/commit", kind="directory", files={}, git_sha="2a2d45187d77")
    return Run(
        meta=replace(meta, **more),
        results=tuple(task(strip, number=i, name=name) for i, (name, strip) in enumerate(skill.items(), 1)),
        baseline_results=None
        if baseline is None
        else tuple(task(strip, number=i, name=name, arm="baseline") for i, (name, strip) in enumerate(baseline.items(), 1)),
        skills=(snapshot,),
    )


def saved(run: Run, directory: Path, turns: Turns = lambda _: TURNS) -> Path:
    """The run in a file, with the transcripts that `turns` gives."""
    directory.mkdir(parents=True, exist_ok=True)

    def with_file(record: AttemptRecord) -> AttemptRecord:
        key = record.key
        side = directory / f"{key.arm}-{key.task_id}-{key.attempt}.jsonl".replace("/", "_")
        side.write_text("".join(json.dumps(turn) + "\n" for turn in turns(record)), encoding="ascii")
        return replace(record, transcript_path=str(side))

    def with_files(results: Sequence[TaskResult]) -> tuple[TaskResult, ...]:
        return tuple(replace(result, attempts=tuple(map(with_file, result.attempts))) for result in results)

    baseline = None if run.baseline_results is None else with_files(run.baseline_results)
    return save_run(replace(run, results=with_files(run.results), baseline_results=baseline), directory)


RICH = run(
    {
        "Writes a conventional commit message": "PFPFFPPPCP",
        "Names the breaking change in the footer": "PPPPPPPPPP",
        "Keeps unrelated changes out of the commit": "PPTPUFPP--",
        "Says why, not only what": "PFFPPFPPPJ",
    },
    {
        "Writes a conventional commit message": "FFFFFFPFFF",
        "Names the breaking change in the footer": "FFFFFFFFFF",
        "Keeps unrelated changes out of the commit": "PPPPFFPP--",
        "Says why, not only what": "FFFPFFFUFP",
    },
)
