"""Run files between pytest-caliper and the real caliper-eval, installed from the package index: theirs open here, ours open in 0.9."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import foreign
import pytest

from pytest_caliper.reporting.figures import arm_figures
from pytest_caliper.runs.reading import iter_transcript, load_run
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

pytestmark = pytest.mark.interop

LATE = ("0.10.0", "0.21.0")
"""They have tasks that only ask which skills are used, and no baseline arm."""


def cannot(error: foreign.NoIndex) -> NoReturn:
    """Without an index there is nothing to test with; but never in CI."""
    if os.environ.get("CALIPER_REQUIRE_REAL_CLI"):
        pytest.fail(f"the real caliper-eval is required here: {error}")
    pytest.skip(f"no caliper-eval: {error}")


# Theirs, made now, opened here


def test_files_they_write_open_here(tmp_path: Path) -> None:
    def made(version: str) -> Path:
        return foreign.made_by(version, tmp_path / version, *([] if version in LATE else ["--baseline"]))

    with ThreadPoolExecutor() as pool:  # each waits for a time-out of its agent
        try:
            files = dict(zip(foreign.VERSIONS, pool.map(made, foreign.VERSIONS), strict=True))
        except foreign.NoIndex as error:
            cannot(error)
    for version, path in files.items():
        found = load_run(path)
        assert [[record.outcome for record in result.attempts] for result in found.results[:3]] == [
            ["pass", "pass", "task_fail"],
            ["pass", "task_fail", "judge_error"],
            ["cheat", "infra_error", "timeout"],
        ], version
        figures = arm_figures(found.results)
        assert (figures.successes, figures.usable, figures.planned, figures.unusable) == (3, 6, 9, 3), version
        assert [len(result.not_checked) for result in found.results] == ([0, 0, 0, 3] if version in LATE else [0, 0, 0])
        assert (found.baseline_results is not None) == (version == "0.9.0")
        if version != "0.4.0":
            assert figures.suite is not None
            assert figures.suite.rate == pytest.approx(json.loads(path.read_bytes())["aggregate"]["avg_score"]), version
            assert list(iter_transcript(path, "skill", "task-001", 1))[-1].content == "Wrote port 8080.", version


# Ours, opened by 0.9


def record(task: str, attempt: int, outcome: Outcome, arm: Arm, output: str = "done", **more: Any) -> AttemptRecord:
    values: dict[str, Any] = {
        "key": AttemptKey(spec="/p/x.eval.yaml", task_id=task, arm=arm, attempt=attempt),
        "task_name": task,
        "outcome": outcome,
        "reason": None if outcome == "pass" else "one line",
        "output": output,
        "duration_seconds": 2.0,
        "started": 1_750_000_000.0,
        "wall_seconds": 3.0,
        "durations": Durations(agent=2.0, assert_=0.5),
        "usage": Usage(input_tokens=10, output_tokens=5, cache_read_tokens=100),
        "cheat_evidence": ("cat x.eval.yaml",) if outcome == "cheat" else (),
        "assert_passed": {"pass": True, "task_fail": False}.get(outcome),
        "assert_evidence": "assert 3000 == 8080" if outcome == "task_fail" else None,
        "skills_reported": ("greeter",),
        "changed_files": (ChangedFile(path="a.txt", change="added", size=3, text="abc"),),
    }
    return AttemptRecord(**{**values, **more})


def result(task: str, outcomes: list[Outcome], arm: Arm = "skill", planned: int = 3, **more: Any) -> TaskResult:
    records = tuple(record(task, number, outcome, arm, **more) for number, outcome in enumerate(outcomes, 1))
    return TaskResult(
        task_id=task,
        task_name=f"Task {task[-1]}",
        arm=arm,
        planned=planned,
        attempts=records,
        prompt="Say hi",
        expect="It says hi",
    )


def ours(tmp_path: Path, name: str, *results: TaskResult, baseline: list[TaskResult] | None = None) -> Path:
    """A run of ours, saved by `save_run`."""
    meta = RunMeta(
        id=f"0000000{name}",
        spec="evals/greeter.eval.yaml",
        timestamp="2026-07-01T10:00:00.25Z",
        k=3,
        backend="claude-code",
        model="claude-x",
        judge_backend="claude-code",
        judge_model="claude-y",
        pytest_caliper="0.1.0",
        workers=4,
        baseline=baseline is not None,
        interrupted=False,
        selected_tasks=None,
        partial=False,
        contract={"spec": "sha256:1"},
    )
    files = {"SKILL.md": {"content": "Grüße\n", "hash": "sha256:00"}}
    skill = SkillSnapshot(name="greeter", path="skills/greeter", kind="directory", files=files)
    run = Run(meta=meta, results=results, baseline_results=None if baseline is None else tuple(baseline), skills=(skill,))
    return save_run(run, tmp_path / name)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs: task 1 goes from 1/3 to 3/3, task 2 from 2/2 to 1/2, task 3 was never measured in the second."""
    turns = tmp_path / "turns.jsonl"
    said = {"role": "tool_use", "content": "", "tool_name": "Bash", "tool_input": {"command": "ls \u2028 \x1b[31m"}}
    turns.write_text(json.dumps(said) + "\n" + json.dumps({"role": "assistant", "content": "ok"}) + "\n")
    before = ours(
        tmp_path,
        "1",
        result("task-001", ["pass", "task_fail", "cheat"], transcript_path=str(turns)),
        result("task-002", ["pass", "pass", "timeout"]),
        result("task-003", ["pass"], planned=3),
        baseline=[result("task-001", ["task_fail", "task_fail", "pass"], "baseline")],
    )
    after = ours(
        tmp_path,
        "2",
        result("task-001", ["pass", "pass", "pass"], output="\ud800 odd \x1b[31m"),
        result("task-002", ["pass", "task_fail", "judge_error"]),
        result("task-003", ["infra_error", "infra_error"]),
    )
    return before, after


def nine(tmp_path: Path, *words: str, version: str = "0.9.0") -> str:
    """What the real 0.9 prints, or another; it must end well."""
    try:
        done = foreign.caliper(version, *words, cwd=tmp_path, home=tmp_path)
    except foreign.NoIndex as error:
        cannot(error)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_report_shows_our_run(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    text = nine(tmp_path, "report", str(pair[1]))
    for part in ("Task 1", "3/3", "100.0%", "Task 2", "1/3", "50.0%", "PARTIAL (1 ⊘)", "ABORTED", "75.0%"):
        assert part in text


def test_its_report_shows_our_baseline(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    text = nine(tmp_path, "report", str(pair[0]), "--verbose")
    for part in ("no skill", "with skill", "Task 1", "33.3%"):
        assert part in text


def test_its_report_as_json_has_our_numbers(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    data = json.loads(nine(tmp_path, "report", str(pair[0]), "--format", "json"))
    assert data["run"]["spec"] == "evals/greeter.eval.yaml"
    assert data["run"]["model"] == "claude-x"
    assert [(t["successes"], t["usable"], t["unusable"], t["score"]) for t in data["task_results"]] == [
        (1, 3, 0, pytest.approx(1 / 3)),
        (2, 2, 1, 1.0),
        (1, 1, 0, 1.0),
    ]
    assert data["aggregate"]["avg_score"] == pytest.approx((1 / 3 + 1 + 1) / 3)
    assert data["baseline_task_results"][0]["score"] == pytest.approx(1 / 3)
    usage = data["usage_totals"]
    assert (usage["attempts"], usage["unusable_attempts"], usage["total_tokens"], usage["wall_seconds"]) == (7, 1, 805, 14.0)
    attempt = data["task_results"][0]["attempts"][0]
    assert [turn["role"] for turn in attempt["transcript"]] == ["tool_use", "assistant"]
    assert data["skill_snapshot"]["files"]["SKILL.md"]["content"] == "Grüße\n"


def test_its_comparison_of_two_runs_of_ours(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    text = nine(tmp_path, "compare", *map(str, pair))
    for part in ("Task 1", "33.3%", "100.0%", "+66.7%", "Task 2", "-50.0%"):
        assert part in text


def test_its_comparison_as_json(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    data = json.loads(nine(tmp_path, "compare", *map(str, pair), "--format", "json"))
    rows = {row["task_name"]: row for row in data["matched"]}
    assert rows["Task 1"]["delta"] == pytest.approx(2 / 3)
    assert rows["Task 1"]["a_outcomes"] == ["pass", "task_fail", "cheat"]
    assert (rows["Task 2"]["delta"], rows["Task 2"]["regression"]) == (-0.5, True)
    assert (rows["Task 3"]["a_score"], rows["Task 3"]["b_score"], rows["Task 3"]["delta"]) == (1.0, None, None)
    assert (data["has_regression"], data["spec_mismatch"], data["k_mismatch"]) == (True, False, False)
    assert data["aggregate_delta"] == pytest.approx((1 + 0.5) / 2 - (1 / 3 + 1) / 2)


def test_its_comparison_of_its_own_run_with_ours(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    theirs = Path(__file__).parents[1] / "recordings" / "caliper_eval" / "0.9.0" / "run.json"
    data = json.loads(nine(tmp_path, "compare", str(theirs), str(pair[1]), "--format", "json"))
    assert data["unmatched_a"] == ["Writes the config", "Explains itself", "Looks nowhere"]
    assert data["unmatched_b"] == ["Task 1", "Task 2", "Task 3"]


@pytest.mark.parametrize("version", LATE)
def test_later_versions_open_our_runs_too(version: str, tmp_path: Path, pair: tuple[Path, Path]) -> None:
    shown = nine(tmp_path, "report", str(pair[1]), version=version)
    assert "75" in shown  # the score, as 75.0% or 75%
    report = json.loads(nine(tmp_path, "report", str(pair[1]), "--format", "json", version=version))
    assert [result["score"] for result in report["task_results"]] == [1.0, 0.5, None]
    assert (report["aggregate"]["avg_score"], report["aggregate"]["scored_tasks"]) == (0.75, 2)
    compared = json.loads(nine(tmp_path, "compare", *map(str, pair), "--format", "json", version=version))
    assert compared["aggregate_delta"] == pytest.approx((1 + 0.5) / 2 - (1 / 3 + 1) / 2)


def test_it_finds_our_runs_by_the_name_of_their_spec(tmp_path: Path) -> None:
    place = tmp_path / ".caliper" / "results"
    save_run(load_run(ours(tmp_path, "3", result("task-001", ["pass"] * 3))), place / "greeter")
    assert "100.0%" in nine(tmp_path, "report", "greeter")


def test_our_file_after_jq_still_opens(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(pair[1].read_bytes()), indent=2))
    assert "Task 2" in nine(tmp_path, "report", str(again))


# A run of our own, from end to end


def test_a_run_that_pytest_saved_opens_in_it(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples" / "quickstart"
    spec = examples / "changelog.eval.yaml"
    out = tmp_path / "run.json"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(examples / "pytest.ini"), str(spec)]
    options = [
        "--caliper-k=3",
        "--caliper-baseline",
        "--caliper-replay",
        f"--caliper-output={out}",
        f"--caliper-results={tmp_path}",
    ]
    done = subprocess.run([*command, *options], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    data = json.loads(nine(tmp_path, "report", str(out), "--format", "json"))
    found = load_run(out)
    assert [t["score"] for t in data["task_results"]] == [r.successes / r.usable for r in found.results]
    assert found.baseline_results is not None
    assert len(data["baseline_task_results"]) == len(found.baseline_results)
    assert "no skill" in nine(tmp_path, "report", str(out))
