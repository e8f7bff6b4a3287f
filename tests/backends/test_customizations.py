"""The user's own setup reaches an attempt only when asked for, and never replaces what is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from backend_cases import make_plan, make_skill, make_workspace

from pytest_caliper.backends.claude_code import ClaudeCode
from pytest_caliper.backends.customizations import Customization, carry_customizations
from pytest_caliper.backends.driver import ProcessInvoker
from pytest_caliper.contracts import CliInfo, EngineError
from pytest_caliper.process import Processes


@pytest.fixture
def user(tmp_path: Path) -> Path:
    home = tmp_path / "user"
    for name, text in {
        ".claude/CLAUDE.md": "always be brief",
        ".claude/settings.json": '{"hooks": {}, "model": "opus"}',
        ".claude/skills/own/SKILL.md": "own",
        ".claude/skills/greet/SKILL.md": "the user's older copy",
        ".claude/projects/x/session.jsonl": "private",
        ".claude.json": '{"mcpServers": {"private": {}}}',
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return home


@pytest.mark.parametrize("asked", [False, True])
def test_claude_code(user: Path, tmp_path: Path, asked: bool) -> None:
    place = make_workspace(tmp_path)
    plan = make_plan(tmp_path, env={"HOME": str(user), "PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "k"})
    plan = replace(plan, user_customizations=asked, skills=(make_skill(tmp_path, "greet"),))

    with Processes(plan.tag.partition("/")[0]) as processes:
        ProcessInvoker(processes, {"claude-code": CliInfo(path=Path("/bin/true"), version="1")}).agent(ClaudeCode(), plan, place)

    claude = place.home / ".claude"
    assert (claude / "CLAUDE.md").exists() == asked
    assert (claude / "skills" / "own" / "SKILL.md").exists() == asked
    assert ("hooks" in (claude / "settings.json").read_text()) == asked
    assert "older copy" not in (claude / "skills" / "greet" / "SKILL.md").read_text()
    assert not (claude / "projects").exists()
    assert "private" not in "".join(path.read_text() for path in place.home.glob(".claude.json"))


def test_links_are_followed_and_modes_kept_for_the_owner(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("x")
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "link.md").symlink_to(tmp_path / "real.md")
    carry_customizations([Customization(source=tmp_path / "user", target=".agent")], tmp_path / "home")
    copied = tmp_path / "home" / ".agent" / "link.md"
    assert not copied.is_symlink()
    assert copied.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_copied_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "home").write_text("no directory")
    with pytest.raises(EngineError, match=r"--caliper-user-customizations: .*file cannot be copied"):
        carry_customizations([Customization(source=tmp_path / "file", target="a/b")], tmp_path / "home")
