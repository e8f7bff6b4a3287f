"""Streams that no recording holds: hostile, cut, huge, or of other versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, output

from pytest_caliper.backends.claude_reading import read_agent, read_judge
from pytest_caliper.backends.jsonl import LineFaults, json_objects
from pytest_caliper.backends.transcript import Bounds, cut, one_line
from pytest_caliper.contracts import RawOutput
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

INIT = {"type": "system", "subtype": "init", "model": "m-1", "skills": [], "mcp_servers": [], "slash_commands": []}


def result_event(text: str = "done", **fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, **fields}


def assistant(*blocks: dict[str, Any], model: str = "m-1", **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"model": model, "content": list(blocks)}, "parent_tool_use_id": None, **fields}


def tool_use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(call_id: str, content: Any, **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def test_garbage_between_events_is_passed_over(tmp_path: Path) -> None:
    raw = output(tmp_path / "o", b"Warning: noise\n", b"\xff\xfe\n", INIT, b"[1]\n", b"\n", b"[" * 5000 + b"\n", result_event())

    result = read_agent(raw, make_plan(tmp_path))

    assert (result.finished, result.answer, result.error) == (True, "done", None)


def test_a_last_line_without_its_end_is_read(tmp_path: Path) -> None:
    raw = output(tmp_path / "o", INIT, json.dumps(result_event()).encode())

    assert read_agent(raw, make_plan(tmp_path)).finished


def test_a_stream_cut_in_its_result_is_not_finished(tmp_path: Path) -> None:
    raw = output(tmp_path / "o", INIT, json.dumps(result_event()).encode()[:-5], exit_code=-9)

    result = read_agent(raw, make_plan(tmp_path))

    assert not result.finished
    assert result.error == "the stream ended without a result event (exit code -9)"


@pytest.mark.parametrize("text", ["one\u2028two", "one\u0085two", "one\x0btwo\x1cthree", "\u2029"])
def test_line_separators_inside_an_answer_do_not_split_it(text: str, tmp_path: Path) -> None:
    line = json.dumps(result_event(text), ensure_ascii=False).encode() + b"\n"

    assert read_agent(output(tmp_path / "o", line), make_plan(tmp_path)).answer == text


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    line = json.dumps(result_event("X")).encode().replace(b"X", b"caf\xe9") + b"\n"

    assert read_agent(output(tmp_path / "o", line), make_plan(tmp_path)).answer == "caf\ufffd"


def test_lone_surrogates_and_nan_can_be_written_as_json_afterwards(tmp_path: Path) -> None:
    line = b'{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"1","name":"T\\ud800",'
    line += b'"input":{"a":"\\ud83d\\ude00 \\udc00","b":NaN}}]}}\n'
    raw = output(tmp_path / "o", line, b'{"type":"result","is_error":false,"result":"\\ud800"}\n')

    result = read_agent(raw, make_plan(tmp_path))

    assert result.answer == "\ufffd"
    assert result.transcript[0].tool_input == {"a": "\U0001f600 \ufffd", "b": "NaN"}
    json.dumps([turn.to_json() for turn in result.transcript], allow_nan=False).encode("utf-8")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "assistant"},
        {"type": "assistant", "message": "text"},
        {
            "type": "assistant",
            "message": {"content": [1, None, {"type": "tool_use"}, {"type": 3}, {"type": "text", "text": None}]},
        },
        {"type": "assistant", "message": {"content": {"a": 1}, "model": 7}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": 5, "content": {"a": 1}}]}},
        {
            "type": "system",
            "subtype": "init",
            "skills": 5,
            "mcp_servers": ["x", {"name": None}],
            "model": [],
            "slash_commands": {},
        },
        {"type": "system", "subtype": "api_retry", "error_status": {}},
        {"type": "rate_limit_event", "rate_limit_info": "rejected"},
        {"type": "result", "result": {"a": 1}, "usage": [], "modelUsage": [], "api_error_status": [401], "errors": 3},
        {"type": "result", "is_error": True, "modelUsage": {"m": 3, "n": {"outputTokens": "9"}}, "subtype": 4, "errors": [{}]},
        {"type": ["result"]},
    ],
)
def test_events_of_another_shape_raise_nothing(event: dict[str, Any], tmp_path: Path) -> None:
    raw = output(tmp_path / "o", event, exit_code=1)

    result = read_agent(raw, make_plan(tmp_path))
    reply = read_judge(raw)

    assert (result.finished, reply.error is None) == ("is_error" not in event and event["type"] == "result",) * 2


def test_results_stand_behind_their_calls_whatever_order_they_came_in(tmp_path: Path) -> None:
    raw = output(
        tmp_path / "o",
        assistant(tool_use("a", "Bash", command="first")),
        assistant(tool_use("b", "Bash", command="second")),
        tool_result("b", "two"),
        tool_result("a", [{"type": "text", "text": "one"}, {"type": "image", "source": {}}]),
        tool_result("zzz", "nobody's"),
        result_event(),
    )

    turns = read_agent(raw, make_plan(tmp_path)).transcript

    assert [turn.tool_output or (turn.tool_input or {})["command"] for turn in turns] == [
        "first",
        "one\n[image]",
        "second",
        "two",
        "nobody's",
    ]


def test_thinking_is_not_part_of_the_transcript(tmp_path: Path) -> None:
    raw = output(
        tmp_path / "o", assistant({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}), result_event()
    )

    assert [turn.content for turn in read_agent(raw, make_plan(tmp_path)).transcript] == ["yes"]


def test_the_agents_own_words_never_decide(tmp_path: Path) -> None:
    words = "API Error: 401 Unauthorized. Not logged in. You've hit your 5-hour limit. Credit balance is too low"
    raw = output(
        tmp_path / "o", INIT, assistant({"type": "text", "text": words}), result_event(words, terminal_reason="completed")
    )

    result = read_agent(raw, make_plan(tmp_path))

    assert (result.finished, result.error, result.fatal, result.answer) == (True, None, None, words)


def test_an_error_that_was_retried_away_does_not_count(tmp_path: Path) -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": 401, "error": "authentication_failed"}
    synthetic = assistant({"type": "text", "text": "API Error"}, model="<synthetic>", error="server_error")
    raw = output(tmp_path / "o", INIT, retry, synthetic, assistant({"type": "text", "text": "ok"}), result_event("ok"))

    result = read_agent(raw, make_plan(tmp_path))

    assert (result.finished, result.error, result.fatal, result.retries) == (True, None, None, 0)


def test_a_timeout_after_the_answer_is_no_timeout(tmp_path: Path) -> None:
    """A grandchild that keeps the CLI from ending does not spoil a finished answer."""
    result = read_agent(output(tmp_path / "o", INIT, result_event(), cause="timeout"), make_plan(tmp_path))

    assert (result.finished, result.timed_out, result.error) == (True, False, None)


def test_too_much_output_is_said(tmp_path: Path) -> None:
    result = read_agent(output(tmp_path / "o", INIT, cause="output", exit_code=-9), make_plan(tmp_path))

    assert (result.finished, result.timed_out) == (False, False)
    assert "printed too much" in (result.error or "")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"subtype": "error_max_turns"}, "error_max_turns"),
        ({"subtype": "error_during_execution", "errors": ["boom\nbang"]}, "error_during_execution: boom bang"),
        ({"terminal_reason": "prompt_too_long"}, "prompt_too_long: done"),
        ({"is_error": True}, "error: done"),
    ],
)
def test_other_ends_are_errors_with_their_name(fields: dict[str, Any], error: str, tmp_path: Path) -> None:
    event = {**result_event("" if "subtype" in fields else "done"), **fields}

    result = read_agent(output(tmp_path / "o", INIT, event), make_plan(tmp_path))

    assert (result.finished, result.error, result.answer) == (False, error, "")


def test_escapes_in_standard_error_are_taken_out(tmp_path: Path) -> None:
    raw = output(tmp_path / "o", exit_code=3, stderr="first\n\x1b[31mbad\x1b[0m \x1b]0;title\x07thing\n\n")

    assert read_agent(raw, make_plan(tmp_path)).error == "exit code 3: bad thing"


def test_a_broken_mcp_server_of_the_spec_is_an_error(tmp_path: Path) -> None:
    init = {**INIT, "mcp_servers": [{"name": "db", "status": "failed"}, {"name": "ok", "status": "connected"}]}
    server = McpServer(name="db", transport="stdio", line=4, command="./db")

    result = read_agent(output(tmp_path / "o", init, result_event()), make_plan(tmp_path, mcp=(server,)))

    assert result.error == "mcp server did not start: db (failed): try its command in a shell"
    assert result.fatal is None


def test_the_main_model_is_named_among_several(tmp_path: Path) -> None:
    used = {"small": {"outputTokens": 900}, "m-1[1m]": {"outputTokens": 5}}
    said = assistant({"type": "text", "text": "hi"})
    side = assistant({"type": "text", "text": "sub"}, model="small", parent_tool_use_id="t")

    with_main = read_agent(output(tmp_path / "o", INIT, said, side, result_event(modelUsage=used)), make_plan(tmp_path))
    without = read_judge(output(tmp_path / "p", result_event(modelUsage=used)))

    assert (with_main.model, without.model) == ("m-1[1m]", "small")


def test_usage_without_models_is_that_of_the_result(tmp_path: Path) -> None:
    """Fields that are not reported stay unknown; a boolean is no number."""
    raw = output(tmp_path / "o", result_event(usage={"input_tokens": 5, "output_tokens": True, "cache_read_input_tokens": 0}))

    assert read_agent(raw, make_plan(tmp_path)).usage == Usage(input_tokens=5, cache_read_tokens=0)


def test_long_texts_are_cut_and_marked(tmp_path: Path) -> None:
    raw = output(
        tmp_path / "o",
        assistant(tool_use("a", "Write", content="x" * 5000)),
        tool_result("a", "y" * 50),
        assistant({"type": "text", "text": "z" * 500}),
        result_event("w" * 5000),
    )

    result = read_agent(raw, make_plan(tmp_path), bounds=Bounds(text=1000, total=1000, late=10))

    call, output_turn, said = result.transcript
    assert len((call.tool_input or {})["content"]) < 1100
    assert "[… 4000 characters cut …]" in (call.tool_input or {})["content"]
    assert "[… 40 characters cut …]" in (output_turn.tool_output or "")
    assert "[… 490 characters cut …]" in said.content
    assert result.transcript_truncated
    assert result.answer == "w" * 5000


def test_a_line_beyond_the_limit_is_skipped_and_the_rest_read(tmp_path: Path) -> None:
    path = tmp_path / "o"
    path.write_bytes(b'{"a":"' + b"x" * 3_000_000 + b'"}\n{"b":1}\n{"c":"' + b"y" * 300)
    faults = LineFaults()

    assert list(json_objects(path, faults, max_line_bytes=200)) == [{"b": 1}]
    assert (faults.too_long, faults.garbage) == (2, 0)


def test_a_line_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "o"
    path.write_bytes(b'{"a":1}\n{"b":2}')

    assert list(json_objects(path, LineFaults(), max_line_bytes=8)) == [{"a": 1}, {"b": 2}]


def test_cutting_keeps_both_ends() -> None:
    text = "".join(str(number % 10) for number in range(100))

    assert cut(text, 20) == f"{text[:15]}\n[… 80 characters cut …]\n{text[-5:]}"
    assert cut(text, 100) == text


def test_one_line_is_printable_and_bounded() -> None:
    assert one_line("a\tb\r\nc\x00\u2028d\u202e") == "a b c d"
    assert one_line("x" * 999) == "x" * 299 + "…"


def test_a_judge_that_wrote_text_instead_of_using_the_schema(tmp_path: Path) -> None:
    reply = read_judge(output(tmp_path / "o", b"warning\n", result_event('```json\n{"passed": true}\n```')))

    assert (reply.error, reply.structured, reply.text) == (None, None, '```json\n{"passed": true}\n```')


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"cause": "timeout", "exit_code": -15}, "no answer within 2 s"),
        ({"cause": "output", "exit_code": -9}, "printed too much"),
        ({"exit_code": 1, "stderr": "boom"}, "exit code 1: boom"),
        ({"exit_code": 0}, "without a result event"),
    ],
)
def test_a_judge_without_a_reply(raw: dict[str, Any], error: str, tmp_path: Path) -> None:
    reply = read_judge(output(tmp_path / "o", **raw))

    assert error in (reply.error or "")
    assert (reply.text, reply.structured, reply.fatal) == ("", None, None)


def test_a_judge_at_the_usage_limit_is_fatal(tmp_path: Path) -> None:
    event = result_event("You've hit your 5-hour limit · resets 11:06pm (UTC)", is_error=True, api_error_status=429)

    reply = read_judge(output(tmp_path / "o", event, exit_code=1))

    assert reply.fatal == "You've hit your 5-hour limit · resets 11:06pm (UTC): run again later, or use an API key"


def test_raw_output_is_left_as_it_is(tmp_path: Path) -> None:
    raw: RawOutput = output(tmp_path / "o", INIT, result_event())
    before = raw.stdout.read_bytes()

    read_agent(raw, make_plan(tmp_path))

    assert raw.stdout.read_bytes() == before
