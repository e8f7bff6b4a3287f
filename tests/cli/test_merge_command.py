"""`caliper merge`: where the merged run goes, what is said, and what ends with 2 and writes nothing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.cli import main
from pytest_caliper.runs.names import latest_run
from pytest_caliper.runs.reading import iter_transcript, load_run
from pytest_caliper.runs.records import AttemptKey, AttemptRecord, Run, RunMeta, TaskResult
from pytest_caliper.runs.store import save_run


def shard_run(index: int, of: int = 2, *, spec: str = "evals/x.eval.yaml", **more: Any) -> Run:
    """A shard with one task of its own, `task-00<index>`."""
    tasks = {f"task-{number:03}": number for number in range(1, of + 1)}
    task_id = f"task-{index:03}"
    record = AttemptRecord(
        key=AttemptKey(spec=spec, task_id=task_id, arm="skill", attempt=1),
        task_name=f"Task {index}",
        outcome="pass",
        reason=None,
        output="done",
        duration_seconds=1.0,
        started=0.0,
        wall_seconds=1.0,
        cli_version="1.0",
    )
    values: dict[str, Any] = {
        "id": f"shard{index}",
        "spec": spec,
        "timestamp": f"2026-07-01T10:00:0{index}Z",
        "k": 1,
        "backend": "claude-code",
        "model": None,
        "judge_backend": None,
        "judge_model": None,
        "pytest_caliper": "0.1.0",
        "workers": 4,
        "baseline": False,
        "interrupted": False,
        "selected_tasks": (f"Task {index}",),
        "partial": False,
        "contract": {"spec": "sha256:1", "tasks": dict.fromkeys(tasks, "sha256:2"), "engine": "claude-code", "k": 1},
        "shard": {"index": index, "of": of, "plan": "sha256:p", "tasks": tasks},
    }
    result = TaskResult(task_id=task_id, task_name=f"Task {index}", arm="skill", planned=1, attempts=(record,))
    return Run(meta=RunMeta(**{**values, **more}), results=(result,), baseline_results=None, skills=())


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty directory that is the current one."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def repository(place):
    """A repository with the spec, seen from one of its directories."""
    (place / ".git").mkdir()
    (place / "evals").mkdir()
    (place / "evals" / "x.eval.yaml").write_text("tasks: []\n")
    return place


def shards(directory: Path, of: int = 2, **more: Any) -> list[str]:
    return [str(save_run(shard_run(index, of, **more), directory / f"machine-{index}")) for index in range(1, of + 1)]


def run(*words: object) -> int:
    return main(["merge", *map(str, words)])


# -- where it goes --------------------------------------------------------------------------------------------------------------


def test_into_the_results_of_the_spec_from_anywhere_in_its_repository(repository, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(repository / "evals")
    assert run(*shards(tmp_path)) == 0
    results = repository / ".caliper" / "results" / "evals" / "x"
    merged = latest_run(results)
    assert merged is not None
    assert [result.task_name for result in load_run(merged).results] == ["Task 1", "Task 2"]
    assert (repository / ".caliper" / ".gitignore").read_text() == "*\n"
    said = capsys.readouterr()
    assert said.out == f"evals/x.eval.yaml: 2 shards with 2 tasks merged into {merged}\n"
    assert said.err == ""


def test_into_the_current_directory_without_the_spec(place, tmp_path, capsys):
    assert run(*shards(tmp_path)) == 0
    (merged,) = place.iterdir()
    assert load_run(merged).meta.shard is None
    assert merged.name in capsys.readouterr().out


def test_into_results_needs_the_spec(place, tmp_path, capsys):
    assert run(*shards(tmp_path), "--into-results") == 2
    assert "there is no such spec" in capsys.readouterr().err
    assert list(place.iterdir()) == []


def test_a_spec_of_the_same_name_in_another_project_is_not_taken(place, tmp_path):
    """The file says `evals/x.eval.yaml`; here it would be called `inner/…` or begin at another root."""
    inner = place / "evals"
    inner.mkdir()
    (inner / ".git").mkdir()
    (inner / "x.eval.yaml").write_text("tasks: []\n")
    assert run(*shards(tmp_path)) == 0
    assert [path.suffix for path in place.iterdir() if path.is_file()] == [".json"]


def test_results_directory_can_be_named(repository, tmp_path):
    assert run(*shards(tmp_path), "--results", "kept") == 0
    assert latest_run(repository / "kept" / "evals" / "x") is not None


def test_output_is_a_file_or_a_directory(repository, tmp_path):
    files = shards(tmp_path)
    assert run(*files, "--output", "new/whole.json") == 0
    assert load_run(repository / "new" / "whole.json").results
    assert run(*files, "--output", "new") == 0
    assert run(*files, "--output", "made") == 0
    assert [len(list((repository / name).iterdir())) for name in ("new", "made")] == [2, 1]
    assert not (repository / ".caliper").exists()


def test_output_and_into_results_exclude_each_other(repository, tmp_path):
    with pytest.raises(SystemExit) as ended:
        run(*shards(tmp_path), "--output", "x.json", "--into-results")
    assert ended.value.code == 2


def test_merging_again_is_no_other_run(repository, tmp_path, capsys):
    files = shards(tmp_path)
    assert run(*files) == run(*reversed(files)) == 0
    assert len(list((repository / ".caliper").rglob("*.json"))) == 1
    assert "were merged before into" in capsys.readouterr().out


def test_no_file_is_ever_written_over(place, tmp_path, capsys):
    files = shards(tmp_path)
    (place / "x.json").write_text("mine")
    assert run(*files, "--output", "x.json") == 2
    assert run(*files, "--output", files[0]) == 2
    assert (place / "x.json").read_text() == "mine"
    assert load_run(Path(files[0])).meta.shard is not None
    assert "exists; delete it" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_place_that_takes_nothing_is_told_in_a_line(place, tmp_path, capsys):
    files = shards(tmp_path)
    place.chmod(0o555)
    assert run(*files) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_directory_in_the_way_is_told_in_a_line(place, tmp_path, capsys):
    (place / "a").write_text("a file")
    assert run(*shards(tmp_path), "--output", "a/b.json") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# -- what is read ---------------------------------------------------------------------------------------------------------------


def test_directories_are_searched_and_what_is_no_shard_is_left_alone(place, tmp_path, capsys):
    shards(tmp_path / "all")
    (tmp_path / "all" / "package.json").write_text("{}")
    (tmp_path / "all" / "broken.json").write_text('{"schema_version": 1,')
    save_run(shard_run(1, shard=None, id="ordinary"), tmp_path / "all")
    assert run(tmp_path / "all", "--output", "x.json") == 0
    said = capsys.readouterr()
    assert "2 shards with 2 tasks" in said.out
    assert [line.split(": ")[1] for line in said.err.splitlines()] == ["left out", "left out"]


def test_a_file_named_twice_is_one_file(place, tmp_path):
    files = shards(tmp_path)
    assert run(*files, tmp_path, files[0], "--output", place / "x.json") == 0


def test_a_copy_is_the_same_shard_twice(place, tmp_path, capsys):
    files = shards(tmp_path)
    copy = shutil.copy(files[0], tmp_path / "copy.json")
    assert run(*files, copy) == 2
    assert "are both shard 1 of 2" in capsys.readouterr().err
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read"),
        ("{}", "is not a run file"),
        ("not json", "is not a run file"),
        ("\x1b[31m", "is not a run file"),
    ],
)
def test_a_named_file_that_is_no_run_is_refused(place, tmp_path, capsys, content, says):
    path = tmp_path / "odd.json"
    if content is not None:
        path.write_text(content)
    assert run(*shards(tmp_path / "s"), path) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"caliper: {path}: {says}")
    assert len(said.splitlines()) == 1
    assert "\x1b" not in said
    assert list(place.iterdir()) == []


def test_a_named_run_that_is_no_shard_is_refused(place, tmp_path, capsys):
    ordinary = save_run(shard_run(1, shard=None), tmp_path / "o")
    assert run(*shards(tmp_path), ordinary) == 2
    assert "is the run file of no shard" in capsys.readouterr().err


def test_a_journal_is_named_with_the_way_to_go_on(place, tmp_path, capsys):
    journal = tmp_path / "x.jsonl"
    journal.write_text("{}")
    assert run(journal) == 2
    assert "--resume-from" in capsys.readouterr().err


def test_a_directory_without_shards_is_no_success(place, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty") == 2
    assert "no shard is there" in capsys.readouterr().err


# -- what is said ---------------------------------------------------------------------------------------------------------------


def test_nothing_is_written_when_one_spec_of_several_is_refused(place, tmp_path, capsys):
    shards(tmp_path / "x")
    files = shards(tmp_path / "y", spec="evals/y.eval.yaml")
    Path(files[1]).unlink()
    assert run(tmp_path) == 2
    assert capsys.readouterr().err.splitlines() == [
        "caliper: evals/y.eval.yaml: shard 2 of 2 is missing, with task-002",
        "caliper: name all of them, or join what is there with --partial",
    ]
    assert list(place.iterdir()) == []


def test_several_specs_make_several_files(place, tmp_path, capsys):
    shards(tmp_path / "x")
    shards(tmp_path / "y", spec="evals/y.eval.yaml")
    (place / "one.json").write_text("")
    assert run(tmp_path, "--output", "one.json") == 2
    assert "there are several specs" in capsys.readouterr().err
    assert run(tmp_path, "--output", "both") == 0
    assert [load_run(path).meta.spec for path in sorted((place / "both").iterdir())] != []
    assert len(capsys.readouterr().out.splitlines()) == len(list((place / "both").iterdir())) == 2


def test_a_partial_merge_is_saved_apart_and_says_so(repository, tmp_path, capsys):
    files = shards(tmp_path, of=3)
    assert run(files[0], files[2], "--partial") == 0
    (merged,) = (repository / ".caliper").rglob("*.json")
    assert merged.parent.name == "partial"
    assert "(partial: never taken for the latest run)" in capsys.readouterr().out


def test_an_interrupted_shard_makes_an_interrupted_run(repository, tmp_path, capsys):
    files = [save_run(shard_run(1), tmp_path / "a"), save_run(shard_run(2, interrupted=True), tmp_path / "b")]
    assert run(*files) == 0
    (merged,) = (repository / ".caliper").rglob("*.json")
    assert merged.parent.name == "partial"
    assert load_run(merged).meta.interrupted
    assert "interrupted" in capsys.readouterr().out


def test_different_clis_on_the_machines_are_told(place, tmp_path, capsys):
    files = [save_run(shard_run(index, cli_version=f"2.1.{index}"), tmp_path / str(index)) for index in (1, 2)]
    assert run(*files) == 0
    assert "different versions of the agent's CLI: 2.1.1, 2.1.2" in capsys.readouterr().err


# -- from end to end ------------------------------------------------------------------------------------------------------------

SUPPORT = Path(__file__).parent.parent / "support"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from shell_agent import ShellAgent

def pytest_caliper_backends(config):
    return [ShellAgent()]
"""
INI = "[pytest]\ncaliper_model = shell-agent\ncaliper_judge_model = shell-agent\naddopts = -p no:cacheprovider -p no:hypothesispytest -p no:anyio -p no:pytest-teamcity\n"
SPEC = """skill: ./skill
tasks:
  - {name: Adds, prompt: "echo 4; echo '!tokens 7'", assert: assert attempt.answer == '4'}
  - {name: Fails, prompt: echo no, assert: assert attempt.answer == 'yes'}
  - {name: Breaks, prompt: "if [ $ATTEMPT = 2 ]; then echo '!error lost'; fi; echo ok", assert: assert attempt.answer}
  - {name: Reads, prompt: "echo '!read a.txt'; echo ok", expect: it did}
  - {name: Last, prompt: echo ok > made.txt; echo ok, assert: assert attempt.files}
"""
TIMES = {"duration_seconds", "wall_seconds", "durations", "timestamp", "id"}


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(entry) for name, entry in value.items() if name not in TIMES}
    return [without_times(entry) for entry in value] if isinstance(value, list) else value


def evaluate(machine: Path, *arguments: str) -> list[Path]:
    """Run the project on a machine of its own. -> its run files."""
    (machine / "skill").mkdir(parents=True)
    (machine / ".git").mkdir()
    (machine / "skill" / "SKILL.md").write_text("---\nname: greeter\ndescription: Greets.\n---\nSay hello.\n")
    (machine / "conftest.py").write_text(CONFTEST)
    (machine / "pytest.ini").write_text(INI)
    for name in ("one", "two"):
        (machine / f"{name}.eval.yaml").write_text(SPEC.replace("Adds", f"Adds {name}"))
    import subprocess

    command = [sys.executable, "-m", "pytest", "--caliper-k=2", "--caliper-baseline", "-q", *arguments]
    done = subprocess.run(command, cwd=machine, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return sorted((machine / ".caliper").rglob("*.json"))


@pytest.mark.parametrize("xdist", [[], ["-n2"]], ids=["alone", "xdist"])
def test_the_shards_of_a_matrix_make_the_run_of_one_machine(tmp_path, monkeypatch, xdist):
    whole = {data["run"]["spec"]: data for data in map(read, evaluate(tmp_path / "whole"))}
    for index in (1, 2, 3):
        arguments = (f"--caliper-shard={index}/3", f"--caliper-output={tmp_path / 'upload' / str(index)}", *xdist)
        evaluate(tmp_path / f"machine-{index}", *arguments)
    monkeypatch.chdir(tmp_path / "machine-1")
    assert run(tmp_path / "upload") == 0
    results = tmp_path / "machine-1" / ".caliper" / "results"
    for name in ("one", "two"):
        merged = latest_run(results / name)
        assert merged is not None
        data = read(merged)
        assert without_times(data) == without_times(whole[f"{name}.eval.yaml"])
        assert len(list(iter_transcript(merged, "skill", "task-004", 2))) == 3


def read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text())
    return data
