"""What stops the session stops the attempts under way in every xdist worker, makes no record of them and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from shell_agent import read_runs

FOREVER = "echo $PPID > {dir}/agent.$$; sleep 600"
"""Says its own process id, and its worker's."""
BOUND_S = 120.0
"""Far above what stopping takes, far below what the agents would run."""


def wait_for(condition) -> None:
    end = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def started(place) -> list[int]:
    """The agents that have begun."""
    return [int(path.suffix[1:]) for path in place.glob("agent.*") if path.stat().st_size]


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def begin(project):
    """Start pytest in the background; ended in any case."""
    begun = []

    def start(*arguments):
        command = [sys.executable, "-m", "pytest", *arguments, "--caliper-timeout=900"]
        with open(project.path / "out.txt", "wb") as out:
            process = subprocess.Popen(command, cwd=project.path, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def forever(place, count: int) -> str:
    """Tasks that never end; each of its own, since attempts of one that names a path do not meet."""
    lines = [f"  - {{name: Forever {n}, prompt: '{FOREVER.format(dir=place)}', assert: assert 0}}\n" for n in range(count)]
    return "".join(lines)


def end_of(process, project) -> str:
    """What it printed; it must end by itself."""
    try:
        process.wait(BOUND_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("the session hangs:\n" + (project.path / "out.txt").read_text())
    return (project.path / "out.txt").read_text()


def outcomes(project):
    (run,) = read_runs(project.path / "results")
    assert run["run"]["interrupted"] is True
    return sorted(attempt["outcome"] for task in run["task_results"] for attempt in task["attempts"])


@pytest.mark.parametrize(("how", "dist"), [("-x", "load"), ("fatal", "load"), ("-x", "worksteal"), ("fatal", "loadscope")])
def test_the_session_stops_and_so_do_the_attempts_under_way(project, begin, how, dist):
    """One attempt fails, or loses its login, while two others run; the workers hold more."""
    place = project.mkdir("place")
    end = "false" if how == "-x" else "echo '!fatal log in again'"
    wait = f"while [ $(ls {place} | wc -l) -lt 2 ]; do sleep 0.05; done"
    ends = f'  - {{name: Ends, prompt: "{wait}; {end}; echo x", assert: assert attempt.answer == 1}}\n'
    project.spec("tasks:\n" + (ends + forever(place, 4) if dist == "load" else forever(place, 2) + ends))
    options = ["--caliper-k=1", "-n3", "--dist", dist, *(["-x"] if how == "-x" else [])]
    process = begin("demo.eval.yaml", *options)
    text = end_of(process, project)
    assert len(started(place)) == 2
    assert not [pid for pid in started(place) if alive(pid)]
    assert process.returncode == pytest.ExitCode.INTERRUPTED, text
    assert outcomes(project) == ["task_fail" if how == "-x" else "infra_error"]
    assert "INTERNALERROR" not in text
    assert "replacing crashed worker" not in text
    assert "never reported" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_to_the_controller_alone_ends_all(project, begin, number):
    place = project.mkdir("place")
    project.spec("tasks:\n  - {name: Quick, prompt: echo a, assert: assert attempt.answer}\n" + forever(place, 3))
    process = begin("demo.eval.yaml", "--caliper-k=1", "-n2")
    wait_for(lambda: len(started(place)) == 2)
    process.send_signal(number)
    text = end_of(process, project)
    assert not [pid for pid in started(place) if alive(pid)]
    assert process.returncode == pytest.ExitCode.INTERRUPTED, text
    assert outcomes(project) == ["pass"]
    assert "INTERNALERROR" not in text


def test_ctrl_c_in_a_terminal_reaches_everybody_at_once(project, begin):
    place = project.mkdir("place")
    project.spec("tasks:\n" + forever(place, 3))
    process = begin("demo.eval.yaml", "--caliper-k=1", "-n2")
    wait_for(lambda: len(started(place)) == 2)
    os.killpg(process.pid, signal.SIGINT)
    text = end_of(process, project)
    assert not [pid for pid in started(place) if alive(pid)]
    assert process.returncode == pytest.ExitCode.INTERRUPTED, text
    assert outcomes(project) == []


def test_what_had_ended_in_a_worker_is_kept_though_nobody_looked_at_it(project, begin):
    """The controller is interrupted while it deals with a report; another one has arrived by then."""
    place = project.mkdir("place")
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + f"""
import os, time, pathlib
def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ and report.when == "call":
        pathlib.Path({str(place)!r}, "first").touch()
        end = time.monotonic() + 100
        while not pathlib.Path({str(place)!r}, "reported").exists() and time.monotonic() < end:
            time.sleep(0.05)
        raise KeyboardInterrupt
def pytest_runtest_logfinish(nodeid):
    if "PYTEST_XDIST_WORKER" in os.environ and "Second" in nodeid:
        pathlib.Path({str(place)!r}, "reported").touch()
"""
    )
    wait = f"while [ ! -e {place}/first ]; do sleep 0.05; done"
    project.spec(
        f"""
        tasks:
          - {{name: First, prompt: echo a, assert: assert attempt.answer}}
          - {{name: Second, prompt: '{wait}; echo a', assert: assert attempt.answer}}
        """
    )
    process = begin("demo.eval.yaml", "--caliper-k=1", "-n2")
    text = end_of(process, project)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, text
    assert outcomes(project) == ["pass", "pass"]
    assert "1 of 2 attempts never reported" in text
    assert "1 of them had ended and are kept" in text


def test_a_worker_that_is_interrupted_stops_the_others_and_is_no_crash(project, begin):
    place = project.mkdir("place")
    project.spec("tasks:\n" + forever(place, 2))
    process = begin("demo.eval.yaml", "--caliper-k=1", "-n2")
    wait_for(lambda: len(started(place)) == 2)
    os.kill(int(next(place.glob("agent.*")).read_text()), signal.SIGINT)
    text = end_of(process, project)
    assert not [pid for pid in started(place) if alive(pid)]
    assert process.returncode == pytest.ExitCode.INTERRUPTED, text
    assert outcomes(project) == []
