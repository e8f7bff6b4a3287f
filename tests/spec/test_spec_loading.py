"""What a valid spec says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import EngineDefault, Spec

Load = Callable[[str | bytes], Spec]

WHOLE = """\
skill:
  path: ./SKILL.md

sandbox:
  extra_path:
    - ./bin
  forbidden_files:
    - ".*\\\\.eval\\\\.yaml$"
    - "./.caliper/.*"

mcp:
  weather:
    command: python3
    args: [./servers/weather.py]
    env:
      API_TOKEN: ${MCP_API_TOKEN}
  gdrive:
    type: http
    url: https://mcp.example.com/gdrive
    headers:
      Authorization: Bearer ${GDRIVE_TOKEN}

tasks:
  - name: Short task name
    setup: touch a
    cleanup: rm a
    prompt: Do it
    expect: >
      It is
      done.
    assert: |
      import os
      assert os.path.exists("a")

  - name: Task with external assertion script
    prompt: "Generate a report"
    assert: ./check.py
"""

TASK = "tasks: [{name: a, prompt: b, expect: c}]\n"


def test_the_whole_format(load: Load, project: Path) -> None:
    spec = load(WHOLE)
    assert spec.path == project / "demo.eval.yaml"
    assert spec.directory == project
    assert [(ref.path, ref.line) for ref in spec.skills] == [(project / "SKILL.md", 2)]
    assert spec.sandbox.extra_path == (project / "bin",)
    assert spec.sandbox.forbidden_files == (r".*\.eval\.yaml$", "./.caliper/.*")
    weather, gdrive = spec.mcp
    assert (weather.name, weather.transport, weather.line, weather.command) == ("weather", "stdio", 12, "python3")
    assert weather.args == ("./servers/weather.py",)
    assert weather.env == {"API_TOKEN": "${MCP_API_TOKEN}"}
    assert (weather.url, weather.headers) == (None, {})
    assert (gdrive.name, gdrive.transport, gdrive.url) == ("gdrive", "http", "https://mcp.example.com/gdrive")
    assert gdrive.headers == {"Authorization": "Bearer ${GDRIVE_TOKEN}"}
    assert (gdrive.command, gdrive.args, gdrive.env) == (None, (), {})
    first, second = spec.tasks
    assert (first.task_id, first.name, first.line) == ("task-001", "Short task name", 23)
    assert (first.prompt, first.expect, first.setup, first.cleanup) == ("Do it", "It is done.\n", "touch a", "rm a")
    assert first.assertion is not None
    assert first.assertion.source == 'import os\nassert os.path.exists("a")\n'
    assert (second.task_id, second.line, second.expect) == ("task-002", 34, None)
    assert second.assertion is not None
    assert (second.assertion.path, second.assertion.is_script) == (project / "check.py", True)
    assert (second.assertion.line, second.assertion.column) == (0, 0)
    assert second.assertion.source == "assert attempt.answer\n"
    assert (spec.engine_default, spec.judge_default, spec.warnings) == (None, None, ())
    assert spec.digest == "sha256:" + hashlib.sha256(WHOLE.encode()).hexdigest()


@pytest.mark.parametrize(
    ("skill", "paths"),
    [
        ("", []),
        ("skill:\n", []),
        ("skill: null\n", []),
        ("skill: {}\n", []),
        ("skill: {path: null}\n", []),
        ("skills: []\n", []),
        ("skills:\n", []),
        ("skill: ./SKILL.md\n", ["SKILL.md"]),
        ("skill: {path: SKILL.md}\n", ["SKILL.md"]),
        ("skill: {path: .}\n", ["."]),
        ("skill: {path: ./other/}\n", ["other"]),
        ("skill: other/../SKILL.md\n", ["SKILL.md"]),
        ("skill: command.md\n", ["command.md"]),
        ("skills: [other, {path: ./command.md}]\n", ["other", "command.md"]),
        ("skill: null\nskills: [other]\n", ["other"]),
    ],
)
def test_a_skill_is_a_file_a_directory_a_command_or_nothing(load: Load, project: Path, skill: str, paths: list[str]) -> None:
    spec = load(skill + TASK)
    assert [ref.path for ref in spec.skills] == [project / path for path in paths]
    assert spec.warnings == ()


def test_an_absolute_skill_and_a_linked_one(load: Load, project: Path) -> None:
    (project / "linked").symlink_to(project / "other", target_is_directory=True)
    assert [ref.path for ref in load(f"skill: {project}/other\n{TASK}").skills] == [project / "other"]
    assert [ref.path for ref in load(f"skill: linked\n{TASK}").skills] == [project / "linked"]


def test_the_parent_of_a_link_is_where_the_link_leads(load: Load, project: Path) -> None:
    (project / "deep" / "down").mkdir(parents=True)
    (project / "deep" / "SKILL.md").write_text("")
    (project / "link").symlink_to(project / "deep" / "down", target_is_directory=True)
    assert [ref.path for ref in load(f"skill: link/../SKILL.md\n{TASK}").skills] == [(project / "deep" / "SKILL.md").resolve()]


@pytest.mark.parametrize(
    ("block", "engine", "judge", "words"),
    [
        (
            "skill: {path: SKILL.md, backend: codex, model: gpt-5}\njudge:\n  backend: claude-code\n",
            EngineDefault(backend="codex", model="gpt-5"),
            EngineDefault(backend="claude-code", model=None),
            "delete `skill.backend`, `skill.model`, `judge.backend` and pass "
            "`--caliper-model codex:gpt-5` and `--caliper-judge-model claude-code`",
        ),
        (
            "\nskill: {model: x}\n",
            EngineDefault(backend=None, model="x"),
            None,
            "delete `skill.model` and pass `--caliper-model x`",
        ),
        (
            "\njudge: {model: x, backend: pi}\n",
            None,
            EngineDefault(backend="pi", model="x"),
            "delete `judge.backend`, `judge.model` and pass `--caliper-judge-model pi:x`",
        ),
    ],
)
def test_the_engines_of_older_specs_are_defaults_with_one_warning(
    load: Load, block: str, engine: EngineDefault | None, judge: EngineDefault | None, words: str
) -> None:
    spec = load(block + TASK)
    assert (spec.engine_default, spec.judge_default) == (engine, judge)
    [warning] = spec.warnings
    assert warning.line == (1 if block.startswith("skill") else 2)
    assert words in warning.message


def test_an_empty_judge_is_no_news(load: Load) -> None:
    spec = load("judge: {}\n" + TASK)
    assert (spec.judge_default, spec.warnings) == (None, ())


def test_optional_keys_may_be_null(load: Load) -> None:
    spec = load(
        """\
        skill:
        judge:
        sandbox: {extra_path: null, forbidden_files: }
        mcp:
          a: {type: null, command: x, args: , env: }
        tasks: [{name: a, prompt: b, expect: c, setup: , cleanup: ~}]
        """
    )
    assert (spec.tasks[0].setup, spec.tasks[0].cleanup) == (None, None)
    assert (spec.mcp[0].transport, spec.mcp[0].args, spec.mcp[0].env) == ("stdio", (), {})


def test_a_pattern_that_matches_everything_is_a_warning(load: Load) -> None:
    spec = load("sandbox:\n  forbidden_files:\n    - '.*'\n    - secret\n    - '[[a]'\n" + TASK)
    assert [(one.line, "matches everything" in one.message) for one in spec.warnings] == [(3, True)]
    assert spec.sandbox.forbidden_files == (".*", "secret", "[[a]")


def test_relative_paths_to_specs_are_made_absolute(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "demo.eval.yaml").write_text(TASK)
    monkeypatch.chdir(project / "bin")
    assert load_spec(Path("../demo.eval.yaml")).path.is_absolute()


def test_two_hundred_tasks(load: Load) -> None:
    tasks = "".join(
        f"  - name: Task {n}\n    prompt: {'Do it. ' * 80}\n    expect: c\n    assert: |\n      assert attempt.answer == '{n}'\n"
        for n in range(200)
    )
    spec = load("tasks:\n" + tasks)
    assert [task.task_id for task in spec.tasks][::199] == ["task-001", "task-200"]
