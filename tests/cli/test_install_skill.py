"""`caliper install-skill`: the skills lie where each agent looks, and nobody's edits are lost."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.backends.registry import builtin_backends, by_name
from pytest_caliper.cli import own_skills
from pytest_caliper.cli.install_skill import PROJECT
from pytest_caliper.cli.own_skills import NAMES, RECORD, files_of, source_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
USER = {
    "claude-code": ".claude/skills",
    "codex": ".codex/skills",
    "gemini": ".gemini/skills",
    "hermes": ".hermes/skills",
    "opencode": ".config/opencode/skills",
    "pi": ".pi/agent/skills",
}
FORCED = {
    "claude-code": ("CLAUDE_CONFIG_DIR", "skills"),
    "codex": ("CODEX_HOME", "skills"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/skills"),
    "hermes": ("HERMES_HOME", "skills"),
    "opencode": ("XDG_CONFIG_HOME", "opencode/skills"),
    "pi": ("PI_CODING_AGENT_DIR", "skills"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; the current directory is a repository elsewhere."""
    for variable, _ in FORCED.values():
        monkeypatch.delenv(variable, raising=False)
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep" / "er")
    return place


def everything(directory: Path) -> dict[str, bytes]:
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def installed(directory: Path) -> bool:
    """Whether both skills lie there whole, each with its record and nothing else."""
    expected = {f"{name}/{path}": data for name in NAMES for path, data in files_of(source_of(name)).items()}
    found = everything(directory)
    records = {name for name in found if name.endswith(RECORD)}
    assert records == {f"{name}/{RECORD}" for name in NAMES}
    return {name: data for name, data in found.items() if name not in records} == expected


@pytest.mark.parametrize("backend", USER)
def test_each_agents_own_place_for_its_user(backend: str, home: Path, caliper: Any) -> None:
    told = caliper("install-skill", backend)

    assert (told.status, told.err) == (0, "")
    assert installed(home / USER[backend])
    assert f"{home / USER[backend]}/evaluate-skill: wrote SKILL.md" in told.out
    assert f"Next: in a new session of {backend}, say " in told.out
    assert everything(home.parent / "project") == {}


@pytest.mark.parametrize("backend", USER)
def test_where_the_agent_was_told_to_keep_its_files(
    backend: str, home: Path, tmp_path: Path, caliper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, below = FORCED[backend]
    monkeypatch.setenv(variable, str(tmp_path / "else where"))

    assert caliper("install-skill", backend).status == 0
    assert installed(tmp_path / "else where" / below)
    assert everything(home) == {}


@pytest.mark.parametrize("backend", [name for name, below in PROJECT.items() if below is not None])
def test_into_the_project_at_its_root(backend: str, home: Path, caliper: Any) -> None:
    told = caliper("install-skill", backend, "--project")

    below = PROJECT[backend]
    assert below is not None
    assert told.status == 0
    assert installed(home.parent / "project" / below)
    assert everything(home) == {}
    assert ("pi --approve" in told.out) == (backend == "pi")


def test_an_alias_is_as_good(home: Path, caliper: Any) -> None:
    assert caliper("install-skill", "claude").status == 0
    assert installed(home / ".claude" / "skills")


def test_every_agent_that_takes_skills_is_known() -> None:
    """A backend that comes later has to be thought of here too."""
    without = {"command", "claude-api", "openai-api"}
    assert {backend.name for backend in builtin_backends()} - without == set(PROJECT) == set(USER)
    assert set(by_name(builtin_backends())) >= without


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["command"], "command has no place of its own for skills; use one of claude-code, codex"),
        (["claude-api"], "claude-api has no place of its own for skills"),
        (["codx"], "there is no backend codx; did you mean codex?"),
        (["hermes", "--project"], "hermes has no skills of a project: install them for yourself, without --project"),
    ],
)
def test_what_cannot_be_is_told_with_the_remedy(words: list[str], said: str, home: Path, caliper: Any) -> None:
    told = caliper("install-skill", *words)

    assert (told.status, told.out) == (2, "")
    assert said in told.err
    assert told.err.count("\n") == 1
    assert everything(home) == {}


def test_a_dry_run_tells_all_and_writes_nothing(home: Path, caliper: Any) -> None:
    dry = caliper("install-skill", "codex", "--dry-run")

    assert dry.status == 0
    assert list(home.iterdir()) == []
    assert dry.out.count("would write") == 2
    assert "Next" not in dry.out
    wet = caliper("install-skill", "codex")
    assert wet.out.replace("wrote", "would write").startswith(dry.out)


def test_again_changes_nothing(home: Path, caliper: Any) -> None:
    caliper("install-skill", "pi")
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}

    again = caliper("install-skill", "pi")

    assert (again.status, again.out.count("up to date"), "wrote" in again.out, "Next" in again.out) == (0, 2, False, False)
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_somebodys_edit_stays_until_it_is_given_up(home: Path, caliper: Any) -> None:
    caliper("install-skill", "claude-code")
    skill = home / ".claude/skills/grill-skill/SKILL.md"
    skill.write_text("mine\n")
    (skill.parent / "notes.md").write_text("mine too\n")

    for words in (["--dry-run"], []):
        told = caliper("install-skill", "claude-code", *words)
        assert told.status == 1
        assert "grill-skill: SKILL.md was changed by somebody: left as it is" in told.err
        assert "--force" in told.err
        assert "evaluate-skill: up to date" in told.out
        assert skill.read_text() == "mine\n"

    forced = caliper("install-skill", "claude-code", "--force")
    assert forced.status == 0
    assert skill.read_bytes() == files_of(source_of("grill-skill"))["SKILL.md"]
    assert (skill.parent / "notes.md").read_text() == "mine too\n"
    assert caliper("install-skill", "claude-code").out.count("up to date") == 2


def test_a_skill_of_that_name_that_is_not_ours_stays(home: Path, caliper: Any) -> None:
    skill = home / ".claude/skills/evaluate-skill/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("somebody else's\n")

    told = caliper("install-skill", "claude-code")

    assert told.status == 1
    assert skill.read_text() == "somebody else's\n"
    assert (home / ".claude/skills/grill-skill/SKILL.md").is_file()


def older(home: Path) -> Path:
    """The skill as an older version left it: another text, and a file that is gone now."""
    skill = home / ".claude/skills/evaluate-skill"
    record = json.loads((skill / RECORD).read_text())
    (skill / "SKILL.md").write_text("older\n")
    (skill / "old" / "deep").mkdir(parents=True)
    (skill / "old/deep/page.md").write_text("old page\n")
    for path in ("SKILL.md", "old/deep/page.md"):
        record["files"][path] = own_skills._digest((skill / path).read_bytes())
    (skill / RECORD).write_text(json.dumps(record))
    return skill


def test_an_older_version_is_brought_up_to_date(home: Path, caliper: Any) -> None:
    caliper("install-skill", "claude-code")
    skill = older(home)

    told = caliper("install-skill", "claude-code")

    assert told.status == 0
    assert f"{skill}: wrote SKILL.md\n" in told.out
    assert f"{skill}: removed old/deep/page.md, which this version no longer has\n" in told.out
    assert not (skill / "old").exists()
    assert installed(home / ".claude/skills")


def test_an_old_file_with_edits_is_kept(home: Path, caliper: Any) -> None:
    caliper("install-skill", "claude-code")
    page = older(home) / "old/deep/page.md"
    page.write_text("edited\n")

    assert caliper("install-skill", "claude-code").status == 0
    assert page.read_text() == "edited\n"


def test_an_interrupted_installation_is_finished(home: Path, caliper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a full disk: some files are new, others missing, and the record is of before."""
    caliper("install-skill", "claude-code")
    skill = older(home)
    (skill / "SKILL.md").write_bytes(files_of(source_of("evaluate-skill"))["SKILL.md"])

    assert caliper("install-skill", "claude-code").status == 0
    assert installed(home / ".claude/skills")
    (skill / "SKILL.md").unlink()
    assert caliper("install-skill", "claude-code").status == 0
    assert installed(home / ".claude/skills")


@pytest.mark.parametrize("record", ["", "[]", '{"files": 3}', '{"files": {"../../../victim": "sha256:x"}}', "[" * 100_000])
def test_a_damaged_record_costs_nobody_a_file(record: str, home: Path, caliper: Any) -> None:
    caliper("install-skill", "claude-code")
    victim = home / "victim"
    victim.write_text("x")
    skill = home / ".claude/skills/evaluate-skill"
    digest = own_skills._digest(b"x")
    (skill / RECORD).write_text(record.replace("sha256:x", digest))
    (skill / "SKILL.md").write_text("mine\n")

    assert caliper("install-skill", "claude-code").status == 1
    assert caliper("install-skill", "claude-code", "--force").status == 0
    assert victim.read_text() == "x"
    assert installed(home / ".claude/skills")


@pytest.mark.parametrize("same", [True, False])
def test_a_link_that_another_program_made(same: bool, home: Path, tmp_path: Path, caliper: Any) -> None:
    """As `npx skills` makes them."""
    other = tmp_path / "shared" / "evaluate-skill"
    other.mkdir(parents=True)
    files = files_of(source_of("evaluate-skill"))
    for path, data in files.items():
        (other / path).parent.mkdir(parents=True, exist_ok=True)
        (other / path).write_bytes(data if same else b"another version\n")
    link = home / ".claude/skills/evaluate-skill"
    link.parent.mkdir(parents=True)
    link.symlink_to(other)
    before = everything(other)

    told = caliper("install-skill", "claude-code")

    assert link.is_symlink()
    if same:
        assert told.status == 0
        assert f"up to date, by its link to {other}" in told.out
    else:
        assert told.status == 1
        assert f"is a link to {other}" in told.err
        assert caliper("install-skill", "claude-code", "--force").status == 0
        assert not link.is_symlink()
        assert installed(home / ".claude/skills")
    assert everything(other) == before


def test_nothing_is_written_through_a_link_in_the_skill(home: Path, tmp_path: Path, caliper: Any) -> None:
    caliper("install-skill", "claude-code")
    outside = tmp_path / "outside.md"
    outside.write_text("mine\n")
    skill = home / ".claude/skills/evaluate-skill/SKILL.md"
    skill.unlink()
    skill.symlink_to(outside)

    assert caliper("install-skill", "claude-code").status == 1
    assert caliper("install-skill", "claude-code", "--force").status == 0
    assert outside.read_text() == "mine\n"
    assert installed(home / ".claude/skills")


def test_a_dangling_link_is_no_missing_file(home: Path, tmp_path: Path, caliper: Any) -> None:
    link = home / ".claude/skills/evaluate-skill"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "gone")

    assert caliper("install-skill", "claude-code").status == 1
    assert link.is_symlink()
    assert not (tmp_path / "gone").exists()


def test_a_file_where_the_skill_should_be_stays_even_with_force(home: Path, caliper: Any) -> None:
    place = home / ".claude/skills/evaluate-skill"
    place.parent.mkdir(parents=True)
    place.write_text("a file\n")

    told = caliper("install-skill", "claude-code", "--force")

    assert told.status == 1
    assert "is no directory: left as it is; move it away" in told.err
    assert place.read_text() == "a file\n"


def test_a_place_that_cannot_be_written_is_named(home: Path, caliper: Any) -> None:
    (home / ".claude").write_text("no directory")

    told = caliper("install-skill", "claude-code")

    assert told.status == 2
    assert re.search(r"caliper: \S*\.claude\S*: cannot be (written|read): ", told.err)
    assert told.err.count("\n") == 1


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_closed_directory_is_named(home: Path, caliper: Any) -> None:
    (home / ".claude").mkdir(mode=0o500)
    told = caliper("install-skill", "claude-code")
    assert (told.status, "cannot be written" in told.err) == (2, True)


# -- the package has them -------------------------------------------------------------------------------------------------------


def test_specs_and_recordings_are_not_installed() -> None:
    for name in NAMES:
        paths = files_of(source_of(name))
        assert "SKILL.md" in paths
        assert not [path for path in paths if "eval" in Path(path).suffixes or ".eval." in path or "cassettes" in path]


def forced_files() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return dict(project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"])


def test_the_wheel_takes_every_file_of_the_skills() -> None:
    expected = {
        f"skills/{name}/{path}": f"pytest_caliper/_skills/{name}/{path}"
        for name in NAMES
        for path in files_of(ROOT / "skills" / name)
    }
    assert forced_files() == expected


def test_the_installed_package_has_them_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "pytest_caliper"
    for path, target in forced_files().items():
        place = package.parent / target
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((ROOT / path).read_bytes())
    monkeypatch.setattr(own_skills, "__file__", str(package / "cli" / "own_skills.py"))

    for name in NAMES:
        assert source_of(name) == package / "_skills" / name
        assert files_of(source_of(name)) == files_of(ROOT / "skills" / name)
    (package / "_skills/grill-skill/SKILL.md").unlink()
    with pytest.raises(own_skills.NoSkills, match="install pytest-caliper again"):
        source_of("grill-skill")


def test_the_checkout_goes_before_a_copy_of_it() -> None:
    assert [source_of(name) for name in NAMES] == [ROOT / "skills" / name for name in NAMES]
