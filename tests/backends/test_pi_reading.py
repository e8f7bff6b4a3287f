"""Streams of pi that nobody recorded: odd, broken and hostile ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, output

from pytest_caliper.backends.pi import Pi
from pytest_caliper.backends.pi_errors import reported_failure, silent_failure
from pytest_caliper.contracts import HarnessResult, Workspace
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

COUNTED = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 0}
END = {"type": "agent_end", "willRetry": False}
SETTLED = {"type": "agent_settled", "aborted": False}
DONE = (END, SETTLED)


def message(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message_end", "message": {"role": role, "content": content, **fields}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(name: str, call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def says(*content: Any, stop: str = "stop", **fields: Any) -> dict[str, Any]:
    return message("assistant", list(content), **{"stopReason": stop, "usage": COUNTED, "model": "m", "provider": "p", **fields})


def result(call_id: str = "c1", words: str = "out", **fields: Any) -> dict[str, Any]:
    return message("toolResult", [text(words)], toolCallId=call_id, **fields)


def system(skills: str = "", tools: tuple[str, ...] = ()) -> dict[str, Any]:
    return message("system", "", sections={"preamble": "x", "skills": skills}, toolsAdded=[{"name": name} for name in tools])


def read(
    root: Path, *events: Any, plan: dict[str, Any] | None = None, version: str | None = "1.6.0", **raw: Any
) -> HarnessResult:
    given = output(root / "out", *events, **raw)
    return Pi().read_agent(replace(given, cli_version=version), make_plan(root, **(plan or {})), Workspace.at(root / "attempt"))


def test_an_answer_in_several_texts(tmp_path: Path) -> None:
    done = read(tmp_path, says({"type": "thinking", "thinking": "hm"}, text("one\u2028"), text("two")), *DONE)

    assert (done.finished, done.answer) == (True, "one\u2028\ntwo")
    assert [turn.content for turn in done.transcript] == ["one\u2028", "two"]


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ((says(text("hi")),), "without an agent_settled event"),
        ((says(text("hi")), END), "without an agent_settled event"),
        ((says(text("hi")), END, {"type": "agent_settled", "aborted": True}), "without a final answer (last message: stop)"),
        ((says(text("hi"), stop="toolUse"), *DONE), "without a final answer (last message: toolUse)"),
        ((says(text("hi"), stop="aborted"), *DONE), "without a final answer (last message: aborted)"),
        ((says(text("hi"), stop="pending"), *DONE), "without a final answer"),
        (DONE, "without a final answer (last message: none)"),
        ((), "without an agent_settled event"),
        ((b"\xff\xfe\x00\n", b"[1]\n", b'"x"\n', b'{"type": "message_end"'), "without an agent_settled event"),
        ((says(text("hi"), stop="error"), *DONE), "pi reported an error without a message"),
    ],
)
def test_what_is_no_finished_answer(events: tuple[Any, ...], error: str, tmp_path: Path) -> None:
    done = read(tmp_path, *events)

    assert (done.finished, done.answer) == (False, "")
    assert error in str(done.error)


@pytest.mark.parametrize(
    ("version", "exit_code", "events", "finished"),
    [
        ("0.74.2", 0, (END,), True),
        ("0.80.3", 0, (END,), True),
        ("0.74.2", 1, (END,), False),
        ("0.74.2", 0, (), False),
        ("0.74.2", 0, (END, {"type": "auto_retry_start", "errorMessage": "503"}), False),
        ("0.80.4", 0, (END,), False),
        (None, 0, (END,), False),
        ("nightly", 0, (END,), False),
    ],
)
def test_the_end_of_an_old_stream(
    version: str | None, exit_code: int, events: tuple[Any, ...], finished: bool, tmp_path: Path
) -> None:
    done = read(tmp_path, says(text("hi")), *events, version=version, exit_code=exit_code)

    assert done.finished is finished


def test_a_finished_answer_stands_though_the_process_had_to_be_stopped(tmp_path: Path) -> None:
    done = read(tmp_path, says(text("hi")), *DONE, cause="timeout", exit_code=-2)

    assert (done.finished, done.answer, done.timed_out, done.error) == (True, "hi", False, None)


def test_a_time_out_while_pi_waits_to_try_again(tmp_path: Path) -> None:
    retry = {"type": "auto_retry_start", "errorMessage": "429: slow down"}

    done = read(tmp_path, says(stop="error", errorMessage="429: slow down"), retry, cause="timeout", exit_code=-2)

    assert done.timed_out
    assert (done.error, done.fatal, done.transient) == ("still retrying when it ended: 429: slow down", None, True)


def test_a_time_out_after_a_recovered_error_is_no_error(tmp_path: Path) -> None:
    retry = {"type": "auto_retry_start", "errorMessage": "429: slow down"}

    done = read(tmp_path, retry, {"type": "agent_start"}, says(call("bash"), stop="toolUse"), cause="timeout", exit_code=-2)

    assert (done.timed_out, done.error) == (True, None)


def test_too_much_output(tmp_path: Path) -> None:
    assert "pi printed too much" in str(read(tmp_path, says(text("hi")), cause="output").error)


def test_the_agents_words_never_decide(tmp_path: Path) -> None:
    words = "401: No API key found. Error: Unknown option: --x. usage limit reached"

    done = read(tmp_path, says(text(words)), *DONE, stderr="Warning: 429\nNo API key found for x.\n")

    assert (done.answer, done.error, done.fatal) == (words, None, None)


def test_usage_is_summed_and_failed_tries_left_out(tmp_path: Path) -> None:
    failed = says(text("x"), stop="error", errorMessage="503: x")
    done = read(tmp_path, says(call("bash"), stop="toolUse"), result(), failed, says(text("hi")), *DONE)

    assert done.usage == Usage(input_tokens=2, output_tokens=4, cache_read_tokens=6, cache_creation_tokens=None)


def test_a_count_of_zero_is_one_where_the_protocol_counts(tmp_path: Path) -> None:
    done = read(tmp_path, says(text("hi"), api="anthropic-messages"), *DONE)

    assert done.usage == Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_creation_tokens=0)


def test_usage_that_nobody_counted_is_unknown(tmp_path: Path) -> None:
    zeros = dict.fromkeys(COUNTED, 0)

    for usage in (zeros, None, {}, "many", {"input": -1, "output": "x"}):
        assert read(tmp_path, says(call("bash"), stop="toolUse"), result(), says(text("hi"), usage=usage), *DONE).usage is None
    aborted = says(stop="aborted", usage=zeros)
    assert read(tmp_path, says(call("bash"), stop="toolUse"), result(), aborted, *DONE).usage is not None


def test_what_compacting_took_counts(tmp_path: Path) -> None:
    compacted = {"type": "compaction_end", "reason": "threshold", "result": {"summary": "s", "usage": COUNTED}}

    usage = read(tmp_path, compacted, says(text("hi")), *DONE).usage

    assert usage is not None
    assert usage.input_tokens == 2


def test_the_model_that_the_provider_names_is_the_concrete_one(tmp_path: Path) -> None:
    assert read(tmp_path, says(text("hi"), responseModel="m-2026"), *DONE).model == "p/m-2026"


def test_parallel_calls_stand_with_their_results(tmp_path: Path) -> None:
    done = read(
        tmp_path,
        says(text("go"), call("bash", "a", command="x"), call("read", "b", path="y"), stop="toolUse"),
        {"type": "tool_execution_end", "toolCallId": "b", "result": {"content": [text("B early")]}, "isError": False},
        result("a", "A"),
        result("b", "B"),
        says(text("hi")),
        *DONE,
    )

    assert [(turn.role, turn.content or turn.tool_output or turn.tool_name) for turn in done.transcript] == [
        ("assistant", "go"),
        ("tool_use", "bash"),
        ("tool_result", "A"),
        ("tool_use", "read"),
        ("tool_result", "B"),
        ("assistant", "hi"),
    ]


def test_a_result_that_only_the_tool_told_of_is_kept(tmp_path: Path) -> None:
    ended = {"type": "tool_execution_end", "toolCallId": "a", "result": {"content": [text("A")]}, "isError": False}

    done = read(tmp_path, says(call("bash", "a"), call("bash", "b"), stop="toolUse"), ended, cause="timeout", exit_code=-2)

    assert [turn.tool_output for turn in done.transcript] == [None, "A", None]


def test_a_calls_with_odd_content(tmp_path: Path) -> None:
    odd = message("toolResult", [{"type": "image", "data": "…"}, 7, {"type": "text"}], toolCallId="c1")
    strange = {"type": "toolCall", "name": "x", "arguments": ["a"]}

    done = read(tmp_path, says(call("read"), strange, 9, stop="toolUse"), odd, message("user", "more"), says(text("hi")), *DONE)

    assert [(turn.role, turn.tool_input, turn.tool_output) for turn in done.transcript[:3]] == [
        ("tool_use", {}, None),
        ("tool_result", None, "[image]\n[text]"),
        ("tool_use", {"input": ["a"]}, None),
    ]
    assert (done.transcript[3].role, done.transcript[3].content) == ("user", "more")


def test_the_echo_of_the_prompt_is_no_turn(tmp_path: Path) -> None:
    done = read(tmp_path, message("user", [text("Do it.")]), says(text("hi")), *DONE, plan={"prompt": "Do it.\n"})

    assert [turn.role for turn in done.transcript] == ["assistant"]


LISTED = "<available_skills>\n<skill>\n<name>{}</name>\n<description>d</description>\n<location>{}</location>\n</skill>\n</available_skills>"


@pytest.mark.parametrize(
    ("tool", "used"),
    [
        (call("read", path="{place}"), True),
        (call("read", path="@{place}"), True),
        (call("read", path="~/.pi/agent/skills/greet-pirate/SKILL.md"), True),
        (call("read", path="../home/.pi/agent/skills/greet-pirate/SKILL.md", offset=1), True),
        (call("bash", command="cat {place} | head"), True),
        (call("bash", command="cat ~/.pi/agent/skills/greet-pirate/SKILL.md"), True),
        (call("read", path="docs/skills/greet-pirate/SKILL.md"), False),
        (call("read", path="SKILL.md"), False),
        (call("read", path="\0"), False),
        (call("read", path=7), False),
        (call("write", path="{place}", content="x"), False),
    ],
)
def test_how_a_skill_is_used(tool: dict[str, Any], used: bool, tmp_path: Path) -> None:
    place = str(tmp_path / "attempt/home/.pi/agent/skills/greet-pirate/SKILL.md")
    arguments = {
        name: value.replace("{place}", place) if isinstance(value, str) else value for name, value in tool["arguments"].items()
    }
    turns = (says({**tool, "arguments": arguments}, stop="toolUse"), result(), says(text("hi")), *DONE)
    skill = make_skill(tmp_path / "src")

    new = read(tmp_path, system(LISTED.format("greet-pirate", place)), *turns)
    old = read(tmp_path, *turns, plan={"skills": (skill,)})

    assert new.skills_used == (("greet-pirate",) if used else ())
    assert (new.skills_reported, old.skills_reported) == (("greet-pirate",), None)
    assert old.skills_used == new.skills_used


def test_a_skill_that_could_not_be_read_was_not_used(tmp_path: Path) -> None:
    events = (system(LISTED.format("a", "/x/SKILL.md")), says(call("read", path="/x/SKILL.md"), stop="toolUse"))

    assert read(tmp_path, *events, result(isError=True), says(text("hi")), *DONE).skills_used == ()


def test_a_skill_that_hides_from_the_model_is_not_missed(tmp_path: Path) -> None:
    hidden = make_skill(tmp_path / "a", files={"SKILL.md": "---\nname: greet-pirate\ndisable-model-invocation: true\n---\nx"})
    plain = make_skill(tmp_path / "b", files={"SKILL.md": "---\nname: greet-pirate\n---\ndisable-model-invocation: true"})

    assert read(tmp_path, system(), says(text("hi")), *DONE, plan={"skills": (hidden,)}).skills_reported is None
    assert read(tmp_path, system(), says(text("hi")), *DONE, plan={"skills": (plain,)}).skills_reported == ()


def test_mcp_calls_have_the_names_of_the_spec(tmp_path: Path) -> None:
    servers = tuple(McpServer(name=name, transport="stdio", line=1, command="x") for name in ("a", "a__b", "my-web"))
    names = ("mcp__my_web__get_it", "mcp__a__b__c", "mcp__a__z", "mcp__else__t", "bash")
    turns = [says(*(call(name, str(n)) for n, name in enumerate(names)), stop="toolUse")]
    detailed = result("0", details={"server": "my-web", "tool": "get-it"})

    done = read(tmp_path, system(tools=names), *turns, detailed, says(text("hi")), *DONE, plan={"mcp": servers})

    assert [turn.tool_name for turn in done.transcript if turn.role == "tool_use"] == [
        "mcp__my-web__get-it",
        "mcp__a__b__c",
        "mcp__a__z",
        "mcp__else__t",
        "bash",
    ]
    assert done.mcp_reported == ("a:connected", "a__b:connected", "my-web:connected", "else:connected")
    assert done.error is None


def test_a_server_of_resources_alone_is_no_fault(tmp_path: Path) -> None:
    server = McpServer(name="docs", transport="stdio", line=1, command="x")

    done = read(tmp_path, system(tools=("list_mcp_resources",)), says(text("hi")), *DONE, plan={"mcp": (server,)})

    assert (done.error, done.mcp_reported) == (None, ("docs:no tools",))


@pytest.mark.parametrize(
    ("said", "fatal", "transient"),
    [
        ("402: {}", "add credit", False),
        ('400 {"message":"Your credit balance is too low"}', "add credit", False),
        ("You have hit your ChatGPT usage limit (plus plan). Try again in ~20 min.", "add credit", False),
        ('{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}', "/login", False),
        ("403 forbidden", "/login", False),
        ("OAuth refresh failed for anthropic", "/login", False),
        ('404: {"message":"no such model"}', "pi:PROVIDER/MODEL", False),
        ("400: context too long", None, False),
        ("4011 things", None, False),
        ("408 x", None, True),
        ("529 Overloaded", None, True),
        ("fetch failed", None, True),
        ("getaddrinfo EAI_AGAIN api.example", None, True),
        ("The model refused to complete the request", None, False),
    ],
)
def test_what_an_error_means(said: str, fatal: str | None, transient: bool) -> None:
    failure = reported_failure(said)

    assert (failure.fatal is None) is (fatal is None)
    assert (fatal or "") in (failure.fatal or "")
    assert failure.transient is transient


def test_pi_itself_knows_what_may_pass() -> None:
    assert not reported_failure("odd words").transient
    assert reported_failure("odd words", retried=True).transient
    assert not reported_failure("401: odd", retried=True).transient


@pytest.mark.parametrize(
    ("exit_code", "stderr", "error", "fatal"),
    [
        (3, "", "without an agent_settled event (exit code 3)", None),
        (1, "file:///x/cli.js:2\n\nSyntaxError: no export 'enableCompileCache'\n", "exit code 1: file", "Node 22.19"),
        (1, "Warning: x\nError: Session broken\n  at y\n", "exit code 1: Session broken", None),
        (1, '\x1b[31mError: Model "a/b" not found.\x1b[0m\n', "exit code 1: ", "pi:PROVIDER/MODEL"),
    ],
)
def test_a_run_without_an_end(exit_code: int, stderr: str, error: str, fatal: str | None) -> None:
    failure = silent_failure(exit_code, stderr)

    assert error in failure.error
    assert "\x1b" not in failure.error
    assert (failure.fatal is None) is (fatal is None)
    assert (fatal or "") in (failure.fatal or "")
