"""pytest, a spec and the real Claude Code CLI with a scripted model: every outcome, and the same run file however it was run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from namespace import KEY, CompletedRun, run_in_namespace

pytestmark = pytest.mark.real_cli

Turn = dict[str, Any]


class Project:
    """A directory with a skill and specs, in which pytest runs beside a scripted model."""

    def __init__(self, path: Path, cli: Path) -> None:
        self.path, self._cli = path, cli
        (path / "pytest.ini").write_text("[pytest]\n")
        (path / "skill").mkdir()
        (path / "skill" / "SKILL.md").write_text("---\nname: house-style\ndescription: How files are named here.\n---\nEnd in .txt.\n")

    def run(
        self, spec: str, turns: list[Turn], *arguments: str, env: dict[str, str | None] | None = None, results: str = "results"
    ) -> tuple[CompletedRun, Any]:
        """-> (the run, its run file or None)."""
        (self.path / "demo.eval.yaml").write_text(spec)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "demo.eval.yaml", f"--caliper-results={results}"]
        variables = {"CLAUDE_CLI_PATH": str(self._cli), **(env or {})}
        done = run_in_namespace(turns, [*command, *arguments], self.path, env=variables)
        assert "INTERNALERROR" not in done.stdout + done.stderr
        saved = list((self.path / results).rglob("*.json"))
        return done, json.loads(saved[0].read_text()) if saved else None


@pytest.fixture
def project(claude_cli: Path, tmp_path: Path) -> Project:
    path = tmp_path / "project"
    path.mkdir()
    return Project(path, claude_cli)


def on(prompt: str, **when: Any) -> dict[str, Any]:
    """The condition that holds for the agent of one task."""
    return {"all": [prompt], "tools": True, **when}


def verdict(passed: bool, reasoning: str, *texts: str) -> Turn:
    """The judge's reply where its question holds all `texts`."""
    return {
        "when": {"tool_offered": "StructuredOutput", "all": list(texts)},
        "tool": {"StructuredOutput": {"reasoning": reasoning, "passed": passed}},
    }


PROBE = verdict(True, "It is 7.", "The agent's final answer is 7.")
WRITE = {"Write": {"file_path": "@CWD@/out.txt", "content": "port = 3000\n"}}


def outcomes(run: Any, arm: str = "task_results") -> dict[str, list[str]]:
    return {task["task_name"]: [attempt["outcome"] for attempt in task["attempts"]] for task in run[arm]}


def attempts(run: Any) -> list[Any]:
    return [one for arm in ("task_results", "baseline_task_results") for task in run[arm] or [] for one in task["attempts"]]


THREE = """
skill:
  path: ./skill
tasks:
  - name: Writes with the skill
    prompt: ALPHA, write out.txt with its place in it.
    assert: |
      text = open("out.txt").read()
      assert "port = 3000" in text
      assert attempt.answer == "ALPHA is done."
  - name: Judged
    prompt: BRAVO, say hello.
    setup: echo given > given.txt
    expect: The answer greets.
  - name: Wrong file
    prompt: CHARLIE, write the port.
    assert: |
      port = int(open("out.txt").read().split("=")[1])
      assert port == 8080
"""
PLACED = {"Bash": {"command": "echo port = 3000 in $PWD of $HOME > out.txt; cat out.txt", "description": "Write the file"}}
THREE_TURNS: list[Turn] = [
    PROBE,
    verdict(True, "It says hello.", "Hello there."),
    {"when": on("ALPHA", any="house-style", tool_results=0), "tool": {"Skill": {"skill": "house-style"}}},
    {"when": on("ALPHA", any="house-style", tool_results=1), "text": "I write it.", "tool": PLACED},
    {"when": on("ALPHA", any="house-style"), "text": "ALPHA is done."},
    {"when": on("ALPHA"), "text": "I would rather not."},
    {"when": on("BRAVO", tool_results=0), "tool": {"Read": {"file_path": "@CWD@/given.txt"}}},
    {"when": on("BRAVO"), "text": "Hello there."},
    {"when": on("CHARLIE", tool_results=0), "tool": WRITE},
    {"when": on("CHARLIE"), "text": "Written."},
]


def comparable(run: Any) -> Any:
    """A run file without ids, times and worker settings, and without what the CLI or the model number."""
    for name in ("id", "timestamp", "workers"):
        run["run"].pop(name)
    for attempt in attempts(run):
        for name in ("started", "wall_seconds", "duration_seconds", "durations"):
            attempt.pop(name, None)
    return run


def test_with_and_without_the_skill_and_the_same_however_many_run_at_once(project: Project) -> None:
    options = ("--caliper-baseline", "--caliper-k=3")
    done, one = project.run(THREE, THREE_TURNS, *options, "--caliper-workers=1", results="one")
    _, four = project.run(THREE, THREE_TURNS, *options, "--caliper-workers=4", results="four")
    _, xdist = project.run(THREE, THREE_TURNS, *options, "-n2", results="xdist")

    assert outcomes(one) == {"Writes with the skill": ["pass"] * 3, "Judged": ["pass"] * 3, "Wrong file": ["task_fail"] * 3}
    assert outcomes(one, "baseline_task_results") == {
        "Writes with the skill": ["judge_error"] * 3,
        "Judged": ["pass"] * 3,
        "Wrong file": ["task_fail"] * 3,
    }
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "assert 3000 == 8080" in done.stdout
    assert "demo.eval.yaml:20: AssertionError: assert 3000 == 8080" in done.stdout
    skill, bare = one["task_results"][0]["attempts"][0], one["baseline_task_results"][0]["attempts"][0]
    assert (skill["skills_used"], bare["skills_used"]) == (["house-style"], [])
    assert "house-style" in skill["skills_reported"]
    assert "house-style" not in bare["skills_reported"]
    assert skill["changed_files"][0]["text"] == "port = 3000 in $WORK of $HOME\n"
    assert skill["usage"]["output_tokens"] == 60
    assert comparable(one) == comparable(four)
    assert one == comparable(xdist)
    text = json.dumps(one)
    assert KEY not in text
    assert "/caliper-" not in text
    assert str(project.path) not in text
