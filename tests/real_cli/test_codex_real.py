"""The Codex backend against the real CLI and a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from cases import CASES, DECOY, DECOY_SKILL, SKILL_FILE, Bench, Subject, check, failed, fine, outputs

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
    lists_skills=True,
    judge_tools=frozenset({"apply_patch", "request_user_input"}),
)


@pytest.fixture
def bench(codex_cli: Cli, tmp_path: Path) -> Bench:
    return Bench(subject=SUBJECT, cli=codex_cli, path=tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, codex_cli: Cli, tmp_path: Path) -> None:
    check(name, SUBJECT, codex_cli, tmp_path)


def test_a_stopped_run_tells_its_model_and_tokens(bench: Bench) -> None:
    """On no signal does Codex print them; they are read from what it wrote down."""
    result, _ = bench.use(shell("tail -f /dev/null"), timeout_s=4.0)

    assert (result["timed_out"], result["model"], result["usage"]) == (True, "gpt-5.5", SUBJECT.usage)


def test_the_model_is_known_where_none_was_asked_for(bench: Bench) -> None:
    result, done = bench.drive([{"text": "hi"}], model=None)

    assert result["model"] == done.messages[0]["model"]


def test_sub_agents_tokens_count(bench: Bench) -> None:
    turns = [
        {"when": {"user": "SUBTASK-GO", "max_uses": 1}, "text": "sub"},
        {"when": {"request": 0}, "tool": {"multi_agent_v1__spawn_agent": {"message": "SUBTASK-GO"}}},
        {"when": {"tool_results": 1}, "tool": shell("sleep 1")},
        {"text": "done"},
    ]

    result, done = bench.drive(turns)

    fine(result, "done")
    assert len(done.messages) == 4
    assert result["usage"] == {name: 4 * count for name, count in SUBJECT.usage.items() if count is not None}
    assert [turn["tool_name"] for turn in result["transcript"] if turn["role"] == "tool_use"] == [
        "spawn_agent",
        "command_execution",
    ]


def test_a_command_has_the_path_of_the_attempt(bench: Bench) -> None:
    """A login shell would take PATH from /etc/profile."""
    path = bench.cli.environment("X")["PATH"]

    result, _ = bench.use(shell('echo "$PATH"'))

    assert outputs(result).strip().endswith(path)


def test_a_server_that_does_not_start_is_an_error(bench: Bench) -> None:
    """Codex would go on without it, in silence."""
    server = {"name": "broken", "transport": "stdio", "command": "/nonexistent/server"}

    result, done = bench.drive([{"text": "hi"}], mcp=[server])

    failed(result, transient=False, fatal=False)
    assert result["error"].startswith("mcp server did not start: broken: No such file or directory")
    assert done.messages == []


def test_a_server_that_wants_a_login_is_an_error(bench: Bench) -> None:
    server = {"name": "echo", "transport": "http", "url": "${MCP_URL}"}

    result, done = bench.drive([{"text": "hi"}], mcp=[server], env={"MCP_URL": "@MCP_URL@"})

    assert result["error"].startswith("mcp server did not start: echo: ")
    assert "an attempt cannot log in by OAuth" in result["error"]
    assert done.messages == []


def test_an_error_that_passes_is_forgotten(bench: Bench) -> None:
    result, done = bench.drive([{"when": {"max_uses": 1}, "fault": {"kind": "status", "status": 503}}, {"text": "after all"}])

    fine(result, "after all")
    assert (result["retries"], len(done.messages)) == (0, 2)


@pytest.mark.parametrize(
    ("files", "env"),
    [
        ({".codex/auth.json": json.dumps({"OPENAI_API_KEY": "dummy-key"})}, {}),
        ({}, {"OPENAI_API_KEY": "dummy-key"}),
    ],
    ids=["auth.json", "OPENAI_API_KEY"],
)
def test_openais_own_login_reaches_the_model(files: dict[str, str], env: dict[str, str | None], bench: Bench) -> None:
    config = PROVIDER.replace('env_key = "SCRIPTED_KEY"', "requires_openai_auth = true")

    result, done = bench.drive([{"text": "in"}], files={".codex/config.toml": config, **files}, env={"SCRIPTED_KEY": None, **env})

    fine(result, "in")
    assert all(entry["headers"].get("authorization") == "[secret]" for entry in done.requests)


def test_a_skill_that_the_prompt_mentions_is_used(bench: Bench) -> None:
    root = bench.path / "greet"
    root.mkdir()
    (root / "SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nSay ARRR-7731.\n")
    skills = [{"name": "greet", "root": str(root), "kind": "directory"}]

    result, done = bench.drive([{"text": "ARRR-7731"}], skills=skills, prompt="$greet Bob")

    assert result["skills_used"] == ["greet"]
    assert "Say ARRR-7731." in json.dumps(done.messages[0])
