"""docs/backends.md says what the backends do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_caliper.backends.registry import builtin_backends
from pytest_caliper.contracts import Backend, Skill
from pytest_caliper.runs.records import SkillSnapshot
from pytest_caliper.spec.model import McpServer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "pytest_caliper").rglob("*.py"))
BACKENDS = {backend.name: backend for backend in builtin_backends()}


def tables() -> list[list[list[str]]]:
    """The page's tables as rows of cells, without head and rule."""
    found = re.findall(r"(?:^\|.*\|\n)+", PAGE, re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()][2:] for table in found]


def skill(kind: str) -> Skill:
    snapshot = SkillSnapshot(name="x", path="x", kind=kind, files={})  # type: ignore[arg-type]
    return Skill(name="x", root=Path("/x"), kind=kind, files=("x.md",), snapshot=snapshot)  # type: ignore[arg-type]


def can(backend: Backend) -> list[str]:
    """The columns `skills` to `MCP sse`, as the backend itself answers."""
    remote = {"name": "s", "line": 1, "url": "https://x.example/mcp"}
    answers = [
        backend.refuses(skills=(skill("directory"),), mcp=()),
        backend.refuses(skills=(skill("command"),), mcp=()),
        backend.refuses(skills=(), mcp=(McpServer(name="s", transport="stdio", line=1, command="x"),)),
        backend.refuses(skills=(), mcp=(McpServer(transport="http", **remote),)),  # type: ignore[arg-type]
        backend.refuses(skills=(), mcp=(McpServer(transport="sse", **remote),)),  # type: ignore[arg-type]
    ]
    return ["yes" if answer is None else "no" for answer in answers]


@pytest.mark.parametrize("number", range(3))
def test_every_table_has_every_backend_once(number: int) -> None:
    assert [row[0].strip("`") for row in tables()[number]] == [
        "claude-code",
        "codex",
        "pi",
        "gemini",
        "opencode",
        "hermes",
        "command",
        "claude-api",
        "openai-api",
    ]
    assert {row[0].strip("`") for row in tables()[number]} == set(BACKENDS)


@pytest.mark.parametrize("row", tables()[0], ids=lambda row: row[0])
def test_what_each_can_do(row: list[str]) -> None:
    backend = BACKENDS[row[0].strip("`")]
    assert row[1].strip("`") == ", ".join(backend.aliases)
    assert row[4:] == can(backend)
    assert not row[3] or row[3].strip("`") in SOURCE


def test_every_variable_on_the_page_is_in_the_source() -> None:
    names = set(re.findall(r"`([A-Z][A-Z0-9_]{5,})`", PAGE))
    assert names
    assert {name for name in names if name not in SOURCE} == set()
