"""Workflow commands and the step's summary, without a session."""

from __future__ import annotations

import os
import re
from pathlib import Path

import builders as b
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_caliper.reporting.github import (
    SUMMARY_BYTES,
    Annotations,
    append_summary,
    on_github,
    path_on_github,
    workflow_command,
)

SPEC = "evals/commit.eval.yaml"


def read(command: str) -> tuple[str, dict[str, str], str]:
    """A command as a runner reads it: name, properties, message."""
    name, _, rest = command.removeprefix("::").partition(" ")
    said, _, message = rest.partition("::")
    properties = dict(pair.split("=", 1) for pair in said.split(","))

    def plain(text: str, *names: str) -> str:
        for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            text = text.replace(code, char) if char not in ":," or names else text
        return text

    return name, {key: plain(value, "property") for key, value in properties.items()}, plain(message)


def test_a_command_is_one_line_with_everything_escaped():
    command = workflow_command("error", "50%\r\n::warning::x", file="a,b:c.yaml", line=8, title="t: 100%\nx")

    assert command == "::error file=a%2Cb%3Ac.yaml,line=8,title=t%3A 100%25%0Ax::50%25%0D%0A::warning::x"


@settings(deadline=None)
@given(st.text(min_size=1), st.text(min_size=1))
def test_what_is_said_is_what_is_read(title: str, message: str):
    command = workflow_command("warning", message, file="a.yaml", line=1, title=title)

    assert len(re.split("[\r\n]", command)) == 1
    assert read(command) == ("warning", {"file": "a.yaml", "line": "1", "title": title}, message)


@pytest.mark.parametrize(("value", "answer"), [("true", True), ("false", False), ("", False), (None, False)])
def test_on_github(value, answer):
    assert on_github({} if value is None else {"GITHUB_ACTIONS": value}) is answer


def test_paths_are_relative_to_the_workspace(tmp_path):
    spec = tmp_path / "repo" / "evals" / "a.eval.yaml"
    spec.parent.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "repo")

    assert path_on_github(spec, {"GITHUB_WORKSPACE": str(tmp_path / "repo")}) == "evals/a.eval.yaml"
    assert path_on_github(spec, {"GITHUB_WORKSPACE": str(tmp_path / "link")}) == "evals/a.eval.yaml"
    assert path_on_github(tmp_path / "link/evals/a.eval.yaml", {"GITHUB_WORKSPACE": str(tmp_path)}) == "repo/evals/a.eval.yaml"
    assert path_on_github(spec, {"GITHUB_WORKSPACE": "/elsewhere"}) == spec.resolve().as_posix()


def test_without_a_workspace_paths_are_relative_to_the_repository(tmp_path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)

    assert path_on_github(tmp_path / "repo" / "a.eval.yaml", {}) == "a.eval.yaml"


# -- annotations ----------------------------------------------------------------------------------------------------------------


def report(
    name: str, outcome: str, reason: str = "why", *, task: str = "Commits", when: str = "call", xfail: bool = False
) -> pytest.TestReport:
    longrepr = None if outcome == "passed" else ("/p/x.eval.yaml", 8, f"Skipped: {reason}") if outcome == "skipped" else reason
    made = pytest.TestReport(
        nodeid=f"{SPEC}::{task}::{name}",
        location=(SPEC, 7, f"{task}.{name}"),
        keywords={},
        outcome=outcome,  # type: ignore[arg-type]
        longrepr=longrepr,
        when=when,  # type: ignore[arg-type]
    )
    if xfail:
        made.wasxfail = "baseline, without the skill: task_fail"
    return made


def annotated(*reports: pytest.TestReport, failures: bool = True) -> list[tuple[str, dict[str, str], str]]:
    seen = Annotations(Path("/work"), {"GITHUB_WORKSPACE": "/work"})
    for one in reports:
        seen.pytest_runtest_logreport(one)
    return [read(line) for line in seen.lines(failures=failures)]


def test_one_error_per_task_on_its_line():
    assert annotated(
        report("attempt-1", "passed"), report("attempt-2", "failed", "a\nb"), report("attempt-3", "failed", "c")
    ) == [("error", {"file": SPEC, "line": "8", "title": "Commits: 2 of 3 attempts failed"}, "attempt-2: a b\nattempt-3: c")]


def test_the_order_is_that_of_the_spec_and_of_the_attempts():
    """xdist reports attempts as they end."""
    later = report("attempt-1", "failed", task="Later")
    later.location = (SPEC, 20, "Later.attempt-1")
    told = annotated(later, *(report(f"attempt-{n}", "failed", "x") for n in (10, 2, 1)))

    assert [said["line"] for _, said, _ in told] == ["8", "21"]
    assert told[0][2] == "attempt-1: x\nattempt-2: x\nattempt-10: x"


def test_passing_and_expected_failures_are_silent():
    assert annotated(report("attempt-1", "passed"), report("baseline-1", "skipped", xfail=True)) == []
    assert annotated(report("attempt-1", "skipped"), report("attempt-2", "passed"), report("baseline-1", "passed")) == []


def test_a_task_that_was_not_measured_is_a_warning():
    told = annotated(report("attempt-1", "skipped", "infra_error: 429"), report("baseline-1", "skipped", xfail=True))

    assert told == [
        ("warning", {"file": SPEC, "line": "8", "title": "Commits: nothing was measured"}, "attempt-1: infra_error: 429")
    ]
    assert (
        annotated(report("attempt-1", "passed"), report("baseline-1", "skipped", "timeout: x"))[0][2] == "baseline-1: timeout: x"
    )


def test_a_missed_bar_is_the_tasks_error():
    told = annotated(report("attempt-1", "skipped", xfail=True), report("bar", "failed", "the bar of 80% is missed: 0/1 passed"))

    assert [(name, said["title"]) for name, said, _ in told] == [("error", "Commits: the bar was not reached")]


def test_a_bar_that_nothing_was_selected_for_is_silent():
    assert annotated(report("bar", "skipped", "no attempt was selected with the bar")) == []


def test_failures_are_left_to_a_plugin_that_annotates_them():
    reports = [report("attempt-1", "failed"), report("attempt-1", "skipped", "timeout: x", task="Other")]

    assert [name for name, _, _ in annotated(*reports, failures=False)] == ["warning"]


def test_other_tests_are_not_ours():
    other = pytest.TestReport("tests/test_a.py::test_b", ("tests/test_a.py", 1, "test_b"), {}, "failed", "x", "call")

    assert annotated(other) == []


def test_many_failures_are_counted_not_listed():
    (told,) = annotated(*(report(f"attempt-{n}", "failed", "x" * 9000) for n in range(1, 41)))

    assert told[1]["title"] == "Commits: 40 of 40 attempts failed"
    assert told[2].endswith("\nand 35 more")
    assert len(told[2]) < 3_000


def test_a_broken_fixture_counts_as_a_failure():
    (told,) = annotated(report("attempt-1", "failed", "boom", when="setup"), report("attempt-2", "passed"))

    assert told[1]["title"] == "Commits: 1 of 1 attempt failed"


# -- the step's summary ---------------------------------------------------------------------------------------------------------


def test_the_summary_is_appended(tmp_path):
    path = tmp_path / "summary.md"
    path.write_text("# What was there\n")

    assert append_summary([b.run(b.task("PFP")), b.run(b.task("PPP"), spec="other.eval.yaml")], path) is None
    text = path.read_text()
    assert text.startswith("# What was there\n<!-- pytest-caliper:evals/commit.eval.yaml -->\n")
    assert "\n<!-- pytest-caliper:other.eval.yaml -->\n" in text


def test_a_summary_never_passes_githubs_limit(tmp_path):
    path = tmp_path / "summary.md"
    path.write_bytes(b"x" * (SUMMARY_BYTES - 4_000))
    runs = [b.run(b.task("PPP")), b.run(b.task("PPP")), b.run(*(b.task("FFF", number=n) for n in range(1, 9)))]

    assert append_summary(runs, path) == "GITHUB_STEP_SUMMARY is full, 1 run left out: GitHub takes 1 MiB per step"
    assert path.stat().st_size <= SUMMARY_BYTES
    assert path.read_text().rstrip().endswith("</sub>")


def test_a_summary_that_cannot_be_written_is_told(tmp_path):
    assert "cannot be written" in str(append_summary([b.run(b.task("PPP"))], tmp_path))
    assert "cannot be written" in str(append_summary([b.run(b.task("PPP"))], tmp_path / "no" / "such"))


def test_lone_surrogates_reach_the_summary_as_escapes(tmp_path):
    path = tmp_path / "summary.md"

    assert append_summary([b.run(b.task("FFF", output="\ud800", reason="a\ud800"), spec="\udcff.eval.yaml")], path) is None
    assert "\\ud800" in path.read_text(encoding="utf-8")
    assert os.fsencode("\udcff") not in path.read_bytes()
