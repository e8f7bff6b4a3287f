"""A saved run as JUnit XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from fractions import Fraction

import builders as b
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_caliper.reporting.junit import properties, render_junit
from pytest_caliper.runs.records import Bar


def suite(text: str) -> ET.Element:
    root = ET.fromstring(text.encode())
    assert root.tag == "testsuites"
    (found,) = root
    return found


def said(case: ET.Element) -> dict[str, str]:
    return {entry.attrib["name"]: entry.attrib["value"] for entry in case.findall("properties/property")}


def test_the_suite_counts_as_pytest_does():
    made = suite(render_junit(b.run(b.task("PFCU"), baseline=(b.task("PFPT", arm="baseline"),))))

    counts = {name: made.attrib[name] for name in ("tests", "failures", "errors", "skipped", "time")}
    assert counts == {"tests": "8", "failures": "2", "errors": "0", "skipped": "3", "time": "176.000"}
    assert made.attrib["timestamp"] == "2026-11-20T10:00:00Z"


def test_each_attempt_is_a_case_with_its_ending():
    cases = list(suite(render_junit(b.run(b.task("PFCT"), baseline=(b.task("FFPP", arm="baseline"),)))))

    assert {case.attrib["classname"] for case in cases} == {"evals.commit.eval.yaml.Writes a conventional commit message"}
    assert [case.attrib["name"] for case in cases] == [f"attempt-{n}" for n in range(1, 5)] + [
        f"baseline-{n}" for n in range(1, 5)
    ]
    endings = [
        next(((child.tag, child.get("type"), child.get("message")) for child in case if child.tag != "properties"), None)
        for case in cases
    ]
    assert endings == [
        None,
        ("failure", None, "assert port == 8080"),
        ("failure", None, "cheat: read the forbidden file secret.txt"),
        ("skipped", "pytest.skip", "timeout: no answer within 120 s"),
        *[("skipped", "pytest.xfail", "baseline, without the skill: task_fail")] * 2,
        None,
        None,
    ]


def test_properties_are_facts_and_never_transcripts():
    made = b.run(b.task("F", output="the answer", assert_evidence="evidence", autorater_reasoning="reasons"))
    text = render_junit(made)

    assert said(suite(text)[0]) == {
        "caliper.task": "Writes a conventional commit message",
        "caliper.arm": "skill",
        "caliper.attempt": "1",
        "caliper.outcome": "task_fail",
        "caliper.engine": "claude-code",
        "caliper.model": "claude-sonnet-4-5",
        "caliper.tokens_in": "51000",
        "caliper.tokens_out": "2000",
        "caliper.duration_seconds": "20.0",
        "caliper.wall_seconds": "22.0",
    }
    for private in ("the answer", "evidence", "reasons"):
        assert private not in text


def test_unknown_numbers_are_left_out():
    told = dict(properties(b.record("P", usage=None, model=None), engine="command"))

    assert set(told) == {
        f"caliper.{name}" for name in ("task", "arm", "attempt", "outcome", "engine", "duration_seconds", "wall_seconds")
    }
    assert {type(value) for value in told.values()} <= {str, int, float}


def test_the_engine_is_the_one_asked_for():
    made = b.run(b.task("P"), contract={"engine": "codex:gpt-5"})

    assert said(suite(render_junit(made))[0])["caliper.engine"] == "codex:gpt-5"


def test_a_bar_is_a_case_of_its_own():
    def endings(strip: str) -> list[tuple[str, str | None]]:
        bar = Bar(rate=Fraction(3, 5), policy="point", min_coverage=Fraction(1, 2))
        cases = suite(render_junit(b.run(b.task(strip, bar=bar))))
        return [
            (case.attrib["name"], case[-1].get("message") if case[-1:] and case[-1].tag != "properties" else None)
            for case in cases
        ]

    tolerated = "tolerated: the bar of 60% decides"
    assert endings("PFP") == [("attempt-1", None), ("attempt-2", tolerated), ("attempt-3", None), ("bar", None)]
    assert endings("PF")[-1] == ("bar", "the bar of 60% is missed: 1/2 passed, 50.0% [9.5, 90.5]")


HOSTILE = [
    "\x00",
    "\ufffe",
    "\uffff",
    "\ud800",
    "\x1b[31mred\x1b[0m",
    "]]>",
    "<!-- &amp; -->",
    "\u2028",
    "a\nb\r\n\tc",
    "\"'",
    "😀",
    "\x7f\x85",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_the_file_is_well_formed_whatever_the_texts_are(text):
    made = b.run(b.task("FUC", name=f"a{text}b", reason=text, model=text), spec=f"{text}.eval.yaml", contract={"engine": text})

    assert len(suite(render_junit(made))) == 3


@settings(deadline=None)
@given(st.text(st.characters(), max_size=40))
def test_any_text_makes_a_well_formed_file(text: str):
    made = b.run(b.task("FU", name=text or "x", reason=text, model=text), spec=text, backend=text)
    cases = suite(render_junit(made))

    assert [case.attrib["name"] for case in cases] == ["attempt-1", "attempt-2"]


def test_long_reasons_are_cut():
    assert len(render_junit(b.run(b.task("F", reason="x" * 100_000)))) < 5_000
