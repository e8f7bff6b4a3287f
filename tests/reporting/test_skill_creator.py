"""Runs in the skill-creator's vocabulary, and `caliper export`, which writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import record, run, task

from pytest_caliper.cli import main
from pytest_caliper.reporting.skill_creator import Activity, activity, benchmark_json, graded, grading_json
from pytest_caliper.runs.reading import load_run
from pytest_caliper.runs.records import Durations, Run, SkillSnapshot, TaskResult, Turn, Usage
from pytest_caliper.runs.store import save_run

RECORDED = Path(__file__).parents[1] / "recordings" / "caliper_eval"
SKILL = SkillSnapshot(name="commit", path="skills/commit", kind="directory", files={})


def a_run(results: Sequence[TaskResult], baseline: Sequence[TaskResult] | None = None) -> Run:
    return replace(run(*results, baseline=None if baseline is None else tuple(baseline)), skills=(SKILL,))


def benchmark(made: Run) -> dict[str, Any]:
    return benchmark_json(made, graded(made, {}))


def configurations(data: dict[str, Any]) -> list[tuple[int, str, int]]:
    return [(one["eval_id"], one["configuration"], one["run_number"]) for one in data["runs"]]


def test_every_graded_attempt_is_a_run_and_no_other() -> None:
    data = benchmark(a_run([task("PUF"), task("TP-", number=2, name="Other")], [task("FFJ", arm="baseline")]))
    assert configurations(data) == [
        (1, "with_skill", 1),
        (1, "with_skill", 3),
        (1, "without_skill", 1),
        (1, "without_skill", 2),
        (2, "with_skill", 2),
    ]
    assert [(u["eval_id"], u["configuration"], u["run_number"], u["outcome"]) for u in data["unusable_runs"]] == [
        (1, "with_skill", 2, "infra_error"),
        (1, "without_skill", 3, "judge_error"),
        (2, "with_skill", 1, "timeout"),
    ]
    assert data["unusable_runs"][0]["reason"] == "rate limit: 429 Too Many Requests"


def test_unusable_attempts_move_no_number() -> None:
    with_them = benchmark(a_run([task("PUFTJ")], [task("FU", arm="baseline")]))
    without = benchmark(a_run([task("P-F")], [task("F", arm="baseline")]))
    assert with_them["run_summary"] == without["run_summary"]
    assert with_them["run_summary"]["with_skill"]["pass_rate"]["mean"] == 0.5


def test_nothing_graded() -> None:
    data = benchmark(a_run([task("UTJ")]))
    assert data["runs"] == []
    assert data["run_summary"] == {}
    assert len(data["unusable_runs"]) == 3


def test_metadata() -> None:
    made = a_run([task("P"), task("P", number=7, name="Other")])
    assert benchmark(made)["metadata"] == {
        "skill_name": "commit",
        "skill_path": "skills/commit",
        "executor_model": made.meta.model,
        "analyzer_model": made.meta.judge_model,
        "timestamp": made.meta.timestamp,
        "evals_run": [1, 7],
        "runs_per_configuration": made.meta.k,
        "spec": made.meta.spec,
        "run_id": made.meta.id,
    }


def test_a_spec_without_skill_is_a_run_without_skill() -> None:
    bare = run(task("P"))
    assert configurations(benchmark(bare)) == [(1, "without_skill", 1)]
    assert benchmark(bare)["metadata"]["skill_name"] is None


def test_a_task_of_one_arm_alone() -> None:
    data = benchmark(a_run([task("P")], [task("F", number=2, name="Other", arm="baseline")]))
    assert configurations(data) == [(1, "with_skill", 1), (2, "without_skill", 1)]


def test_task_ids_of_another_kind_are_counted() -> None:
    made = a_run([replace(task("P"), task_id="one"), replace(task("P", number=2, name="Other"), task_id="two")])
    assert benchmark(made)["metadata"]["evals_run"] == [1, 2]


@pytest.mark.parametrize(
    ("letter", "changes", "expected"),
    [
        (
            "P",
            {"assert_passed": True},
            [("assert: x == 1", True, "The assert held."), ("It is right", True, "The message follows the convention.")],
        ),
        (
            "F",
            {"assert_passed": True},
            [("assert: x == 1", True, "The assert held."), ("It is right", False, "The message has no type.")],
        ),
        (
            "F",
            {"assert_passed": False, "assert_evidence": "assert 2 == 1", "autorater_passed": None},
            [("assert: x == 1", False, "assert 2 == 1")],
        ),
        (
            "F",
            {"assert_passed": False, "autorater_passed": None, "autorater_reasoning": None},
            [("assert: x == 1", False, "assert port == 8080")],
        ),
        ("C", {"cheat_evidence": ("cat a", "cat b")}, [("No forbidden file is touched", False, "cat a; cat b")]),
        (
            "C",
            {"assert_passed": True, "cheat_evidence": ("cat a",)},
            [("assert: x == 1", True, "The assert held."), ("No forbidden file is touched", False, "cat a")],
        ),
        ("P", {"autorater_passed": None}, [("The attempt passes", True, "")]),
        ("F", {"autorater_passed": None}, [("The attempt passes", False, "assert port == 8080")]),
    ],
)
def test_expectations_are_the_checks_that_gave_a_verdict(
    letter: str, changes: dict[str, Any], expected: list[tuple[str, bool, str]]
) -> None:
    result = replace(task(letter), assert_="x == 1\n", expect="It is right\n")
    grading = grading_json(result, record(letter, **changes), None)
    assert [(one["text"], one["passed"], one["evidence"]) for one in grading["expectations"]] == expected
    passed = sum(one[1] for one in expected)
    assert grading["summary"] == {
        "passed": passed,
        "failed": len(expected) - passed,
        "total": len(expected),
        "pass_rate": round(passed / len(expected), 4),
    }
    assert (grading["summary"]["failed"] == 0) == (letter == "P")


def test_what_the_transcript_shows() -> None:
    turns = [
        Turn(role="tool_use", content="", tool_name="Bash"),
        Turn(role="tool_result", content="", tool_output="abc"),
        Turn(role="tool_use", tool_name="Bash"),
        Turn(role="tool_use", tool_name="Read"),
        Turn(role="assistant", content="done"),
    ]
    metrics = grading_json(task("P"), record(), activity(turns))["execution_metrics"]
    assert metrics == {
        "tool_calls": {"Bash": 2, "Read": 1},
        "total_tool_calls": 3,
        "total_steps": 5,
        "errors_encountered": 0,
        "output_chars": len("I committed the change."),
        "transcript_chars": 7,
    }


@pytest.mark.parametrize("seen", [None, Activity()])
def test_without_a_transcript_nothing_is_said_of_tools(seen: Activity | None) -> None:
    assert set(grading_json(task("P"), record(), seen)["execution_metrics"]) == {"errors_encountered", "output_chars"}
    made = a_run([task("P")])
    assert benchmark(made)["runs"][0]["result"]["tool_calls"] is None


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        (Durations(), {"executor_duration_seconds": 20.0, "total_duration_seconds": 20.0}),
        (
            Durations(setup=9.0, agent=20.0, assert_=0.5, judge=3.0, cleanup=9.0),
            {"executor_duration_seconds": 20.0, "grader_duration_seconds": 3.5, "total_duration_seconds": 23.5},
        ),
    ],
)
def test_timing_is_the_agent_and_the_checks(durations: Durations, expected: dict[str, float]) -> None:
    assert grading_json(task("P"), record(durations=durations), None)["timing"] == expected


@pytest.mark.parametrize("usage", [None, Usage()])
def test_unknown_tokens_are_not_zero(usage: Usage | None) -> None:
    data = benchmark(a_run([task("PP", usage=usage)], [task("P", arm="baseline")]))
    assert data["runs"][0]["result"]["tokens"] is None
    assert "tokens" not in data["run_summary"]["with_skill"]
    assert data["run_summary"]["without_skill"]["tokens"]["mean"] == 53_000
    assert set(data["run_summary"]["delta"]) == {"pass_rate", "time_seconds"}


def test_statistics_and_their_difference() -> None:
    data = benchmark(a_run([task("PPPF")], [task("F", arm="baseline", duration_seconds=10.5)]))
    summary = data["run_summary"]
    assert summary["with_skill"]["pass_rate"] == {"mean": 0.75, "stddev": 0.5, "min": 0.0, "max": 1.0}
    assert summary["without_skill"]["pass_rate"] == {"mean": 0.0, "stddev": 0.0, "min": 0.0, "max": 0.0}
    assert summary["delta"] == {"pass_rate": "+0.75", "time_seconds": "+9.5", "tokens": "+0"}


def test_one_configuration_has_no_difference() -> None:
    assert set(benchmark(a_run([task("P")]))["run_summary"]) == {"with_skill"}


def test_notes_tell_our_own_verdict_and_what_is_missing() -> None:
    notes = "\n".join(benchmark(a_run([task("PPU-")], [task("FFFF", arm="baseline")]))["notes"])
    assert "with_skill: success rate 100.0% (2 of 2 attempts" in notes
    assert "without_skill: success rate 0.0%" in notes
    assert "with_skill: 1 of 4 attempts got no verdict (1 infra_error); see unusable_runs." in notes
    assert "with_skill: 1 of 4 planned attempts did not run." in notes
    assert "better" in notes or "no evidence" in notes
    assert "+100.0 pts" in notes


# The command


def exported(path: Path, target: Path) -> dict[str, Any]:
    assert main(["export", str(path), "--output", str(target)]) == 0
    data = json.loads((target / "benchmark.json").read_bytes())
    assert isinstance(data, dict)
    return data


def aggregate(directory: Path) -> dict[str, dict[str, dict[str, float]]]:
    """What the skill-creator's own script makes of the directory: mean, sample deviation, least and greatest of every run."""
    found: dict[str, list[dict[str, Any]]] = {}
    for evaluation in sorted(directory.glob("eval-*")):
        int(evaluation.name.split("-")[1])
        for configuration in evaluation.iterdir():
            for one in configuration.glob("run-*"):
                int(one.name.split("-")[1])
                found.setdefault(configuration.name, []).append(json.loads((one / "grading.json").read_bytes()))
    out: dict[str, dict[str, dict[str, float]]] = {}
    for name, gradings in found.items():
        values = {
            "pass_rate": [one["summary"]["pass_rate"] for one in gradings],
            "time_seconds": [one["timing"]["total_duration_seconds"] for one in gradings],
        }
        out[name] = {metric: _stats(numbers) for metric, numbers in values.items()}
    return out


def _stats(values: list[float]) -> dict[str, float]:
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else 0.0
    return {"mean": round(mean, 4), "stddev": round(deviation, 4), "min": round(min(values), 4), "max": round(max(values), 4)}


def test_the_skill_creators_script_finds_the_same_numbers(tmp_path: Path) -> None:
    made = a_run([task("PUF"), task("CPT", number=12, name="Other")], [task("FFJ", arm="baseline")])
    data = exported(save_run(made, tmp_path / "results"), tmp_path / "out")
    told = {
        name: {metric: one[metric] for metric in ("pass_rate", "time_seconds")}
        for name, one in data["run_summary"].items()
        if name != "delta"
    }
    found = aggregate(tmp_path / "out")
    assert found.keys() == told.keys()
    for name, metrics in found.items():
        for metric, numbers in metrics.items():
            assert told[name][metric] == pytest.approx(numbers, abs=1e-4)
    assert sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("grading.json")) == [
        "eval-1/with_skill/run-1/grading.json",
        "eval-1/with_skill/run-3/grading.json",
        "eval-1/without_skill/run-1/grading.json",
        "eval-1/without_skill/run-2/grading.json",
        "eval-12/with_skill/run-1/grading.json",
        "eval-12/with_skill/run-2/grading.json",
    ]


def test_a_run_of_caliper_eval_is_exported_too(tmp_path: Path) -> None:
    path = RECORDED / "0.21.0" / "run.json"
    data = exported(path, tmp_path / "out")
    assert len(data["runs"]) == sum(result.usable for result in load_run(path).results) == 6
    assert data["runs"][0]["result"]["tool_calls"] == 1
    assert any("3 attempts only told which skills are used" in note for note in data["notes"])
    ablated = exported(RECORDED / "0.21.0" / "ablated.json", tmp_path / "ablated")
    assert {one["configuration"] for one in ablated["runs"]} == {"without_skill"}


def test_hostile_text_is_data(tmp_path: Path) -> None:
    odd = "\x1b[31m</script>\ud800\u2028::error::x"
    made = a_run([replace(task("F", autorater_reasoning=odd, reason=odd, output=odd), expect=odd)])
    target = tmp_path / "out"
    exported(save_run(made, tmp_path / "results"), target)
    text = (target / "benchmark.json").read_bytes()
    assert text.isascii()
    assert b"\x1b" not in text


def test_the_default_place_is_named_after_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_run(a_run([task("PU")]), tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(path)]) == 0
    place = tmp_path / "benchmarks" / path.stem
    assert (place / "eval-1" / "with_skill" / "run-1" / "grading.json").is_file()
    assert place.stat().st_mode & 0o777 == (tmp_path / "benchmarks").stat().st_mode & 0o777
    assert capsys.readouterr().out == (
        f"benchmarks/{path.stem}/benchmark.json: written, with 1 grading.json; 1 without a verdict named in it\n"
    )
    assert [one.name for one in (tmp_path / "benchmarks").iterdir()] == [path.stem]


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_nothing_is_written_over(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(a_run([task("P")]), tmp_path / "results")
    target = tmp_path / "out"
    if kind == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "mine").write_text("mine")
    assert main(["export", str(path), "--output", str(target)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert "mine" in (target.read_text() if kind == "file" else [one.name for one in target.iterdir()])


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    exported(save_run(a_run([task("P")]), tmp_path / "results"), tmp_path / "out")


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("{")
    assert main(["export", str(tmp_path / "x.json")]) == 2
    assert "x.json: is not a run file" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "nowhere.json")]) == 2
    path = save_run(a_run([task("P")]), tmp_path / "results")
    assert main(["export", str(path), "--output", str(tmp_path / "x.json" / "out")]) == 2
    assert "cannot be written" in capsys.readouterr().err
