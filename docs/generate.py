"""Write the pages that the code knows best: `python docs/generate.py`. The tests compare them with what is here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_caliper.cli.main import COMMANDS, parser_of
from pytest_caliper.spec.rates import PATTERN
from pytest_caliper.spec.schema import json_schema

HERE = Path(__file__).resolve().parent
_NOTE = "<!-- Written by `python docs/generate.py`; edit the code instead. -->"

_SECTIONS = (
    ("Top level", None, ""),
    ("`skill`", "SkillModel", "The path itself, or a mapping with these keys. See [the guide](spec.md#skill-and-skills)."),
    ("`skills`", "SkillPathModel", "A list; each is the path itself, or a mapping with this key."),
    ("`tasks`", "TaskModel", "A list; each task is a mapping with these keys, and has `assert`, `expect` or both. "
     "See [the guide](spec.md#tasks)."),
    ("`sandbox`", "SandboxModel", "See [the guide](spec.md#sandbox)."),
    ("`mcp`, a local server", "StdioServerModel", "`mcp` maps names (letters, digits, `_`, `-`) to servers. "
     "See [the guide](spec.md#mcp)."),
    ("`mcp`, a remote server", "RemoteServerModel", ""),
    ("`judge`, deprecated", "EngineModel", "From caliper-eval 0.4; see [older specs](spec.md#older-specs)."),
)  # fmt: skip
"""Heading, the model of the schema, and what stands above its keys."""


def spec_reference() -> str:
    """docs/spec-reference.md: every key of a spec."""
    schema = json_schema()
    parts = [
        "# Spec reference",
        _NOTE,
        "Every key of an `.eval.yaml` file, from the schema that checks it: `caliper schema` prints that. "
        "[The spec format](spec.md) explains the keys with examples.",
    ]
    for heading, name, above in _SECTIONS:
        model = schema if name is None else schema["$defs"][name]
        parts += [f"## {heading}", *([above] if above else []), _table(model, schema)]
    missing = set(schema["$defs"]) - {name for _, name, _ in _SECTIONS}
    if missing:
        raise RuntimeError(f"the schema has models that this page has no section for: {sorted(missing)}")
    return "\n\n".join(parts) + "\n"


def _table(model: dict[str, Any], schema: dict[str, Any]) -> str:
    required = model.get("required", [])
    rows = ["| Key | Value | Required | Meaning |", "|---|---|---|---|"]
    for key, field in model["properties"].items():
        needed = "yes" if key in required else ""
        meaning = _cell(field.get("description", ""))
        if field.get("deprecated") and "eprecated" not in meaning:
            meaning = f"Deprecated. {meaning}"
        rows.append(f"| `{key}` | {_kind(field, schema)} | {needed} | {meaning} |")
    return "\n".join(rows)


def _kind(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """What a value may be, in words."""
    choices = field.get("anyOf", field.get("oneOf", []))
    if any(PATTERN in one.get("pattern", "") for one in (field, *choices)):
        return "rate: `0.8`, `80%` or `4/5`"
    if choices:
        kinds = dict.fromkeys(_kind(choice, schema) for choice in choices if choice.get("type") != "null")
        return " or ".join(kinds)
    if "$ref" in field:
        return "mapping"
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"] if value is not None)
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    return " or ".join(_named(kind, field, schema) for kind in kinds if kind != "null")


def _named(kind: str, field: dict[str, Any], schema: dict[str, Any]) -> str:
    if kind == "array":
        inner = _kind(field["items"], schema)
        return {"text": "list of texts", "mapping": "list of mappings"}.get(inner, f"list: {inner}")
    if kind == "object":
        inner = _kind(field["additionalProperties"], schema) if isinstance(field.get("additionalProperties"), dict) else "text"
        return f"mapping of names to {inner}s"
    return {"string": "text", "number": "number", "boolean": "true or false"}[kind]


def command_reference() -> str:
    """docs/command-reference.md: every command with its arguments."""
    parts = [
        "# Command reference",
        _NOTE,
        "Every command and its arguments, as `caliper COMMAND --help` has them. [Commands](commands.md) explains what "
        "they print. "
        "[Options](options.md) explains those of `caliper run`.",
    ]
    for command in COMMANDS:
        parser = parser_of(command.name)
        parts += [f"## caliper {command.name}", _cell(parser.description or command.help)]
        rows = list(_arguments(parser))
        if rows:
            parts.append("\n".join(["| Argument | Meaning |", "|---|---|", *rows]))
        if parser.epilog:
            parts.append(f"```text\n{parser.epilog.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        value = action.metavar if isinstance(action.metavar, str) else None
        if action.option_strings:
            takes = action.nargs != 0
            shown = value or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
            written = ", ".join(action.option_strings) + (f" {shown}" if takes else "")
        else:
            name = value or action.dest
            written = {"*": f"[{name} …]", "+": f"{name} …", "?": f"[{name}]"}.get(str(action.nargs), name)
        said = (action.help or "") % {**vars(action), "prog": parser.prog} if action.help else ""
        yield f"| `{_pipe(written)}` | {_cell(said)} |"


def _cell(text: str) -> str:
    """Text for one cell or paragraph: on one line, and nothing in it taken for Markdown or HTML by mistake."""
    flat = " ".join(text.split())
    parts = re.split(r"(`[^`]*`)", flat)
    return _pipe("".join(part if part.startswith("`") else re.sub(r"([<>*_\[\]])", r"\\\1", part) for part in parts))


def _pipe(text: str) -> str:
    return text.replace("|", "\\|")


PAGES = {"spec-reference.md": spec_reference, "command-reference.md": command_reference}


def main() -> None:
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
