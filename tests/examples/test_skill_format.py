"""Our agent skills are valid Agent Skills (agentskills.io/specification), and what they tell an agent to type is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from _pytest.mark.expression import Expression
from markdown_it import MarkdownIt

from pytest_caliper.cli.main import COMMANDS, parser_of
from pytest_caliper.cli.own_skills import NAMES, files_of
from pytest_caliper.cli.parsing import parsed
from pytest_caliper.spec.loading import load_spec

SKILLS = Path(__file__).parents[2] / "skills"
FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
"""What the specification has; a client may refuse others."""
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)")
FOR_PEOPLE = re.compile(r"\b(I|me|my|we|our|you|your)\b", re.I)

every_skill = pytest.mark.parametrize("name", NAMES)
pages = sorted(SKILLS.glob("*/**/*.md"))


def split(name: str) -> tuple[dict[str, object], str]:
    """Frontmatter and body of a SKILL.md."""
    text = (SKILLS / name / "SKILL.md").read_text(encoding="utf-8")
    _, front, body = re.split(r"^---\n", text, maxsplit=2, flags=re.M)
    return yaml.safe_load(front), body


def code(page: Path) -> list[str]:
    """The lines of code blocks, and the code within sentences."""
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info == "sh":
            found += token.content.splitlines()
        found += [child.content for child in token.children or () if child.type == "code_inline"]
    return found


def commands(page: Path) -> list[str]:
    """What begins with `caliper` and has more than the word; `caliper 0.3`, a bare name and file names do not."""
    pattern = re.compile(r"(?:\S*/)?caliper (.+)")
    return [match[1] for line in code(page) if (match := pattern.fullmatch(line.strip()))]


def mentioned() -> list[tuple[str, str]]:
    return [(page.relative_to(SKILLS).as_posix(), line) for page in pages for line in commands(page)]


def test_the_layout_is_one_that_installers_take() -> None:
    """A directory per skill below skills/, and nothing else there."""
    assert sorted(path.name for path in SKILLS.iterdir() if not path.name.startswith((".", "__"))) == sorted(NAMES)


@every_skill
def test_frontmatter(name: str) -> None:
    front, _ = split(name)
    description = front["description"]

    assert set(front) <= FIELDS
    assert front["name"] == name
    assert len(name) <= 64
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert isinstance(description, str)
    assert 1 <= len(description) <= 1024
    assert re.match(r"[A-Z]\w+s\b", description), "the third person: what the skill does"
    assert "Use when" in description, "when an agent is to take it"
    assert not FOR_PEOPLE.search(description)
    assert "<" not in description, "clients put it into XML"


@every_skill
def test_the_body_is_short_enough_to_be_loaded(name: str) -> None:
    _, body = split(name)

    assert body.strip().startswith("# ")
    assert len(body.splitlines()) < 500
    assert len(body.split()) < 5000 / 1.5, "the specification recommends at most 5000 tokens"


@every_skill
def test_links_lead_to_files_that_are_installed_with_it(name: str) -> None:
    installed = set(files_of(SKILLS / name))
    linked = {target for page in (SKILLS / name).rglob("*.md") for target in LINK.findall(page.read_text(encoding="utf-8"))}
    local = {target for target in linked if "://" not in target}

    assert local <= installed, "links are relative to the SKILL.md"
    assert {path for path in installed if path != "SKILL.md"} <= local, "nobody is led to these"
    assert all(len(Path(target).parts) <= 2 for target in local), "one level deep"


@every_skill
def test_spec_and_recordings_stay_behind(name: str) -> None:
    installed = set(files_of(SKILLS / name))

    assert (SKILLS / name / f"{name}.eval.yaml").is_file()
    assert all(path.endswith(".md") for path in installed)


@every_skill
def test_its_spec_is_sound_and_names_no_engine(name: str) -> None:
    spec = load_spec(SKILLS / name / f"{name}.eval.yaml")

    assert spec.warnings == ()
    assert [ref.path.resolve() for ref in spec.skills] == [SKILLS / name / "SKILL.md"]
    assert len(spec.tasks) >= 4
    assert all(task.assertion for task in spec.tasks)


@pytest.mark.parametrize(("page", "line"), mentioned())
def test_what_an_agent_is_told_to_type_is_understood(page: str, line: str) -> None:
    words = shlex.split(line)
    if words == ["--version"] or words[1:] == ["--help"]:
        assert words[0] == "--version" or words[0] in {command.name for command in COMMANDS}
        return
    name, *rest = words
    parser = parser_of(name)
    if name == "run":  # pytest's own; a `-k` of several words would be an expression that it refuses
        parser.add_argument("-k", type=Expression.compile)
        parser.add_argument("-v", action="store_true")
    parsed(parser, rest)  # ends the program when an option is unknown or a value is none of the choices


def test_every_job_of_the_two_skills_is_named() -> None:
    """The check above has something to check."""

    def of(name: str) -> set[str]:
        return {line.split()[0] for page, line in mentioned() if page == f"{name}/SKILL.md"}

    assert {"validate", "check", "run", "list", "report", "compare", "--version"} <= of("evaluate-skill")
    assert {"validate", "check", "run", "list"} <= of("grill-skill")
    loop = [
        line for page, line in mentioned() if page == "grill-skill/SKILL.md" and line.startswith(("validate", "check", "run"))
    ]
    assert loop == [
        "validate SPEC",
        "check SPEC --no-judge",
        "run SPEC --k 1 -v",
        "run SPEC --k 3",
        "run SPEC --k 3 --baseline",
    ]


def test_machine_output_is_asked_for_where_a_command_has_it() -> None:
    """Where a table is read by a program, a column that moves becomes a wrong number."""
    lines = [line for page, line in mentioned() if page.endswith("SKILL.md") and "SPEC" in line and line.split()[0] in
             {"list", "report", "compare", "history"}]  # fmt: skip
    told = [line for line in lines if "--format json" not in line and "--verbose" not in line]
    assert set(told) <= {"compare SPEC"}, "in a sentence that says what it compares"
