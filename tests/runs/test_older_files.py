"""Run files of the real caliper-eval, from 0.3 to 0.21; recordings/caliper_eval/make.py tells how they were made."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from make_runs import record, run, side_file, task

from pytest_caliper.cli import main
from pytest_caliper.reporting.figures import arm_figures
from pytest_caliper.runs.newest import newest_run
from pytest_caliper.runs.reading import (
    RunFileError,
    iter_transcript,
    iter_transcripts,
    latest_run,
    list_runs,
    load_meta,
    load_run,
)
from pytest_caliper.runs.records import Run, TaskResult
from pytest_caliper.runs.store import save_run

RECORDED = Path(__file__).parents[1] / "recordings" / "caliper_eval"
BEFORE_10 = ("0.3.0", "0.4.0", "0.9.0")
SINCE_10 = ("0.10.0", "0.15.0", "0.21.0")
ALL = (*BEFORE_10, *SINCE_10)


def recorded(version: str, name: str = "run") -> Path:
    return RECORDED / version / f"{name}.json"


def raw(path: Path) -> dict[str, Any]:
    data = json.loads(path.read_bytes())
    assert isinstance(data, dict)
    return data


def changed(tmp_path: Path, version: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """A recording after somebody's `change`."""
    data = raw(recorded(version))
    change(data)
    path = tmp_path / "2026-07-01T10-00-00Z.json"
    path.write_text(json.dumps(data))
    return path


def words(result: TaskResult) -> list[str]:
    return [record.outcome for record in result.attempts]


@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", *SINCE_10])
def test_the_same_attempts_are_read_the_same_whichever_version_wrote_them(version: str) -> None:
    found = load_run(recorded(version))
    assert found.meta.spec == "greeter"
    assert (found.meta.k, found.meta.backend, found.meta.pytest_caliper) == (3, "claude-code", "")
    assert {result.task_name: words(result) for result in found.results[:3]} == {
        "Writes the config": ["pass", "pass", "task_fail"],
        "Explains itself": ["pass", "task_fail", "judge_error"],
        "Looks nowhere": ["cheat", "infra_error", "timeout"],
    }
    assert [(r.successes, r.usable, r.unusable, r.planned, r.aborted) for r in found.results[:3]] == [
        (2, 3, 0, 3, False),
        (1, 2, 1, 3, False),
        (0, 1, 2, 3, False),
    ]
    assert [skill.name for skill in found.skills] == ["greeter"]
    assert "Say hello" in found.skills[0].files["SKILL.md"]["content"]


@pytest.mark.parametrize("version", ALL)
def test_every_attempt_tells_why(version: str) -> None:
    found = load_run(recorded(version))
    writes, explains, looks = found.results[:3]
    assert [record.reason for record in writes.attempts] == [None, None, "AssertionError: wrong port"]
    assert explains.attempts[1].reason == "It is explained badly"
    assert "unparseable" in (explains.attempts[2].reason or "")
    assert looks.attempts[0].reason == "cat answers.txt"
    assert looks.attempts[2].reason == "stopped after 2 s"
    assert explains.attempts[0].output == "It is explained well. \u2028\x1b[31mred\x1b[0m"


def test_before_outcomes_a_failed_cli_is_no_failed_task() -> None:
    found = load_run(recorded("0.3.0"))
    assert [words(result) for result in found.results] == [
        ["pass", "pass", "task_fail"],
        ["pass", "task_fail", "task_fail"],  # 0.3 does not say that its judge gave no verdict
        ["cheat", "task_fail", "timeout"],  # nor what a text on standard error was
    ]
    assert found.meta.foreign["written_by"] == "caliper-eval before 0.4"


def test_before_outcomes_a_cli_that_said_nothing_is_told_by_its_exit_status(tmp_path: Path) -> None:
    def silent(data: dict[str, Any]) -> None:
        data["task_results"][2]["attempts"][1]["assert_evidence"] = "harness exited 1"

    assert words(load_run(changed(tmp_path, "0.3.0", silent)).results[2]) == ["cheat", "infra_error", "timeout"]


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("0.3.0", "caliper-eval before 0.4"),
        ("0.4.0", "caliper-eval 0.4 to 0.7"),
        ("0.9.0", "caliper-eval 0.8 or 0.9"),
        ("0.10.0", "caliper-eval 0.10 or later"),
        ("0.21.0", "caliper-eval 0.10 or later"),
    ],
)
def test_who_wrote_it(version: str, says: str) -> None:
    assert load_meta(recorded(version)).foreign["written_by"] == says


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0"])
def test_a_baseline_without_attempts_is_no_baseline_arm_and_not_lost(version: str) -> None:
    found = load_run(recorded(version))
    assert found.baseline_results is None
    assert found.meta.baseline is False
    assert [one["successes"] for one in found.meta.foreign["baseline"]["per_task"]] == [3, 3, 3]
    assert "delta" in found.meta.foreign


def test_the_baseline_arm_of_09() -> None:
    found = load_run(recorded("0.9.0"))
    assert found.meta.baseline is True
    assert found.baseline_results is not None
    assert [words(result) for result in found.baseline_results] == [["pass"] * 3] * 3
    assert {record.key.arm for result in found.baseline_results for record in result.attempts} == {"baseline"}


@pytest.mark.parametrize("version", SINCE_10)
def test_attempts_that_nothing_was_asked_of_are_neither_usable_nor_lost(version: str) -> None:
    found = load_run(recorded(version))
    probe = found.results[3]
    assert probe.task_name == "Reaches for the skill"
    assert (probe.attempts, probe.planned, probe.usable, probe.unusable, probe.aborted) == ((), 0, 0, 0, False)
    assert [(one.key.attempt, one.outcome, one.skills_used) for one in probe.not_checked] == [
        (1, "not_checked", ("greeter",)),
        (2, "not_checked", ()),
        (3, "not_checked", ("greeter",)),
    ]
    assert [one.foreign.get("activation_passed") for one in probe.not_checked] == [True, False, True]
    assert probe.foreign["activation_expected"] == ["greeter"]
    assert probe.not_checked[0].usage is not None
    assert probe.not_checked[0].usage.total_tokens == 177


@pytest.mark.parametrize("version", SINCE_10)
def test_a_task_that_asked_nothing_moves_no_number(version: str) -> None:
    found = load_run(recorded(version))
    with_probe, without = arm_figures(found.results), arm_figures(found.results[:3])
    assert with_probe == without
    assert (without.successes, without.usable, without.planned, without.unusable) == (3, 6, 9, 3)


def test_a_timeout_of_a_task_that_asked_nothing_is_no_lost_verdict(tmp_path: Path) -> None:
    def hang(data: dict[str, Any]) -> None:
        data["task_results"][3]["attempts"][1]["outcome"] = "timeout"

    probe = load_run(changed(tmp_path, "0.21.0", hang)).results[3]
    assert (probe.planned, probe.unusable, probe.attempts) == (0, 0, ())
    assert [one.outcome for one in probe.not_checked] == ["not_checked", "timeout", "not_checked"]


def test_a_cheat_counts_even_where_nothing_was_asked(tmp_path: Path) -> None:
    def cheat(data: dict[str, Any]) -> None:
        data["task_results"][3]["attempts"][1]["outcome"] = "cheat"

    probe = load_run(changed(tmp_path, "0.21.0", cheat)).results[3]
    assert (words(probe), probe.planned, probe.usable, len(probe.not_checked)) == (["cheat"], 1, 1, 2)


def test_a_task_stopped_early_is_told(tmp_path: Path) -> None:
    def stop(data: dict[str, Any]) -> None:
        del data["task_results"][0]["attempts"][1:]
        data["run"]["interrupted"] = True

    found = load_run(changed(tmp_path, "0.21.0", stop))
    assert [result.aborted for result in found.results] == [True, False, False, False]
    assert found.meta.interrupted is True


def test_what_021_adds_is_kept() -> None:
    found = load_run(recorded("0.21.0"))
    assert found.meta.cli_version == found.meta.judge_cli_version == "2.1.0 (Claude Code)"
    assert found.meta.judge_model == "claude-judge-1"
    assert found.meta.user_customizations is True
    assert found.meta.foreign["era"] == "install-and-discover"
    assert "judge_prompt_version" in found.meta.foreign
    explained = found.results[1]
    assert (explained.prompt, explained.expect) == ("Explain yourself.", "It is explained well.")
    assert explained.attempts[0].durations.judge is not None
    assert explained.attempts[0].durations.judge > 0


def test_a_run_without_the_skill_says_so() -> None:
    for version in ("0.10.0", "0.21.0"):
        found = load_run(recorded(version, "ablated"))
        assert found.skills == ()
        assert found.meta.foreign["ablated"] == ["greeter"]


def test_a_file_that_is_no_text_has_only_its_hash(tmp_path: Path) -> None:
    def image(data: dict[str, Any]) -> None:
        data["skill_snapshots"][0]["files"]["logo.png"] = {"content": None, "hash": "sha256:1"}

    files = load_run(changed(tmp_path, "0.21.0", image)).skills[0].files
    assert files["logo.png"] == {"content": "", "hash": "sha256:1"}


def test_a_lone_command_is_known_by_its_file(tmp_path: Path) -> None:
    def command(data: dict[str, Any]) -> None:
        data["skill_snapshot"]["path"] = "/project/commands/review.md"

    skill = load_run(changed(tmp_path, "0.9.0", command)).skills[0]
    assert (skill.name, skill.kind) == ("review", "command")


@pytest.mark.parametrize("version", ["0.9.0", *SINCE_10])
def test_transcripts(version: str) -> None:
    turns = list(iter_transcript(recorded(version), "skill", "task-001", 3))
    assert turns[0].role == "tool_use"
    assert turns[0].tool_input == {"file_path": "app.json", "content": 3000}
    assert turns[-1].content == "Wrote port 3000."
    assert list(iter_transcript(recorded(version), "skill", "task-003", 3)) == []


@pytest.mark.parametrize("version", SINCE_10)
def test_transcripts_of_attempts_that_nothing_was_asked_of(version: str) -> None:
    turns = list(iter_transcript(recorded(version), "skill", "task-004", 1))
    assert turns[0].tool_input == {"skill": "greeter"}
    found = [(arm, task_id, number) for arm, task_id, number, _ in iter_transcripts(recorded(version))]
    assert ("skill", "task-004", 3) in found
    assert len(found) == 12


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0"])
def test_before_transcripts_there_are_none(version: str) -> None:
    assert list(iter_transcript(recorded(version), "skill", "task-001", 1)) == []
    with pytest.raises(RunFileError, match="no attempt 1 of task-001 in the baseline arm"):
        next(iter_transcript(recorded(version), "baseline", "task-001", 1))


@pytest.mark.parametrize("version", ALL)
def test_derived_numbers_are_not_read(version: str, tmp_path: Path) -> None:
    def lie(data: dict[str, Any]) -> None:
        for result in data["task_results"]:
            result.update(successes=99, unusable=99, usable=99, score=99.0, pass_at_k=99.0)

    true, lied = load_run(recorded(version)), load_run(changed(tmp_path, version, lie))
    assert [(r.successes, r.usable) for r in lied.results] == [(r.successes, r.usable) for r in true.results]


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("spoil", [lambda attempt: attempt.pop("output"), lambda attempt: attempt.update(duration_seconds="1")])
def test_damage_is_told_in_one_line(version: str, tmp_path: Path, spoil: Callable[[dict[str, Any]], object]) -> None:
    path = changed(tmp_path, version, lambda data: spoil(data["task_results"][0]["attempts"][0]))
    with pytest.raises(RunFileError, match="is not a run file") as caught:
        load_run(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 5, "x", [], [5], {}, {"a": []}])
@pytest.mark.parametrize("version", ["0.3.0", "0.21.0"])
@pytest.mark.parametrize("where", ["run", "task_results", "aggregate", "skill_snapshot", "skill_snapshots"])
def test_odd_shapes_never_escape_as_anything_else(version: str, where: str, value: Any, tmp_path: Path) -> None:
    path = changed(tmp_path, version, lambda data: data.update({where: value}))
    with contextlib.suppress(RunFileError):
        load_run(path)


@pytest.mark.parametrize("value", [None, 5, "x", [], [5], {}, {"outcome": 5}])
@pytest.mark.parametrize("name", ["attempts", "outcome", "usage", "transcript", "cheat_evidence", "activated", "retries"])
def test_odd_shapes_of_tasks_and_attempts_never_escape_either(name: str, value: Any, tmp_path: Path) -> None:
    def spoil(data: dict[str, Any]) -> None:
        result = data["task_results"][0]
        (result if name == "attempts" else result["attempts"][0])[name] = value

    path = changed(tmp_path, "0.21.0", spoil)
    for read in (load_run, lambda path: list(iter_transcript(path, "skill", "task-001", 1))):
        with contextlib.suppress(RunFileError):
            read(path)


def test_without_any_outcome_it_is_no_attempt(tmp_path: Path) -> None:
    def strip(data: dict[str, Any]) -> None:
        del data["task_results"][0]["attempts"][0]["passed"]

    with pytest.raises(RunFileError, match="'outcome' is missing"):
        load_run(changed(tmp_path, "0.3.0", strip))


# A directory of runs


def results(tmp_path: Path) -> Path:
    """One run of each version, in the order of versions, named as caliper-eval names them."""
    for day, version in enumerate(ALL, 1):
        shutil.copy(recorded(version), tmp_path / f"2026-07-0{day}T10-00-00Z.json")
    return tmp_path


def test_old_runs_are_listed_and_the_newest_is_the_latest(tmp_path: Path) -> None:
    directory = results(tmp_path)
    assert [load_meta(path).id for path in list_runs(directory)] == [f"2026-07-0{day}T10-00-00Z" for day in range(1, 7)]
    assert latest_run(directory) == directory / "2026-07-06T10-00-00Z.json"
    newest, problems = newest_run(directory)
    assert newest == load_run(directory / "2026-07-06T10-00-00Z.json")
    assert problems == ()


def test_runs_of_one_second_come_in_the_order_they_were_saved(tmp_path: Path) -> None:
    stamp = "2026-07-01T10-00-00Z"
    ordered = [f"{stamp}{end}.json" for end in ("", "-2", "-3", "-10", "-3f9c21ab", "-3f9c21ab-2", "-3f9c21ab-10")]
    for name in reversed(ordered):
        shutil.copy(recorded("0.21.0"), tmp_path / name)
    assert [path.name for path in list_runs(tmp_path)] == ordered


FOREIGN = (
    b"",
    b"{",
    b"[]",
    b"{}",
    b"null",
    b'"text"',
    b"\xff\xfe\x00",
    b'{"run": {}}',
    b'{"schema_version": 99}',
    b"[" * 100_000,
)


@pytest.mark.parametrize("content", FOREIGN)
def test_a_damaged_file_is_named_and_stops_nothing(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    directory = results(tmp_path)
    bad = directory / "2026-07-09T10-00-00Z.json"
    bad.write_bytes(content)
    newest, problems = newest_run(directory)
    assert newest is not None
    assert newest.meta.id == "2026-07-06T10-00-00Z"
    assert [problem.path for problem in problems] == [bad]
    assert all("\n" not in str(problem) for problem in problems)
    assert main(["list", str(directory)]) == 0
    out, err = capsys.readouterr()
    assert "6 complete runs" in out
    assert bad.name in err
    assert main(["report", str(directory)]) == 0
    assert bad.name in capsys.readouterr().err


def test_other_json_files_are_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = results(tmp_path)
    (directory / "package.json").write_text("{}")
    (directory / "9999.json").write_bytes(recorded("0.9.0").read_bytes())
    (directory / "notes.txt").write_text("")
    (directory / "dir.json").mkdir()
    assert len(list_runs(directory)) == 6
    newest, problems = newest_run(directory)
    assert newest is not None
    assert newest.meta.id == "2026-07-06T10-00-00Z"
    assert problems == ()
    assert main(["list", str(directory)]) == 0
    assert "9999" not in capsys.readouterr().out


def test_only_damage_is_no_latest_run(tmp_path: Path) -> None:
    (tmp_path / "2026-07-09T10-00-00Z.json").write_text("{")
    newest, problems = newest_run(tmp_path)
    assert newest is None
    assert len(problems) == 1
    assert newest_run(tmp_path / "nowhere") == (None, ())


def test_an_interrupted_run_of_caliper_eval_is_never_the_latest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = results(tmp_path)
    data = raw(recorded("0.21.0"))
    data["run"]["interrupted"] = True
    (directory / "2026-07-08T10-00-00Z.json").write_text(json.dumps(data))
    newest, problems = newest_run(directory)
    assert newest is not None
    assert newest.meta.id == "2026-07-06T10-00-00Z"
    assert problems == ()
    assert main(["report", str(directory), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["interrupted"] is False


# Our own files after other tools


def ours(tmp_path: Path) -> tuple[Run, Path]:
    turns = side_file(tmp_path / "turns.jsonl", {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"})
    saved = run(
        task("task-001", record(transcript_path=turns), record(attempt=2, outcome="cheat")),
        baseline=[task("task-001", record(arm="baseline"), arm="baseline")],
    )
    return saved, save_run(saved, tmp_path / "results")


LAYOUTS: dict[str, Callable[[dict[str, Any], bytes], bytes]] = {
    "jq": lambda data, _: json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n",
    "jq -c": lambda data, _: json.dumps(data, separators=(",", ":")).encode(),
    "jq -S": lambda data, _: json.dumps(data, indent=2, sort_keys=True).encode(),
    "one line": lambda data, _: json.dumps(data).encode(),
    "no indentation": lambda data, _: json.dumps(data, indent=0).encode(),
    "tabs": lambda data, _: json.dumps(data, indent="\t").encode(),
    "Windows line ends": lambda _, text: text.replace(b"\n", b"\r\n"),
    "byte order mark": lambda _, text: b"\xef\xbb\xbf" + text,
    "UTF-16": lambda _, text: text.decode().encode("utf-16"),
    "no last line break": lambda _, text: text.rstrip(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_our_file_in_any_layout(tmp_path: Path, layout: str) -> None:
    _, path = ours(tmp_path)
    other = tmp_path / "other.json"
    other.write_bytes(LAYOUTS[layout](raw(path), path.read_bytes()))
    assert replace(load_run(other), saved=None) == replace(load_run(path), saved=None)
    assert load_meta(other) == load_meta(path)
    assert [turn.content for turn in iter_transcript(other, "skill", "task-001", 1)] == ["hi", "ho"]
    assert [(*key, len(list(turns))) for *key, turns in iter_transcripts(other)] == [
        ("skill", "task-001", 1, 2),
        ("skill", "task-001", 2, 0),
        ("baseline", "task-001", 1, 0),
    ]


def test_unknown_fields_are_passed_over_at_every_level(tmp_path: Path) -> None:
    _, path = ours(tmp_path)

    def extend(value: Any) -> Any:
        if isinstance(value, dict):
            return {"a_new_field": {"x": [1]}, **{name: extend(entry) for name, entry in value.items()}, "another": None}
        return [extend(entry) for entry in value] if isinstance(value, list) else value

    data = raw(path)
    other = tmp_path / "other.json"
    grown = {**data, "future": 1, "run": extend(data["run"])}
    for name in ("task_results", "baseline_task_results"):
        grown[name] = extend(data[name])
    other.write_text(json.dumps(grown))
    found, true = load_run(other), load_run(path)
    assert replace(found.meta, contract={}) == replace(true.meta, contract={})
    assert (found.results, found.baseline_results) == (true.results, true.baseline_results)


def test_ours_has_nothing_foreign(tmp_path: Path) -> None:
    _, path = ours(tmp_path)
    assert b"foreign" not in path.read_bytes()
    assert b"not_checked" not in path.read_bytes()
    assert load_run(path).meta.foreign == {}
