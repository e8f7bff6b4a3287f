"""The recorded attempts of our agent skills replay without an agent, and their checks still tell good work from bad."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.cli.own_skills import NAMES
from pytest_caliper.spec.loading import load_spec

SKILLS = Path(__file__).resolve().parents[2] / "skills"
NETNS = SKILLS.parent / "tests" / "real_cli" / "netns.py"
PRIVATE = ("dummy-key", "/tmp/caliper", "-tmp-", "/root", "/home/", "/Users/", "127.0.0.1", "localhost")
every_skill = pytest.mark.parametrize("name", NAMES)


def cassettes(name: str, skills: Path = SKILLS) -> list[Path]:
    return sorted((skills / name / f"{name}.cassettes").glob("*.json"))


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SKILLS, tmp_path / "skills"))


def no_network() -> list[str]:
    """What to put before a command; nothing where there are no network namespaces."""
    prefix = [sys.executable, str(NETNS), "--"]
    usable = sys.platform == "linux" and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if usable else []


def replay(name: str, skills: Path, *options: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    """-> (pytest, its run file or None). There is neither agent CLI nor network, and `caliper` is on PATH, for the specs' `setup:`."""
    tools, home, results = (skills.parent / place for place in ("tools", "home", "results"))
    tools.mkdir()
    home.mkdir()
    code = "from pytest_caliper.cli import main; raise SystemExit(main())"
    (tools / "caliper").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
    (tools / "caliper").chmod(0o755)
    (skills / "pytest.ini").write_text("[pytest]\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CLAUDE", "ANTHROPIC"))}
    env |= {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(home), "CLAUDE_CLI_PATH": "/no/agent/here"}
    done = subprocess.run(
        [
            *(*no_network(), sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(skills / "pytest.ini")),
            *(str(skills / name / f"{name}.eval.yaml"), "--caliper-k=1", "--caliper-replay", f"--caliper-results={results}"),
            *options,
        ],
        cwd=skills,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert list(home.iterdir()) == []
    saved = list(results.rglob("*.json"))
    return done, json.loads(saved[0].read_text()) if saved else None


def outcomes(run: Any) -> set[str]:
    return {attempt["outcome"] for task in run["task_results"] for attempt in task["attempts"]}


@every_skill
def test_its_recordings_pass(name: str, skills: Path) -> None:
    done, run = replay(name, skills)

    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(run) == {"pass"}
    assert len(run["task_results"]) == len(load_spec(SKILLS / name / f"{name}.eval.yaml").tasks)


@pytest.mark.parametrize(
    ("name", "task", "recorded", "instead", "said"),
    [
        ("evaluate-skill", "Quotes the rate", "35.4 to 87.9 %", "a good interval", "a bare rate"),
        ("evaluate-skill", "Tells the price", " = 18 attempts", "", "the price is not told"),
        ("grill-skill", "Writes three", "- name: Keeps", "- nom: Keeps", "unknown key"),
        ("grill-skill", "Goes on", "- name: Writes the port", "- name: Writes a port", "what was there was rewritten"),
        ("grill-skill", "Asks before", "What does a user say, word", "When? Where? What does a user say, word", "one question"),
    ],
)
def test_another_answer_in_a_recording_fails(name: str, task: str, recorded: str, instead: str, said: str, skills: Path) -> None:
    number = next(n for n, one in enumerate(load_spec(SKILLS / name / f"{name}.eval.yaml").tasks, 1) if one.name.startswith(task))
    path = skills / name / f"{name}.cassettes" / f"task-{number:03}-skill-1.json"
    text = path.read_text()
    assert recorded in text
    path.write_text(text.replace(recorded, instead))

    done, run = replay(name, skills, "-k", " and ".join(task.split()))

    assert done.returncode == 1, done.stdout + done.stderr
    assert outcomes(run) == {"task_fail"}
    assert said in done.stdout


@every_skill
def test_recordings_are_small_and_tell_nothing_of_the_machine_they_were_made_on(name: str) -> None:
    assert cassettes(name)
    for path in cassettes(name):
        text = path.read_text()
        assert len(text) < 150_000
        assert [private for private in PRIVATE if private in text] == []


@every_skill
def test_git_does_not_ignore_the_recordings(name: str) -> None:
    root = SKILLS.parent
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("no git checkout")
    command = ["git", "-C", str(root), "check-ignore", *map(str, cassettes(name))]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == ""
