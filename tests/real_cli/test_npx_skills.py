"""`npx skills add` on our skills: the real installer, pinned, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import agents
import pytest
from agents import Cli
from obtaining import obtain

from pytest_caliper.cli.own_skills import NAMES, files_of

pytestmark = pytest.mark.real_cli
SKILLS = agents.ROOT / "skills"
INSTALLER = ("skills", "1.5.18", "skills")
"""npm package, version, binary."""


@pytest.fixture(scope="module")
def installer() -> Path:
    return obtain(lambda: Cli(binary=agents.install(*INSTALLER), version=INSTALLER[1])).binary


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout: skills of examples lie in it too."""
    place = tmp_path / "repository"
    shutil.copytree(SKILLS, place / "skills")
    shutil.copytree(agents.ROOT / "examples" / "quickstart" / "skills", place / "examples" / "quickstart" / "skills")
    return place


def add(installer: Path, repository: Path, project: Path, *options: str) -> str:
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    project.mkdir(exist_ok=True)
    netns = Path(__file__).with_name("netns.py")
    done = subprocess.run(
        [*(sys.executable, str(netns), "--"), str(installer), "add", str(repository), *options],
        cwd=project,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "DO_NOT_TRACK": "1", "NO_COLOR": "1", "CI": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_finds_these_two_and_no_others(installer: Path, repository: Path, tmp_path: Path) -> None:
    said = add(installer, repository, tmp_path / "project", "--list")

    assert "Found 2 skills" in said
    assert all(name in said for name in NAMES)


def test_it_puts_them_where_claude_code_and_codex_look(installer: Path, repository: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    add(installer, repository, project, "--skill", "*", "-a", "claude-code", "-a", "codex", "-y", "--copy")

    for name in NAMES:
        for place in (".claude/skills", ".agents/skills"):
            there = project / place / name
            assert files_of(there) == files_of(SKILLS / name)
