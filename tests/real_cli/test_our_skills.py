"""Our agent skills on the real Claude Code and Codex CLIs: their specs pass where the skill is followed, and fail where it is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from namespace import CompletedRun, run_in_namespace
from our_skills import (
    AS_THEY_ARE,
    CHECKS_SPEC,
    COMPARE,
    CREATE,
    GAPS,
    GRILL,
    INSTALL,
    INSTALLS,
    LOOP,
    MEASURE,
    NEVER_BARE,
    NO_LOSS,
    ONE_QUESTION,
    PRICE,
    PRICE_FIRST,
    SCRIPTS,
    SKILLS,
    VALIDATES,
    WRITE,
    Script,
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
    return tmp_path / "place"


def on_claude(name: str, script: Script, cli: Path, skills: Path, place: Path) -> tuple[CompletedRun, Any]:
    model = f"--caliper-model={CLAUDE.backend}:{CLAUDE.model}"
    return measure(name, script, CLAUDE, Cli(binary=cli, version=""), skills, place, model)


def on_codex(name: str, script: Script, cli: Cli, skills: Path, place: Path) -> tuple[CompletedRun, Any]:
    return measure(name, script, CODEX, cli, skills, place, f"--caliper-model={CODEX.backend}:{CODEX.model}")


def prompts(name: str) -> dict[str, str]:
    """Names of tasks -> their prompts."""
    return {task.name: task.prompt for task in load_spec(SKILLS / name / f"{name}.eval.yaml").tasks}


def passed(done: CompletedRun, run: Any, name: str) -> None:
    assert run is not None, done.stdout + done.stderr
    assert {task: outcome for task, (outcome, _) in failures(run).items()} == dict.fromkeys(prompts(name), "pass"), done.stdout
    assert done.returncode == 0
    assert [one["attempts"][0]["skills_used"] for one in run["task_results"]] == [[name]] * len(prompts(name))


def failed(done: CompletedRun, run: Any, name: str, said: Mapping[str, str]) -> None:
    """Every task has failed, and for the reason that stands beside its prompt in `said`."""
    assert run is not None, done.stdout + done.stderr
    found = failures(run)
    for task, prompt in prompts(name).items():
        outcome, reason = found[task]
        expected = said[max((begin for begin in said if prompt.startswith(begin)), key=len)]
        assert (outcome, expected in reason) == ("task_fail", True), f"{task}: {outcome}: {reason}\n{done.stdout}"
    assert done.returncode == 1


@both
def test_its_spec_passes_on_claude_code(name: str, claude_cli: Path, skills: Path, place: Path) -> None:
    passed(*on_claude(name, script_of(name), claude_cli, skills, place), name)


@both
def test_its_spec_passes_on_codex(name: str, codex_cli: Cli, skills: Path, place: Path) -> None:
    passed(*on_codex(name, script_of(name), codex_cli, skills, place), name)


@both
def test_an_agent_that_does_something_plausible_and_wrong_fails(name: str, claude_cli: Path, skills: Path, place: Path) -> None:
    said = {prompt: reason for prompt, (_, reason) in SCRIPTS[name][1].items()}
    failed(*on_claude(name, wrong_script_of(name), claude_cli, skills, place), name, said)


LOST = {
    "evaluate-skill": {
        CREATE: (VALIDATES, "it was not validated"),
        MEASURE: (NEVER_BARE, "a bare rate"),
        PRICE: (PRICE_FIRST, "the price is not told"),
        COMPARE: (NO_LOSS, "chance was taken for a loss"),
        INSTALL: (INSTALLS, "was not installed into the environment"),
    },
    "grill-skill": {
        WRITE: (CHECKS_SPEC, "first validate, then check"),
        GRILL: (ONE_QUESTION, "one question at a time was wanted"),
        GAPS: (AS_THEY_ARE, "two tasks were to be added"),
        LOOP: (CHECKS_SPEC, "validate, check and run were wanted, in this order"),
    },
}
"""Sentences of a SKILL.md without which the scripted agent does not know better, and what its spec says then."""


@both
def test_a_skill_that_has_lost_a_rule_fails(name: str, codex_cli: Cli, skills: Path, place: Path) -> None:
    path = skills / name / "SKILL.md"
    text = path.read_text()
    for rule, _ in LOST[name].values():
        assert rule in path.read_text()
        text = text.replace(rule, "(lost)")
    path.write_text(text)

    done, run = on_codex(name, script_of(name), codex_cli, skills, place)

    failed(done, run, name, {prompt: reason for prompt, (_, reason) in LOST[name].items()})


def test_without_the_skill_its_spec_is_red(claude_cli: Path, skills: Path, place: Path) -> None:
    """The baseline arm: what the agent does by itself is not enough anywhere."""
    name = "evaluate-skill"
    (skills / name / f"{name}.eval.yaml").write_text(
        (skills / name / f"{name}.eval.yaml").read_text().replace("skill:\n  path: ./SKILL.md\n", "")
    )
    _, run = on_claude(name, script_of(name), claude_cli, skills, place)
    assert {outcome for outcome, _ in failures(run).values()} == {"task_fail"}


# -- where `caliper install-skill` puts them ------------------------------------------------------------------------------------


def installed(home: Path, backend: str, *options: str, cwd: Path | None = None) -> dict[str, str]:
    """The files below a home in which `caliper install-skill` was called, as `run_in_namespace` takes them."""
    code = "import sys; from pytest_caliper.cli import main; raise SystemExit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "install-skill", backend, *options]
    env = {"HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)}
    subprocess.run(command, env=env, cwd=cwd or home, check=True, capture_output=True)
    return {path.relative_to(home).as_posix(): path.read_text() for path in home.rglob("*") if path.is_file()}


def directory(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("options", [[], ["--project"]], ids=["user", "project"])
def test_claude_code_sees_them_after_install_skill(options: list[str], claude_cli: Path, tmp_path: Path) -> None:
    home, project = directory(tmp_path / "home"), directory(tmp_path / "project")
    files = installed(home, "claude-code", *options, cwd=project)

    done = run_in_namespace(
        [{"when": {"tools": True, "tool_results": 0}, "tool": CLAUDE.skill("grill-skill")}, {"text": "OK"}],
        [str(claude_cli), "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config", "--", "Grill me."],
        project,
        env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
        files=files,
    )

    events = [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]
    (init,) = [event for event in events if event.get("subtype") == "init"]
    assert set(SCRIPTS) <= set(init["skills"]), done.stderr
    read = json.dumps(done.messages[-1])
    assert "You find out what" in read
    assert "Interviews the author of an agent skill" in read


@pytest.mark.parametrize("options", [[], ["--project"]], ids=["user", "project"])
def test_codex_sees_them_after_install_skill(options: list[str], codex_cli: Cli, tmp_path: Path) -> None:
    home, project = directory(tmp_path / "home"), directory(tmp_path / "project")
    files = installed(home, "codex", *options, cwd=project)

    done = run_in_namespace(
        [{"text": "OK"}],
        [str(codex_cli.binary), "exec", "--json", "--skip-git-repo-check", "-c", "analytics.enabled=false", "--", "Say OK."],
        project,
        env={**CODEX.env, **codex_cli.environment("IGNORED")},
        files={**files, **CODEX.files},
    )

    asked = json.dumps(done.messages[0])
    for name, said in (("evaluate-skill", "Creates, validates, runs, lists"), ("grill-skill", "Interviews the author")):
        assert f"- {name}: {said}" in asked, done.stderr
