"""The Codex backend against the real CLI and a scripted model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from cases import CASES, DECOY, DECOY_SKILL, SCHEMA, SKILL_FILE, Bench, Subject, check, failed, fine, outputs

pytestmark = pytest.mark.real_cli

PROVIDER = """
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "@URL@/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
supports_websockets = false
"""
DECOY_CONFIG = f"""
developer_instructions = "{DECOY}"
instructions = "{DECOY}"
notify = ["touch", "@HOME@/notified"]
{PROVIDER}
[mcp_servers.decoy]
command = "/nonexistent/{DECOY}"
required = true
[profiles.decoy]
model = "{DECOY}"
"""


def shell(command: str) -> dict[str, Any]:
    return {"exec_command": {"cmd": command}}


def write(path: str, text: str) -> dict[str, Any]:
    lines = ("*** Begin Patch", f"*** Add File: {path}", *(f"+{line}" for line in text.splitlines()), "*** End Patch", "")
    return {"apply_patch": "\n".join(lines)}


def skill(name: str) -> dict[str, Any]:
    return shell(f'cat "$CODEX_HOME/skills/{SKILL_FILE}"')


SUBJECT = Subject(
    backend="codex",
    variable="CODEX_CLI_PATH",
    model="gpt-5.5",  # one that it has metadata of, so that it does not warn and offers apply_patch
    reported_model="gpt-5.5",
    shell=shell,
    write=write,
    skill=skill,
    usage={"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 40, "cache_creation_tokens": 7},
    files={".codex/config.toml": PROVIDER},
    env={"SCRIPTED_KEY": "dummy-key", "ANTHROPIC_API_KEY": None},
    decoys={
        ".codex/config.toml": DECOY_CONFIG,
        ".codex/AGENTS.md": DECOY,
        ".codex/skills/decoy/SKILL.md": DECOY_SKILL,
        ".codex/prompts/decoy.md": DECOY,
        ".codex/memories/MEMORY.md": DECOY,
    },
    logged_out={"SCRIPTED_KEY": None},
    login="codex login",
    judge_tools=frozenset({"apply_patch", "request_user_input"}),
)


@pytest.fixture
def bench(codex_cli: Cli, tmp_path: Path) -> Bench:
    return Bench(subject=SUBJECT, cli=codex_cli, path=tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, codex_cli: Cli, tmp_path: Path) -> None:
    check(name, SUBJECT, codex_cli, tmp_path)
