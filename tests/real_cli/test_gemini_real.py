"""The Gemini CLI backend against the real CLI and a scripted model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from cases import CASES, DECOY, DECOY_SKILL, Bench, Subject, check, failed, outputs, refusal

pytestmark = [pytest.mark.real_cli, pytest.mark.slow_cli]

HERE = Path(__file__).parent
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


def test_a_quota_that_is_used_up_stops_the_session(gemini_cli: Cli, tmp_path: Path) -> None:
    bench = Bench(subject=SUBJECT, cli=gemini_cli, path=tmp_path)

    result, done = bench.drive(refusal(429, message="Quota exceeded for metric: x. Please retry in 40000s."))

    failed(result, transient=False, fatal=True)
    assert result["error"].startswith("TerminalQuotaError (HTTP 429): Quota exceeded")
    assert len(done.messages) == 1


def test_a_bad_key_by_googles_own_status(gemini_cli: Cli, tmp_path: Path) -> None:
    bench = Bench(subject=SUBJECT, cli=gemini_cli, path=tmp_path)

    result, _ = bench.drive(refusal(400, message="API key not valid. Please pass a valid API key."))

    failed(result, transient=False, fatal=True)
    assert "GEMINI_API_KEY" in result["fatal"]


def test_a_broken_mcp_server_is_an_error(gemini_cli: Cli, tmp_path: Path) -> None:
    bench = Bench(subject=SUBJECT, cli=gemini_cli, path=tmp_path)

    result, _ = bench.drive([{"text": "hi"}], mcp=[{"name": "bad", "transport": "stdio", "command": "false"}])

    assert result["error"].startswith("an mcp server failed, and Gemini CLI does not say which: bad")


def test_secrets_reach_a_server_as_they_are(gemini_cli: Cli, tmp_path: Path) -> None:
    """The CLI expands variables in its settings twice."""
    bench = Bench(subject=SUBJECT, cli=gemini_cli, path=tmp_path)
    env = {"GREETING": "a$HOME-${X}-\\$b-$$"}
    args = [str(HERE / "mcp_echo.py")]
    server = {"name": "echo", "transport": "stdio", "command": sys.executable, "args": args, "env": env}

    result, _ = bench.use({"mcp_echo_echo": {"text": "p"}}, mcp=[server], env={"X": "s$PATH${HOME:-y}"})

    assert outputs(result) == "a$HOME-s$PATH${HOME:-y}-\\$b-$$ p"


def test_a_question_with_at_signs_is_asked_as_it_is(gemini_cli: Cli, tmp_path: Path) -> None:
    """The CLI reads files that `@path` names, and takes `@agent` for a wish to call one."""
    bench = Bench(subject=SUBJECT, cli=gemini_cli, path=tmp_path)
    question = "see @/etc/passwd and a@b.com @codebase_investigator @nowhere.txt"

    reply, done = bench.drive([{"text": "{}"}], action="judge", schema={}, prompt=question)

    assert (reply["text"], reply["error"]) == ("{}", None)
    assert json.dumps(question) in json.dumps(done.messages)
    assert "root:" not in json.dumps(done.messages)
