from __future__ import annotations

import json
from pathlib import Path

import make_runs as made
import pytest

from pytest_caliper.runs.reading import RunFileError, iter_transcript, iter_transcripts
from pytest_caliper.runs.store import save_run


def saved(directory: Path) -> Path:
    def told(task: str, number: int, arm: str) -> str:
        text = f"{arm} {task} {number}"
        return made.side_file(
            directory / f"{text}.jsonl", {"role": "assistant", "content": text}, {"role": "user", "content": "x"}
        )

    skill = [made.record("task-001", n, transcript_path=told("task-001", n, "skill")) for n in (1, 2)]
    none = made.record("task-002", 1)
    base = made.record("task-001", 1, arm="baseline", transcript_path=told("task-001", 1, "baseline"))
    run = made.run(
        made.task("task-001", *skill), made.task("task-002", none), baseline=[made.task("task-001", base, arm="baseline")]
    )
    return save_run(run, directory / "results")


def test_all_attempts_in_one_pass(tmp_path: Path) -> None:
    path = saved(tmp_path)
    found = [(arm, task, number, [turn.content for turn in turns]) for arm, task, number, turns in iter_transcripts(path)]
    assert found == [
        ("skill", "task-001", 1, ["skill task-001 1", "x"]),
        ("skill", "task-001", 2, ["skill task-001 2", "x"]),
        ("skill", "task-002", 1, []),
        ("baseline", "task-001", 1, ["baseline task-001 1", "x"]),
    ]


def test_turns_that_are_not_taken_are_passed_over(tmp_path: Path) -> None:
    path = saved(tmp_path)
    assert [number for _, _, number, _ in iter_transcripts(path)] == [1, 2, 1, 1]
    half = [next(turns).content for _, task, _, turns in iter_transcripts(path) if task == "task-001"]
    assert half == ["skill task-001 1", "skill task-001 2", "baseline task-001 1"]


def test_another_layout_gives_the_same(tmp_path: Path) -> None:
    path = saved(tmp_path)
    other = tmp_path / "other.json"
    other.write_text(json.dumps(json.loads(path.read_text()), indent=1))

    def told(file: Path) -> list[tuple[object, ...]]:
        return [(arm, task, number, *turns) for arm, task, number, turns in iter_transcripts(file)]

    assert told(other) == told(path)


def test_it_agrees_with_the_look_at_one(tmp_path: Path) -> None:
    path = saved(tmp_path)
    for arm, task, number, turns in iter_transcripts(path):
        assert list(turns) == list(iter_transcript(path, arm, task, number))


def test_a_run_without_attempts(tmp_path: Path) -> None:
    path = save_run(made.run(made.task("task-001")), tmp_path)
    assert list(iter_transcripts(path)) == []


def test_damage_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"role": "user"', b'"role"'))
    with pytest.raises(RunFileError, match="damaged transcript"):
        [list(turns) for *_, turns in iter_transcripts(path)]
    with pytest.raises(RunFileError, match="cannot be read"):
        list(iter_transcripts(tmp_path / "none.json"))
