"""Streams of Gemini CLI that no recording holds: hostile, cut, huge, or of other versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, output

from pytest_caliper.backends.gemini_reading import read_agent, read_judge
from pytest_caliper.backends.gemini_stream import mcp_name
from pytest_caliper.backends.transcript import Bounds
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

INIT = {"type": "init", "model": "m-1"}
STATS = {"total_tokens": 167, "input_tokens": 147, "output_tokens": 20, "cached": 40, "models": {"m-1": {"output_tokens": 20}}}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def tool_use(call_id: str, tool: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "tool_use", "tool_name": tool, "tool_id": call_id, "parameters": parameters}


def tool_result(call_id: str, text: str = "", status: str = "success", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_id": call_id, "status": status, "output": text, **fields}


def ended(status: str = "success", **fields: Any) -> dict[str, Any]:
    return {"type": "result", "status": status, "stats": STATS, **fields}


def failure(message: str, kind: str = "unknown") -> dict[str, Any]:
    return ended("error", error={"type": kind, "message": message})


def servers(*names: str) -> tuple[McpServer, ...]:
    return tuple(McpServer(name=name, transport="stdio", line=1, command=name) for name in names)


def test_garbage_between_events_is_passed_over(tmp_path: Path) -> None:
    raw = output(
        tmp_path / "o", b"noise\n", b"\xff\xfe\n", INIT, b"[1]\n", b"[" * 5000 + b"\n", {"type": "new"}, said("a"), ended()
    )

    result = read_agent(raw, make_plan(tmp_path))

    assert (result.answer, result.finished, result.error) == ("a", True, None)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "init", "model": 5},
        {"type": "message", "role": "assistant", "content": None},
        {"type": "tool_use"},
        {"type": "tool_use", "tool_name": "activate_skill", "parameters": {"name": 1}},
        {"type": "tool_result", "output": 5},
        {"type": "tool_result", "error": "text"},
        {"type": "error", "severity": "error", "message": 1},
        {"type": "result", "status": "error", "error": "text", "stats": 1},
        {"type": "result", "stats": {"models": [], "total_tokens": True, "input_tokens": -1}},
        {},
    ],
)
def test_events_of_another_shape_are_no_crash(event: dict[str, Any], tmp_path: Path) -> None:
    raw = output(tmp_path / "o", INIT, event)

    assert not read_agent(raw, make_plan(tmp_path)).finished
    assert read_judge(raw).error


def test_the_answer_is_what_was_said_after_the_last_call(tmp_path: Path) -> None:
    raw = output(
        tmp_path / "o",
        INIT,
        said("I "),
        said("look."),
        tool_use("a", "x"),
        tool_result("a", "1"),
        said("D"),
        said("one"),
        ended(),
    )

    result = read_agent(raw, make_plan(tmp_path))

    assert result.answer == "Done"
    assert [(turn.role, turn.content) for turn in result.transcript if turn.content] == [
        ("assistant", "I look."),
        ("assistant", "Done"),
    ]


def test_line_separators_stay_in_the_answer(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three\x0bfour"

    assert read_agent(output(tmp_path / "o", INIT, said(text), ended()), make_plan(tmp_path)).answer == text


def test_a_call_that_failed_has_its_reason_as_output(tmp_path: Path) -> None:
    events = (
        tool_use("a", "activate_skill", name="nope"),
        tool_result("a", "", "error", error={"type": "x", "message": "no such skill"}),
    )

    result = read_agent(output(tmp_path / "o", INIT, *events, said("ok"), ended()), make_plan(tmp_path))

    assert result.skills_used == ()
    assert [turn.tool_output for turn in result.transcript if turn.role == "tool_result"] == ["no such skill"]


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("mcp_echo_echo", "mcp__echo__echo"),
        ("mcp_my_db_read_rows", "mcp__my_db__read_rows"),
        ("mcp_my_other", "mcp__my__other"),
        ("mcp_unknown_tool", "mcp_unknown_tool"),
        ("mcp_echo_", "mcp_echo_"),
        ("echo_echo", "echo_echo"),
        ("run_shell_command", "run_shell_command"),
    ],
)
def test_mcp_tools_are_spelled_as_everywhere(name: str, spelled: str) -> None:
    assert mcp_name(name, ("my", "my_db", "echo")) == spelled


@pytest.mark.parametrize(
    ("stats", "usage"),
    [
        (STATS, Usage(input_tokens=107, output_tokens=20, cache_read_tokens=40)),
        ({**STATS, "total_tokens": 200}, Usage(input_tokens=107, output_tokens=53, cache_read_tokens=40)),  # 33 of thoughts
        ({"input_tokens": 10, "output_tokens": 2}, Usage(input_tokens=10, output_tokens=2)),
        ({"total_tokens": 0, "input_tokens": 0, "output_tokens": 0, "cached": 0}, None),
        ({}, None),
    ],
)
def test_usage(stats: dict[str, Any], usage: Usage | None, tmp_path: Path) -> None:
    assert read_agent(output(tmp_path / "o", INIT, said("a"), ended(stats=stats)), make_plan(tmp_path)).usage == usage


@pytest.mark.parametrize(
    ("asked", "models", "model"),
    [
        ("m-1", {"m-1": {}, "m-2": {"output_tokens": 9}}, "m-1"),
        ("auto", {"m-1": {"output_tokens": 1}, "m-2": {"output_tokens": 9}}, "m-2"),
        ("m-1", {}, "m-1"),
    ],
)
def test_the_concrete_model(asked: str, models: dict[str, Any], model: str, tmp_path: Path) -> None:
    """An alias, or a model that another stood in for, is told by the statistics."""
    raw = output(tmp_path / "o", {"type": "init", "model": asked}, said("a"), ended(stats={"models": models}))

    assert read_agent(raw, make_plan(tmp_path)).model == model
    assert read_judge(raw).model == model


REPORT = "Error when talking to Gemini API Full report available at: /t m p/x.json {}: words\n    at x\n"


@pytest.mark.parametrize(
    ("message", "code", "stderr", "fatal", "transient"),
    [
        ("[API Error: You have exhausted your daily quota on this model.]\nPlease wait", 173, "", "quota", False),
        ("[API Error: x]", 173, REPORT.format("TerminalQuotaError"), "quota", False),
        ("[API Error: Quota exceeded, limit: 0, model: m]", 173, "", "quota", False),
        ("[API Error: Quota exceeded, limit: 0.5]", 173, "", None, True),
        ("[API Error: No capacity: MODEL_CAPACITY_EXHAUSTED]", 173, REPORT.format("TerminalQuotaError"), None, True),
        ("[API Error: x]", 1, REPORT.format("RetryableQuotaError"), None, True),
        ("[API Error: x]", 1, REPORT.format("_ApiError"), None, False),
        ('[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]', 144, "", "GEMINI_API_KEY", False),
        ('[API Error: {"error":{"code":403,"message":"Permission denied"}}]', 147, "", "GEMINI_API_KEY", False),
        ('[API Error: {"error":{"code":404,"message":"models/x is not found"}}]', 1, "", "gemini:MODEL", False),
        ('[API Error: {"error": broken', 1, "", None, False),
        ("[API Error: exception TypeError: fetch failed sending request]", 1, "", None, True),
        ("The agent wrote 401 Unauthorized and API Error", 54, "", None, False),
    ],
)  # fmt: skip
def test_errors(message: str, code: int, stderr: str, fatal: str | None, transient: bool, tmp_path: Path) -> None:
    raw = output(tmp_path / "o", INIT, said("partial"), failure(message), exit_code=code, stderr=stderr)

    result, reply = read_agent(raw, make_plan(tmp_path)), read_judge(raw)

    assert (result.finished, result.answer, result.transient) == (False, "", transient)
    assert result.error
    assert "\n" not in result.error
    assert fatal in result.fatal if fatal and result.fatal else result.fatal is fatal
    assert (reply.text, reply.error, reply.fatal, reply.transient) == ("", result.error, result.fatal, transient)


def test_a_class_that_the_result_names_counts(tmp_path: Path) -> None:
    raw = output(tmp_path / "o", INIT, failure("[API Error: log in]", "FatalAuthenticationError"), exit_code=41)

    result = read_agent(raw, make_plan(tmp_path))

    assert result.error == "FatalAuthenticationError: log in"
    assert "GEMINI_API_KEY" in (result.fatal or "")


def test_an_empty_reply_is_told_by_the_event_before_the_result(tmp_path: Path) -> None:
    event = {"type": "error", "severity": "error", "message": "The model returned nothing."}

    result = read_agent(output(tmp_path / "o", INIT, event, ended("error")), make_plan(tmp_path))

    assert (result.finished, result.error) == (False, "error: The model returned nothing.")
    assert result.usage is not None


def test_a_warning_in_a_run_that_succeeds_does_not_count(tmp_path: Path) -> None:
    events = (
        {"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"},
        {"type": "error", "severity": "error", "message": "came back"},
    )
    stderr = f"Attempt 1 failed with status 429. Retrying with backoff...\n{REPORT.format('RetryableQuotaError')}"

    result = read_agent(output(tmp_path / "o", INIT, *events, said("a"), ended(), stderr=stderr), make_plan(tmp_path))

    assert (result.finished, result.error, result.transient) == (True, None, False)


@pytest.mark.parametrize(
    ("called", "stderr", "error"),
    [
        (
            (),
            "MCP issues detected. Run /mcp list for status.\n",
            "an mcp server failed, and Gemini CLI does not say which: db, web",
        ),
        (("mcp_db_read",), "[INFO] MCP issues detected. Run /mcp list for status.\n", "does not say which: web: try"),
        (("mcp_db_read", "mcp_web_get"), "MCP issues detected. Run /mcp list for status.\n", None),
        ((), "the agent said: MCP issues detected.\n", None),
    ],
)
def test_a_server_that_failed(called: tuple[str, ...], stderr: str, error: str | None, tmp_path: Path) -> None:
    calls = [event for name in called for event in (tool_use(name, name), tool_result(name))]
    raw = output(tmp_path / "o", INIT, *calls, said("a"), ended(), stderr=stderr)

    result = read_agent(raw, make_plan(tmp_path, mcp=servers("db", "web")))

    assert error in (result.error or "") if error else result.error is None
    assert read_agent(raw, make_plan(tmp_path)).error is None


@pytest.mark.parametrize(
    ("raw", "error", "timed_out"),
    [
        ({"cause": "timeout", "exit_code": 0}, None, True),
        ({"cause": "output", "exit_code": -9}, "printed too much", False),
        ({"exit_code": 0}, "without a result event", False),
        ({"exit_code": -9}, "exit code -9: the stream ended without a result event", False),
        ({"exit_code": 1, "stderr": "YOLO mode is enabled. All\nWarning: x\nboom\n    at y"}, "exit code 1: boom", False),
        ({"exit_code": 247, "stderr": "words"}, "error (HTTP 503): words", False),
    ],
)
def test_a_run_without_a_result(raw: dict[str, Any], error: str | None, timed_out: bool, tmp_path: Path) -> None:
    read = output(tmp_path / "o", INIT, said("partial"), **raw)

    result = read_agent(read, make_plan(tmp_path))

    assert (result.finished, result.answer, result.timed_out) == (False, "", timed_out)
    assert error in (result.error or "") if error else result.error is None
    assert (error or "gave no answer within 2 s") in (read_judge(read).error or "")


def test_an_option_that_this_version_lacks_is_fatal(tmp_path: Path) -> None:
    raw = output(tmp_path / "o", exit_code=1, stderr="Options:\n  --x\n\nUnknown argument: allowed-mcp-server-names\n")

    assert "npm install -g @google/gemini-cli" in (read_agent(raw, make_plan(tmp_path)).fatal or "")


def test_long_texts_are_cut_and_marked(tmp_path: Path) -> None:
    raw = output(
        tmp_path / "o", INIT, tool_use("a", "w", content="x" * 5000), tool_result("a", "y" * 50), said("z" * 5000), ended()
    )

    result = read_agent(raw, make_plan(tmp_path), bounds=Bounds(text=1000, total=1000, late=10))

    call, returned, last = result.transcript
    assert "[… 4000 characters cut …]" in (call.tool_input or {})["content"]
    assert "[… 40 characters cut …]" in (returned.tool_output or "")
    assert "[… 4990 characters cut …]" in last.content
    assert result.transcript_truncated
    assert result.answer == "z" * 5000


def test_the_document_of_the_other_format(tmp_path: Path) -> None:
    good = output(tmp_path / "a", {"response": "yes", "stats": {"models": {"m-2": {}}}})
    bad = output(tmp_path / "b", {"error": {"type": "FatalAuthenticationError", "message": "log in", "code": 41}})
    odd = output(tmp_path / "c", {"response": None})

    assert (read_judge(good).text, read_judge(good).model, read_judge(good).error) == ("yes", "m-2", None)
    assert "GEMINI_API_KEY" in (read_judge(bad).fatal or "")
    assert read_judge(odd).error == "the document holds no response"
