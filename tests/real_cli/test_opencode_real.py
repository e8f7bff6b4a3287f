"""The opencode backend against the real CLI and a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from cases import CASES, DECOY, DECOY_SKILL, Bench, Subject, check, failed, fine, refusal

pytestmark = [pytest.mark.real_cli, pytest.mark.slow_cli]

PROVIDER = {
    "fake": {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "@URL@/v1", "apiKey": "{env:MY_MODEL_KEY}"},
        "models": {"fake-model": {}},
    }
}
CONFIG = ".config/opencode/opencode.jsonc"
SOON = {"retry-after-ms": "1"}
"""The CLI waits for over a minute between its 6 tries unless the provider says how long."""
MINUTE = "takes over a minute; a test of its own says how long to wait"


def shell(command: str) -> dict[str, Any]:
    return {"bash": {"command": command, "description": "look"}}


def write(path: str, text: str) -> dict[str, Any]:
    return {"write": {"filePath": f"@CWD@/{path}", "content": text}}


def skill(name: str) -> dict[str, Any]:
    return {"skill": {"name": name}}


def config(**further: Any) -> str:
    return f"// with a comment\n{json.dumps({'provider': PROVIDER, **further})}"


SUBJECT = Subject(
    backend="opencode",
    variable="OPENCODE_CLI_PATH",
    model="fake/fake-model",
    reported_model="fake/fake-model",
    shell=shell,
    write=write,
    skill=skill,
    # OpenAI's API does not say what went into a cache: it is counted as input.
    usage={"input_tokens": 107, "output_tokens": 20, "cache_read_tokens": 40, "cache_creation_tokens": None},
    files={CONFIG: config()},
    env={"MY_MODEL_KEY": "dummy-key"},
    decoys={
        CONFIG: config(
            agent={"build": {"prompt": DECOY}},
            instructions=["~/AGENTS.md"],
            mcp={"decoy": {"type": "local", "command": ["false"]}},
        ),
        ".config/opencode/AGENTS.md": DECOY,
        ".config/opencode/skills/decoy/SKILL.md": DECOY_SKILL,
        ".opencode/agent/build.md": DECOY,
    },
    logged_out_files={},
    login="opencode auth login",
    most_requests=6,
    hang_s=20.0,
    timeout_s=150.0,
    skips={
        "throttled": MINUTE,
        "overloaded": MINUTE,
        "throttled_once": MINUTE,
        "hanging_tool": "the CLI tells of a call when it is done",
    },
)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, opencode_cli: Cli, tmp_path: Path) -> None:
    check(name, SUBJECT, opencode_cli, tmp_path)


@pytest.mark.parametrize("status", [429, 503])
def test_a_provider_that_stays_busy(status: int, opencode_cli: Cli, tmp_path: Path) -> None:
    bench = Bench(subject=SUBJECT, cli=opencode_cli, path=tmp_path)

    result, done = bench.drive(refusal(status, message="slow down", headers=SOON))

    failed(result, transient=True, fatal=False)
    assert f"(HTTP {status}): slow down" in result["error"]
    assert len(done.messages) == 6


def test_an_error_that_passes_is_forgotten(opencode_cli: Cli, tmp_path: Path) -> None:
    bench = Bench(subject=SUBJECT, cli=opencode_cli, path=tmp_path)

    result, _ = bench.drive([{"when": {"max_uses": 1}, **refusal(503, headers=SOON)[0]}, {"text": "after all"}])

    fine(result, "after all")


def test_a_run_that_ends_while_it_tries_again_says_what_it_met(opencode_cli: Cli, tmp_path: Path) -> None:
    bench = Bench(subject=SUBJECT, cli=opencode_cli, path=tmp_path)

    result, _ = bench.drive(refusal(429, message="slow down", headers={"retry-after": "3600"}), timeout_s=20.0)

    assert (result["finished"], result["timed_out"]) == (False, True)
    assert "still trying again" in result["error"]


def test_a_model_that_the_cli_does_not_know_is_named(opencode_cli: Cli, tmp_path: Path) -> None:
    bench = Bench(subject=SUBJECT, cli=opencode_cli, path=tmp_path)

    result, done = bench.drive([], model="fake/other")

    failed(result, transient=False, fatal=True)
    assert result["error"] == "ProviderModelNotFoundError: Model not found: fake/other."
    assert "fake/other" in result["fatal"]
    assert done.messages == []


def test_a_broken_mcp_server_is_named(opencode_cli: Cli, tmp_path: Path) -> None:
    bench = Bench(subject=SUBJECT, cli=opencode_cli, path=tmp_path)

    result, _ = bench.drive([{"text": "hi"}], mcp=[{"name": "bad", "transport": "stdio", "command": "false"}])

    assert result["error"] == "mcp server did not start: bad (failed): try its command in a shell"


def test_secrets_reach_a_server_as_they_are(opencode_cli: Cli, tmp_path: Path) -> None:
    """The CLI fills in `{env:NAME}` in its configuration."""
    bench = Bench(subject=SUBJECT, cli=opencode_cli, path=tmp_path)
    code = "import os, sys; open('seen.txt', 'w').write(os.environ['SECRET'])"
    server = {"name": "odd", "transport": "stdio", "command": "python3", "args": ["-c", code], "env": {"SECRET": "${S}"}}

    bench.drive([{"text": "hi"}], mcp=[server], env={"S": "a{env:HOME}${HOME}{file:/etc/hostname}"})

    assert (bench.work / "seen.txt").read_text() == "a{env:HOME}${HOME}{file:/etc/hostname}"


def test_a_web_page_in_place_of_a_model_ends_at_the_time_limit(opencode_cli: Cli, tmp_path: Path) -> None:
    """The CLI asks again and again, for ever."""
    bench = Bench(subject=SUBJECT, cli=opencode_cli, path=tmp_path)

    result, _ = bench.drive([{"fault": {"kind": "wrong_type"}}], timeout_s=15.0)

    assert (result["finished"], result["timed_out"], result["answer"]) == (False, True, "")
