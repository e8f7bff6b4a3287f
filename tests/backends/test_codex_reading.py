"""What is read from Codex's stream and rollouts beyond the recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, output

from pytest_caliper.backends.codex import Codex
from pytest_caliper.backends.codex_errors import turn_failure
from pytest_caliper.backends.codex_reading import SCHEMA_NAME, read_agent
from pytest_caliper.backends.codex_stream import script_of
from pytest_caliper.backends.transcript import Bounds
from pytest_caliper.contracts import HarnessResult, RawOutput, Workspace
from pytest_caliper.runs.records import Usage

THREAD = "01a22e70-b404-7231-b370-8b095bdadf29"
TOKENS = {"input_tokens": 147, "cached_input_tokens": 40, "cache_write_input_tokens": 7, "output_tokens": 20}
DISJOINT = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=40, cache_creation_tokens=7)
STARTED = {"type": "thread.started", "thread_id": THREAD}
DONE = {"type": "turn.completed", "usage": TOKENS}
BODY = "---\nname: greet-pirate\n---\n# How to greet\nSay ARRR-7731 loudly.\nThen say the name.\nThen bow deeply.\n"


def said(text: str) -> dict[str, Any]:
    return item({"id": "m", "type": "agent_message", "text": text})


def item(data: dict[str, Any], kind: str = "completed") -> dict[str, Any]:
    return {"type": f"item.{kind}", "item": data}


def command(command: str, printed: str = "", **more: Any) -> dict[str, Any]:
    done = {"exit_code": 0, "status": "completed", **more}
    return item({"id": "c", "type": "command_execution", "command": command, "aggregated_output": printed, **done})


def failed(message: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": message}}


def read(root: Path, *events: Any, plan: dict[str, Any] | None = None, **ended: Any) -> HarnessResult:
    raw = output(root / "out", *events, **ended)
    return Codex().read_agent(raw, make_plan(root, **(plan or {})), Workspace.at(root / "attempt"))


def rollout(root: Path, *lines: dict[str, Any], thread: str = THREAD, place: str = "attempt/home/.codex") -> None:
    path = root / place / "sessions/2026/11/30" / f"rollout-2026-11-30T21-51-07-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def turn(model: str) -> dict[str, Any]:
    return {"type": "turn_context", "payload": {"model": model}}


def count(tokens: dict[str, int] | None) -> dict[str, Any]:
    info = None if tokens is None else {"total_token_usage": tokens}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def response(name: str, tokens: dict[str, int]) -> dict[str, Any]:
    return {"type": "token_usage_record", "payload": {"response_id": name, "usage": tokens}}


def test_warnings_and_reasoning_are_no_tool_calls(tmp_path: Path) -> None:
    warning = item({"id": "w", "type": "error", "message": "Model metadata not found."})
    thought = item({"id": "r", "type": "reasoning", "text": "Let me think."})

    result = read(tmp_path, STARTED, warning, thought, said("hi"), warning, DONE)

    assert [(entry.role, entry.content) for entry in result.transcript] == [("assistant", "hi")]
    assert (result.finished, result.answer, result.error, result.usage) == (True, "hi", None, DISJOINT)


def test_only_the_last_turn_decides(tmp_path: Path) -> None:
    again = {"type": "turn.started"}

    assert read(tmp_path, said("one"), DONE, again, failed("unexpected status 500 X")).finished is False
    assert read(tmp_path, failed("x"), again, said("two"), DONE).answer == "two"
    cut = read(tmp_path, said("one"), DONE, again, said("half"))
    assert (cut.finished, cut.answer, cut.error) == (False, "", "the stream ended without turn.completed")


def test_a_completed_turn_outlives_the_way_the_process_ended(tmp_path: Path) -> None:
    result = read(tmp_path, said("hi"), DONE, exit_code=-9, cause="timeout")

    assert (result.finished, result.timed_out, result.error, result.answer) == (True, False, None, "hi")


def test_the_agents_own_words_are_no_error(tmp_path: Path) -> None:
    words = "unexpected status 401 Unauthorized: run codex login"

    result = read(tmp_path, said(words), command("false", words, exit_code=1, status="failed"), said(words), DONE)

    assert (result.answer, result.error, result.fatal) == (words, None, None)


def test_zeros_are_no_usage(tmp_path: Path) -> None:
    """A provider that reports no usage: Codex prints zeros."""
    zeros = dict.fromkeys(TOKENS, 0)

    assert read(tmp_path, said("hi"), {"type": "turn.completed", "usage": zeros}).usage is None


def test_versions_without_cache_writes(tmp_path: Path) -> None:
    tokens = {"input_tokens": 147, "cached_input_tokens": 40, "output_tokens": 20}

    usage = read(tmp_path, said("hi"), {"type": "turn.completed", "usage": tokens}).usage

    assert usage == Usage(input_tokens=107, output_tokens=20, cache_read_tokens=40, cache_creation_tokens=None)


@pytest.mark.parametrize(
    "tokens", [{"input_tokens": 10, "cached_input_tokens": 40}, {"input_tokens": "10"}, [], None, {"input_tokens": True}]
)
def test_numbers_that_cannot_be(tokens: Any, tmp_path: Path) -> None:
    usage = read(tmp_path, said("hi"), {"type": "turn.completed", "usage": tokens}).usage

    assert usage is None or usage.input_tokens is None


def test_the_model_and_the_tokens_of_a_stopped_run_stand_in_the_rollout(tmp_path: Path) -> None:
    rollout(tmp_path, turn("gpt-5"), count(None), count(TOKENS), turn("gpt-5.5"))

    result = read(tmp_path, STARTED, cause="timeout", exit_code=1)

    assert (result.timed_out, result.finished, result.usage, result.model) == (True, False, DISJOINT, "gpt-5.5")


def test_sub_agents_tokens_count_once(tmp_path: Path) -> None:
    rollout(tmp_path, turn("gpt-5.5"), count(TOKENS), response("r-1", TOKENS))
    rollout(tmp_path, turn("gpt-5-mini"), response("r-1", TOKENS), response("r-2", TOKENS), thread="fork")

    result = read(tmp_path, STARTED, said("hi"), DONE)

    assert result.model == "gpt-5.5"
    assert result.usage == Usage(input_tokens=200, output_tokens=40, cache_read_tokens=80, cache_creation_tokens=14)


@pytest.mark.parametrize(
    ("roots", "place"), [("", "/h/.codex/skills/"), ("### Skill roots\n- `r0` = `/h/.codex/skills`\n", "r0/")]
)
def test_the_skills_that_the_model_was_told_of(roots: str, place: str, tmp_path: Path) -> None:
    text = (
        f"<skills_instructions>\n## Skills\nA skill is… (file: SKILL.md)\n{roots}### Available skills\n"
        f"- a-b: Does: (file: x). Or not. (file: {place}a-b/SKILL.md)\n- mine:greet: Greets (file: {place}greet/SKILL.md)\n"
        f"- bare (file: {place}bare/SKILL.md)\n### How to use skills\n- No: skill (file: x/SKILL.md)\n</skills_instructions>"
    )
    blocks = [{"type": "input_text", "text": "<permissions>"}, {"type": "input_text", "text": text}]
    told = {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": blocks}}
    forged = {
        "type": "response_item",
        "payload": {"type": "message", "role": "assistant", "content": [{"text": text.replace("a-b", "c")}]},
    }
    rollout(tmp_path, told, forged, told)

    assert read(tmp_path, STARTED, said("hi"), DONE).skills_reported == ("a-b", "mine:greet", "bare")


def test_no_list_of_skills(tmp_path: Path) -> None:
    rollout(tmp_path, turn("gpt-5.5"), {"type": "response_item", "payload": {"role": "developer", "content": "x"}})

    assert read(tmp_path, STARTED, said("hi"), DONE).skills_reported is None


def test_a_damaged_rollout_is_nothing(tmp_path: Path) -> None:
    rollout(tmp_path, {"type": "turn_context"}, {"type": "event_msg", "payload": []}, {"type": "token_usage_record"})

    result = read(tmp_path, STARTED, said("hi"), DONE)

    assert (result.model, result.usage) == (None, DISJOINT)


def test_the_judges_model_stands_in_its_rollout(tmp_path: Path) -> None:
    rollout(tmp_path, turn("gpt-5.5"), place="judge/.codex")
    raw = output(tmp_path / "out", STARTED, said('{"passed": true}'), DONE)
    schema = str(tmp_path / "judge/.codex" / SCHEMA_NAME)

    reply = Codex().read_judge(RawOutput(**{**_fields(raw), "argv": ("codex", "--output-schema", schema)}))

    assert (reply.model, reply.structured, reply.error) == ("gpt-5.5", {"passed": True}, None)


def _fields(raw: RawOutput) -> dict[str, Any]:
    return {name: getattr(raw, name) for name in RawOutput.__dataclass_fields__}


@pytest.mark.parametrize("text", ["It passed.", "[1]", '{"passed": tr', "\ud800"])
def test_a_judge_that_keeps_to_no_schema(text: str, tmp_path: Path) -> None:
    reply = Codex().read_judge(output(tmp_path / "out", said(text), DONE))

    assert (reply.structured, reply.error) == (None, None)
    assert reply.text


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("/bin/bash -lc 'echo hi'", "echo hi"),
        ("/bin/zsh -c \"printf 'a b'\"", "printf 'a b'"),
        ("bash -lc ls", "ls"),
        ("/bin/bash -lc 'a' b", "/bin/bash -lc 'a' b"),
        ("python -c 'print(1)'", "python -c 'print(1)'"),
        ("/bin/bash -lc 'unbalanced", "/bin/bash -lc 'unbalanced"),
        ("git status", "git status"),
        ("", ""),
    ],
)
def test_the_agents_own_command(line: str, script: str) -> None:
    assert script_of(line) == script


@pytest.mark.parametrize(
    ("line", "printed", "used"),
    [
        ("cat /h/.codex/skills/greet-pirate/SKILL.md", BODY, True),
        ("sed -n 1,5p skills/greet-pirate/SKILL.md", "---\nname: greet-pirate\n---\n# How to greet\n", True),
        ("cd greet-pirate && cat -n SKILL.md", "".join(f" {n}\t{line}\n" for n, line in enumerate(BODY.split("\n"))), True),
        ("cat $D/*", BODY, True),
        ("cat skills/greet-pirate/SKILL.md", "cat: No such file or directory", False),
        ("ls skills/greet-pirate", "SKILL.md", False),
        ("grep -rn ARRR skills", "skills/greet-pirate/SKILL.md:5:Say ARRR-7731 loudly.", False),
        ("cat skills/other/SKILL.md", "# How to greet\nSay hello.", False),
    ],
)
def test_a_skill_is_used_when_its_text_was_printed(line: str, printed: str, used: bool, tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skill", files={"SKILL.md": BODY})

    result = read(tmp_path, command(f"/bin/bash -lc {json.dumps(line)}", printed), DONE, plan={"skills": (skill,)})

    assert result.skills_used == (("greet-pirate",) if used else ())


@pytest.mark.parametrize(
    ("prompt", "used"),
    [
        ("$greet-pirate for Bob", True),
        ("Please use $greet-pirate.", True),
        ("echo $greet-pirates", False),
        ("It costs $$greet-pirate", False),
        ("greet-pirate", False),
    ],
)
def test_a_skill_that_the_prompt_mentions_is_used(prompt: str, used: bool, tmp_path: Path) -> None:
    plan = {"skills": (make_skill(tmp_path / "skill"),), "prompt": prompt}

    assert read(tmp_path, said("ok"), DONE, plan=plan).skills_used == (("greet-pirate",) if used else ())


def test_calls_of_every_kind(tmp_path: Path) -> None:
    mcp = {"id": "1", "type": "mcp_tool_call", "server": "my server", "tool": "do-it", "arguments": {"a": 1}}
    blocks = [{"type": "text", "text": "one"}, {"type": "image", "data": "…"}]
    plan = {"id": "3", "type": "todo_list"}
    events = (
        item({**mcp, "status": "in_progress", "result": None}, "started"),
        item({**mcp, "status": "completed", "result": {"content": blocks, "structured_content": None}}),
        item({**mcp, "id": "2", "status": "failed", "error": {"message": "no such thing"}}),
        item({**plan, "items": [{"text": "look", "completed": False}]}, "started"),
        item({**plan, "items": [{"text": "look", "completed": True}]}, "updated"),
        item({**plan, "items": [{"text": "look", "completed": True}]}),
        item({"id": "4", "type": "web_search", "query": "weather", "action": {"type": "search"}}),
        item(
            {
                "id": "5",
                "type": "collab_tool_call",
                "tool": "spawn_agent",
                "prompt": "go",
                "agents_states": {"x": {"status": "running"}},
            }
        ),
        item({"id": "6", "type": "image_view", "path": "/w/a.png"}),
        command("sleep 1", exit_code=None, status="declined"),
        said("done"),
        DONE,
    )

    turns = read(tmp_path, *events).transcript

    assert [(entry.tool_name, entry.tool_input) for entry in turns if entry.role == "tool_use"] == [
        ("mcp__my server__do-it", {"a": 1}),
        ("mcp__my server__do-it", {"a": 1}),
        ("todo_list", {"items": [{"text": "look", "completed": False}]}),
        ("web_search", {"query": "weather", "action": {"type": "search"}}),
        ("spawn_agent", {"prompt": "go"}),
        ("image_view", {"path": "/w/a.png"}),
        ("command_execution", {"command": "sleep 1"}),
    ]
    assert [entry.tool_output for entry in turns if entry.role == "tool_result"] == [
        *("one\n[image]", "error: no such thing", "[x] look", "", '{"x": {"status": "running"}}', "", "[declined]"),
    ]


@pytest.mark.parametrize(
    ("message", "fatal", "transient"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: req-1", None, True),
        ("We're currently experiencing high demand, which may cause temporary errors.", None, True),
        ("Selected model is at capacity. Please try a different model.", None, True),
        ("Connection failed: error sending request", None, True),
        ("unexpected status 529 : overloaded, url: https://x/", None, True),
        ("unexpected status 403 Forbidden: Country not supported, url: http://x/", None, False),
        ("Codex ran out of room in the model's context window. Start a new thread.", None, False),
        (
            "You’ve hit your usage limit. Upgrade to Pro (https://x) or try again at Jan 1st, 2030 12:00 AM.",
            "Jan 1st, 2030",
            False,
        ),
        ("You've hit your usage limit for gpt-5.5. Switch to another model now,", "usage limit", False),
        ("You've reached your workspace credit limit", "usage limit", False),
        ("Your workspace is out of credits. Add credits to continue.", "no credit", False),
        ("To use Codex with your ChatGPT plan, upgrade to Plus: https://x.", "does not include Codex", False),
        (
            "Your access token could not be refreshed because your refresh token was already used. Please log out…",
            "codex login",
            False,
        ),
        ("error sending request for url (https://auth.openai.com/oauth/token)", "codex login", False),
        ("The model `nope` does not exist or you do not have access to it.", "codex:MODEL", False),
        ('{"detail":"The \'x\' model is not supported when using Codex with a ChatGPT account."}', "codex:MODEL", False),
        ("stream disconnected before completion: The model produced an invalid reply, not found", None, True),
        ('{"error": {"message": "bad tool"}', None, False),
        ("", None, False),
    ],
)
def test_what_a_failed_turn_means(message: str, fatal: str | None, transient: bool) -> None:
    failure = turn_failure(message)

    assert failure.transient is transient
    assert (failure.fatal is None) if fatal is None else fatal in (failure.fatal or "")
    assert failure.error
    assert "\n" not in failure.error


def test_a_server_that_did_not_start_is_named(tmp_path: Path) -> None:
    types = "[codex_rmcp_client::tool_list_changes::ToolListChanges<codex_rmcp_client::http::Client>]"
    reason = f'echo: Send message error Transport {types} error: HTTP 401: {{"error": "unauthorized"}}'
    stderr = f"Error: thread/start failed: Fatal error: required MCP servers failed to initialize: {reason} (code -32603)\n"

    result = read(tmp_path, exit_code=1, stderr=stderr)

    assert result.error == (
        'mcp server did not start: echo: Send message error Transport error: HTTP 401: {"error": "unauthorized"} (code -32603): '
        "give it a token in `headers`: an attempt cannot log in by OAuth"
    )
    assert result.fatal is None


def test_what_codex_says_of_its_configuration(tmp_path: Path) -> None:
    noise = "WARNING: proceeding, even though\n2026-11-30T21:52:12.35Z ERROR codex_core::x: y\n"

    result = read(
        tmp_path, exit_code=1, stderr=f"{noise}Error loading config.toml:\n/h/config.toml:27:1: unknown field `x`\n   |\n"
    )

    assert result.error == "exit code 1: Error loading config.toml: /h/config.toml:27:1: unknown field `x` |"


def test_too_much_output(tmp_path: Path) -> None:
    result = read(tmp_path, said("x" * 1000), cause="output", exit_code=-2)

    assert (result.finished, result.error) == (False, "Codex printed too much (0 MB on standard output alone)")


def test_odd_bytes(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three\x1b[31m"
    event = json.dumps(said(text), ensure_ascii=False).encode()

    result = read(
        tmp_path, b"\xff\xfe noise\n", b'{"type": 7}\n', b"[]\n", item({"type": None}), event + b"\n", DONE, b'{"type":"it'
    )

    assert (result.answer, result.finished) == (text, True)
    assert [entry.role for entry in result.transcript] == ["assistant"]


def test_a_long_transcript_is_cut_and_says_so(tmp_path: Path) -> None:
    raw = output(tmp_path / "out", command("cat big", "x" * 5000), said("done"), DONE)

    result = read_agent(raw, make_plan(tmp_path), Workspace.at(tmp_path / "attempt"), bounds=Bounds(text=100))

    assert result.transcript_truncated
    assert "characters cut" in (result.transcript[1].tool_output or "")
