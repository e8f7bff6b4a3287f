"""An xdist worker dies with an attempt: nothing is counted twice, nothing is missed, nothing is left running."""

from __future__ import annotations

import json
import os
import time
import xml.etree.ElementTree as ET

import psutil
import pytest
from shell_agent import read_runs

ONCE = "if mkdir {dir}/died 2>/dev/null; then {before}kill -9 $PPID; sleep 600; fi; echo survived"
"""A prompt whose agent kills the worker that runs it, the first time."""


def spec(project, prompt, *, others=2, baseline=False):
    place = project.mkdir("place")
    prompt = prompt.replace("{dir}", str(place))
    lines = [f"  - {{name: Other {n}, prompt: echo a, assert: assert attempt.answer}}\n" for n in range(others)]
    lines.append(f"  - name: Deadly\n    prompt: {json.dumps(prompt)}\n    assert: assert attempt.answer == 'survived'\n")
    project.spec("tasks:\n" + "".join(lines))
    return place


def run_of(project):
    (run,) = read_runs(project.path / "results")
    return run


def attempts(run, task="Deadly"):
    return next(result["attempts"] for result in run["task_results"] if result["task_name"] == task)


@pytest.mark.parametrize(("dist", "workers"), [("load", "-n1"), ("load", "-n2"), ("worksteal", "-n2"), ("loadscope", "-n1")])
def test_it_runs_once_more_on_another_worker(project, dist, workers):
    spec(project, ONCE.replace("{before}", ""))
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", workers, "--dist", dist, "--junitxml=junit.xml")
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    run = run_of(project)
    (attempt,) = attempts(run)
    assert (attempt["outcome"], attempt["retries"]) == ("pass", 1)
    assert [attempt["retries"] for n in range(2) for attempt in attempts(run, f"Other {n}")] == [0, 0]
    assert not run["run"]["interrupted"]
    result.stdout.fnmatch_lines(["note: demo.eval.yaml::Deadly::attempt-1: the xdist worker gw* died while it ran the attempt*"])
    cases = ET.parse(project.path / "junit.xml").getroot().findall(".//testcase")
    assert sorted(case.get("classname").rsplit(".", 1)[-1] for case in cases) == ["Deadly", "Other 0", "Other 1"]
    assert not any(case.find(tag) is not None for case in cases for tag in ("skipped", "failure", "error"))


@pytest.mark.parametrize("dist", ["load", "loadscope"])
def test_the_second_death_is_final(project, dist):
    place = spec(project, "mkdir {dir}/$$; kill -9 $PPID; sleep 600")
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "-n2", "--dist", dist, "-v")
    result.assert_outcomes(passed=2, skipped=1)
    run = run_of(project)
    (attempt,) = attempts(run)
    assert (attempt["outcome"], attempt["retries"], attempt["usage"]) == ("infra_error", 1, None)
    assert "gw" in attempt["reason"]
    assert "died while it ran the attempt; it is not run again" in attempt["reason"]
    assert attempt["transcript_truncated"] is True
    assert len(list(place.iterdir())) == 2
    result.stdout.fnmatch_lines(["*UNUSABLE(infra_error)*", "caliper: demo.eval.yaml: Deadly: no attempt was usable*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert not run["run"]["interrupted"]


def test_a_death_without_another_worker_is_accounted_for(project):
    """One that may not be replaced: what it ran is an infra_error, what nobody could run any more is told."""
    spec(project, ONCE.replace("{before}", ""), others=4)
    result = project.runpytest_subprocess(
        "demo.eval.yaml::Deadly",
        "demo.eval.yaml::Other 0",
        "demo.eval.yaml::Other 1",
        "--caliper-k=1",
        "-n1",
        "--max-worker-restart=0",
    )
    run = run_of(project)
    (attempt,) = attempts(run)
    assert attempt["outcome"] == "infra_error"
    assert "the session ended before it could run again" in attempt["reason"]
    assert len(attempts(run, "Other 0")) + len(attempts(run, "Other 1")) == 0
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*2 of 3 attempts never reported*"])
    result.assert_outcomes(skipped=1)


def test_the_journal_holds_what_died_for_good(project):
    spec(project, "kill -9 $PPID; sleep 600", others=1)
    conftest = project.path / "conftest.py"
    seen = project.path / "seen"
    conftest.write_text(
        conftest.read_text()
        + f"""
def pytest_caliper_record(config, record):
    with open({str(seen)!r}, "a") as out:
        out.write(f"{{record.task_name}} {{record.outcome}} {{record.retries}}\\n")
"""
    )
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "-n2")
    assert sorted(seen.read_text().splitlines()) == ["Deadly infra_error 1", "Other 0 pass 0"]


def test_a_death_in_the_teardown_leaves_the_outcome(project):
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
import os, signal, pytest
@pytest.fixture(autouse=True)
def deadly(request):
    yield
    if "Deadly" in request.node.nodeid:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    place = spec(project, "mkdir {dir}/$$; echo survived")
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "-n2")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*xdist worker gw* died after the attempt had ended; the attempt's outcome stands*"])
    (attempt,) = attempts(run_of(project))
    assert (attempt["outcome"], attempt["retries"]) == ("pass", 0)
    assert len(list(place.iterdir())) == 1, "it did not run again"
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_other_plugins_do_not_make_it_run_a_third_time(project):
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
def pytest_handlecrashitem(crashitem, report, sched):
    sched.mark_test_pending(crashitem)
    sched.mark_test_pending(crashitem)
"""
    )
    place = spec(project, "mkdir {dir}/$$; echo survived; " + ONCE.replace("{before}", "sleep 0; "))
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "-n2")
    assert len([path for path in place.iterdir() if path.name != "died"]) == 2
    (attempt,) = attempts(run_of(project))
    assert attempt["retries"] == 1
    assert "INTERNALERROR" not in result.stdout.str()


def test_other_tests_that_die_are_xdists_own_business(project):
    spec(project, "echo survived")
    project.makepyfile(test_unit="import os\ndef test_dies(): os._exit(3)\ndef test_lives(): pass")
    result = project.runpytest_subprocess("--caliper", "--caliper-k=1", "-n2")
    result.assert_outcomes(passed=4, failed=1)
    assert not run_of(project)["run"]["interrupted"]


def test_what_a_dead_workers_agent_had_started_is_gone_and_its_transcript_is_not_mixed(project):
    """The agent leaves a process in a session of its own and survives its worker."""
    before = "setsid sh -c 'echo $$ > {dir}/pid; exec sleep 600' & while ! [ -s {dir}/pid ]; do sleep 0.05; done; "
    place = spec(project, ONCE.replace("{before}", before.replace("{dir}", str(project.path / "place"))))
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "-n2").assert_outcomes(passed=3)
    pid = int((place / "pid").read_text())
    end = time.monotonic() + 60
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end, "a process of the dead worker's agent lives"
        time.sleep(0.05)
    (attempt,) = attempts(run_of(project))
    assert [turn["role"] for turn in attempt["transcript"]] == ["user", "assistant"]
    assert not list((project.path / "results").rglob("*.jsonl"))
    assert not list((project.path / "results").rglob("*.parts"))


def test_the_transcripts_of_two_workers_are_two_files(project):
    conftest = project.path / "conftest.py"
    seen = project.path / "seen"
    conftest.write_text(
        conftest.read_text()
        + f"""
def pytest_caliper_record(config, record):
    with open({str(seen)!r}, "a") as out:
        out.write(record.transcript_path + "\\n")
"""
    )
    spec(project, "echo survived", others=1)
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", "-n2").assert_outcomes(passed=4)
    names = [os.path.basename(line) for line in seen.read_text().splitlines()]
    assert len(set(names)) == 4
    assert all("-gw" in name for name in names)
