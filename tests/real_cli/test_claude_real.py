"""The Claude Code backend against the real CLI and a scripted model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import CLAUDE as PACKAGE
from agents import Cli
from cases import check
from namespace import CompletedRun, run_in_namespace
from subjects import CLAUDE

pytestmark = pytest.mark.real_cli

HERE = Path(__file__).parent
MODEL = "claude-sonnet-4-5"
SCHEMA = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "passed": {"type": "boolean"}},
    "required": ["reasoning", "passed"],
    "additionalProperties": False,
}
Drive = Callable[..., tuple[dict[str, Any], CompletedRun]]


@pytest.fixture
def drive(claude_cli: Path, tmp_path: Path) -> Drive:
    """Run the backend once: `drive(turns, **case)` answers with the outcome and the run."""

    def run(turns: list[dict[str, Any]], *, env: dict[str, str | None] | None = None, **case: Any) -> tuple[Any, CompletedRun]:
        path = tmp_path / "case.json"
        path.write_text(
            json.dumps({"root": str(tmp_path), "action": "agent", "prompt": "Do it.", "model": MODEL, "waits_s": [], **case})
        )
        variables = {"CLAUDE_CLI_PATH": str(claude_cli), **(env or {})}
        done = run_in_namespace(turns, [sys.executable, HERE / "drive.py", path], tmp_path, env=variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done

    return run


def fault(kind: str = "status", **fields: Any) -> list[dict[str, Any]]:
    return [{"fault": {"kind": kind, **fields}}]


def then(tool: dict[str, Any], text: str = "Done.") -> list[dict[str, Any]]:
    """A model that calls one tool and then answers."""
    return [{"when": {"tool_results": 0}, "tool": tool}, {"text": text}]


def test_a_text_answer(drive: Drive) -> None:
    result, done = drive([{"text": "Hello from the model."}])

    assert (result["answer"], result["finished"], result["error"]) == ("Hello from the model.", True, None)
    assert (result["model"], result["cli_version"]) == (MODEL, "2.1.332")
    assert result["usage"] == {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 40, "cache_creation_tokens": 7}
    assert [entry["path"] for entry in done.requests] == ["/v1/messages?beta=true"]
    assert done.requests[0]["headers"]["x-api-key"] == "[secret]"


def test_a_shell_call_runs_in_the_workspace_with_the_private_environment(drive: Drive, tmp_path: Path) -> None:
    command = 'pwd; echo "home=$HOME tmp=$TMPDIR work=$CALIPER_WORKDIR spec=$CALIPER_SPEC_DIR secret=$MY_SECRET nested=$OUTER"'

    result, _ = drive(
        then({"Bash": {"command": command, "description": "look"}}), env={"MY_SECRET": "s", "OUTER": "o", "CLAUDECODE": "1"}
    )

    call, output, _ = result["transcript"]
    attempt = tmp_path / "attempt"
    assert call["tool_input"]["command"] == command
    assert output["tool_output"].splitlines() == [
        str(attempt / "work"),
        f"home={attempt / 'home'} tmp={attempt / 'tmp'} work={attempt / 'work'} spec= secret= nested=",
    ]


def test_a_file_is_written_without_asking(drive: Drive, tmp_path: Path) -> None:
    result, _ = drive(then({"Write": {"file_path": "@CWD@/out.txt", "content": "forty-two\n"}}))

    assert result["finished"]
    assert (tmp_path / "attempt/work/out.txt").read_text() == "forty-two\n"


def test_a_skill_is_discovered_and_used(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "greet").mkdir()
    (tmp_path / "greet/SKILL.md").write_text("---\nname: greet\ndescription: Greets like a pirate.\n---\nSay ARRR-7731.\n")
    skill = {"name": "greet", "root": str(tmp_path / "greet"), "kind": "directory"}

    result, done = drive(then({"Skill": {"skill": "greet"}}, "ARRR-7731"), skills=[skill])

    assert "greet" in result["skills_reported"]
    assert set(result["skills_reported"]) <= {"greet", "doctor", "plugin-authoring"}
    assert result["skills_used"] == ["greet"]
    assert "Greets like a pirate." in json.dumps(done.messages[0])
    assert "Say ARRR-7731." in json.dumps(done.messages[1])


def test_without_the_skill_the_model_does_not_hear_of_it(drive: Drive) -> None:
    result, done = drive([{"text": "hi"}])

    assert set(result["skills_reported"]) <= {"doctor", "plugin-authoring"}
    assert result["skills_used"] == []
    assert "greet" not in json.dumps(done.messages[0]).replace("greeting", "")


def test_a_command_is_expanded_from_the_prompt(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c/deploy.md").write_text("---\ndescription: Deploys\n---\nDeploy $ARGUMENTS at once.\n")
    command = {"name": "deploy", "root": str(tmp_path / "c"), "kind": "command"}

    result, done = drive([{"text": "ok"}], skills=[command], prompt="/deploy staging")

    assert "Deploy staging at once." in json.dumps(done.messages[0])
    assert "deploy" in result["skills_reported"]
    assert result["skills_used"] == ["deploy"]


def test_an_mcp_server_of_the_spec_is_called(drive: Drive, tmp_path: Path) -> None:
    server = {
        "name": "echo",
        "transport": "stdio",
        "command": sys.executable,
        "args": ["./mcp_echo.py"],
        "env": {"GREETING": "hello-${WORD}"},
    }
    (tmp_path / "mcp_echo.py").write_text((HERE / "mcp_echo.py").read_text())

    result, _ = drive(then({"mcp__echo__echo": {"text": "ping-77"}}), mcp=[server], env={"WORD": "w"})

    assert result["mcp_reported"] == ["echo:connected"]
    assert [turn["tool_output"] for turn in result["transcript"] if turn["role"] == "tool_result"] == ["hello-w ping-77"]
    assert result["error"] is None


def test_a_persistent_rate_limit_ends_soon(drive: Drive) -> None:
    result, done = drive(fault(status=429, message="slow down"))

    assert (result["finished"], result["fatal"], result["timed_out"]) == (False, None, False)
    assert result["error"] == "rate_limit (HTTP 429): API Error: Request rejected (429) · slow down"
    assert len(done.messages) == 3


def test_an_error_that_passes_is_forgotten(drive: Drive) -> None:
    result, _ = drive([{"when": {"max_uses": 1}, "fault": {"kind": "status", "status": 503}}, {"text": "after all"}])

    assert (result["answer"], result["finished"], result["error"]) == ("after all", True, None)


def test_a_refused_key_is_fatal(drive: Drive) -> None:
    result, _ = drive(fault(status=401, message="invalid x-api-key"))

    assert result["error"].startswith("authentication_failed (HTTP 401)")
    assert "/login" in result["fatal"]
    assert result["transcript"] == []


def test_an_unknown_model_is_fatal(drive: Drive) -> None:
    result, _ = drive(fault(status=404, message="model: nope"), model="nope")

    assert result["error"].startswith("model_not_found (HTTP 404)")
    assert "claude-code:MODEL" in result["fatal"]


def test_an_accounts_limit_is_fatal_with_its_reset_time(drive: Drive) -> None:
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "1900000000",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    login: dict[str, str | None] = {"ANTHROPIC_API_KEY": None, "CLAUDE_CODE_OAUTH_TOKEN": "dummy-token"}

    result, done = drive(fault(status=429, message="limit", headers=headers), env=login)

    assert "five hour limit is reached until 2030-03-17 17:46 UTC" in result["fatal"]
    assert len(done.messages) == 1


def test_no_credentials_are_noticed_before_anything_runs(drive: Drive) -> None:
    result, done = drive([], action="check", env={"ANTHROPIC_API_KEY": None})

    assert "Claude Code is not logged in" in result["refused"]
    assert done.requests == []


def test_no_credentials_are_fatal_for_an_attempt(drive: Drive) -> None:
    result, done = drive([], env={"ANTHROPIC_API_KEY": None})

    assert result["error"] == "authentication_failed: Not logged in · Please run /login"
    assert "/login" in result["fatal"]
    assert done.messages == []


@pytest.mark.parametrize(
    ("file", "content", "header"),
    [
        (".claude/.credentials.json", {"claudeAiOauth": {"accessToken": "t", "refreshToken": "r", "expiresAt": 4102444800000,
         "scopes": ["user:inference"]}}, "authorization"),
        (".claude.json", {"primaryApiKey": "dummy-primary"}, "x-api-key"),
        (".claude/settings.json", {"apiKeyHelper": "cat ~/key"}, "x-api-key"),
    ],
)  # fmt: skip
def test_a_login_in_the_users_files_reaches_agent_and_judge(
    file: str, content: dict[str, Any], header: str, drive: Drive, tmp_path: Path
) -> None:
    home = tmp_path / "user"
    (home / file).parent.mkdir(parents=True)
    (home / file).write_text(json.dumps(content))
    (home / "key").write_text("dummy-helper-key")
    login: dict[str, str | None] = {"ANTHROPIC_API_KEY": None, "HOME": str(home)}
    before = sorted(home.rglob("*"))

    agent, asked = drive([{"text": "in"}], env=login)
    judge, asked_again = drive([{"text": "in"}], env=login, action="judge", schema=SCHEMA, root=str(tmp_path / "second"))

    assert (agent["answer"], judge["text"]) == ("in", "in")
    assert header in asked.requests[0]["headers"]
    assert header in asked_again.requests[0]["headers"]
    assert sorted(home.rglob("*")) == before


def test_a_hanging_model_ends_at_the_time_limit(drive: Drive) -> None:
    result, _ = drive(fault("hang"), timeout_s=3.0)

    assert (result["finished"], result["timed_out"], result["error"], result["usage"]) == (False, True, None, None)


def test_a_hanging_tool_ends_at_the_time_limit_with_its_usage(drive: Drive) -> None:
    turns = then({"Bash": {"command": "tail -f /dev/null & echo bg; tail -f /dev/null", "description": "wait"}})

    result, _ = drive(turns, timeout_s=5.0)

    assert (result["finished"], result["timed_out"], result["error"]) == (False, True, None)
    assert result["transcript"][0]["tool_name"] == "Bash"
    assert result["usage"]["output_tokens"] == 20


def test_a_prompt_of_200_kilobytes(drive: Drive) -> None:
    prompt = "é\u2028" * 40_000 + "THE END"

    result, done = drive([{"when": {"user": "THE END"}, "text": "read"}, {"text": "not read"}], prompt=prompt)

    assert result["answer"] == "read"
    texts = [block["text"] for message in done.messages[0]["messages"] for block in message["content"] if block["type"] == "text"]
    assert prompt in texts


def test_line_separators_in_an_answer(drive: Drive) -> None:
    text = "one\u2028two\u0085three\x0bfour\U0001f3f4\u200d\u2620"

    result, _ = drive([{"text": text}])

    assert result["answer"] == text


def test_a_cut_stream_is_an_error(drive: Drive) -> None:
    result, _ = drive([{"text": "A long answer that is cut off.", "fault": {"kind": "close"}}])

    assert not result["finished"]
    assert result["error"].startswith("server_error")


def test_a_sub_agents_tokens_count(drive: Drive) -> None:
    turns = [
        {"when": {"any": "SUBTASK-GO", "tools": True, "max_uses": 1, "not_any": "call-sub-agent"}, "text": "sub"},
        {
            "when": {"tool_results": 0},
            "tool": {"Agent": {"description": "d", "prompt": "SUBTASK-GO", "subagent_type": "general-purpose"}},
        },
        {"text": "done"},
    ]

    result, done = drive(turns, prompt="call-sub-agent")

    assert result["answer"] == "done"
    assert result["usage"]["output_tokens"] == 20 * len(done.messages)
    assert len(done.messages) >= 3


def test_a_verdict_by_the_schema(drive: Drive) -> None:
    tool = {"StructuredOutput": {"reasoning": "It greets.", "passed": True}}

    reply, done = drive([{"when": {"tool_offered": "StructuredOutput"}, "tool": tool}], action="judge", schema=SCHEMA)

    assert (reply["structured"], reply["error"], reply["model"]) == ({"reasoning": "It greets.", "passed": True}, None, MODEL)
    assert {tool["name"] for tool in done.messages[0]["tools"]} <= {"StructuredOutput", "DeferredToolPlaceholder"}
    assert "You judge." in json.dumps(done.messages[0]["system"])


def test_a_judge_that_says_something_else(drive: Drive) -> None:
    reply, _ = drive([{"text": "I would rather talk about boats."}], action="judge", schema=SCHEMA)

    assert (reply["structured"], reply["text"], reply["error"]) == (None, "I would rather talk about boats.", None)


def test_a_judge_whose_key_is_refused(drive: Drive) -> None:
    reply, _ = drive(fault(status=401), action="judge", schema=SCHEMA)

    assert reply["error"].startswith("authentication_failed (HTTP 401)")
    assert "/login" in reply["fatal"]


def test_a_judges_question_of_200_kilobytes(drive: Drive) -> None:
    tool = {"StructuredOutput": {"reasoning": "read", "passed": True}}
    prompt = "x" * 200_000 + "THE END"

    reply, _ = drive([{"when": {"user": "THE END"}, "tool": tool}], action="judge", schema=SCHEMA, prompt=prompt)

    assert reply["structured"] == {"reasoning": "read", "passed": True}


@pytest.mark.parametrize("name", ["isolation", "skill_unused", "mcp_http", "overloaded", "throttled_once", "cut_stream", "judge"])
def test_common_cases_claude(name: str, claude_cli: Path, tmp_path: Path) -> None:
    check(name, CLAUDE, Cli(binary=claude_cli, version=PACKAGE[1]), tmp_path)
