"""Skills as they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend_cases import make_skill

from pytest_caliper.backends.install import install_skill
from pytest_caliper.contracts import EngineError


def test_a_directory_is_copied_whole_with_its_modes(tmp_path: Path) -> None:
    skill = make_skill(
        tmp_path / "source", files={"SKILL.md": "# s\n", "scripts/run.sh": "#!/bin/sh\n", "data/a b.txt": "é\u2028"}
    )
    (tmp_path / "source/scripts/run.sh").chmod(0o755)
    (tmp_path / "source/SKILL.md").chmod(0o444)
    (tmp_path / "source/notes.txt").write_text("not listed")
    place = tmp_path / "home/.claude/skills/greet-pirate"

    install_skill(skill, place)

    installed = {path.relative_to(place).as_posix(): path for path in place.rglob("*") if path.is_file()}
    assert set(installed) == set(skill.files)
    assert installed["data/a b.txt"].read_text(encoding="utf-8") == "é\u2028"
    assert installed["scripts/run.sh"].stat().st_mode & 0o777 == 0o755
    assert installed["SKILL.md"].stat().st_mode & 0o777 == 0o644


def test_a_command_becomes_the_file_itself(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "source", "deploy", kind="command", files={"old-name.md": "Deploy $ARGUMENTS\n"})

    install_skill(skill, tmp_path / "home/.claude/commands/deploy.md")

    assert (tmp_path / "home/.claude/commands/deploy.md").read_text() == "Deploy $ARGUMENTS\n"


def test_a_link_inside_is_copied_as_what_it_shows(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "source", files={"SKILL.md": "# s\n", "copy.md": "# s\n"})
    (tmp_path / "source/copy.md").unlink()
    (tmp_path / "source/copy.md").symlink_to("SKILL.md")

    install_skill(skill, tmp_path / "place")

    assert not (tmp_path / "place/copy.md").is_symlink()
    assert (tmp_path / "place/copy.md").read_text() == "# s\n"


def test_a_skill_that_changed_since_is_refused(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "source")
    (tmp_path / "source/SKILL.md").write_text("edited")

    with pytest.raises(EngineError, match=r"SKILL\.md changed while the run was under way"):
        install_skill(skill, tmp_path / "place")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "source")
    (tmp_path / "source/SKILL.md").unlink()

    with pytest.raises(EngineError, match=r"skill 'greet-pirate': cannot install SKILL\.md: No such file"):
        install_skill(skill, tmp_path / "place")
