"""A test in Python that asks for `caliper`, on real agent CLIs with a scripted model, judged by another one of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from cases import SKILL_TEXT, Subject
from namespace import run_in_namespace
from subjects import CLAUDE, CODEX, environment, target

pytestmark = pytest.mark.real_cli

GREETS = "The answer is in pirate speech."
TEST = f'''
import pytest

@pytest.mark.caliper(k=2, baseline=True, bar=1)
@pytest.mark.parametrize("name", ["ALPHA", "BRAVO"])
def test_greets(caliper, name):
    (caliper.workdir / "given.txt").write_text("ahoy")
    run = caliper.run(f"{{name}}, greet me.", skill="./greet")
    assert run.ok
    assert run.answer.startswith("ARRR")
    assert run.skills == ["greet"]
    assert run.usage.output_tokens > 0
    assert (run.workdir / "given.txt").read_text() == "ahoy"
    assert caliper.judge(run, "{GREETS}")
'''


def turns(engine: Subject) -> list[dict[str, Any]]:
    verdicts = [("The agent's final answer is 7.", True), (GREETS, True)]
    said = [({"any": text}, json.dumps({"reasoning": "It does.", "passed": passed})) for text, passed in verdicts]
    return [
        *(
            {"when": {**when, "tool_offered": "StructuredOutput"}, "tool": {"StructuredOutput": json.loads(text)}}
            for when, text in said
        ),
        *({"when": when, "text": text} for when, text in said),
        {"when": {"all": ["greet me", "Greets like a pirate."], "tool_results": 0}, "tool": engine.skill("greet")},
        {"when": {"all": ["greet me", "Greets like a pirate."]}, "text": "ARRR-7731, ahoy!"},
        {"when": {"any": "greet me"}, "text": "Hello."},
    ]


def check(engine: Subject, cli: Cli, judge: Subject, judge_cli: Cli, path: Path, *arguments: str) -> None:
    (path / "greet").mkdir()
    (path / "greet" / "SKILL.md").write_text(SKILL_TEXT)
    (path / "test_greet.py").write_text(TEST)

    done = run_in_namespace(
        turns(engine),
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_greet.py", "--caliper-results=results", *arguments),
            *(f"--caliper-model={target(engine)}", f"--caliper-judge-model={target(judge)}", "--caliper-timeout=100"),
        ],
        path,
        env=environment((engine, cli), (judge, judge_cli)),
        files={**engine.files, **judge.files},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed, 4 xfailed" in done.stdout  # four attempts in each arm, and two bars
    (saved,) = (path / "results").rglob("*.json")
    run = json.loads(saved.read_text())
    for arm, outcome in (("task_results", "pass"), ("baseline_task_results", "task_fail")):
        told = {task["task_name"]: [attempt["outcome"] for attempt in task["attempts"]] for task in run[arm]}
        assert told == {f"test_greets[{name}]": [outcome] * 2 for name in ("ALPHA", "BRAVO")}, done.stdout
    assert [skill["name"] for skill in run["skill_snapshots"]] == ["greet"]
    assert run["run"]["backend"] == engine.backend
    assert run["run"]["judge_backend"] == judge.backend


def test_claude_code_judged_by_codex(claude_cli: Path, codex_cli: Cli, tmp_path: Path) -> None:
    check(CLAUDE, Cli(binary=claude_cli, version="", path=()), CODEX, codex_cli, tmp_path)


def test_codex_judged_by_claude_code_in_xdist_workers(codex_cli: Cli, claude_cli: Path, tmp_path: Path) -> None:
    check(CODEX, codex_cli, CLAUDE, Cli(binary=claude_cli, version="", path=()), tmp_path, "-n2")
