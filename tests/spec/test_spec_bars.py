"""`bar:` in a spec: what is a rate, where it may stand, and on which line a wrong one is told."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from pytest_caliper.runs.digests import task_hash
from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.rates import parse_rate
from pytest_caliper.spec.schema import json_schema

Mistakes = Callable[[str | bytes], list[str]]
TASK = "tasks:\n  - name: a\n    prompt: b\n    expect: the answer is right\n"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0.8", "4/5"),
        ("4/5", "4/5"),
        ("80%", "4/5"),
        ("62.5%", "5/8"),
        (".8", "4/5"),
        ("1", "1"),
        ("1.0", "1"),
        ("100%", "1"),
        ("3/3", "1"),
        ('"0.8"', "4/5"),
        ("0.1", "1/10"),
    ],
)
def test_a_bar_is_kept_exactly(tmp_path: Path, written: str, value: str) -> None:
    path = tmp_path / "x.eval.yaml"
    path.write_text(f"bar: {written}\n{TASK}    bar: {written}\n")
    spec = load_spec(path)
    assert spec.bar == spec.tasks[0].bar == Fraction(value)


WRONG = [
    "0",
    "0.0",
    "80",
    "1.01",
    "101%",
    "-0.5",
    "5/4",
    "0/5",
    "4/0",
    "1e-1",
    "4 / 5",
    "nan",
    "x",
    '""',
    "1:30",
    "1_0/2_0",
    "٣/٤",
]


@pytest.mark.parametrize("written", WRONG)
@pytest.mark.parametrize(("head", "tail", "line"), [("bar: {}\n", "", 1), ("", "    bar: {}\n", 5)], ids=["spec", "task"])
def test_what_is_no_rate_is_told_on_its_line(mistakes: Mistakes, written: str, head: str, tail: str, line: int) -> None:
    [found] = mistakes(head.format(written) + TASK + tail.format(written))
    assert found.startswith(f"{line}: `bar` is ")
    assert found.endswith("not a rate: write one above 0 and at most 1, such as 0.8, 80% or 4/5")


@pytest.mark.parametrize(
    ("written", "kind"), [("[0.8]", "a list"), ("{a: 1}", "a mapping"), ("yes", "a boolean"), ("2024-01-01", "a date")]
)
def test_values_of_other_kinds_are_named(mistakes: Mistakes, written: str, kind: str) -> None:
    [found] = mistakes(f"bar: {written}\n{TASK}")
    assert found.startswith(f"1: `bar` is {kind}, not a rate")


def test_absent_and_blank_are_no_bar(tmp_path: Path) -> None:
    path = tmp_path / "x.eval.yaml"
    for text in (TASK, f"bar:\n{TASK}    bar: ~\n"):
        path.write_text(text)
        spec = load_spec(path)
        assert spec.bar is None
        assert spec.tasks[0].bar is None


def test_a_misspelt_bar_is_recognised(mistakes: Mistakes) -> None:
    [found] = mistakes(f"bra: 0.8\n{TASK}")
    assert "did you mean `bar`?" in found


def test_a_bar_is_no_part_of_what_a_task_measures(tmp_path: Path) -> None:
    path = tmp_path / "x.eval.yaml"
    hashes = set()
    for tail in ("", "    bar: 0.5\n", "    bar: 4/5\n"):
        path.write_text(TASK + tail)
        hashes.add(task_hash(load_spec(path).tasks[0]))
    assert len(hashes) == 1


def test_a_share_may_be_nothing_and_a_bar_may_not() -> None:
    assert parse_rate("0", least=0) == 0
    with pytest.raises(ValueError, match="above 0"):
        parse_rate("0")
    with pytest.raises(ValueError, match="at least 0"):
        parse_rate("2", least=0)


def test_editors_know_the_forms() -> None:
    schema = json_schema()
    for properties in (schema["properties"], schema["$defs"]["TaskModel"]["properties"]):
        bar = properties["bar"]
        assert set(bar["type"]) == {"number", "string", "null"}
        assert (bar["exclusiveMinimum"], bar["maximum"]) == (0, 1)
        assert bar["pattern"].startswith("^(")
        assert bar["pattern"].endswith(")$")
