"""The Gemini CLI backend against the real CLI and a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from cases import CASES, DECOY, DECOY_SKILL, Subject, check

pytestmark = [pytest.mark.real_cli, pytest.mark.slow_cli]

SETTINGS = '{"mcpServers": {"decoy": {"command": "false"}}, "context": {"fileName": "DECOY.md"}}'


def shell(command: str) -> dict[str, Any]:
    return {"run_shell_command": {"command": command}}


def write(path: str, text: str) -> dict[str, Any]:
    return {"write_file": {"file_path": path, "content": text}}


def skill(name: str) -> dict[str, Any]:
    return {"activate_skill": {"name": name}}


SUBJECT = Subject(
    backend="gemini",
    variable="GEMINI_CLI_PATH",
    model="gemini-2.5-flash",
    reported_model="gemini-2.5-flash",
    shell=shell,
    write=write,
    skill=skill,
    # 147 in the prompt, of which 40 from a cache; what goes into one is counted as input.
    usage={"input_tokens": 107, "output_tokens": 20, "cache_read_tokens": 40, "cache_creation_tokens": None},
    env={"GEMINI_API_KEY": "dummy-key", "GOOGLE_GEMINI_BASE_URL": "@URL@"},
    decoys={
        ".gemini/GEMINI.md": DECOY,
        ".gemini/settings.json": SETTINGS,
        ".gemini/skills/decoy/SKILL.md": DECOY_SKILL,
        ".gemini/commands/decoy.toml": f'prompt = "{DECOY}"',
    },
    logged_out={"GEMINI_API_KEY": None},
    login="`gemini`",
    hang_s=10.0,
)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, gemini_cli: Cli, tmp_path: Path) -> None:
    check(name, SUBJECT, gemini_cli, tmp_path)
