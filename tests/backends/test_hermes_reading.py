"""What is read from Hermes in cases that were not recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hermes_told import answer, call, lines, message, session, usage

from pytest_caliper.backends.hermes_errors import silent_failure, told_failure
from pytest_caliper.backends.hermes_reading import read_agent, read_judge
from pytest_caliper.backends.transcript import Bounds
from pytest_caliper.runs.records import Usage

PROMPT = message("user", "Do it.")


def turns(result: Any) -> list[tuple[str, str]]:
    return [(turn.role, turn.content or turn.tool_name or turn.tool_output) for turn in result.transcript]


@pytest.mark.parametrize(
    ("report", "finished"),
    [
        (usage(), True),
        (usage(completed=False), False),
        (usage(completed=None), False),
        (usage(failed=True), False),
        (usage(failed=None), False),
        ({"type": "usage", "usage": None}, False),
        ({"type": "usage", "usage": [1]}, False),
    ],
)
def test_only_the_usage_file_says_that_a_run_is_finished(report: Any, finished: bool, tmp_path: Path) -> None:
    """The exit status is 0 for most failures."""
    result = read_agent(lines(tmp_path / "out", report, answer("HTTP 429: Rate limit reached\n")))

    assert result.finished is finished
    assert result.answer == ("HTTP 429: Rate limit reached" if finished else "")
    assert (result.error is None) is finished


def test_the_agents_own_words_never_decide(tmp_path: Path) -> None:
    result = read_agent(lines(tmp_path / "out", usage(), answer("HTTP 401: not logged in\n"), exit_code=1, stderr="HTTP 401"))

    assert (result.error, result.fatal, result.transient) == (None, None, False)


def test_a_finished_answer_survives_the_time_limit(tmp_path: Path) -> None:
    """The limit may be met during the export, when the agent is done."""
    result = read_agent(lines(tmp_path / "out", usage(), answer("done\n"), cause="timeout", exit_code=-2))

    assert (result.finished, result.timed_out, result.answer) == (True, False, "done")


@pytest.mark.parametrize("report", [{"failure": "KeyboardInterrupt()"}, {}])
def test_our_own_interrupt_is_no_error(report: dict[str, Any], tmp_path: Path) -> None:
    told = usage(completed=None, failed=True, input_tokens=None, **report)

    result = read_agent(lines(tmp_path / "out", told, cause="timeout", exit_code=130))

    assert (result.timed_out, result.error, result.finished) == (True, None, False)


def test_an_error_before_the_time_limit_is_told(tmp_path: Path) -> None:
    told = usage(completed=False, failed=True)

    result = read_agent(lines(tmp_path / "out", told, answer("HTTP 401: bad key"), cause="timeout"))

    assert result.timed_out
    assert result.error == "HTTP 401: bad key"
    assert result.fatal is not None


def test_a_run_that_used_up_its_turns_is_not_finished(tmp_path: Path) -> None:
    result = read_agent(lines(tmp_path / "out", usage(completed=False, api_calls=90), answer("so far ...")))

    assert result.error == "Hermes broke off before the end, after 90 calls of the model"


def test_too_much_output_is_an_error(tmp_path: Path) -> None:
    result = read_agent(lines(tmp_path / "out", usage(completed=None), cause="output"))

    assert result.error is not None
    assert "printed too much" in result.error


def test_lost_work_is_an_error_even_behind_an_answer(tmp_path: Path) -> None:
    """Without a transcript nobody could see a cheat, and the judge would see nothing."""
    end = {"type": "exit", "code": 0, "export": None, "problem": "DatabaseError: malformed"}

    result = read_agent(lines(tmp_path / "out", usage(), answer("done"), end))

    assert (result.finished, result.error) == (True, "the agent's work cannot be read: DatabaseError: malformed")


def test_usage_comes_from_the_sessions_where_the_file_has_none(tmp_path: Path) -> None:
    numbers = {"input_tokens": 7, "output_tokens": 2, "cache_read_tokens": 1, "cache_write_tokens": 0}
    told = (usage(completed=None, failed=True, input_tokens=None), session(**numbers), session("s2", **numbers))

    result = read_agent(lines(tmp_path / "out", *told, cause="timeout"))

    assert result.usage == Usage(input_tokens=14, output_tokens=4, cache_read_tokens=2, cache_creation_tokens=None)


@pytest.mark.parametrize("value", [0, None, "7", True, -1])
def test_unknown_usage_is_never_zero(value: Any, tmp_path: Path) -> None:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")

    assert read_agent(lines(tmp_path / "out", usage(**dict.fromkeys(names, value)), answer("x"))).usage is None


def test_a_usage_file_of_another_session_is_none(tmp_path: Path) -> None:
    result = read_agent(lines(tmp_path / "out", usage(session_id="other"), answer("done"), session(), PROMPT))

    assert (result.finished, result.usage) == (False, None)


def test_a_continued_session_repeats_nothing(tmp_path: Path) -> None:
    """Hermes compresses a long conversation by starting a new session with its summary and its last messages."""
    told = [
        session(),
        session("s2", parent_session_id="s1", started_at=2.0),
        PROMPT,
        message("assistant", "first", tool_calls=call("terminal", {"command": "true"})),
        message("tool", "out", tool_call_id="c1"),
        message("user", "[summary]", session_id="s2"),
        message("assistant", "first", session_id="s2", tool_calls=call("terminal", {"command": "true"})),
        message("tool", "out", session_id="s2", tool_call_id="c1"),
        message("assistant", "second", session_id="s2"),
    ]

    result = read_agent(lines(tmp_path / "out", usage(session_id="s2"), answer("second"), *told))

    assert turns(result) == [
        ("assistant", "first"),
        ("tool_use", "terminal"),
        ("tool_result", "terminal"),
        ("assistant", "second"),
    ]


def test_words_said_twice_are_kept_twice(tmp_path: Path) -> None:
    told = [session(), PROMPT, message("assistant", "Working."), message("assistant", "Working.")]

    assert len(read_agent(lines(tmp_path / "out", usage(), answer("x"), *told)).transcript) == 2


def test_what_a_sub_agent_does_is_marked(tmp_path: Path) -> None:
    told = [
        session(system_prompt="<available_skills>\n    - mine: x\n</available_skills>"),
        session("s2", parent_session_id="s1", model="small", model_config=json.dumps({"_delegate_from": "s1"})),
        PROMPT,
        message("assistant", "", tool_calls=call("delegate_task", {"goal": "look"})),
        message("user", "look", session_id="s2"),
        message("assistant", "looking", session_id="s2", tool_calls=call("terminal", {"command": "ls"}, "c2")),
        message("tool", "files", session_id="s2", tool_call_id="c2"),
        message("tool", "found", tool_call_id="c1"),
    ]

    result = read_agent(lines(tmp_path / "out", usage(model=None), answer("done"), *told))

    assert turns(result) == [
        ("tool_use", "delegate_task"),
        ("tool_result", "delegate_task"),
        ("assistant", "[sub-agent] looking"),
        ("tool_use", "sub-agent"),
        ("tool_result", "terminal"),
    ]
    assert result.model == "m"
    assert result.skills_reported == ("mine",)


def test_messages_that_hermes_plants_are_a_users(tmp_path: Path) -> None:
    told = [session(), PROMPT, message("user", "[System: The previous response was cut off]")]

    result = read_agent(lines(tmp_path / "out", usage(), answer("done"), *told))

    assert turns(result) == [("user", "[System: The previous response was cut off]")]


@pytest.mark.parametrize(
    ("arguments", "output", "used"),
    [
        ({"name": "greet"}, '{"success": true}', ("greet",)),
        ({"name": "fun/greet"}, '{"success": true}', ("greet",)),
        ({"name": "greet", "file_path": "scripts/x.py"}, "text", ("greet",)),
        ({"name": "greet"}, '{"success": false, "error": "not found"}', ()),
        ({"name": 7}, "{}", ()),
        ("no object", "{}", ()),
        ([1], "[", ()),
    ],
)
def test_a_viewed_skill_counts_as_used(arguments: Any, output: str, used: tuple[str, ...], tmp_path: Path) -> None:
    told = [
        session(),
        PROMPT,
        message("assistant", "", tool_calls=call("skill_view", arguments)),
        message("tool", output, tool_call_id="c1"),
    ]

    assert read_agent(lines(tmp_path / "out", usage(), answer("done"), *told)).skills_used == used


def test_skills_are_those_in_the_list_that_the_model_was_given(tmp_path: Path) -> None:
    prompt = (
        "## Skills\n<available_skills>\n  greet-pirate:\n    - greet-pirate: Greets people. Use when: asked\n"
        "  devops: all of it\n    - deploy_2: Ships\n    - bare\n</available_skills>\n    - not-a-skill: x\n"
    )

    result = read_agent(lines(tmp_path / "out", usage(), answer("done"), session(system_prompt=prompt)))

    assert result.skills_reported == ("greet-pirate", "deploy_2", "bare")


@pytest.mark.parametrize("prompt", [None, "", "no list", 7])
def test_without_a_list_the_skills_are_unknown(prompt: Any, tmp_path: Path) -> None:
    assert read_agent(lines(tmp_path / "out", usage(), answer("x"), session(system_prompt=prompt))).skills_reported is None


def test_odd_lines_do_not_matter(tmp_path: Path) -> None:
    told = [
        b"\xff garbage\n",
        b"[1]\n",
        {"type": "message"},
        {"type": "session", "session": 3},
        {"type": "news"},
        {},
        session(),
        PROMPT,
        message("assistant", None, tool_calls=[None, {"id": 3}, {"function": {"name": "x", "arguments": "{"}}]),
        message("tool", {"a": 1}),
        message("tool", [{"type": "text", "text": "one"}, {"type": "image_url"}, 3]),
        message("system", "left out"),
        {"type": "exit"},
        b'{"type": "message", "mess',
    ]

    result = read_agent(lines(tmp_path / "out", usage(), answer("one\u2028two\u0085"), *told))

    assert result.answer == "one\u2028two\u0085"
    calls = [(turn.tool_name, turn.tool_input) for turn in result.transcript if turn.role == "tool_use"]
    assert calls == [("None", {"input": None}), ("None", {"input": None}), ("x", {"input": "{"})]
    assert [turn.tool_output for turn in result.transcript if turn.role == "tool_result"] == [
        '{"a": 1}',
        "one\n[image_url]\n[unknown]",
    ]


def test_long_texts_are_cut_and_said_so(tmp_path: Path) -> None:
    told = [session(), PROMPT, message("assistant", "x" * 500)]

    result = read_agent(lines(tmp_path / "out", usage(), answer("x"), *told), bounds=Bounds(text=100))

    assert result.transcript_truncated
    assert len(result.transcript[0].content) < 200


@pytest.mark.parametrize(
    ("text", "fatal", "transient"),
    [
        ("HTTP 429: Rate limit reached", None, True),
        ("API call failed after 2 retries: HTTP 529: Overloaded", None, True),
        ("HTTP 408: Request Timeout", None, True),
        ("Connection error.", None, True),
        ("Request timed out.", None, True),
        ("HTTP 429: You exceeded your current quota, please check your plan and billing details", "no credit", False),
        ("HTTP 402: Insufficient credits", "no credit", False),
        ("HTTP 400: Your credit balance is too low", "no credit", False),
        ("HTTP 403: Key limit exceeded (spending limit)", "limit is reached", False),
        ("HTTP 429: You have reached your weekly limit", "limit is reached", False),
        ("HTTP 401: User not found", "hermes model", False),
        ("HTTP 403: Forbidden", "hermes model", False),
        ("Nous session expired, please re-authenticate", "hermes model", False),
        ("HTTP 404: The model `nope` does not exist", "hermes:PROVIDER/MODEL", False),
        ("HTTP 400: nope is not a valid model ID. model nope not found", "hermes:PROVIDER/MODEL", False),
        ("HTTP 400: context_length exceeded", None, False),
        ("the tool said: \x1b[31mno\x1b[0m\nsecond line", None, False),
        ("", None, False),
    ],
)
def test_what_hermes_says_of_a_failure(text: str, fatal: str | None, transient: bool) -> None:
    failure = told_failure(text)

    assert failure.error
    assert failure.error.isprintable()
    assert (failure.fatal is None) if fatal is None else fatal in (failure.fatal or "")
    assert failure.transient is transient


@pytest.mark.parametrize(
    ("code", "stderr", "error", "fatal"),
    [
        (2, "usage: hermes\nhermes: error: unrecognized arguments: --usage-file u\n", "unrecognized", "hermes update"),
        (1, "one\ntwo\n\n", "exit code 1: two", None),
        (0, "", "Hermes ended without a usage report (exit code 0)", None),
    ],
)
def test_a_run_that_left_no_report(code: int, stderr: str, error: str, fatal: str | None) -> None:
    failure = silent_failure(code, stderr)

    assert error in failure.error
    assert (failure.fatal is None) if fatal is None else fatal in (failure.fatal or "")


def test_the_judges_reply_is_the_answer(tmp_path: Path) -> None:
    reply = read_judge(lines(tmp_path / "out", usage(), answer('{"passed": true}\n')))

    assert (reply.text, reply.model, reply.error) == ('{"passed": true}', "m", None)


def test_a_judge_that_failed_says_nothing(tmp_path: Path) -> None:
    reply = read_judge(lines(tmp_path / "out", usage(completed=False, failed=True), answer("HTTP 503: overloaded")))

    assert (reply.text, reply.error, reply.transient) == ("", "HTTP 503: overloaded", True)
