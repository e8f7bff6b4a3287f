"""The Hermes backend against the real CLI and a scripted model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from agents import Cli
from cases import CASES, Bench, check, fine
from subjects import HERMES

from pytest_caliper.backends.hermes import Hermes

pytestmark = [pytest.mark.real_cli, pytest.mark.slow_cli]

LIMIT = Hermes.max_prompt_bytes or 0
SUBJECT = replace(HERMES, lists_skills=True, judge_tools=frozenset({"todo"}))


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, hermes_cli: Cli, tmp_path: Path) -> None:
    check(name, SUBJECT, hermes_cli, tmp_path)


def test_a_target_names_provider_and_model(hermes_cli: Cli, tmp_path: Path) -> None:
    result, done = Bench(subject=SUBJECT, cli=hermes_cli, path=tmp_path).drive([{"text": "Hi."}], model="custom/other-model")

    fine(result, "Hi.")
    assert result["model"] == "other-model"
    assert [body["model"] for body in done.messages] == ["other-model"]


def test_the_longest_prompt_that_is_taken_arrives(hermes_cli: Cli, tmp_path: Path) -> None:
    """It begins with a dash, which must not make it an option."""
    prompt = "--help " + "x" * (LIMIT - 7)
    turns = [{"when": {"any": prompt}, "text": "read"}, {"text": "not read"}]

    result, _ = Bench(subject=SUBJECT, cli=hermes_cli, path=tmp_path).drive(turns, prompt=prompt)

    fine(result, "read")
