"""Our agent skills on the real Claude Code and Codex CLIs: their specs pass where the skill is followed, and fail where it is not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from our_skills import (
    CHECKS,
    NEVER_BARE,
    SCRIPTS,
    SKILLS,
    VALIDATES,
    failures,
    measure,
    script_of,
    wrong_script_of,
)
from subjects import CLAUDE, CODEX

from pytest_caliper.spec.loading import load_spec

pytestmark = pytest.mark.real_cli
both = pytest.mark.parametrize("name", SCRIPTS)


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """A copy of the skills, without recordings."""
    shutil.copytree(SKILLS, tmp_path / "skills", ignore=shutil.ignore_patterns("*.cassettes"))
    return tmp_path / "skills"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "pytest.ini").write_text("[pytest]\n")
    return tmp_path / "place"


def prompts(name: str) -> dict[str, str]:
    """Names of tasks -> their prompts."""
    return {task.name: task.prompt for task in load_spec(SKILLS / name / f"{name}.eval.yaml").tasks}


def passed(done: Any, run: Any, name: str) -> None:
    assert run is not None, done.stdout + done.stderr
    assert {task: outcome for task, (outcome, _) in failures(run).items()} == dict.fromkeys(prompts(name), "pass"), done.stdout
    assert done.returncode == 0
    assert [one["attempts"][0]["skills_used"] for one in run["task_results"]] == [[name]] * len(prompts(name))


@both
def test_its_spec_passes_on_claude_code(name: str, claude_cli: Path, skills: Path, place: Path) -> None:
    done, run = measure(name, script_of(name), CLAUDE, Cli(binary=claude_cli, version=""), skills, place)
    passed(done, run, name)


@both
def test_its_spec_passes_on_codex(name: str, codex_cli: Cli, skills: Path, place: Path) -> None:
    done, run = measure(name, script_of(name), CODEX, codex_cli, skills, place)
    passed(done, run, name)
