"""The small suite that runs in every box: a spec, a test in Python with attempts, other tests. Its outcomes are known."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT / "tests" / "support")!r})
from shell_agent import ShellAgent

HERE = os.path.dirname(__file__)

def note(name, **said):
    with open(os.path.join(HERE, name), "a") as file:
        file.write(json.dumps(said) + "\\n")

class Counted(ShellAgent):
    def agent_command(self, plan, workspace, cli):
        note("agents.jsonl", task=plan.task.name, arm=plan.arm, attempt=plan.key.attempt)
        return super().agent_command(plan, workspace, cli)

def pytest_caliper_backends(config):
    return [Counted()]

def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        note("reports.jsonl", nodeid=report.nodeid, when=report.when, outcome=report.outcome, xfail=hasattr(report, "wasxfail"))
"""
INI = """
[pytest]
caliper_model = shell-agent
caliper_judge_model = shell-agent
caliper_results = results
filterwarnings =
    error:::pytest_caliper
"""
SPEC = """
skill:
  path: ./skill
tasks:
  - name: Passes
    prompt: sleep 1.2; echo yes
    assert: assert attempt.answer.strip() == "yes"
  - name: Fails
    prompt: echo no
    assert: assert attempt.answer.strip() == "yes"
  - name: Sometimes
    prompt: '[ $ATTEMPT = 2 ] || echo yes'
    assert: assert attempt.answer.strip() == "yes"
    bar: 1/2
  - name: Lost
    prompt: echo "!error the line is down"; exit 1
    expect: Anything.
  - name: Skilled
    prompt: '[ $ARM = skill ] && echo yes; true'
    expect: It says so.
    assert: assert attempt.answer.strip() == "yes"
"""
TESTS = """
import pytest

@pytest.mark.caliper(k=3, bar=0.5)
@pytest.mark.parametrize("word", ["a", "b"])
def test_says(caliper, word):
    run = caliper.run(f"[ $ATTEMPT = 2 ] || echo {word}")
    assert run.answer.strip() == word

@pytest.mark.caliper(k=1)
def test_fails(caliper):
    run = caliper.run("sleep 1.2; echo no")
    assert run.answer.strip() == "yes"

def test_plain():
    assert True
"""
EXPECTED = {
    ("demo.eval.yaml", "task_results"): {
        "Passes": ["pass"] * 3,
        "Fails": ["task_fail"] * 3,
        "Sometimes": ["pass", "task_fail", "pass"],
        "Lost": ["infra_error"] * 3,
        "Skilled": ["pass"] * 3,
    },
    ("demo.eval.yaml", "baseline_task_results"): {
        "Passes": ["pass"] * 3,
        "Fails": ["task_fail"] * 3,
        "Sometimes": ["pass", "task_fail", "pass"],
        "Lost": ["infra_error"] * 3,
        "Skilled": ["task_fail"] * 3,
    },
    ("test_attempts.py", "task_results"): {
        "test_says[a]": ["pass", "task_fail", "pass"],
        "test_says[b]": ["pass", "task_fail", "pass"],
        "test_fails": ["task_fail"],
    },
}
AGENTS = 15 * 2 + 7
"""How often an agent is called: once per attempt, whatever plugins rerun."""


@dataclass(kw_only=True)
class Ran:
    """One session in a box."""

    path: Path
    status: int
    output: str
    reports: list[dict[str, Any]] = field(default_factory=list)

    def outcomes(self) -> dict[str, str]:
        """Node id -> what its call came to, or its set-up where there was no call."""
        told = {}
        for report in self.reports:
            if report["when"] == "call" or (report["when"] == "setup" and report["outcome"] != "passed"):
                told[report["nodeid"]] = ("x" if report["xfail"] else "") + report["outcome"]
        return told


def make(path: Path, others: str = "") -> None:
    """Write the project; `others` are further tests."""
    path.mkdir(parents=True)
    for name, text in {
        "conftest.py": CONFTEST,
        "pytest.ini": INI,
        "demo.eval.yaml": SPEC,
        "test_attempts.py": TESTS,
        "test_others.py": others or "def test_other():\n    assert True\n",
        "skill/SKILL.md": "---\nname: greeter\ndescription: Greets.\n---\nSay hello.\n",
    }.items():
        target = path / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(textwrap.dedent(text))


def run(python: Path, path: Path, *options: str, env: dict[str, str] | None = None) -> Ran:
    """One session over everything, with the default k."""
    for name in ("agents.jsonl", "reports.jsonl"):
        (path / name).unlink(missing_ok=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "GITHUB_", "CALIPER_"))}
    clean.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(python), "-m", "pytest", "--caliper", "--caliper-baseline", *options],
        cwd=path,
        env={**clean, "PYTHONHASHSEED": "0", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    reports = (
        [json.loads(line) for line in (path / "reports.jsonl").read_text().splitlines()]
        if (path / "reports.jsonl").exists()
        else []
    )
    return Ran(path=path, status=done.returncode, output=done.stdout, reports=reports)


def check_attempts(ran: Ran) -> None:
    """The attempts came to what they come to without any plugin: each ran once, in its round, and is saved and shown."""
    assert "INTERNALERROR" not in ran.output, ran.output
    assert ran.status == 1, ran.output
    told: dict[tuple[str, str], dict[str, list[str]]] = {}
    for saved in (ran.path / "results").rglob("*.json"):
        data = json.loads(saved.read_text())
        assert not data["run"]["interrupted"], ran.output
        for arm in ("task_results", "baseline_task_results"):
            if data.get(arm):
                found = {task["task_name"]: [one["outcome"] for one in task["attempts"]] for task in data[arm]}
                told[data["run"]["spec"], arm] = found
    assert told == EXPECTED, ran.output
    agents = [json.loads(line) for line in (ran.path / "agents.jsonl").read_text().splitlines()]
    keys = [(agent["task"], agent["arm"], agent["attempt"]) for agent in agents]
    assert len(keys) == len(set(keys)) == AGENTS, "an attempt was made twice"
    outcomes = ran.outcomes()
    assert outcomes["demo.eval.yaml::Sometimes::bar"] == "passed", ran.output
    assert outcomes["test_attempts.py::test_says[a]::bar"] == "passed", ran.output
    assert {outcomes[f"demo.eval.yaml::Fails::attempt-{n}"] for n in (1, 2, 3)} == {"failed"}
    assert {outcomes[f"demo.eval.yaml::Fails::baseline-{n}"] for n in (1, 2, 3)} == {"xskipped"}
    assert {outcomes[f"demo.eval.yaml::Lost::attempt-{n}"] for n in (1, 2, 3)} == {"skipped"}
    assert outcomes["test_attempts.py::test_fails[attempt-1]"] == "failed"
    assert outcomes["test_attempts.py::test_plain"] == "passed"
    assert "Skilled" in ran.output
    assert "better" in ran.output or "no evidence" in ran.output
