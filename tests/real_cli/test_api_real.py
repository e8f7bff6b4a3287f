"""The API backends with the vendors' real SDKs, against a scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import netns
import pytest
from agents import Cli
from cases import CASES, SCHEMA, VERDICT, Bench, Subject, check, failed, fine, refusal
from subjects import DISJOINT, KEY, MODEL, NOT_ANTHROPIC, WITHOUT_WRITES

from pytest_caliper.backends.registry import builtin_backends, by_name
from pytest_caliper.contracts import EngineError

pytestmark = pytest.mark.real_cli


def no_tools(*_: str) -> Any:
    raise AssertionError("an API has no tools")


NO_AGENT = dict.fromkeys(
    ("shell", "file_write", "usage_of_two_requests", "skill", "skill_unused", "mcp_stdio", "mcp_http", "hanging_tool"),
    "an API has no tools",
)
ANTHROPIC = Subject(
    backend="claude-api",
    variable="UNUSED",
    model=MODEL,
    reported_model=MODEL,
    shell=no_tools,
    write=no_tools,
    skill=no_tools,
    usage=DISJOINT,
    logged_out=NOT_ANTHROPIC,
    login="ANTHROPIC_API_KEY",
    lists_skills=True,
    most_requests=2,
    hang_s=15.0,
    skips=NO_AGENT,
)
OPENAI = replace(
    ANTHROPIC,
    backend="openai-api",
    usage=WITHOUT_WRITES,
    env={**NOT_ANTHROPIC, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "@URL@/v1"},
    logged_out={"OPENAI_API_KEY": None},
    login="OPENAI_API_KEY",
)
SUBJECTS = {subject.backend: subject for subject in (ANTHROPIC, OPENAI)}
BOTH = pytest.mark.parametrize("name", SUBJECTS)
SLOW = pytest.mark.slow_cli
"""For what is mostly shown by quicker tests: the import of an SDK alone takes a second."""
QUICK = ("text", "throttled", "refused_key", "unknown_model", "long_prompt", "judge", "logged_out")
MINE = [case if case in QUICK else pytest.param(case, marks=SLOW) for case in CASES if case not in NO_AGENT]
Benches = Callable[[str], Bench]


@pytest.fixture
def bench(tmp_path: Path) -> Benches:
    """`bench(name)`: a backend with this Python's SDK; skipped, or failed in CI, where it or a namespace cannot be had."""

    def make(name: str) -> Bench:
        reason = netns.unavailable()
        try:
            found = by_name(builtin_backends())[name].find(os.environ)
        except EngineError as error:
            reason = str(error)
        if reason is not None:
            (pytest.fail if os.environ.get("CALIPER_REQUIRE_REAL_CLI") else pytest.skip)(f"no real SDK: {reason}")
        return Bench(subject=SUBJECTS[name], cli=Cli(binary=found.path, version=found.version), path=tmp_path)

    return make


@BOTH
@pytest.mark.parametrize("case", MINE)
def test_case(case: str, name: str, bench: Benches) -> None:
    made = bench(name)
    check(case, made.subject, made.cli, made.path)


@SLOW
@BOTH
def test_the_answer_of_a_bare_task(name: str, bench: Benches) -> None:
    """One completion of the prompt as it stands, with the vendor's default model, and nothing left behind."""
    made = bench(name)

    result, done = made.drive([{"text": "Hello."}], model=None)

    fine(result, "Hello.")
    assert (result["skills_reported"], result["mcp_reported"]) == ([], [])
    (asked,) = done.messages
    assert [message["content"] for message in asked["messages"]] == ["Do it."]
    assert asked["model"] == result["model"] == by_name(builtin_backends())[name].vendor.default_model  # type: ignore[attr-defined]
    assert not asked.keys() & {"system", "tools", "response_format", "output_config"}
    assert list(made.work.iterdir()) == []


@BOTH
def test_a_verdict_by_the_schema(name: str, bench: Benches) -> None:
    verdict = {**VERDICT, "passed": False}

    reply, done = bench(name).drive([{"text": json.dumps(verdict)}], action="judge", schema=SCHEMA)

    assert (reply["structured"], reply["error"]) == (verdict, None)
    (asked,) = done.messages
    form = asked["output_config"]["format"] if name == "claude-api" else asked["response_format"]["json_schema"]
    assert form["schema"] == SCHEMA


@BOTH
def test_a_judge_that_says_something_else(name: str, bench: Benches) -> None:
    text = "I would rather\u2028talk\u0085about boats.\U0001f3f4\u200d\u2620"

    reply, _ = bench(name).drive([{"text": text}], action="judge", schema=SCHEMA)

    assert (reply["structured"], reply["text"], reply["error"]) == (None, text, None)


@pytest.mark.parametrize("name", ["claude-api", pytest.param("openai-api", marks=SLOW)])
def test_a_server_that_refuses_schemas_is_asked_without(name: str, bench: Benches) -> None:
    refused = {"when": {"any": '"json_schema"'}, **refusal(400, message="unknown field")[0]}

    reply, done = bench(name).drive([refused, {"text": f"Here: {json.dumps(VERDICT)}"}], action="judge", schema=SCHEMA)

    assert (reply["structured"], reply["error"]) == (None, None)
    assert json.dumps(VERDICT) in reply["text"]
    assert len(done.messages) == 2


@SLOW
@BOTH
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"kind": "close"}, "onnection"),
        ({"kind": "garbage"}, "the server did not answer with JSON"),
        ({"kind": "wrong_type"}, "the server did not answer with JSON"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_an_answer_that_is_none(fault: Any, says: str, name: str, bench: Benches) -> None:
    result, _ = bench(name).drive([{"fault": fault}])

    failed(result, transient=fault["kind"] == "close", fatal=False)
    assert says in result["error"]


@SLOW
@BOTH
def test_an_answer_cut_at_its_greatest_length(name: str, bench: Benches) -> None:
    stop = "max_tokens" if name == "claude-api" else "length"

    result, _ = bench(name).drive([{"text": "half of", "stop": stop}])

    failed(result, transient=False, fatal=False)
    assert [turn["content"] for turn in result["transcript"]] == ["half of"]


@SLOW
def test_no_server_is_there(bench: Benches) -> None:
    result, _ = bench("openai-api").drive([], env={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})

    failed(result, transient=True, fatal=False)
    assert "refused" in result["error"]


@SLOW
@pytest.mark.parametrize("address", ["not a url", "ftp://127.0.0.1/v1"])
def test_an_address_that_is_none(address: str, bench: Benches) -> None:
    result, _ = bench("openai-api").drive([], env={"OPENAI_BASE_URL": address})

    assert (result["finished"], result["timed_out"]) == (False, False)
    assert result["error"]


def test_an_account_without_credit(bench: Benches) -> None:
    result, done = bench("openai-api").drive(refusal(429, code="insufficient_quota", message="You exceeded your current quota"))

    failed(result, transient=False, fatal=True)
    assert "no credit left" in result["fatal"]
    assert len(done.messages) <= 2


def test_a_bearer_token_in_place_of_a_key(bench: Benches) -> None:
    result, done = bench("claude-api").drive([{"text": "in"}], env={"ANTHROPIC_API_KEY": None, "ANTHROPIC_AUTH_TOKEN": KEY})

    fine(result, "in")
    assert "authorization" in done.requests[0]["headers"]
    assert "x-api-key" not in done.requests[0]["headers"]


def test_modules_of_the_project_do_not_stand_in_for_the_sdk(bench: Benches, tmp_path: Path) -> None:
    """Neither the working directory nor PYTHONPATH is searched."""
    (tmp_path / "openai.py").write_text("raise SystemExit('the wrong one')")

    result, _ = bench("openai-api").drive([{"text": "right"}], env={"PYTHONPATH": str(tmp_path)})

    fine(result, "right")
