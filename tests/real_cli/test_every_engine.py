"""One spec with a skill, an MCP server and both checks gives the same outcomes on every engine, judged by another one."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from cases import HERE, SKILL_TEXT, Subject
from namespace import run_in_namespace
from subjects import CLAUDE, CODEX, GEMINI, HERMES, OPENCODE, PI, environment, target

pytestmark = pytest.mark.real_cli

GREETS, NEVER = "The answer is in pirate speech.", "The answer is a sonnet."
SPEC = f"""
skill:
  path: ./greet
mcp:
  echo:
    command: {sys.executable}
    args: [./mcp_echo.py]
tasks:
  - name: Greets through the server
    prompt: ALPHA, greet me through the server.
    expect: {GREETS}
    assert: |
      assert "ARRR-7731" in attempt.answer
      assert attempt.skills == ["greet"]
      (echoed,) = [call for call in attempt.tool_calls if call.name == "mcp__echo__echo"]
      assert echoed.input == {{"text": "ahoy"}}
      assert "ahoy" in echoed.output
      assert attempt.usage.output_tokens > 0
  - name: Writes no sonnet
    prompt: BRAVO, write a sonnet.
    expect: {NEVER}
"""
EXPECTED = {
    "task_results": {"Greets through the server": ["pass"], "Writes no sonnet": ["task_fail"]},
    "baseline_task_results": {"Greets through the server": ["task_fail"], "Writes no sonnet": ["task_fail"]},
}
ECHO = {name: {"text": "ahoy"} for name in ("mcp__echo__echo", "mcp_echo_echo", "echo_echo")}


def judged(text: str, passed: bool, reasoning: str) -> list[dict[str, Any]]:
    """The judge's reply where its question holds `text`: by its tool where it has one, else as text."""
    verdict = {"reasoning": reasoning, "passed": passed}
    return [
        {"when": {"any": text, "tool_offered": "StructuredOutput"}, "tool": {"StructuredOutput": verdict}},
        {"when": {"any": text}, "text": json.dumps(verdict)},
    ]


def turns(engine: Subject) -> list[dict[str, Any]]:
    return [
        *judged("The agent's final answer is 7.", True, "It is 7."),
        *judged(GREETS, True, "It says ARRR."),
        *judged(NEVER, False, "No verse in it."),
        {"when": {"all": ["ALPHA", "Greets like a pirate."], "tool_results": 0}, "tool": engine.skill("greet")},
        {"when": {"all": ["ALPHA", "Greets like a pirate."], "tool_results": 1}, "tool": ECHO},
        {"when": {"all": ["ALPHA", "Greets like a pirate."]}, "text": "ARRR-7731, ahoy!"},
        {"when": {"any": "ALPHA"}, "text": "Hello."},
        {"text": "Roses are red."},
    ]


def check(engine: Subject, cli: Cli, judge: Subject, judge_cli: Cli, path: Path) -> None:
    (path / "greet").mkdir()
    (path / "greet" / "SKILL.md").write_text(SKILL_TEXT)
    shutil.copy(HERE / "mcp_echo.py", path)
    (path / "demo.eval.yaml").write_text(SPEC)
    (path / "pytest.ini").write_text("[pytest]\n")
    done = run_in_namespace(
        turns(engine),
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "demo.eval.yaml", "--caliper-k=1", "--caliper-baseline"),
            *(f"--caliper-model={target(engine)}", f"--caliper-judge-model={target(judge)}", "--caliper-results=results"),
            *("--caliper-workers=2", "--caliper-timeout=100"),
        ],
        path,
        env=environment((engine, cli), (judge, judge_cli)),
        files={**engine.files, **judge.files},
    )

    (saved,) = (path / "results").rglob("*.json") if (path / "results").exists() else (None,)
    assert saved is not None, done.stdout + done.stderr
    run = json.loads(saved.read_text())
    told = {
        arm: {task["task_name"]: [attempt["outcome"] for attempt in task["attempts"]] for task in run[arm]} for arm in EXPECTED
    }
    assert told == EXPECTED, done.stdout
    assert run["run"]["backend"] == engine.backend
    assert run["run"]["judge_backend"] == judge.backend
    assert "mcp server echo: 1 tool" in done.stdout


def test_claude_code_judged_by_codex(claude_cli: Path, codex_cli: Cli, tmp_path: Path) -> None:
    check(CLAUDE, Cli(binary=claude_cli, version="", path=()), CODEX, codex_cli, tmp_path)


def test_codex_judged_by_pi(codex_cli: Cli, pi_cli: Cli, tmp_path: Path) -> None:
    check(CODEX, codex_cli, PI, pi_cli, tmp_path)


def test_pi_judged_by_claude_code(pi_cli: Cli, claude_cli: Path, tmp_path: Path) -> None:
    check(PI, pi_cli, CLAUDE, Cli(binary=claude_cli, version="", path=()), tmp_path)


@pytest.mark.slow_cli
def test_gemini_judged_by_opencode(gemini_cli: Cli, opencode_cli: Cli, tmp_path: Path) -> None:
    check(GEMINI, gemini_cli, OPENCODE, opencode_cli, tmp_path)


@pytest.mark.slow_cli
def test_opencode_judged_by_hermes(opencode_cli: Cli, hermes_cli: Cli, tmp_path: Path) -> None:
    check(OPENCODE, opencode_cli, HERMES, hermes_cli, tmp_path)


@pytest.mark.slow_cli
def test_hermes_judged_by_gemini(hermes_cli: Cli, gemini_cli: Cli, tmp_path: Path) -> None:
    check(HERMES, hermes_cli, GEMINI, gemini_cli, tmp_path)
