"""The schema in the YAML language server that VS Code's YAML extension and other editors use: the real one, from npm."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from yaml_server import YamlServer

from pytest_caliper.spec.schema import json_schema, keys_at

sys.path.insert(0, str(Path(__file__).parents[1] / "real_cli"))
import agents

pytestmark = pytest.mark.real_cli

SERVER = ("yaml-language-server", "1.25.0", "yaml-language-server")
"""The last version that Node 20 runs."""
DEPRECATED = {"judge", "backend", "model"}
COMMENT = "# yaml-language-server: $schema=./eval.schema.json\n"
TASK = "tasks:\n  - {name: T, prompt: p, expect: e}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YamlServer]:
    try:
        program = agents.install(*SERVER)
    except agents.CannotInstall as error:
        if os.environ.get("CALIPER_REQUIRE_REAL_CLI"):
            pytest.fail(f"the YAML language server is required here: {error}")
        pytest.skip(f"no YAML language server: {error}")
    root = tmp_path_factory.mktemp("yaml").resolve()
    (root / "eval.schema.json").write_text(json.dumps(json_schema()))
    settings = {
        "schemas": {"./eval.schema.json": ["*.eval.yaml", "*.eval.yml"]},
        "completion": True,
        "hover": True,
        "validate": True,
    }
    made = YamlServer([str(program), "--stdio"], root, settings)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("|", ()),
        ("tasks:\n  - name: T\n    |\n", ("tasks", 0)),
        ("skill:\n  |\n" + TASK, ("skill",)),
        ("sandbox:\n  |\n" + TASK, ("sandbox",)),
        ("mcp:\n  tickets:\n    |\n" + TASK, ("mcp", "tickets")),
    ],
)
def test_every_key_of_a_place_is_offered(server: YamlServer, text: str, place: tuple[str | int, ...]) -> None:
    offered = set(server.completions(f"offer-{len(text)}.eval.yaml", text))
    expected = set(keys_at(place)) - DEPRECATED - ({"name"} if place == ("tasks", 0) else set())
    assert expected <= offered
    assert not offered & DEPRECATED


def test_values_are_offered(server: YamlServer) -> None:
    assert {"http", "sse"} <= set(server.completions("values.eval.yaml", "mcp:\n  a:\n    type: |\n" + TASK))


@pytest.mark.parametrize("key", [key for key in keys_at(("tasks", 0)) if key not in DEPRECATED])
def test_a_key_is_explained(server: YamlServer, key: str) -> None:
    text = f"tasks:\n  - {key[:1]}|{key[1:]}: 4/5\n"
    said = json_schema()["$defs"]["TaskModel"]["properties"][key]["description"]
    shown = server.hover(f"hover-{key}.eval.yaml", text).replace("\\", "").replace("&nbsp;", " ")
    assert said.split("`")[0] in shown


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("tasks:\n  - name: T\n    promt: p\n    prompt: p\n    expect: e\n", 3, "promt"),
        ("tasks:\n  - name: T\n    prompt: p\n", 2, "`expect:`, `assert:` or both"),
        ("skill: a\nskills: [b]\n" + TASK, 2, "either `skill:` or `skills:`"),
        ("skill:\n  pth: a\n" + TASK, 2, "pth"),
        ("bar: 4/x\n" + TASK, 1, "80%"),
        ("mcp:\n  a: {type: tcp, url: 'https://a'}\n" + TASK, 2, '"http", "sse"'),
        ("mcp:\n  a: {comand: b}\n" + TASK, 2, "comand"),
        ("skill: {path: a, backend: codex}\n" + TASK, 1, "--caliper-model"),
        ("tasks:\n  - {name: 3, prompt: p, expect: e}\n", 2, "string"),
    ],
)
def test_a_mistake_is_marked_on_its_line(server: YamlServer, text: str, line: int, said: str) -> None:
    found = server.problems(f"mistake-{abs(hash(text))}.eval.yaml", text)
    assert [message for at, message in found if at == line and said in message], found


def test_a_good_spec_has_no_mark(server: YamlServer) -> None:
    assert server.problems("good.eval.yaml", "bar: 4/5\nskill: ./SKILL.md\n" + TASK) == []


def test_a_comment_binds_the_schema_to_any_file(server: YamlServer) -> None:
    assert server.problems("other.yaml", "x: 1\n") == []
    assert "x is not allowed" in str(server.problems("bound.yaml", COMMENT + "x: 1\n" + TASK))
