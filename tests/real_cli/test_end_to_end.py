"""pytest, a spec and the real Claude Code CLI with a scripted model: every outcome, and the same run file however it was run."""

from __future__ import annotations

import json
import os
import sys
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
        (path / "skill" / "SKILL.md").write_text(
            "---\nname: house-style\ndescription: How files are named here.\n---\nEnd in .txt.\n"
        )

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
      assert attempt.files == ["out.txt"]
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
PLACED = {
    "Bash": {"command": "echo port = 3000 in $PWD of $HOME as $(id -u) > out.txt; cat out.txt", "description": "Write the file"}
}
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


def test_with_and_without_the_skill(project: Project) -> None:
    done, run = project.run(THREE, THREE_TURNS, "--caliper-baseline", "--caliper-k=3")

    assert outcomes(run) == {"Writes with the skill": ["pass"] * 3, "Judged": ["pass"] * 3, "Wrong file": ["task_fail"] * 3}
    assert outcomes(run, "baseline_task_results") == {
        "Writes with the skill": ["task_fail"] * 3,
        "Judged": ["pass"] * 3,
        "Wrong file": ["task_fail"] * 3,
    }
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "3 failed, 6 passed, 6 xfailed, 3 xpassed" in done.stdout
    line = THREE.splitlines().index("      assert port == 8080") + 1
    assert f"  demo.eval.yaml:{line}: AssertionError: assert 3000 == 8080\n" in done.stdout
    assert "better with the skill" in done.stdout
    assert (run["run"]["judge_backend"], run["run"]["judge_cli_version"]) == ("claude-code", run["run"]["cli_version"])
    assert run["task_results"][1]["attempts"][0]["autorater_reasoning"] == "It says hello."


def test_the_skill_is_there_in_its_arm_only_and_the_attempt_is_alone(project: Project) -> None:
    _, run = project.run(THREE, THREE_TURNS, "--caliper-baseline", "--caliper-k=1", "-k", "Writes")
    skill, bare = attempts(run)

    assert (skill["skills_used"], bare["skills_used"]) == (["house-style"], [])
    assert "house-style" in skill["skills_reported"]
    assert "house-style" not in bare["skills_reported"]
    assert skill["changed_files"][0]["text"] == f"port = 3000 in $WORK of $HOME as {os.getuid()}\n"
    assert (skill["usage"]["input_tokens"], skill["usage"]["output_tokens"]) == (300, 60)
    assert [turn["tool_name"] for turn in skill["transcript"] if turn["role"] == "tool_use"] == ["Skill", "Bash"]


def comparable(run: Any) -> Any:
    """A run file without ids, times and worker settings."""
    for name in ("id", "timestamp", "workers"):
        run["run"].pop(name)
    for attempt in attempts(run):
        for name in ("started", "wall_seconds", "duration_seconds", "durations"):
            attempt.pop(name, None)
    return run


def test_the_run_file_is_the_same_however_many_run_at_once(project: Project) -> None:
    one, four, xdist = (
        comparable(project.run(THREE, THREE_TURNS, "--caliper-baseline", "--caliper-k=1", extra, results=f"results{extra}")[1])
        for extra in ("--caliper-workers=1", "--caliper-workers=4", "-n2")
    )

    assert one == four
    assert one == xdist
    text = json.dumps(one)
    assert KEY not in text
    assert "/caliper-" not in text
    assert "-caliper-" not in text
    assert str(project.path) not in text


ENDS = """
sandbox:
  forbidden_files: ['\\.env$']
tasks:
  - {name: Reads what is forbidden, prompt: "DELTA, look around.", setup: "echo KEY > .env", expect: x}
  - {name: Reads the spec, prompt: "ECHO, look around.", expect: x}
  - {name: Judge rambles, prompt: "FOXTROT, say hello.", expect: The answer greets.}
  - {name: Throttled for ever, prompt: "GOLF, say hello.", expect: x}
  - {name: Judge says no, prompt: "HOTEL, say hello.", expect: The answer says goodbye.}
"""


def test_every_other_end(project: Project) -> None:
    spec = str(project.path / "demo.eval.yaml")
    turns: list[Turn] = [
        PROBE,
        {"when": {"tool_offered": "StructuredOutput", "all": ["FOXTROT"]}, "text": "That depends on what you call a greeting."},
        verdict(False, "It does not say goodbye.", "HOTEL"),
        {"when": on("DELTA", tool_results=0), "tool": {"Bash": {"command": "cat ./.env", "description": "Look"}}},
        {"when": on("ECHO", tool_results=0), "tool": {"Read": {"file_path": spec}}},
        {"when": on("ECHO"), "text": "I have seen the spec."},
        {"when": on("GOLF"), "fault": {"kind": "status", "status": 429, "message": "slow down"}},
        {"text": "Hello there."},
    ]
    done, run = project.run(ENDS, turns, "--caliper-k=1")

    assert outcomes(run) == {
        "Reads what is forbidden": ["cheat"],
        "Reads the spec": ["cheat"],
        "Judge rambles": ["judge_error"],
        "Throttled for ever": ["infra_error"],
        "Judge says no": ["task_fail"],
    }
    forbidden, read_spec, rambling, throttled, refused = attempts(run)
    assert forbidden["cheat_evidence"] == ["Bash: './.env' matches the forbidden pattern '\\.env$'"]
    assert "demo.eval.yaml" in read_spec["cheat_evidence"][0]
    assert "gave no verdict, asked 2 times" in rambling["reason"]
    assert throttled["reason"].startswith("rate_limit (HTTP 429)")
    assert (throttled["retries"], throttled["usage"]["output_tokens"]) == (2, 0)
    assert refused["reason"] == "expect: It does not say goodbye."
    asked = [text for text in map(json.dumps, done.messages) if "ECHO" not in text]  # the one that has read the whole spec
    assert sum("GOLF" in text for text in asked) == 9  # three tries of the CLI in each of three of ours
    assert any("FOXTROT" in text and "Your reply to this message could not be used" in text for text in asked)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "Throttled for ever: no attempt was usable" in done.stdout


def test_a_hanging_model_and_a_hanging_tool_are_timed_out_and_leave_nothing(project: Project, tmp_path: Path) -> None:
    spec = "tasks:\n  - {name: Model, prompt: INDIA, expect: x}\n  - {name: Tool, prompt: JULIET, expect: x}\n"
    waiting = {"Bash": {"command": "setsid sleep 600 & nohup sleep 600 & sleep 600", "description": "Wait"}}
    turns: list[Turn] = [PROBE, {"when": on("JULIET", tool_results=0), "tool": waiting}, {"fault": {"kind": "hang"}}]
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    done, run = project.run(spec, turns, "--caliper-k=1", "--caliper-timeout=6", env={"TMPDIR": str(temporary)})

    assert outcomes(run) == {"Model": ["timeout"], "Tool": ["timeout"]}
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert list(temporary.iterdir()) == []
    assert [process for process in psutil.process_iter() if str(temporary) in environment(process)] == []


def environment(process: psutil.Process) -> str:
    try:
        return " ".join(process.environ().values())
    except psutil.Error:
        return ""


def test_without_credentials_nothing_is_begun(project: Project) -> None:
    done, run = project.run(THREE, THREE_TURNS, env={"ANTHROPIC_API_KEY": None})

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: Claude Code is not logged in: " in done.stderr
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert (run, done.requests) == (None, [])


def test_a_judge_that_cannot_work_is_found_before_the_first_attempt(project: Project) -> None:
    turns: list[Turn] = [{"when": {"tool_offered": "StructuredOutput"}, "text": "I only talk about boats."}, *THREE_TURNS]
    done, run = project.run(THREE, turns)

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: judge claude-code gives no verdict that can be read" in done.stderr
    assert run is None
    assert not any("ALPHA" in json.dumps(body) for body in done.messages)


def test_a_key_that_is_refused_ends_the_session(project: Project) -> None:
    turns: list[Turn] = [PROBE, {"fault": {"kind": "status", "status": 401, "message": "invalid x-api-key"}}]
    done, run = project.run(THREE, turns, "--caliper-k=5", "--caliper-workers=1")

    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "/login" in done.stdout
    assert run["run"]["interrupted"] is True
    assert len(attempts(run)) < 4
