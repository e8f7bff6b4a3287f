"""A run on its way to disk and back, and what caliper-eval 0.9's reader meets."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest
from make_runs import SNAPSHOT, meta, names, record, run, side_file, task

from pytest_caliper.runs.reading import RunFileError, iter_transcript, latest_run, list_runs, load_meta, load_run
from pytest_caliper.runs.records import Run, Turn
from pytest_caliper.runs.store import save_run, write_copy

TURNS: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "Say hi"},
    {"role": "tool_use", "content": "", "tool_name": "Bash", "tool_input": {"command": "ls"}},
    {"role": "tool_result", "content": "", "tool_name": "Bash", "tool_output": '"transcript": [\n]'},
    {"role": "assistant", "content": 'hi "transcript": [\n{"attempt": 1}\n]'},
)


def full_run(tmp_path: Path) -> Run:
    turns = side_file(tmp_path / "turns.jsonl", *TURNS)
    other = side_file(tmp_path / "other.jsonl", {"role": "assistant", "content": "other"})
    empty = side_file(tmp_path / "empty.jsonl")
    return run(
        task("task-001", record(transcript_path=other), record(attempt=2, outcome="cheat", transcript_path=turns)),
        task("task-002", record("task-002", outcome="timeout"), record("task-002", 2, "task_fail", transcript_path=empty)),
        task("task-003"),
        baseline=[task("task-001", record(arm="baseline", attempt=2, transcript_path=other), arm="baseline", planned=2)],
    )


def raw(path: Path) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in a run file")

    data = json.loads(path.read_bytes(), parse_constant=refuse)
    assert isinstance(data, dict)
    return data


def bare(one: Run) -> Run:
    """A run as a file holds it: without side files, with the spec's relative path and the run's start in every record."""

    def strip(results: Any) -> Any:
        return results and tuple(
            replace(
                result,
                attempts=tuple(
                    replace(r, transcript_path=None, started=1782900000.0, key=replace(r.key, spec=one.meta.spec))
                    for r in result.attempts
                ),
            )
            for result in results
        )

    return replace(one, results=strip(one.results), baseline_results=strip(one.baseline_results))


def test_a_run_is_read_as_it_was_saved(tmp_path: Path) -> None:
    saved = full_run(tmp_path)
    path = save_run(saved, tmp_path / "results")
    assert load_run(path) == replace(bare(saved), saved=str(path))
    assert load_meta(path) == saved.meta


def test_the_file_is_named_by_time_and_id_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = save_run(run(), tmp_path / "results")
    assert path == tmp_path / "results" / "2026-07-01T10-00-00Z-3f9c21ab.json"
    assert names(path.parent) == [path.name]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("more", [{"partial": True}, {"interrupted": True}])
def test_partial_and_interrupted_runs_are_never_the_latest(tmp_path: Path, more: dict[str, Any]) -> None:
    whole = save_run(run(), tmp_path)
    partial = save_run(run(timestamp="2026-07-02T10:00:00Z", **more), tmp_path)
    assert partial.parent == tmp_path / "partial"
    assert latest_run(tmp_path) == whole
    assert list_runs(tmp_path) == (whole,)
    assert list_runs(tmp_path, partial=True) == (whole, partial)


def test_selected_tasks_alone_do_not_make_a_run_partial(tmp_path: Path) -> None:
    path = save_run(run(selected_tasks=("Name of task-001",)), tmp_path)
    assert path.parent == tmp_path
    assert load_run(path).meta.selected_tasks == ("Name of task-001",)


def test_latest_is_by_name(tmp_path: Path) -> None:
    for stamp in ("2026-07-01T10:00:00Z", "2026-07-03T10:00:00+02:00", "2026-07-02T10:00:00Z"):
        save_run(run(timestamp=stamp), tmp_path)
    (tmp_path / "9999.json").write_text("{}")
    (tmp_path / "2027-01-01T00-00-00Z.jsonl").write_text("")
    (tmp_path / "2027-01-01T00-00-00Z-dir.json").mkdir()
    latest = latest_run(tmp_path)
    assert latest is not None
    assert latest.name == "2026-07-03T08-00-00Z-3f9c21ab.json"
    assert latest_run(tmp_path / "nowhere") is None


def test_runs_of_the_same_second_and_even_the_same_id_never_share_a_file(tmp_path: Path) -> None:
    paths: list[Path] = []

    def save(number: int) -> None:
        paths.append(save_run(run(task("task-001", record(output=str(number)))), tmp_path))

    threads = [threading.Thread(target=save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 8
    assert {load_run(path).results[0].attempts[0].output for path in paths} == {str(number) for number in range(8)}


def test_without_hard_links_nothing_is_overwritten_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    one, two = save_run(run(), tmp_path), save_run(run(), tmp_path)
    assert one != two
    assert load_run(one).meta == load_run(two).meta
    assert names(tmp_path) == sorted([one.name, two.name])


def test_a_place_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        save_run(run(), tmp_path / "file" / "x")
    with pytest.raises(OSError, match="file"):
        save_run(run(), tmp_path / "file")


def test_a_failure_midway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space"):
        save_run(run(), tmp_path / "results")
    assert names(tmp_path / "results") == []


@pytest.mark.parametrize("run_id", ["../x", "", "a/b", "x" * 65])
def test_an_id_is_no_path(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(ValueError, match="run id"):
        save_run(run(id=run_id), tmp_path)


def test_transcripts_are_streamed_in_and_out(tmp_path: Path) -> None:
    path = save_run(full_run(tmp_path), tmp_path / "results")
    assert raw(path)["task_results"][0]["attempts"][1]["transcript"] == list(TURNS)
    turns = list(iter_transcript(path, "skill", "task-001", 2))
    assert [turn.to_json() for turn in turns] == list(TURNS)
    assert list(iter_transcript(path, "baseline", "task-001", 2)) == [Turn(role="assistant", content="other")]
    assert list(iter_transcript(path, "skill", "task-002", 1)) == []
    assert list(iter_transcript(path, "skill", "task-002", 2)) == []
    with pytest.raises(RunFileError, match="no attempt 9 of task-001 in the skill arm"):
        next(iter_transcript(path, "skill", "task-001", 9))


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_that_another_tool_laid_out_anew_is_read_all_the_same(tmp_path: Path, indent: int | None) -> None:
    path = save_run(full_run(tmp_path), tmp_path / "results")
    other = tmp_path / "other.json"
    other.write_text(json.dumps(raw(path), indent=indent))
    assert replace(load_run(other), saved=None) == replace(load_run(path), saved=None)
    assert load_meta(other) == load_meta(path)
    assert list(iter_transcript(other, "skill", "task-001", 2)) == list(iter_transcript(path, "skill", "task-001", 2))
    with pytest.raises(RunFileError, match="no attempt"):
        next(iter_transcript(other, "baseline", "task-003", 1))


def test_transcripts_are_not_parsed_for_a_run(tmp_path: Path) -> None:
    path = save_run(full_run(tmp_path), tmp_path / "results")
    path.write_bytes(path.read_bytes().replace(b'{"role": "user"', b'{"role": !!!!!!'))
    assert load_run(path).results[0].successes == 1
    with pytest.raises(RunFileError, match="damaged transcript"):
        list(iter_transcript(path, "skill", "task-001", 2))


def test_a_missing_side_file_is_said(tmp_path: Path) -> None:
    path = save_run(run(task("task-001", record(transcript_path=str(tmp_path / "gone.jsonl")), record(attempt=2))), tmp_path)
    attempts = raw(path)["task_results"][0]["attempts"]
    assert [(one["transcript"], one["transcript_truncated"]) for one in attempts] == [(None, True), (None, False)]


@pytest.mark.parametrize(
    "junk", [b'{"role": "assist', b"[]\n", b'{"role": "x", "content": ""}\n', b'{"role": "user", "content": 1}\n', b"[" * 100_000]
)
def test_damaged_turns_are_left_out_and_said(tmp_path: Path, junk: bytes) -> None:
    side = tmp_path / "turns.jsonl"
    side_file(side, {"role": "user", "content": "hi"})
    side.write_bytes(side.read_bytes() + junk)
    path = save_run(run(task("task-001", record(transcript_path=str(side)))), tmp_path)
    attempt = raw(path)["task_results"][0]["attempts"][0]
    assert attempt["transcript"] == [{"role": "user", "content": "hi"}]
    assert attempt["transcript_truncated"] is True


def test_what_agents_say_cannot_break_the_file(tmp_path: Path) -> None:
    turns = side_file(
        tmp_path / "t.jsonl", {"role": "tool_use", "content": "\udc80", "tool_input": {"n": float("nan"), "i": float("inf")}}
    )
    odd = record(output="\ud800 \ud83d\ude00 \x1b[31m \u2028 ] \n", duration_seconds=1.0, transcript_path=turns)
    path = save_run(run(task("task-001", odd)), tmp_path)
    data = path.read_bytes()
    assert data.isascii()
    attempt = raw(path)["task_results"][0]["attempts"][0]
    assert attempt["output"] == "\ufffd 😀 \x1b[31m \u2028 ] \n"
    assert attempt["transcript"] == [{"role": "tool_use", "content": "\ufffd", "tool_input": {"n": None, "i": None}}]
    attempt["output"].encode()


def test_nothing_private_is_written(tmp_path: Path) -> None:
    text = save_run(full_run(tmp_path), tmp_path / "results").read_text()
    assert "/project/" not in text
    assert str(tmp_path) not in text
    assert "transcript_path" not in text


def test_derived_numbers(tmp_path: Path) -> None:
    data = raw(save_run(full_run(tmp_path), tmp_path / "results"))
    shown = [
        {name: one[name] for name in ("successes", "usable", "unusable", "score", "pass_at_k", "pass_hat_k")}
        for one in data["task_results"]
    ]
    assert shown == [
        {"successes": 1, "usable": 2, "unusable": 0, "score": 0.5, "pass_at_k": 0.75, "pass_hat_k": 0.25},
        {"successes": 0, "usable": 1, "unusable": 1, "score": 0.0, "pass_at_k": 0.0, "pass_hat_k": 0.0},
        {"successes": 0, "usable": 0, "unusable": 0, "score": None, "pass_at_k": None, "pass_hat_k": None},
    ]
    assert data["aggregate"]["avg_score"] == 0.25
    assert data["schema_version"] == 1


def test_derived_numbers_are_not_read_back(tmp_path: Path) -> None:
    path = save_run(full_run(tmp_path), tmp_path / "results")
    path.write_text(path.read_text().replace('"successes": 1', '"successes": 9').replace('"passed": true', '"passed": false'))
    assert load_run(path).results[0].successes == 1


def test_a_run_without_skill_and_without_any_usable_attempt(tmp_path: Path) -> None:
    empty = replace(run(task("task-001", record(outcome="infra_error"))), skills=())
    path = save_run(empty, tmp_path)
    data = raw(path)
    assert data["skill_snapshot"]["path"] == ""
    assert data["aggregate"]["avg_score"] == 0.0
    assert load_run(path).skills == ()


def test_copy(tmp_path: Path) -> None:
    path = save_run(run(), tmp_path / "results")
    target = tmp_path / "new" / "deep" / "out.json"
    assert write_copy(path, target) == target
    assert write_copy(path, target) == target
    assert target.read_bytes() == path.read_bytes()
    assert write_copy(path, target.parent) == target.parent / path.name
    assert write_copy(path, path) == path
    assert names(target.parent) == sorted([path.name, "out.json"])


def test_copy_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    path = save_run(run(), tmp_path / "results")
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    write_copy(path, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_bytes() == path.read_bytes()


def test_copy_to_a_pipe_leaves_the_pipe(tmp_path: Path) -> None:
    path = save_run(run(), tmp_path / "results")
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as cat:
        write_copy(path, tmp_path / "pipe")
        assert cat.communicate(timeout=30)[0] == path.read_bytes()
    assert (tmp_path / "pipe").is_fifo()


def test_copy_into_what_is_no_directory(tmp_path: Path) -> None:
    path = save_run(run(), tmp_path / "results")
    with pytest.raises(OSError, match="file"):
        write_copy(path, path / "file" / "x.json")


# caliper-eval 0.9


class TranscriptTurn(pydantic.BaseModel):
    role: Literal["assistant", "tool_use", "tool_result", "user"]
    content: str
    tool_name: str | None = None
    tool_input: dict[str, Any] | None = None
    tool_output: str | None = None


class TokenUsage(pydantic.BaseModel):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None


class Attempt(pydantic.BaseModel):
    attempt: int
    output: str
    duration_seconds: float
    outcome: Literal["pass", "task_fail", "judge_error", "infra_error", "timeout", "cheat"]
    usage: TokenUsage | None = None
    transcript: list[TranscriptTurn] | None = None
    cheat_evidence: list[str]
    assert_passed: bool | None = None
    assert_evidence: str | None = None
    autorater_passed: bool | None = None
    autorater_reasoning: str | None = None


class TaskOf09(pydantic.BaseModel):
    task_id: str
    task_name: str
    attempts: list[Attempt]
    successes: int
    unusable: int
    pass_at_k: float | None
    score: float | None
    pass_hat_k: float | None


class SnapshotFile(pydantic.BaseModel):
    content: str
    hash: str


class Snapshot(pydantic.BaseModel):
    path: str
    git_repo: str | None = None
    git_sha: str | None = None
    files: dict[str, SnapshotFile]


class RunOf09(pydantic.BaseModel):
    spec: str
    timestamp: str
    k: int
    backend: str
    model: str | None = None
    judge_backend: str | None = None
    judge_model: str | None = None


class PerTask(pydantic.BaseModel):
    task_id: str
    task_name: str
    k: int
    successes: int
    score: float | None


class Aggregate(pydantic.BaseModel):
    avg_score: float
    per_task: list[PerTask]


class FileOf09(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    run: RunOf09
    skill_snapshot: Snapshot
    task_results: list[TaskOf09]
    aggregate: Aggregate
    baseline_task_results: list[TaskOf09] | None = None


def test_the_reader_of_caliper_eval_09_finds_all_it_requires(tmp_path: Path) -> None:
    data = FileOf09.model_validate_json(save_run(full_run(tmp_path), tmp_path / "results").read_bytes())
    assert [len(one.attempts) for one in data.task_results] == [2, 2, 0]
    assert data.skill_snapshot.files["SKILL.md"].content == SNAPSHOT.files["SKILL.md"]["content"]
    assert data.baseline_task_results is not None
    assert data.baseline_task_results[0].attempts[0].attempt == 2


def file_of_09(tmp_path: Path) -> Path:
    """What 0.9 writes: nothing but the fields above."""
    path = save_run(full_run(tmp_path), tmp_path / "results")
    data = FileOf09.model_validate_json(path.read_bytes()).model_dump()
    other = tmp_path / "2026-07-01T10-00-00Z.json"
    other.write_text(json.dumps(data, indent=2))
    return other


def test_files_of_caliper_eval_09_are_read(tmp_path: Path) -> None:
    found = load_run(file_of_09(tmp_path))
    assert [(one.task_id, one.successes, one.usable, one.planned, one.aborted) for one in found.results] == [
        ("task-001", 1, 2, 3, True),
        ("task-002", 0, 1, 3, True),
        ("task-003", 0, 0, 3, True),
    ]
    assert found.meta.baseline is True
    assert found.meta.id == "2026-07-01T10-00-00Z"
    assert found.baseline_results is not None
    assert found.baseline_results[0].attempts[0].key.arm == "baseline"
    assert found.skills[0].files["SKILL.md"]["hash"] == "sha256:00"
    assert len(list(iter_transcript(file_of_09(tmp_path), "skill", "task-001", 2))) == 4


def test_nan_in_a_file_of_another_writer_is_unknown(tmp_path: Path) -> None:
    path = file_of_09(tmp_path)
    path.write_text(path.read_text().replace('"score": 0.5', '"score": NaN'))
    assert load_run(path).results[0].successes == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not a run file"),
        (b"{", "is not a run file"),
        (b"[]", "no JSON object"),
        (b"{}", "'run' is missing"),
        (b"[" * 100_000, "is not a run file"),
        (b"\xff\xfe\x00", "is not a run file"),
        (b'{"schema_version": 2, "run": {}}', "schema version 2"),
        (b'{"run": {"spec": 5, "timestamp": "", "k": 1, "backend": "x"}}', "'spec' is int"),
        (b'{"run": {"spec": "s", "timestamp": "today", "k": 1, "backend": "x"}, "task_results": []}', "today"),
    ],
)
def test_what_is_no_run_file_is_named_in_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(RunFileError) as caught:
        load_run(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"outcome": "cheat"', '"outcome": "not_checked"', "outcome 'not_checked'"),
        ('"output": "done"', '"output": null', "'output' is NoneType"),
        ('"attempts": [', '"attempts": 5, "x": [', "'attempts' is int"),
    ],
)
def test_damaged_attempts_are_told(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = save_run(full_run(tmp_path), tmp_path / "results")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(RunFileError, match=says):
        load_run(path)


def test_a_file_that_was_cut_short(tmp_path: Path) -> None:
    path = save_run(full_run(tmp_path), tmp_path / "results")
    for length in (10, path.stat().st_size // 2, path.stat().st_size - 3):
        (tmp_path / "cut.json").write_bytes(path.read_bytes()[:length])
        with pytest.raises(RunFileError, match=r"cut\.json"):
            load_run(tmp_path / "cut.json")


@pytest.mark.parametrize("load", [load_run, load_meta, lambda path: next(iter_transcript(path, "skill", "task-001", 1))])
def test_no_file(tmp_path: Path, load: Any) -> None:
    with pytest.raises(RunFileError, match="cannot be read: No such file"):
        load(tmp_path / "x.json")


@pytest.mark.parametrize("stamp", ["2026-07-01T10:00:00Z", "2026-07-01T10:00:00.1234567+00:00", "2026-07-01T12:00:00.5+02:00"])
def test_timestamps(tmp_path: Path, stamp: str) -> None:
    assert save_run(run(timestamp=stamp), tmp_path).name.startswith("2026-07-01T10-00-00Z-")
    assert meta(timestamp=stamp).timestamp == stamp


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("run", "judge_model"), 5),
        (("run", "id"), []),
        (("run", "shard"), "1/2"),
        (("task_results", 0, "prompt"), 7),
        (("task_results", 0, "planned"), "3"),
        (("task_results", 0, "attempts", 0, "reason"), {}),
        (("task_results", 0, "attempts", 0, "assert_evidence"), 1),
        (("task_results", 0, "attempts", 0, "wall_seconds"), None),
        (("task_results", 0, "attempts", 0, "duration_seconds"), -1),
        (("task_results", 0, "attempts", 0, "durations"), {"agent": "x"}),
        (("task_results", 0, "attempts", 0, "usage"), {"input_tokens": "many"}),
        (("task_results", 0, "attempts", 0, "changed_files"), [{"path": 1, "change": "added", "size": 1}]),
    ],
)
def test_a_file_with_wrong_types_is_told_and_never_a_traceback(tmp_path, place, value):
    path = save_run(run(task("task-001", record())), tmp_path)
    data = json.loads(path.read_text())
    inner = data
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    path.write_text(json.dumps(data))
    with pytest.raises(RunFileError):
        load_run(path)
