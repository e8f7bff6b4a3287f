"""What README, docs and skills say is so: names exist, links lead somewhere, the demo prints what is shown.

Their examples are run by test_examples.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

import pytest
import yaml

from pytest_caliper import hookspecs
from pytest_caliper.backends.registry import builtin_backends
from pytest_caliper.cli.main import _parser
from pytest_caliper.contracts import Backend
from pytest_caliper.judging.attempt_view import AttemptView
from pytest_caliper.options import OPTIONS
from pytest_caliper.plugin import __all__ as fixture_names
from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.style import MARKS
from pytest_caliper.runs.records import Outcome, Usage
from pytest_caliper.scoring import wilson
from pytest_caliper.sources.frontmatter import skill_name
from pytest_caliper.spec.schema import NOT_YET, TRANSPORTS, json_schema

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SKILLS = sorted(ROOT.glob("skills/*/SKILL.md"))
PAGES = [README, ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md")), *SKILLS]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    """1-based line of the opening fence."""
    language: str
    text: str
    before: str
    """What stands between the block before and this one."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for match in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.M | re.S):
        inner = re.sub(f"^{match[1]}", "", match[3], flags=re.M)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page=page, line=line, language=match[2], text=inner, before=text[end : match.start()]))
        end = match.end()
    return found


def code(page: Path) -> Iterator[str]:
    """Inline code and the lines of code blocks."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        yield from block.text.splitlines()
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S))


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


every_page = pytest.mark.parametrize("page", PAGES, ids=page_id)


# -- specs ----------------------------------------------------------------------------------------------------------------------


def surroundings(directory: Path) -> None:
    """The files that examples name."""
    for name in ("SKILL.md", "commands/review.md", "checks/port.py", "bin/tool", "servers/tickets.py"):
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("assert 1 == len([1])\n" if path.suffix == ".py" else "---\nname: example\ndescription: d\n---\n")


def schema_keys() -> set[str]:
    schema = json_schema()
    return {key for model in (schema, *schema["$defs"].values()) for key in model["properties"]}


def first_cells(page: Path) -> list[str]:
    """The code in the first column of a page's tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", page.read_text(encoding="utf-8"), re.M)
    return [cell for row in rows for cell in re.findall(r"`([^`]+)`", row)]


def test_the_format_page_tells_every_key_and_all_that_an_assert_sees():
    page = ROOT / "docs" / "spec.md"
    text = page.read_text(encoding="utf-8")
    assert all(re.search(rf"`{key}`|^ *(- )?{key}:", text, re.M) for key in (*schema_keys(), *NOT_YET, *TRANSPORTS))
    variables = {"CALIPER_WORKDIR", "CALIPER_SPEC_DIR", "HOME", "TMPDIR"}
    assert set(first_cells(page)) == variables | {f"attempt.{field.name}" for field in fields(AttemptView)}
    assert all(f"`{field.name}`" in text for field in fields(Usage))


# -- names ----------------------------------------------------------------------------------------------------------------------


@every_page
def test_every_option_that_is_named_exists(page):
    known = {"--caliper", *(f"--caliper-{option.name}" for option in OPTIONS)}
    named = set(re.findall(r"--caliper(?:-[a-z]+)*", page.read_text(encoding="utf-8")))
    assert named <= known


@every_page
def test_every_ini_option_fixture_and_hook_that_is_named_exists(page):
    text = page.read_text(encoding="utf-8")
    known = {*fixture_names, *(option.dest for option in OPTIONS if option.ini is not None)}
    assert set(re.findall(r"(?<![\w/.])caliper_[a-z_]+", text)) <= known
    hooks = {name for name in vars(hookspecs) if name.startswith("pytest_caliper_")}
    assert set(re.findall(r"\bpytest_caliper_[a-z]+", text)) <= hooks


@every_page
def test_every_command_that_is_named_exists(page):
    (commands,) = (action.choices for action in _parser()._actions if action.choices and action.dest == "command")
    ours = {f"--{option.name}" for option in OPTIONS} | {"--help"}
    for line in code(page):
        match = re.match(r"(?:\$ )?caliper +(\S+)(.*)", line)
        if match is None or match[1] in ("=", "runs"):  # "caliper runs agents on …", a message
            continue
        assert match[1] in (*commands, "COMMAND", "--version", "--help"), line
        if match[1] == "run":
            assert set(re.findall(r"(?<!\S)--[a-z-]+", match[2])) <= ours, line


def option_rows() -> dict[str, tuple[str, str]]:
    """Option -> (ini twin, default), as the page has them."""
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(--caliper[a-z-]*)([^`]*)` \| (\S+) \| ([^|]+) \|", text, re.M)
    return {option + metavar: (ini.strip("`"), default.strip("` ")) for option, metavar, ini, default in rows}


def test_the_options_page_has_every_option_with_its_twin_and_default():
    expected = {"--caliper": "caliper"}
    for option in OPTIONS:
        expected[f"--caliper-{option.name}{f' {option.metavar}' if option.metavar else ''}"] = (
            "none" if option.ini is None else option.dest
        )
    rows = option_rows()
    assert {option: ini for option, (ini, _) in rows.items()} == expected
    for option in OPTIONS:
        default = rows[f"--caliper-{option.name}{f' {option.metavar}' if option.metavar else ''}"][1]
        if option.default is False:
            assert default == "off"
        elif option.default is not None:
            assert float(default) == option.default


def test_the_outcomes_page_has_every_outcome_with_its_mark():
    text = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(.)` \|", text, re.M)
    assert dict(rows) == {outcome: MARKS[outcome] for outcome in get_args(Outcome)}


def test_numbers_in_the_text_are_those_of_the_code():
    text = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    assert f"`{numbers.rate(1.0)} {numbers.interval(wilson(3, 3))}`" in text


# -- links and layout -----------------------------------------------------------------------------------------------------------


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@every_page
def test_relative_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in slugs(linked), target


def test_the_index_lists_every_page_once_and_no_other():
    docs = ROOT / "docs"
    listed = re.findall(r"^- \[[^\]]+\]\(([^)#]+)\)", (docs / "index.md").read_text(encoding="utf-8"), re.M)
    there = {page.relative_to(docs).as_posix() for page in docs.glob("**/*.md") if "_build" not in page.parts} - {"index.md"}
    assert sorted(there - set(listed)) == [], "docs/index.md is the navigation: list them there"
    assert sorted(set(listed) - there) == [], "docs/index.md lists pages that are not there"
    assert len(listed) == len(set(listed))


def test_the_readme_leads_to_every_section_and_shows_both_commands():
    text = README.read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.M)
    for section in sections:
        assert section == "Decisions" or re.search(rf"^\| {section} \| \[", text, re.M), section
    assert "(docs/index.md)" in text
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert re.search(rf"^make {target}\b", text, re.M)
        assert re.search(rf"^{target}:", makefile, re.M)


@pytest.mark.parametrize("skill", SKILLS, ids=page_id)
def test_skills_have_valid_frontmatter(skill):
    text = skill.read_text(encoding="utf-8")
    meta = yaml.safe_load(text.split("---\n")[1])
    assert skill_name(skill.read_bytes()) == meta["name"] == skill.parent.name
    assert 0 < len(meta["description"]) <= 1024
    assert set(meta) == {"name", "description"}
    assert len(text.splitlines()) < 500


def test_both_skills_are_there():
    assert [skill.parent.name for skill in SKILLS] == ["evaluate-skill", "grill-skill"]


# -- code of the page on extending ----------------------------------------------------------------------------------------------

AGENT = """\
#!/bin/sh
prompt=$(cat)
case "$prompt" in
  *"grade one attempt"*) echo '{"type": "answer", "text": "{\\\\"reasoning\\\\": \\\\"fine\\\\", \\\\"passed\\\\": true}"}' ;;
  *fail*) exit 3 ;;
  *peek*)
    echo '{"type": "tool", "name": "Read", "input": {"file_path": "solution.txt"}}'
    echo '{"type": "answer", "text": "ok"}' ;;
  *)
    ls "$HOME/.my-agent/skills" NOTES.md > seen 2>/dev/null
    echo '{"type": "answer", "text": "done", "in": 7, "out": 2}' ;;
esac
"""
SPEC = """\
skill: ./skill
sandbox: {forbidden_files: ['solution']}
tasks:
  - {name: Works, prompt: go, assert: 'assert "example" in open("seen").read()', expect: fine}
  - {name: Breaks, prompt: fail, expect: x}
  - {name: Cheats, prompt: peek, expect: x}
"""


def python_blocks() -> list[Block]:
    return [block for block in blocks(ROOT / "docs" / "extending.md") if block.language == "python"]


@pytest.fixture
def my_agent(pytester, monkeypatch):
    """A project whose conftest is the page's backend, and the CLI that it drives."""
    (backend,) = (block for block in python_blocks() if "backend example" in block.before)
    pytester.makeconftest(backend.text)
    pytester.makefile(".ini", pytest="[pytest]\ncaliper_model = my-agent\ncaliper_judge_model = my-agent\n")
    surroundings(pytester.mkdir("skill"))
    binary = pytester.path / "cli" / "my-agent"
    binary.parent.mkdir()
    binary.write_text(AGENT)
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MY_AGENT_KEY", "none-of-your-business")
    (pytester.path / "x.eval.yaml").write_text(SPEC)
    return pytester


def test_the_backend_example_has_every_method_of_a_backend():
    (backend,) = (block for block in python_blocks() if "backend example" in block.before)
    methods = {name for name in vars(Backend) if not name.startswith("_")}
    methods -= set(Backend.__annotations__)
    assert set(re.findall(r"    def ([a-z]\w*)\(self", backend.text)) == methods
    assert methods <= set(dir(builtin_backends()[0]))


def test_the_backend_example_runs(my_agent):
    result = my_agent.runpytest_subprocess("x.eval.yaml", "--caliper-k=1", "--caliper-baseline", "-p", "no:cacheprovider", "-rs")
    result.assert_outcomes(passed=1, failed=1, skipped=2, xfailed=2)
    result.stdout.fnmatch_lines(["*my-agent ended with status 3 and no answer*"])


def test_the_backend_example_says_what_is_missing(my_agent, monkeypatch):
    monkeypatch.delenv("MY_AGENT_KEY")
    result = my_agent.runpytest_subprocess("x.eval.yaml", "-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*my-agent has no key: set MY_AGENT_KEY*"])


def test_the_fixture_and_hook_examples_run(my_agent):
    others = [block.text for block in python_blocks() if "backend example" not in block.before]
    assert len(others) == 2
    conftest = my_agent.path / "conftest.py"
    conftest.write_text("\n".join([conftest.read_text(), *others]))
    spec = my_agent.path / "x.eval.yaml"
    spec.write_text(spec.read_text().replace('"example"', '"NOTES.md"'))
    result = my_agent.runpytest_subprocess("x.eval.yaml", "--caliper-k=1", "-k", "Works", "-s", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, deselected=2)
    result.stdout.fnmatch_lines(["*task-001 skill 1 pass*", "note: attempts ran one after another because of *caliper_harness*"])


# -- the demo -------------------------------------------------------------------------------------------------------------------


def demo_output(directory: Path) -> str:
    """The summary that `make demo` prints on a terminal of 80 columns. Runs in a copy below `directory`."""
    (directory / ".hg").mkdir()  # the root of a repository, as in a clone: results and paths are told from there
    shutil.copytree(ROOT / "examples" / "quickstart", directory / "examples" / "quickstart")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("-m pytest", 1)[1].split(";", 1)[0]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_", "CALIPER"))}
    env |= {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8", "PATH": os.defpath}
    command = [sys.executable, "-m", "pytest", *recipe.replace("\\\n", " ").split(), "--color=no"]
    done = subprocess.run(command, cwd=directory, env=env, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "--caliper-replay" in command
    return done.stdout


def test_the_demo_prints_what_the_readme_says_in_words(tmp_path):
    output, readme = demo_output(tmp_path), README.read_text(encoding="utf-8")
    delta = re.search(r"^Skill +Δ \+(\S+) pts \[\+(\S+), \+(\S+)\]: (.*) \((p = \S+)\)$", output, re.M)
    assert delta is not None, output
    assert f"adds {delta[1]} points, between {delta[2]} and {delta[3]}: {delta[4]}, {delta[5]}." in readme
    assert "= FAILURES =" in output
