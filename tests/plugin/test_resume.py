"""A run that did not end is continued: only what is missing runs, and the file is the one an undisturbed run would have."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell_agent import read_runs

SPEC = """
tasks:
  - name: Good
    prompt: 'echo "Good $ARM $ATTEMPT" >> {ledger}; echo good'
    assert: assert attempt.answer == 'good'
  - name: Bad
    prompt: 'echo "Bad $ARM $ATTEMPT" >> {ledger}; echo bad'
    assert: assert attempt.answer == 'good'
  - name: Late
    prompt: 'echo "Late $ARM $ATTEMPT" >> {ledger}; {wait}; echo good'
    assert: assert attempt.answer == 'good'
"""
WAYS = pytest.mark.parametrize("way", [(), ("-n2",), ("-n2", "--dist=worksteal")], ids=["pool", "n2", "worksteal"])


@pytest.fixture
def killed(project):
    """A project whose run was killed with SIGKILL while task `Late` ran; `again()` says that it may end now."""
    ledger, gate = project.path / "ledger", project.path / "gate"
    ledger.touch()
    project.spec(SPEC.format(ledger=ledger, wait=f"test -e {gate} || sleep 300"))

    def kill(*arguments: str) -> Path:
        ended = 8 if "--caliper-baseline" in arguments else 4
        pytest_ = subprocess.Popen(
            [sys.executable, "-m", "pytest", "demo.eval.yaml", "--caliper-k=2", "--caliper-workers=8", *arguments],
            cwd=project.path,
            stdout=subprocess.DEVNULL,
        )
        results = project.path / "results" / "demo"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            journals = list(results.glob("*.jsonl"))
            if journals and len(journals[0].read_bytes().splitlines()) > ended:
                break
            time.sleep(0.05)
        pytest_.send_signal(signal.SIGKILL)
        pytest_.wait()
        gate.touch()
        return next(results.glob("*.jsonl"))

    project.kill, project.ledger, project.gate = kill, ledger, gate
    return project


def runs_of(ledger: Path) -> list[str]:
    return sorted(line for line in ledger.read_text().splitlines() if not line.startswith("Late"))


def comparable(run: dict) -> dict:
    """A run file without what no two runs share."""
    text = json.dumps(run)
    run = json.loads(text)
    for name in ("id", "timestamp"):
        del run["run"][name]
    for arm in ("task_results", "baseline_task_results"):
        for task in run[arm] or ():
            for attempt in task["attempts"]:
                for name in ("duration_seconds", "durations", "wall_seconds"):
                    del attempt[name]
    return run


@WAYS
@pytest.mark.parametrize("baseline", [(), ("--caliper-baseline",)], ids=["skill", "both arms"])
def test_the_file_is_that_of_an_undisturbed_run(killed, way, baseline):
    journal = killed.kill(*baseline)
    had = {line.split('"task_id": "')[1][:8] for line in journal.read_text().splitlines()[1:]}
    assert had == {"task-001", "task-002"}
    result = killed.session("demo.eval.yaml", "--caliper-k=2", "--caliper-resume", *baseline, *way)
    arms = 2 if baseline else 1
    assert result.ret == 1  # what had failed before counts as if it had failed now
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["passed"]) == (2, 4)
    assert sum(outcomes.values()) == 6 * arms
    result.stdout.fnmatch_lines([f"note: *{4 * arms} of {6 * arms} attempts are those of {journal.name}*"])
    assert runs_of(killed.ledger) == sorted(
        f"{task} {arm} {n}" for task in ("Good", "Bad") for arm in ("skill", "baseline")[:arms] for n in (1, 2)
    )
    assert not journal.exists()
    assert not journal.with_suffix(".parts").exists()
    (resumed,) = read_runs(killed.path)
    assert resumed["run"]["id"] == journal.stem[21:]
    assert not resumed["run"]["interrupted"]
    shutil.rmtree(killed.path / "results")
    killed.session("demo.eval.yaml", "--caliper-k=2", *baseline)
    (undisturbed,) = read_runs(killed.path)
    assert comparable(resumed) == comparable(undisturbed)


def test_a_resume_that_is_killed_is_resumed(killed):
    journal = killed.kill()
    first = journal.read_bytes()
    killed.gate.unlink()
    killed.kill("--caliper-resume")  # nothing new ends before the kill
    assert journal.read_bytes() == first, "the journal grew without a new attempt"
    killed.session("demo.eval.yaml", "--caliper-k=2", "--caliper-resume")
    (run,) = read_runs(killed.path)
    assert [len(task["attempts"]) for task in run["task_results"]] == [2, 2, 2]


def test_an_interrupted_run_gives_way_to_its_continuation(project):
    gate, pid = project.path / "gate", project.path / "pid"
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + f"\nimport os\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\n")
    project.spec(f"""
    tasks:
      - {{name: Stop, prompt: 'test -e {gate} || {{ kill -INT $(cat {pid}); sleep 60; }}; echo a', assert: assert attempt.answer == 'a'}}
      - {{name: Other, prompt: 'echo b', assert: assert attempt.answer == 'b'}}
    """)
    first = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "--caliper-workers=1")
    assert first.ret == 2
    partial = project.path / "results" / "demo" / "partial"
    (interrupted,) = partial.glob("*.json")
    gate.touch()
    second = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "--caliper-resume")
    assert second.ret == 0
    assert not interrupted.exists()
    (run,) = read_runs(project.path)
    assert [task["successes"] for task in run["task_results"]] == [1, 1]


def test_a_larger_k_extends(killed):
    journal = killed.kill()
    killed.session("demo.eval.yaml", "--caliper-k=3", "--caliper-resume")
    (run,) = read_runs(killed.path)
    assert run["run"]["k"] == 3
    assert [len(task["attempts"]) for task in run["task_results"]] == [3, 3, 3]
    assert len(runs_of(killed.ledger)) == 6
    assert not journal.exists()


@pytest.mark.parametrize("way", [(), ("-n2",)], ids=["pool", "n2"])
def test_a_whole_run_is_extended_from_its_file(project, way):
    project.spec("tasks:\n  - {name: T, prompt: 'echo a', assert: assert attempt.answer == 'a'}\n")
    project.session("demo.eval.yaml", "--caliper-k=2")
    (file,) = (project.path / "results" / "demo").glob("*.json")
    result = project.session("demo.eval.yaml", "--caliper-k=5", f"--caliper-resume-from={file}", *way)
    result.assert_outcomes(passed=5)
    first, second = sorted(read_runs(project.path), key=lambda run: run["run"]["k"])
    assert [len(run["task_results"][0]["attempts"]) for run in (first, second)] == [2, 5]
    told = [attempt["transcript"] for attempt in second["task_results"][0]["attempts"]]
    assert all(turns == told[0] and turns for turns in told), "a transcript was lost on the way"


@pytest.mark.parametrize(
    ("change", "arguments", "says"),
    [
        (("echo good", "echo  good"), ("--caliper-k=2",), "the tasks 'Good', 'Late' changed"),
        (("tasks:", "sandbox: {forbidden_files: [x]}\ntasks:"), ("--caliper-k=2",), "the spec changed outside its tasks"),
        (None, ("--caliper-k=1",), "k was 2, now it is 1 (a larger k would extend it)"),
        (None, ("--caliper-k=2", "--caliper-model=shell-agent:other"), "the engine was shell-agent, now it is shell-agent:other"),
        (None, ("--caliper-k=2", "--caliper-judge-votes=3"), "the number of judge votes was 1, now it is 3"),
        (None, ("--caliper-k=2", "--caliper-baseline"), "it has no baseline, now it measures a baseline"),
        (None, ("--caliper-k=2", "-k", "Good"), "its selection of attempts had 2 that this one leaves out ('Late')"),
        ("skill", ("--caliper-k=2",), "the skill changed"),
    ],
)
def test_what_changed_is_named_and_nothing_runs(killed, change, arguments, says):
    journal = killed.kill()
    before, ledger = journal.read_bytes(), killed.ledger.read_text()
    spec = killed.path / "demo.eval.yaml"
    if change == "skill":
        (killed.path / "skill" / "SKILL.md").write_text("---\nname: greeter\ndescription: Greets.\n---\nSay bye.\n")
    elif change:
        spec.write_text(spec.read_text().replace(*change))
    result = killed.session("demo.eval.yaml", "--caliper-resume", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: demo.eval.yaml: {journal.name} cannot be resumed: {says.replace('[', '[[]')}*"])
    assert (journal.read_bytes(), killed.ledger.read_text()) == (before, ledger)


@pytest.mark.parametrize("way", [(), ("-n2",)], ids=["pool", "n2"])
def test_nothing_to_resume(project, way):
    project.spec("tasks:\n  - {name: T, prompt: 'echo a >> ran', assert: assert True}\n")
    result = project.session("demo.eval.yaml", "--caliper-resume", *way)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "there is no unfinished run" in result.stderr.str() + result.stdout.str()
    assert not (project.path / "results").exists()


@pytest.mark.parametrize("way", [(), ("-n2",)], ids=["pool", "n2"])
def test_specs_without_an_unfinished_run_are_left_alone(killed, way):
    killed.kill()
    killed.spec(f"tasks:\n  - {{name: T, prompt: 'echo T >> {killed.ledger}', assert: assert True}}\n", "other")
    result = killed.session("demo.eval.yaml", "other.eval.yaml", "--caliper-k=2", "--caliper-resume", *way)
    assert "T" not in killed.ledger.read_text().splitlines()
    if not way:
        result.stdout.fnmatch_lines(["note: other.eval.yaml: there is no unfinished run, so nothing of it ran"])
    assert len(read_runs(killed.path)) == 1


def test_the_run_of_a_living_session_is_not_taken(project):
    gate = project.path / "gate"
    project.spec(f"tasks:\n  - {{name: T, prompt: 'while ! test -e {gate}; do sleep 0.1; done', assert: assert True}}\n")
    alive = subprocess.Popen([sys.executable, "-m", "pytest", "demo.eval.yaml"], cwd=project.path, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not (journals := list((project.path / "results" / "demo").glob("*.jsonl"))):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        result = project.session("demo.eval.yaml", "--caliper-resume")
        assert "there is no unfinished run" in result.stderr.str()
        result = project.session("demo.eval.yaml", f"--caliper-resume-from={journals[0]}")
        assert "belongs to a session that still runs" in result.stderr.str()
    finally:
        gate.touch()
        assert alive.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--caliper-resume", "--caliper-replay"), "exclude each other"),
        (("--caliper-resume-from=nothing.jsonl",), "there is no such file"),
        (("--caliper-resume-from=demo.eval.yaml",), "is not a run file"),
        (("--caliper-resume-from=broken.jsonl",), "broken.jsonl"),
    ],
)
def test_bad_usage(project, arguments, says):
    project.spec("tasks:\n  - {name: T, prompt: 'echo a', assert: assert True}\n")
    (project.path / "broken.jsonl").write_text("no\nno\n")
    result = project.session("demo.eval.yaml", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{says}*"])
    assert not (project.path / "results").exists()


def test_a_run_from_elsewhere_is_copied(killed):
    """A journal that a CI job has uploaded: the project may lie elsewhere, and so may the file."""
    journal = killed.kill()
    elsewhere = killed.path / "download"
    elsewhere.mkdir()
    shutil.move(journal, elsewhere / journal.name)
    shutil.move(journal.with_suffix(".parts"), elsewhere / journal.with_suffix(".parts").name)
    killed.session("demo.eval.yaml", "--caliper-k=2", f"--caliper-resume-from={elsewhere / journal.name}")
    (run,) = read_runs(killed.path)
    assert [len(task["attempts"]) for task in run["task_results"]] == [2, 2, 2]
    assert all(attempt["transcript"] for task in run["task_results"] for attempt in task["attempts"])
    assert len(runs_of(killed.ledger)) == 4
    assert (elsewhere / journal.name).exists()


def test_a_lost_login_is_tried_again(project):
    login = project.path / "login"
    project.spec(f"""
    tasks:
      - {{name: T, prompt: 'test -e {login} && echo a || echo "!fatal log in"', assert: assert attempt.answer == 'a'}}
    """)
    first = project.session("demo.eval.yaml", "--caliper-k=3", "--caliper-workers=1")
    assert first.ret != 0
    login.touch()
    second = project.session("demo.eval.yaml", "--caliper-k=3", "--caliper-resume")
    second.assert_outcomes(passed=3)
    assert second.ret == 0


def test_what_failed_before_stops_a_session_under_x(killed):
    killed.kill()
    result = killed.session("demo.eval.yaml", "--caliper-k=2", "--caliper-resume", "-x")
    assert result.ret == 1
    assert "stopping after" in result.stdout.str()
    assert "Late" not in killed.ledger.read_text().replace("Late skill 1", "", 1).replace("Late skill 2", "", 1)


def test_a_new_run_says_that_one_is_left(killed):
    journal = killed.kill()
    result = killed.session("demo.eval.yaml", "--caliper-k=2")
    result.stdout.fnmatch_lines(
        [f"note: demo.eval.yaml: {journal.name} is a run that did not end; --caliper-resume goes on with it"]
    )
    assert journal.exists()


def test_nothing_runs_under_collect_only(killed):
    journal = killed.kill()
    before = journal.read_bytes()
    result = killed.session("demo.eval.yaml", "--caliper-k=2", "--caliper-resume", "--collect-only", "-q")
    assert len([line for line in result.outlines if "::" in line]) == 6
    assert journal.read_bytes() == before


def test_every_process_of_the_killed_run_is_gone(killed):
    killed.kill()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        alive = (
            [pid for pid in os.listdir("/proc") if pid.isdigit() and _cmdline(pid) == ["sleep", "300"]]
            if Path("/proc").is_dir()
            else []
        )
        if not alive:
            return
        time.sleep(0.1)
    pytest.fail(f"{alive} survived")


def _cmdline(pid: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        return []


def test_progress_counts_what_was_known(killed):
    killed.kill()
    result = killed.session("demo.eval.yaml", "--caliper-k=2", "--caliper-resume", "-n2", "-v", "--color=no")
    shares = [int(line.split("%]")[0].split("[")[-1]) for line in result.outlines if "%]" in line]
    assert len(shares) == 6
    assert max(shares) == 100
    assert shares[-1] == 100


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ({"task_id": "../../../pwned", "arm": "skill", "attempt": 7}, "never planned"),
        ({"task_id": "task-099", "arm": "skill", "attempt": 1}, "never planned"),
        ({"task_id": "task-001", "arm": "baseline", "attempt": 1}, "never planned"),
        ({"task_id": "task-001", "arm": "skill", "attempt": 7}, "never planned"),
    ],
)
def test_a_journal_from_elsewhere_cannot_bring_what_was_not_planned(killed, key, says):
    journal = killed.kill()
    lines = journal.read_text().splitlines()
    record = json.loads(lines[1])
    record["key"] = {**record["key"], **key}
    foreign = killed.path / "foreign.jsonl"
    foreign.write_text("\n".join([*lines, json.dumps(record)]) + "\n")
    before = sorted(killed.path.rglob("*"))
    result = killed.session("demo.eval.yaml", "--caliper-k=2", f"--caliper-resume-from={foreign}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --caliper-resume-from: *foreign.jsonl: *{says}*"])
    new = {path for path in killed.path.rglob("*") if path not in before}
    assert {path.name for path in new if "runpytest" not in str(path)} <= {"stdout", "stderr", "__pycache__"} | {
        path.name for path in new if path.suffix == ".pyc"
    }


def test_a_run_to_compare_with_that_is_none_costs_nothing_that_was_kept(killed):
    killed.kill()
    killed.session("demo.eval.yaml", "--caliper-k=2", "--caliper-resume", "-x")  # interrupted, saved apart
    (partial,) = (killed.path / "results" / "demo" / "partial").glob("*.json")
    before = partial.read_bytes()
    (killed.path / "d.json").write_text("{")
    result = killed.session("demo.eval.yaml", "--caliper-k=2", "--caliper-resume", "--caliper-no-regression=d.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert partial.read_bytes() == before
