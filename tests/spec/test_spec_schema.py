"""The JSON Schema that editors use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pytest_caliper.spec.schema import SCHEMA_ID, json_schema, keys_at


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """The mappings that are described: what stands behind `then` only narrows one."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for key, value in schema.items():
            if key != "then":
                yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def test_it_says_what_it_is() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == SCHEMA_ID
    assert schema["type"] == "object"
    assert schema["required"] == ["tasks"]


def test_every_key_is_described_and_no_other_is_allowed() -> None:
    found = list(objects(json_schema()))
    assert len(found) == 8
    for one in found:
        assert one["additionalProperties"] is False
        assert one["title"]
        for name, field in one["properties"].items():
            assert field["title"], name
            assert field["description"], name
            assert "default" not in field, name


def test_keys() -> None:
    schema = json_schema()
    assert tuple(schema["properties"]) == keys_at(()) == ("skill", "skills", "judge", "sandbox", "mcp", "bar", "tasks")
    task = schema["$defs"]["TaskModel"]
    keys = ("name", "prompt", "expect", "assert", "setup", "solution", "cleanup", "bar")
    assert tuple(task["properties"]) == keys_at(("tasks", 3)) == keys
    assert task["required"] == ["name", "prompt"]
    assert [one["required"] for one in task["anyOf"]] == [["expect"], ["assert"]]
    assert task["properties"]["expect"]["type"] == "string"
    assert schema["if"] == {"required": ["skill", "skills"]}
    assert schema["then"]["properties"] == {"skills": False}
    assert schema["properties"]["tasks"]["minItems"] == 1


def test_a_skill_is_text_a_mapping_or_null() -> None:
    skill = json_schema()["properties"]["skill"]
    kinds = [alternative for one in skill["anyOf"] for alternative in one.get("oneOf", [one])]
    assert {one.get("type", one.get("$ref")) for one in kinds} == {"string", "null", "#/$defs/SkillModel"}


def test_servers() -> None:
    schema = json_schema()
    servers = schema["properties"]["mcp"]["anyOf"][0]
    assert servers["propertyNames"] == {"pattern": "^[A-Za-z0-9_-]+$"}
    for name, key, good, bad in (("Stdio", "env", "API_KEY", "A=B"), ("Remote", "headers", "X-Key", "X Key")):
        pattern = schema["$defs"][f"{name}ServerModel"]["properties"][key]["anyOf"][0]["propertyNames"]["pattern"]
        assert re.search(pattern, good)
        assert not re.search(pattern, bad)
    assert {one["$ref"] for one in servers["additionalProperties"]["oneOf"]} == {
        "#/$defs/StdioServerModel",
        "#/$defs/RemoteServerModel",
    }
    assert schema["$defs"]["StdioServerModel"]["required"] == ["command"]
    assert schema["$defs"]["RemoteServerModel"]["required"] == ["type", "url"]
    assert schema["$defs"]["RemoteServerModel"]["properties"]["type"]["enum"] == ["http", "sse"]


def test_what_is_deprecated_is_marked() -> None:
    schema = json_schema()
    assert schema["properties"]["judge"]["deprecated"] is True
    skill = schema["$defs"]["SkillModel"]["properties"]
    assert [name for name, field in skill.items() if field.get("deprecated")] == ["backend", "model"]
    assert all("--caliper-model" in skill[name]["deprecationMessage"] for name in ("backend", "model"))
