"""The JSON Schema takes what the loader takes, and marks what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_caliper.cli import main
from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import SpecError
from pytest_caliper.spec.schema import json_schema

ROOT = Path(__file__).parents[2]
SPECS = sorted(
    path for folder in ("examples", "skills", "benchmarks") for path in (ROOT / folder).rglob("*.eval.y*ml") if path.is_file()
)
TASK = "tasks:\n  - {name: T, prompt: p, assert: assert attempt.answer}\n"

GOOD = {
    "smallest": TASK,
    "every key": """
        skill: {path: ./SKILL.md}
        bar: 4/5
        sandbox: {extra_path: [./bin], forbidden_files: ['\\.env$']}
        mcp:
          local: {command: ./server.py, args: [--fast], env: {TOKEN: '${TOKEN}'}}
          named: {type: stdio, command: npx}
          remote: {type: http, url: 'https://example.com', headers: {Authorization: 'Bearer ${TOKEN}'}}
          other: {type: sse, url: '${SERVER}/sse'}
        tasks:
          - name: T
            prompt: |
              Several
              lines.
            expect: It is so.
            assert: assert attempt.answer
            setup: touch a
            solution: touch b
            cleanup: rm a
            bar: 80%
    """,
    "skill as text": "skill: ./SKILL.md\n" + TASK,
    "no skill": "skill: null\n" + TASK,
    "skills": "skills: [./SKILL.md, {path: ./other.md}]\n" + TASK,
    "null beside the other": "bar: null\nsandbox: null\nmcp: null\n" + TASK,
    "bar 0.8": "bar: 0.8\n" + TASK,
    "bar 1": "bar: 1\n" + TASK,
    "bar 95 %": "bar: 95%\n" + TASK,
    "older": "judge: {backend: claude-code, model: m}\nskill: {path: ./SKILL.md, backend: claude-code, model: m}\n" + TASK,
}
BAD = {
    "nothing": "{}",
    "a list": "[]",
    "no tasks": "tasks: []",
    "no check": "tasks: [{name: T, prompt: p}]",
    "no prompt": "tasks: [{name: T, expect: e}]",
    "no name": "tasks: [{prompt: p, expect: e}]",
    "blank name": "tasks: [{name: ' ', prompt: p, expect: e}]",
    "a number for a text": "tasks: [{name: T, prompt: 3, expect: e}]",
    "an unknown key": "x: 1\n" + TASK,
    "an unknown key of a task": "tasks: [{name: T, prompt: p, expect: e, promt: p}]",
    "an unknown key of a skill": "skill: {path: ./SKILL.md, pth: x}\n" + TASK,
    "skill and skills": "skill: ./SKILL.md\nskills: [./SKILL.md]\n" + TASK,
    "skill as a list": "skill: [./SKILL.md]\n" + TASK,
    "bar 0": "bar: 0\n" + TASK,
    "bar 2": "bar: 2\n" + TASK,
    "bar in words": "bar: often\n" + TASK,
    "bar true": "bar: true\n" + TASK,
    "a server without command": "mcp: {a: {args: [b]}}\n" + TASK,
    "a server without url": "mcp: {a: {type: http}}\n" + TASK,
    "a transport that is none": "mcp: {a: {type: tcp, url: 'https://a'}}\n" + TASK,
    "a url that is none": "mcp: {a: {type: http, url: 'example.com'}}\n" + TASK,
    "a server's name": "mcp: {'a b': {command: c}}\n" + TASK,
    "a header's name": "mcp: {a: {type: http, url: 'https://a', headers: {'X Y': z}}}\n" + TASK,
    "a variable's name": "mcp: {a: {command: c, env: {'A=B': z}}}\n" + TASK,
    "a reference in a command": "mcp: {a: {command: '${HOME}/c'}}\n" + TASK,
    "a reference in an argument": "mcp: {a: {command: c, args: ['${TOKEN}']}}\n" + TASK,
}


def is_valid(value: Any) -> bool:
    return jsonschema.Draft202012Validator(json_schema()).is_valid(value)


def loads(tmp_path: Path, text: str) -> bool:
    for name, content in (
        ("SKILL.md", "---\nname: s\ndescription: d\n---\n"),
        ("server.py", ""),
        ("bin/tool", ""),
        ("other.md", "Do it.\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    spec = tmp_path / "x.eval.yaml"
    spec.write_text(text)
    try:
        load_spec(spec)
    except SpecError:
        return False
    return True


def test_it_is_a_schema_of_its_draft_and_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_spec_here_is_valid(spec: Path) -> None:
    jsonschema.validate(yaml.safe_load(spec.read_text(encoding="utf-8")), json_schema())


def test_there_are_specs_here() -> None:
    assert SPECS


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_what_loads_is_valid(tmp_path: Path, text: str) -> None:
    assert loads(tmp_path, text)
    assert is_valid(yaml.safe_load(text))


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_does_not_load_is_marked(tmp_path: Path, text: str) -> None:
    assert not loads(tmp_path, text)
    assert not is_valid(yaml.safe_load(text))


def test_patterns_are_those_of_javascript_too() -> None:
    """No named groups, flags or `\\Z`: editors compile them with `new RegExp`."""
    found = re.findall(r'"pattern": "((?:\\.|[^"\\])*)"', json.dumps(json_schema()))
    assert found
    assert not [pattern for pattern in found if re.search(r"\(\?(?![!:=])|\\\\[AZ]", pattern)]
