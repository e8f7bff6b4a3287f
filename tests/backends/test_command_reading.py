"""The format in which a program of the user's tells what it did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, output

from pytest_caliper.backends.command_reading import read_agent
from pytest_caliper.backends.transcript import Bounds
from pytest_caliper.contracts import HarnessResult
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

RESULT = {"type": "result", "text": "done"}


def read(root: Path, *events: Any, plan: dict[str, Any] | None = None, bounds: Bounds | None = None, **end: Any) -> HarnessResult:
    return read_agent(output(root / "out", *events, **end), make_plan(root, **(plan or {})), bounds=bounds)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (b"forty-two\n", "forty-two"),
        (b"\n\n  two\nlines \n\n", "  two\nlines "),
        (b'{"no": "type"}\n', '{"no": "type"}'),
        (b'{"type": 3}', '{"type": 3}'),
        (b'[{"type": "result"}]', '[{"type": "result"}]'),
        (b"caf\xe9 one\xe2\x80\xa8two", "caf\ufffd one\u2028two"),
        (b"text\n" + b'{"type": "result", "text": "x"}\n', 'text\n{"type": "result", "text": "x"}'),
        (b"", ""),
    ],
)
def test_what_is_no_event_is_the_answer(text: bytes, answer: str, tmp_path: Path) -> None:
    result = read(tmp_path, text)

    assert (result.answer, result.finished, result.error) == (answer, True, None)


@pytest.mark.parametrize(("exit_code", "cause"), [(1, "exit"), (0, "timeout"), (-9, "exit"), (0, "output")])
def test_a_text_is_an_answer_only_when_the_program_ended_well(exit_code: int, cause: str, tmp_path: Path) -> None:
    result = read(tmp_path, b"half an ans", exit_code=exit_code, cause=cause)

    assert (result.answer, result.finished, result.timed_out) == ("", False, cause == "timeout")
    assert (result.error is None) is (cause == "timeout")
    assert [turn.content for turn in result.transcript] == ["half an ans"]


@pytest.mark.parametrize("end", [{}, {"exit_code": 1}, {"cause": "timeout", "exit_code": -2}])
def test_a_result_is_the_end_marker_whatever_comes_later(end: dict[str, Any], tmp_path: Path) -> None:
    result = read(tmp_path, RESULT, **end)

    assert (result.answer, result.finished, result.error, result.timed_out) == ("done", True, None, False)


def test_a_cut_stream_is_no_answer(tmp_path: Path) -> None:
    result = read(tmp_path, {"type": "assistant", "text": "the answer is"}, b'{"type": "result", "te')

    assert (result.answer, result.finished) == ("", False)
    assert result.error == "the program ended without a result event"


def test_a_result_without_text_is_what_was_said_last(tmp_path: Path) -> None:
    said = [{"type": "assistant", "text": "one"}, {"type": "assistant", "text": "two"}]

    assert read(tmp_path, *said, {"type": "result"}).answer == "two"


@pytest.mark.parametrize(
    ("error", "fatal", "transient"),
    [
        ({"message": "slow down", "transient": True}, None, True),
        ({"message": "not logged in", "fatal": True}, "not logged in", False),
        ({"message": "not logged in", "fatal": True, "remedy": "run `my-agent login`"}, "run `my-agent login`", False),
        ({"message": "both", "fatal": True, "transient": True}, "both", False),
        ({"message": "words", "fatal": "yes", "transient": 1}, None, False),
        ({"message": "two\nlines \x1b[31mred\x1b[0m"}, None, False),
        ({"message": {"code": 3}}, None, False),
        ({}, None, False),
    ],
)
def test_an_error_at_the_end_is_why(error: dict[str, Any], fatal: str | None, transient: bool, tmp_path: Path) -> None:
    result = read(tmp_path, {"type": "error", **error}, exit_code=1, stderr="ignored")

    assert result.error
    assert result.error.isprintable()
    assert (result.finished, result.fatal, result.transient) == (False, fatal, transient)


@pytest.mark.parametrize("later", [RESULT, {"type": "assistant", "text": "on"}, {"type": "tool_use", "name": "x"}])
def test_an_error_that_was_got_over_does_not_count(later: dict[str, Any], tmp_path: Path) -> None:
    result = read(tmp_path, {"type": "error", "message": "slow down", "fatal": True}, later)

    assert result.fatal is None
    assert result.error == (None if later is RESULT else "the program ended without a result event")


def test_an_error_before_the_time_limit_is_told(tmp_path: Path) -> None:
    result = read(tmp_path, {"type": "error", "message": "retrying"}, cause="timeout")

    assert (result.timed_out, result.error) == (True, "retrying")


def test_usage_adds_up_and_unknown_is_never_zero(tmp_path: Path) -> None:
    counts = [
        {"input_tokens": 5, "cache_read_tokens": 1},
        {"input_tokens": 2, "output_tokens": 0},
        {"input_tokens": -1, "output_tokens": True, "cache_creation_tokens": "7"},
    ]

    result = read(tmp_path, *({"type": "usage", **count} for count in counts), RESULT)

    assert result.usage == Usage(input_tokens=7, output_tokens=0, cache_read_tokens=1, cache_creation_tokens=None)
    assert read(tmp_path, {"type": "usage"}, RESULT).usage is None


def test_parallel_calls_keep_their_results(tmp_path: Path) -> None:
    events = [
        {"type": "tool_use", "id": "1", "name": "a", "input": {"x": 1}},
        {"type": "tool_use", "id": "2", "name": "b", "input": "text"},
        {"type": "tool_result", "id": "2", "output": "B"},
        {"type": "tool_result", "id": "1", "output": ["A"]},
        {"type": "tool_result", "output": "whose?"},
    ]

    turns = read(tmp_path, *events, RESULT).transcript

    assert [(turn.tool_name, turn.tool_input, turn.tool_output) for turn in turns] == [
        ("a", {"x": 1}, None),
        ("a", None, '["A"]'),
        ("b", {"input": "text"}, None),
        ("b", None, "B"),
        (None, None, "whose?"),
    ]


@pytest.mark.parametrize(
    ("events", "used"),
    [
        ([{"type": "skill_used", "name": "greet-pirate"}], ("greet-pirate",)),
        ([{"type": "tool_use", "name": "read", "input": {"p": ["/h/.agents/skills/greet-pirate/SKILL.md"]}}], ("greet-pirate",)),
        ([{"type": "tool_use", "name": "sh", "input": {"c": "cat ~/.agents/skills/greet-pirate/SKILL.md"}}], ("greet-pirate",)),
        ([{"type": "tool_use", "name": "ls", "input": {"p": "/h/.agents/skills/greet-pirate-2/SKILL.md"}}], ()),
        ([{"type": "assistant", "text": ".agents/skills/greet-pirate/"}], ()),
        ([{"type": "skill_used"}], ()),
    ],
)
def test_a_skill_counts_as_used_when_it_was_read(events: list[Any], used: tuple[str, ...], tmp_path: Path) -> None:
    plan = {"skills": (make_skill(tmp_path / "skill"),)}

    assert read(tmp_path, *events, RESULT, plan=plan).skills_used == used


def test_what_the_program_lists_is_reported(tmp_path: Path) -> None:
    servers = {"echo": "connected", "web": "failed"}
    declared = (
        McpServer(name="echo", transport="stdio", line=1, command="x"),
        McpServer(name="web", transport="sse", line=2, url="x"),
    )

    result = read(
        tmp_path,
        {"type": "skills", "names": ["one", 2]},
        {"type": "mcp", "servers": servers},
        RESULT,
        plan={"mcp": declared},
    )

    assert result.skills_reported == ("one",)
    assert result.mcp_reported == ("echo:connected", "web:failed")
    assert result.error == "mcp server did not start: web (failed): try its command in a shell"
    assert read(tmp_path, {"type": "mcp", "servers": servers}, RESULT).error is None, "not the spec's"


def test_odd_lines_do_not_matter(tmp_path: Path) -> None:
    events = [
        {"type": "hello"},
        b"progress: 10 %\n",
        b"\xff\xfe\n",
        {"type": "tool_use"},
        {"type": "tool_result"},
        {"type": "model"},
        {"type": "skills"},
        {"type": "mcp", "servers": ["x"]},
        {"type": ["x"]},
        {"type": "result", "text": "one\u2028two\u0085\ud800"},
    ]

    result = read(tmp_path, *events)

    assert (result.finished, result.answer, result.model) == (True, "one\u2028two\u0085\ufffd", None)


def test_long_texts_are_cut_and_said_so(tmp_path: Path) -> None:
    result = read(tmp_path, {"type": "assistant", "text": "x" * 500}, RESULT, bounds=Bounds(text=100))

    assert result.transcript_truncated
    assert result.answer == "done"
