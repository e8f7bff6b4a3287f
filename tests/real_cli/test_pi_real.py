"""The pi backend against the real CLI and a scripted model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import agents
import netns
import pytest
from agents import Cli
from cases import CASES, Bench, calls, check, fine
from subjects import KEY, MODEL, PI

pytestmark = pytest.mark.real_cli

OLD = ("@earendil-works/pi-coding-agent", "0.74.2", "pi")
"""What npm gives a user of Node 20."""
OLD_CASES = ("text", "shell", "skill", "isolation", "throttled", "refused_key", "cut_stream", "long_prompt", "judge")


def models(api: str = "openai-completions", url: str = "@URL@/v1", key: str = KEY) -> str:
    provider = {"baseUrl": url, "api": api, "apiKey": key, "models": [{"id": MODEL}]}
    return json.dumps({"providers": {"scripted": provider}})


@pytest.fixture
def bench(pi_cli: Cli, tmp_path: Path) -> Bench:
    return Bench(subject=PI, cli=pi_cli, path=tmp_path)


@pytest.fixture(scope="module")
def old_pi_cli() -> Cli:
    if reason := netns.unavailable():
        pytest.skip(f"no real CLI: {reason}")
    try:
        return Cli(binary=agents.install(*OLD), version=OLD[1])
    except agents.CannotInstall as error:
        pytest.skip(f"no real CLI: {error}")


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, pi_cli: Cli, tmp_path: Path) -> None:
    check(name, PI, pi_cli, tmp_path)


@pytest.mark.slow_cli
@pytest.mark.parametrize("name", OLD_CASES)
def test_case_of_the_pi_that_node_20_gets(name: str, old_pi_cli: Cli, tmp_path: Path) -> None:
    check(name, replace(PI, lists_skills=False), old_pi_cli, tmp_path)


def test_the_users_default_model_answers(bench: Bench) -> None:
    result, _ = bench.drive([{"text": "Done."}], model=None)

    fine(result, "Done.")
    assert result["model"] == PI.reported_model


def test_an_error_that_passes_is_no_part_of_the_attempt(bench: Bench) -> None:
    turns = [{"when": {"request": 0}, "text": "A long answer that is cut.", "fault": {"kind": "cut"}}, {"text": "after all"}]

    result, done = bench.drive(turns)

    fine(result, "after all")
    assert (len(done.messages), result["usage"]) == (2, PI.usage)
    assert [turn["content"] for turn in result["transcript"]] == ["after all"]


@pytest.mark.parametrize(
    ("api", "url", "usage"),
    [
        ("anthropic-messages", "@URL@", (100, 20, 40, 7)),
        ("openai-responses", "@URL@/v1", (100, 20, 40, 7)),
        ("google-generative-ai", "@URL@/v1beta", (107, 20, 40, None)),
    ],
)
def test_other_protocols(api: str, url: str, usage: tuple[int | None, ...], bench: Bench) -> None:
    files = {".pi/agent/models.json": models(api, url)}

    result, _ = bench.drive([{"text": "Done."}], files=files)

    fine(result, "Done.")
    assert tuple(result["usage"].values()) == usage


@pytest.mark.parametrize("key", ["!cat ~/key-file", "$MY_KEY", "a$$b!c"])
def test_a_key_is_resolved_where_the_user_lives(key: str, bench: Bench) -> None:
    """Neither the file of the command nor the variable is there in the attempt; signs in a key reach the model as they are."""
    files = {".pi/agent/models.json": models(key=key), "key-file": "a$b!c\n"}

    result, done = bench.drive([{"text": "Done."}], files=files, env={"MY_KEY": "a$b!c"})

    fine(result, "Done.")
    (path,) = bench.path.glob("attempt/home/.pi/agent/models.json")
    assert json.loads(path.read_text())["providers"]["scripted"]["apiKey"] == "a$$b!c"
    assert done.requests[0]["headers"]["authorization"] == "[secret]"


def test_a_subscription_login(bench: Bench) -> None:
    login = {"anthropic": {"type": "oauth", "access": "sk-ant-oat01-dummy", "refresh": "once", "expires": 4102444800000}}
    files = {
        ".pi/agent/auth.json": json.dumps(login),
        ".pi/agent/models.json": '{"providers": {"anthropic": {"baseUrl": "@URL@"}}}',
    }

    result, done = bench.drive([{"text": "Done."}], files=files, model="anthropic/claude-sonnet-4-5")

    fine(result, "Done.")
    assert "authorization" in done.requests[0]["headers"]
    assert "x-api-key" not in done.requests[0]["headers"]


def test_a_skill_that_the_prompt_calls(bench: Bench) -> None:
    (bench.path / "greet").mkdir()
    (bench.path / "greet/SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nSay ARRR-7731.\n")
    installed = {"name": "greet", "root": str(bench.path / "greet"), "kind": "directory"}

    result, done = bench.drive([{"text": "ARRR"}], prompt="/skill:greet for Bob", skills=[installed])

    assert (result["skills_used"], result["skills_reported"]) == (["greet"], ["greet"])
    assert "Say ARRR-7731." in json.dumps(done.messages[0])


def test_a_server_that_does_not_start(bench: Bench) -> None:
    server = {"name": "my-echo", "transport": "stdio", "command": "/nope"}

    result, _ = bench.drive([{"text": "Done."}], mcp=[server])

    assert "my-echo: try its command" in result["error"]
    assert result["mcp_reported"] == ["my-echo:no tools"]


def test_a_servers_values_reach_it_as_they_are(bench: Bench) -> None:
    (bench.path / "mcp_echo.py").write_text((Path(__file__).parent / "mcp_echo.py").read_text())
    server = {
        "name": "my-echo",
        "transport": "stdio",
        "command": "python3",
        "args": ["./mcp_echo.py"],
        "env": {"GREETING": "${WORD}"},
    }

    result, _ = bench.use({"mcp__my_echo__echo": {"text": "ping"}}, mcp=[server], env={"WORD": "!a$$b${HOME}"})

    fine(result, "Done.")
    assert [call["tool_name"] for call in calls(result)] == ["mcp__my-echo__echo"]
    assert "!a$$b${HOME} ping" in json.dumps(result["transcript"])
