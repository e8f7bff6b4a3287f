"""What other people's harnesses and judges hand back is looked at before it is believed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pytest_caliper.attempt.given import checked
from pytest_caliper.contracts import HarnessResult, Verdict
from pytest_caliper.runs.records import ChangedFile, Turn, Usage

RESULT = HarnessResult(
    answer="a",
    finished=True,
    transcript=(Turn(role="user", content="x"), Turn(role="tool_use", tool_name="Bash", tool_input={"command": "ls"})),
    usage=Usage(input_tokens=1),
    duration_s=2,
    skills_reported=("one",),
    changed_files=(ChangedFile(path="a", change="added", size=1),),
)


def test_what_is_right_comes_back_as_it_is() -> None:
    assert checked(RESULT, HarnessResult) is RESULT
    verdict = Verdict(assert_passed=False, assert_evidence="x", judge_s=0.5)
    assert checked(verdict, Verdict) is verdict


def test_lists_pass_for_tuples() -> None:
    transcript: Any = [Turn(role="user")]
    checked(HarnessResult(answer="a", finished=True, transcript=transcript), HarnessResult)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("answer", None),
        ("answer", b"a"),
        ("finished", 1),
        ("transcript", None),
        ("transcript", ("a",)),
        ("transcript", (Turn(role="nobody"),)),  # type: ignore[arg-type]
        ("transcript", (Turn(role="user", content=5),)),  # type: ignore[arg-type]
        ("transcript", (Turn(role="tool_use", tool_input="ls"),)),  # type: ignore[arg-type]
        ("usage", {"input_tokens": 1}),
        ("usage", Usage(input_tokens="1")),  # type: ignore[arg-type]
        ("usage", Usage(input_tokens=True)),
        ("error", ValueError("x")),
        ("duration_s", float("nan")),
        ("duration_s", float("inf")),
        ("duration_s", "2"),
        ("retries", 1.5),
        ("skills_used", (1,)),
        ("skills_reported", "one"),
    ],
)
def test_a_wrong_value_is_told_by_its_field(field: str, value: Any) -> None:
    wrong = dataclasses.replace(RESULT, **{field: value})
    with pytest.raises(TypeError, match=f"a HarnessResult whose {field} is "):
        checked(wrong, HarnessResult)


@pytest.mark.parametrize("value", [None, True, "pass", {}, HarnessResult, RESULT])
def test_something_else_is_told_by_what_it_is(value: object) -> None:
    with pytest.raises(TypeError, match="not a Verdict"):
        checked(value, Verdict)


def test_every_field_of_what_crosses_is_looked_at() -> None:
    """A type in these dataclasses that the check does not know would let everything pass, or nothing."""
    for kind, good in ((HarnessResult, RESULT), (Verdict, Verdict())):
        for field in dataclasses.fields(kind):
            with pytest.raises(TypeError, match=f"whose {field.name} is "):
                checked(dataclasses.replace(good, **{field.name: object()}), kind)
