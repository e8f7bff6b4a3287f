"""What a CI log shows while nothing is reported."""

from __future__ import annotations

import re
import subprocess
import sys
import threading

import pytest

from pytest_caliper.running import heartbeat
from pytest_caliper.running.heartbeat import Heartbeat, line


def test_the_line_names_the_longest():
    assert line([("a", 3.0), ("b", 120.4)]) == "2 running (longest: b, 120 s)"
    assert line([("a", 3.0)], "9 of 18 left") == "1 running (longest: a, 3 s), 9 of 18 left"


def test_it_speaks_only_after_a_silent_interval(capfd):
    asked = threading.Event()

    def running():
        asked.set()
        return [("x.eval.yaml::T::attempt-1", 5.0)]

    beat = Heartbeat(running, lambda: "2 of 3 left, about 4 min", interval_s=0.05)
    assert asked.wait(20)
    beat.close()
    said = "\n[caliper] 1 running (longest: x.eval.yaml::T::attempt-1, 5 s), 2 of 3 left, about 4 min\n"
    assert said in capfd.readouterr().err


def test_it_is_silent_while_nothing_runs(capfd):
    asked = threading.Event()

    def running():
        asked.set()
        return []

    beat = Heartbeat(running, interval_s=0.05)
    assert asked.wait(20)
    beat.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "n2"])
def test_a_silent_run_says_what_it_waits_for(project, monkeypatch, extra):
    project.makeconftest(
        (project.path / "conftest.py").read_text()
        + "\nimport pytest_caliper.running.heartbeat\npytest_caliper.running.heartbeat.INTERVAL_S = 0.3\n"
    )
    # It ends when the heartbeat was seen, so the test waits for nothing but that.
    seen = project.path / "seen"
    project.spec(
        f"tasks:\n  - {{name: Slow, prompt: 'for i in $(seq 600); do [ -s {seen} ] && break; sleep 0.1; done; echo a', expect: x}}\n"
    )
    with open(seen, "wb") as err:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "demo.eval.yaml", "--caliper-k=1", *extra],
            cwd=project.path,
            stderr=err,
            stdout=subprocess.PIPE,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0
    said = re.search(
        r"^\[caliper\] 1 running \(longest: demo\.eval\.yaml::Slow::attempt-1, (\d+) s\), 1 of 1 left$", seen.read_text(), re.M
    )
    assert said is not None, seen.read_text()


def test_the_interval_is_half_a_minute():
    assert heartbeat.INTERVAL_S == 30.0
