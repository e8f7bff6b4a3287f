"""A small suite as people have them (a spec, attempts in Python, unit tests) and what a session must make of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).resolve().parent.parent / "support"

CONFTEST = f"""
import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, {str(SUPPORT)!r})
from shell_agent import ShellAgent

HERE = Path(__file__).parent
SEEN = pytest.StashKey[list]()


class CountedAgent(ShellAgent):
    def agent_command(self, plan, workspace, cli):
        with (HERE / "calls.log").open("a") as log:
            log.write(f"{{plan.task.name}} {{plan.arm}} {{plan.key.attempt}}\\n")
        return super().agent_command(plan, workspace, cli)


def pytest_caliper_backends(config):
    return [CountedAgent()]


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.stash[SEEN] = seen = []
        config.pluginmanager.register(Recorder(seen))


class Recorder:
    def __init__(self, seen):
        self.seen = seen

    def pytest_runtest_logreport(self, report):
        self.seen.append([report.nodeid, report.when, report.outcome, hasattr(report, "wasxfail")])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        (HERE / "seen.json").write_text(json.dumps(self.seen))
"""

INI = """
[pytest]
caliper_model = shell-agent
caliper_judge_model = shell-agent
caliper_results = results
caliper_workers = 2
filterwarnings =
    error
{filters}
{more}
"""

SPEC = """
skill: ./skill
tasks:
  - name: Greets
    prompt: '[ "$ARM" = skill ] && echo hello || echo silence'
    assert: 'assert attempt.answer == "hello", attempt.answer'
    expect: It greets.
  - name: Fails once
    prompt: '[ "$ATTEMPT" = 2 ] && echo bad || echo good'
    assert: 'assert attempt.answer == "good", attempt.answer'
  - name: Takes longer than a test may
    prompt: '[ "$ARM $ATTEMPT" = "skill 1" ] && sleep 3; echo done'
    assert: 'assert attempt.answer == "done"'
  - name: Meets a fault
    prompt: '[ "$ATTEMPT" = 2 ] && echo "!error it hung up" || echo done'
    assert: 'assert attempt.answer == "done"'
  - name: Has a bar
    bar: 1/2
    prompt: '[ "$ATTEMPT" = 1 ] && echo bad || echo good'
    assert: 'assert attempt.answer == "good", attempt.answer'
"""

ATTEMPTS = """
import pytest


@pytest.mark.caliper(k=2)
def test_in_python(caliper):
    run = caliper.run('[ "$ATTEMPT" = 2 ] && echo bad || echo good', skill="./skill")
    assert run.answer == "good"
"""

UNIT = """
import pytest

import shop


def test_adds():
    assert shop.total([1, 2]) == 3


@pytest.mark.parametrize("n", [1, 2, 3])
def test_of_many(n):
    assert shop.total([n]) == n


def test_fails():
    assert shop.total([]) == 1
"""

SHOP = """
def total(prices):
    return sum(prices)


def never_called():
    return None
"""

FILES: Mapping[str, str] = {
    "conftest.py": CONFTEST,
    "skill/SKILL.md": "---\nname: greeter\ndescription: Greets.\n---\nSay hello.\n",
    "greet.eval.yaml": SPEC,
    "test_attempts.py": ATTEMPTS,
    "test_unit.py": UNIT,
    "shop.py": SHOP,
}

TASKS = ("Greets", "Fails once", "Takes longer than a test may", "Meets a fault", "Has a bar")
PASS, FAIL, SKIP = ("passed", False), ("failed", False), ("skipped", False)
XFAIL, XPASS = ("skipped", True), ("passed", True)

# Outcomes of attempts 1 and 2: in pytest's words, and in the run file's.
REPORTED: Mapping[tuple[str, str], tuple[tuple[str, bool], ...]] = {
    ("Greets", "attempt"): (PASS, PASS),
    ("Greets", "baseline"): (XFAIL, XFAIL),
    ("Fails once", "attempt"): (PASS, FAIL),
    ("Fails once", "baseline"): (XPASS, XFAIL),
    ("Takes longer than a test may", "attempt"): (PASS, PASS),
    ("Takes longer than a test may", "baseline"): (XPASS, XPASS),
    ("Meets a fault", "attempt"): (PASS, SKIP),
    ("Meets a fault", "baseline"): (XPASS, SKIP),
    ("Has a bar", "attempt"): (XFAIL, PASS),
    ("Has a bar", "baseline"): (XFAIL, XPASS),
}
SAVED: Mapping[tuple[str, str], tuple[str, ...]] = {
    (task, arm): tuple({PASS: "pass", XPASS: "pass", SKIP: "infra_error"}.get(one, "task_fail") for one in outcomes)
    for (task, arm), outcomes in REPORTED.items()
}
BARS = {"greet.eval.yaml::Has a bar::bar": PASS}
IN_PYTHON: Mapping[str, tuple[tuple[str, bool], ...]] = {"attempt": (PASS, FAIL), "baseline": (XPASS, XFAIL)}
PYTHON = {
    f"test_attempts.py::test_in_python[{arm}-{n}]": one for arm, ones in IN_PYTHON.items() for n, one in enumerate(ones, start=1)
}
UNITS = {
    "test_unit.py::test_adds": PASS,
    "test_unit.py::test_fails": FAIL,
    **{f"test_unit.py::test_of_many[{n}]": PASS for n in (1, 2, 3)},
}
OF_SPEC = {f"greet.eval.yaml::{t}::{arm}-{n}": one for (t, arm), ones in REPORTED.items() for n, one in enumerate(ones, start=1)}
EXPECTED: Mapping[str, tuple[str, bool]] = {**OF_SPEC, **BARS, **PYTHON, **UNITS}
"""The call phase of every test of the bare suite: outcome, and whether it is an expected failure."""


@dataclass(frozen=True)
class Done:
    """A session that has ended."""

    path: Path
    status: int
    stdout: str
    stderr: str

    @cached_property
    def seen(self) -> list[tuple[str, str, str, bool]]:
        """Every report that the session's own process saw, in order: id, phase, outcome, expected failure."""
        return [tuple(report) for report in json.loads((self.path / "seen.json").read_text())]

    def calls(self) -> Counter[str]:
        """How often the agent was started, by task, arm and attempt."""
        return Counter((self.path / "calls.log").read_text().splitlines())

    def reported(self, outside: Iterable[str] = ()) -> dict[str, list[tuple[str, bool]]]:
        """What was reported of each test's call, or of the phase that kept it from one; reports of `outside` are left out.

        Tries that plugins made before the last are none, except of attempts, which must have but one.
        """
        found: dict[str, list[tuple[str, bool]]] = {}
        for nodeid, when, outcome, wasxfail in self.seen:
            earlier = outcome in {"rerun", "retried"} and nodeid not in OF_SPEC and nodeid not in PYTHON
            decides = (when == "call" or outcome != "passed") and not earlier
            if decides and not nodeid.startswith(tuple(outside)):
                found.setdefault(nodeid, []).append((outcome, wasxfail))
        return found

    def saved(self, name: str = "greet") -> dict[str, Any]:
        """The one run file of a spec, or of a file of tests."""
        (path,) = (self.path / "results" / name).glob("*.json")
        return json.loads(path.read_text())

    @property
    def has_workers(self) -> bool:
        """Whether pytest-xdist spread the session over processes."""
        return re.search(r"\b2 workers\b|created: 2/2", self.stdout) is not None

    def text(self) -> str:
        return f"{self.stdout}\n{self.stderr}"


def write_suite(path: Path, files: Mapping[str, str] = {}, ini: Iterable[str] = (), filters: Iterable[str] = ()) -> Path:
    """The suite below `path`, which it makes, with more files, lines of the ini file, and warnings that are let pass."""
    settings = INI.format(more="\n".join(ini), filters="\n".join(f"    {one}" for one in filters))
    everything = {**FILES, "pytest.ini": settings, **files}
    for name, text in everything.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def run_suite(python: Path, path: Path, *arguments: str, env: Mapping[str, str] = {}) -> Done:
    """`pytest --caliper` in the suite below `path`, with k=2 and baselines."""
    clean = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG", "SYSTEMROOT") if name in os.environ}
    clean |= {"HOME": str(path / ".home"), "TERM": "dumb", "COLUMNS": "100", **env}
    (path / ".home").mkdir(exist_ok=True)
    command = [
        str(python),
        "-m",
        "pytest",
        "--caliper",
        "--caliper-k=2",
        "--caliper-baseline",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    ended = subprocess.run(
        command, check=False, cwd=path, env=clean, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL
    )
    return Done(path, ended.returncode, ended.stdout, ended.stderr)


def check_whole(done: Done, more: Mapping[str, tuple[str, bool]] = {}, outside: Iterable[str] = ()) -> None:
    """That the session measured what it measures without other plugins, said so, and saved it.

    `more` are tests that the scenario adds, `outside` beginnings of ids that it checks by itself.
    """
    assert done.status == 1, done.text()
    assert "INTERNALERROR" not in done.text(), done.text()
    assert "warnings summary" not in done.stdout, done.text()
    assert "Traceback" not in done.stderr, done.text()
    expected = {**EXPECTED, **more}
    assert done.reported(outside) == {nodeid: [one] for nodeid, one in expected.items() if not nodeid.startswith(tuple(outside))}
    check_calls(done)
    check_order(done)
    check_saved(done)
    check_summary(done)


def check_calls(done: Done) -> None:
    """Every attempt was made, and none twice: a rate is not the best of several tries."""
    tasks = (*TASKS, "test_in_python")
    assert done.calls() == Counter(f"{task} {arm} {n}" for task in tasks for arm in ("skill", "baseline") for n in (1, 2))


def check_order(done: Done) -> None:
    """Unit tests first, attempts in rounds, bars behind them. What runs side by side is reported as it ends."""
    order = list(dict.fromkeys(nodeid for nodeid, *_ in done.seen))
    if done.has_workers:
        return
    units = [n for n, nodeid in enumerate(order) if nodeid in UNITS]
    attempts = [n for n, nodeid in enumerate(order) if nodeid in OF_SPEC or nodeid in PYTHON]
    assert max(units) < min(attempts), order
    rounds = [int(nodeid.rpartition("-")[2]) for nodeid in order if nodeid in OF_SPEC]
    assert rounds == sorted(rounds), order
    assert order.index(next(iter(BARS))) > max(n for n, nodeid in enumerate(order) if nodeid in OF_SPEC)


def check_saved(done: Done) -> None:
    """The run files hold every attempt with its outcome."""
    run = done.saved()
    arms = {"attempt": "task_results", "baseline": "baseline_task_results"}
    for (task, arm), outcomes in SAVED.items():
        (found,) = (one for one in run[arms[arm]] if one["task_name"] == task)
        assert tuple(attempt["outcome"] for attempt in found["attempts"]) == outcomes, (task, arm)
    assert run["run"]["k"] == 2
    (test,) = done.saved("test_attempts.py")["task_results"]
    assert [attempt["outcome"] for attempt in test["attempts"]] == ["pass", "task_fail"]
    assert not list((done.path / "results").rglob("partial/*")), "the run was saved as one that did not end"


def check_summary(done: Done) -> None:
    """The terminal tells of both arms. (pytest-sugar and others change what stands around it.)"""
    for task in TASKS:
        assert task in done.stdout, done.text()
    assert done.stdout.count("no skill") >= len(TASKS), done.text()
