"""Streams of opencode that no recording holds: hostile, cut, huge, or of other versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, output

from pytest_caliper.backends.opencode_reading import read_agent, read_judge
from pytest_caliper.backends.opencode_stream import mcp_name
from pytest_caliper.backends.transcript import Bounds
from pytest_caliper.contracts import RawOutput
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

START = {"type": "step_start", "timestamp": 1_796_075_617_000, "part": {"type": "step-start"}}
TOKENS = {"input": 107, "output": 20, "reasoning": 0, "cache": {"read": 40, "write": 0}}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "part": {"type": "text", "text": text}}


def tool(called: str, output: str = "", *, error: str | None = None, **arguments: Any) -> dict[str, Any]:
    ending = {"status": "completed", "output": output} if error is None else {"status": "error", "error": error}
    return {"type": "tool_use", "part": {"tool": called, "callID": f"id-{called}", "state": {"input": arguments, **ending}}}


def ended(reason: str = "stop", **tokens: Any) -> dict[str, Any]:
    return {"type": "step_finish", "part": {"reason": reason, "tokens": {**TOKENS, **tokens}}}


def error(name: str = "APIError", **data: Any) -> dict[str, Any]:
    return {"type": "error", "timestamp": 1_796_075_618_000, "error": {"name": name, "data": data}}


def entry(level: str, time: str = "2026-11-30T21:53:37.685Z", **fields: str) -> str:
    return f"timestamp={time} level={level} run=a80f5826 " + " ".join(f"{name}={value}" for name, value in fields.items()) + "\n"


def written(path: Path, *events: Any, **fields: Any) -> RawOutput:
    return replace(output(path, *events, **fields), argv=("opencode", "run", "--model", "p/m", "--title", "t"))


def test_garbage_between_events_is_passed_over(tmp_path: Path) -> None:
    raw = written(tmp_path / "o", b"noise\n", b"\xff\xfe\n", START, b"[1]\n", {"type": "new"}, said("a"), ended())

    result = read_agent(raw, make_plan(tmp_path))

    assert (result.answer, result.finished, result.error, result.model) == ("a", True, None, "p/m")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "text", "part": "odd"},
        {"type": "text", "part": {"text": None}},
        {"type": "tool_use"},
        {"type": "tool_use", "part": {"tool": "skill", "callID": 5, "state": {"input": {"name": 1}, "output": 5}}},
        {"type": "step_finish", "part": {"tokens": {"cache": "odd"}}},
        {"type": "error", "error": "odd"},
        {"type": "error", "error": {"name": None, "data": {"statusCode": "429", "metadata": "odd", "ref": 7}}},
        {"timestamp": "now"},
    ],
)
def test_events_of_another_shape_are_no_crash(event: dict[str, Any], tmp_path: Path) -> None:
    raw = written(tmp_path / "o", START, event)

    assert not read_agent(raw, make_plan(tmp_path)).finished
    assert read_judge(raw).error


def test_the_answer_is_what_was_said_in_the_last_step(tmp_path: Path) -> None:
    raw = written(
        tmp_path / "o", START, said("I look."), tool("bash", "1"), ended("tool-calls"), START, said("Do"), said("ne"), ended()
    )

    result = read_agent(raw, make_plan(tmp_path))

    assert (result.answer, result.finished) == ("Do\nne", True)
    assert result.usage == Usage(input_tokens=214, output_tokens=40, cache_read_tokens=80)


def test_line_separators_stay_in_the_answer(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three\x0bfour"

    assert read_agent(written(tmp_path / "o", START, said(text), ended()), make_plan(tmp_path)).answer == text


@pytest.mark.parametrize(
    ("tokens", "usage"),
    [
        ({"reasoning": 5}, Usage(input_tokens=107, output_tokens=25, cache_read_tokens=40)),
        (
            {"cache": {"read": 0, "write": 9}},
            Usage(input_tokens=107, output_tokens=20, cache_read_tokens=0, cache_creation_tokens=9),
        ),
        ({"input": 0, "output": 0, "cache": {"read": 0, "write": 0}}, None),
        ({"input": True, "output": -1, "cache": None}, None),
    ],
)
def test_usage(tokens: dict[str, Any], usage: Usage | None, tmp_path: Path) -> None:
    assert read_agent(written(tmp_path / "o", START, said("a"), ended(**tokens)), make_plan(tmp_path)).usage == usage


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("echo_echo", "mcp__echo__echo"),
        ("my_db_read_rows", "mcp__my_db__read_rows"),
        ("my_other", "mcp__my__other"),
        ("unknown_tool", "unknown_tool"),
        ("echo_", "echo_"),
        ("apply_patch", "apply_patch"),
        ("bash", "bash"),
    ],
)
def test_mcp_tools_are_spelled_as_everywhere(name: str, spelled: str) -> None:
    assert mcp_name(name, ("my", "my_db", "echo", "apply")) == spelled


def test_a_skill_counts_when_it_was_loaded(tmp_path: Path) -> None:
    raw = written(
        tmp_path / "o", START, tool("skill", error="no such skill", name="x"), tool("skill", "body", name="y"), said("a"), ended()
    )

    assert read_agent(raw, make_plan(tmp_path)).skills_used == ("y",)


@pytest.mark.parametrize(
    ("event", "says", "fatal", "transient"),
    [
        (error(message="m", statusCode=429, isRetryable=True), "APIError (HTTP 429): m", None, True),
        (error(message="m", statusCode=529), "APIError (HTTP 529): m", None, True),
        (error(message="m", isRetryable=False, metadata={"code": "ConnectionRefused"}), "APIError: m", None, True),
        (error(message="m", statusCode=400), "APIError (HTTP 400): m", None, False),
        (error(message="m", statusCode=403), "(HTTP 403)", "opencode auth login", False),
        (error(message="m", statusCode=402, isRetryable=True), "(HTTP 402)", "credit", False),
        (error(message="Your credit balance is too low", statusCode=400), "too low", "credit", False),
        (
            error(message="m", statusCode=429, isRetryable=True, responseBody='{"type":"FreeUsageLimitError"}'),
            "429",
            "quota",
            False,
        ),
        (error(message="m", statusCode=400, responseBody='{"code":"model_not_found"}'), "(HTTP 400)", "p/m", False),
        (error("ProviderAuthError", message="no key", providerID="p"), "ProviderAuthError: no key", "opencode auth login", False),
        (error("ContextOverflowError", message="too long\nby far"), "ContextOverflowError: too long by far", None, False),
        (error("MessageAbortedError"), "MessageAbortedError", None, False),
    ],
)
def test_errors(event: dict[str, Any], says: str, fatal: str | None, transient: bool, tmp_path: Path) -> None:
    raw = written(tmp_path / "o", START, said("partial"), event, exit_code=1)

    result, reply = read_agent(raw, make_plan(tmp_path)), read_judge(raw)

    assert (result.finished, result.answer, result.transient) == (False, "", transient)
    assert says in (result.error or "")
    assert fatal in (result.fatal or "") if fatal else result.fatal is None
    assert (reply.text, reply.model, reply.error, reply.fatal, reply.transient) == (
        "",
        None,
        result.error,
        result.fatal,
        transient,
    )


@pytest.mark.parametrize(
    ("words", "says", "fatal"),
    [
        (
            '"ProviderModelNotFoundError: Model not found: p/m. Did you mean \\"q\\"?"',
            'Model not found: p/m. Did you mean "q"?',
            "p/m",
        ),
        ('"ProviderAuthError: no key"', "ProviderAuthError: no key", "opencode auth login"),
        ("Boom", "error: Boom", None),
    ],
)
def test_an_error_without_details_is_looked_up_in_the_log(words: str, says: str, fatal: str | None, tmp_path: Path) -> None:
    stderr = entry("ERROR", message="failed", ref="err_2", error='"Other: x"') + entry(
        "ERROR", message="failed", ref="err_1", error=words
    )
    event = error("UnknownError", message="Unexpected server error. Check server logs for details.", ref="err_1")

    result = read_agent(written(tmp_path / "o", event, exit_code=1, stderr=stderr), make_plan(tmp_path))

    assert says in (result.error or "")
    assert fatal in (result.fatal or "") if fatal else result.fatal is None


def test_an_error_that_the_log_does_not_know_stays_as_it_is(tmp_path: Path) -> None:
    event = error("UnknownError", message="Unexpected server error.", ref="err_1")
    stderr = 'the agent: ref=err_1 error="ProviderAuthError: x"\n'

    result = read_agent(written(tmp_path / "o", event, exit_code=1, stderr=stderr), make_plan(tmp_path))

    assert (result.error, result.fatal) == ("UnknownError: Unexpected server error.", None)


def test_an_error_in_a_run_that_goes_on_does_not_count(tmp_path: Path) -> None:
    raw = written(tmp_path / "o", START, error(message="m", statusCode=503), START, said("a"), ended(), exit_code=1)

    result = read_agent(raw, make_plan(tmp_path))

    assert (result.answer, result.finished, result.error, result.transient) == ("a", True, None, False)


@pytest.mark.parametrize(
    ("events", "raw", "says", "timed_out"),
    [
        ((ended("tool-calls"),), {}, "ended with reason 'tool-calls': a tool was not permitted", False),
        ((said("a"), ended("length")), {}, "ended with reason 'length': the reply is incomplete", False),
        ((said("a"),), {}, "ended before its last step was finished (exit code 0)", False),
        ((said("a"),), {"exit_code": 1, "stderr": "Error: boom\n"}, "exit code 1: Error: boom", False),
        ((said("a"),), {"exit_code": -9, "stderr": entry("WARN", message="x")}, "(exit code -9)", False),
        ((said("a"),), {"exit_code": -9, "cause": "output"}, "printed too much", False),
        ((said("a"),), {"exit_code": -9, "cause": "timeout"}, None, True),
    ],
)
def test_a_run_without_an_end(
    events: tuple[Any, ...], raw: dict[str, Any], says: str | None, timed_out: bool, tmp_path: Path
) -> None:
    read = written(tmp_path / "o", START, *events, **raw)

    result = read_agent(read, make_plan(tmp_path))

    assert (result.finished, result.answer, result.timed_out) == (False, "", timed_out)
    assert says in (result.error or "") if says else result.error is None
    assert (says or "gave no answer within 2 s") in (read_judge(read).error or "")


@pytest.mark.parametrize(
    ("time", "error"),
    [
        ("2026-11-30T21:53:38.000Z", "AI_APICallError: slow down: still trying again when it ended"),
        ("2026-11-30T21:53:36.000Z", None),
    ],
)
def test_a_time_out_says_what_it_was_trying_again(time: str, error: str | None, tmp_path: Path) -> None:
    """The log tells of each try; one that an event has followed was forgotten."""
    stderr = entry("ERROR", time, message='"stream error"', **{"error.error": '"AI_APICallError: slow down"'})
    assert START["timestamp"] == 1_796_075_617_000  # 21:53:37

    result = read_agent(written(tmp_path / "o", START, cause="timeout", exit_code=-9, stderr=stderr), make_plan(tmp_path))

    assert (result.error, result.timed_out) == (error, True)


def test_an_option_that_this_version_lacks_is_fatal(tmp_path: Path) -> None:
    raw = written(tmp_path / "o", exit_code=1, stderr="opencode run\n\nOptions:\n      --model  x\n\nUnknown argument: auto\n")

    assert "opencode upgrade" in (read_agent(raw, make_plan(tmp_path)).fatal or "")


def test_a_broken_server_of_the_spec_is_named(tmp_path: Path) -> None:
    stderr = "".join(
        entry("WARN", message='"server unavailable"', key=name, type="local", status="failed") for name in ("db", "not-ours")
    )
    plan = make_plan(tmp_path, mcp=(McpServer(name="db", transport="stdio", line=1, command="db"),))

    result = read_agent(written(tmp_path / "o", START, said("a"), ended(), stderr=stderr), plan)

    assert result.error == "mcp server did not start: db (failed): try its command in a shell"


def test_long_texts_are_cut_and_marked(tmp_path: Path) -> None:
    raw = written(tmp_path / "o", START, tool("write", "y" * 50, content="x" * 5000), said("z" * 5000), ended())

    result = read_agent(raw, make_plan(tmp_path), bounds=Bounds(text=1000, total=1000, late=10))

    call, returned, last = result.transcript
    assert "[… 4000 characters cut …]" in (call.tool_input or {})["content"]
    assert "[… 40 characters cut …]" in (returned.tool_output or "")
    assert "[… 4990 characters cut …]" in last.content
    assert result.transcript_truncated
    assert result.answer == "z" * 5000
