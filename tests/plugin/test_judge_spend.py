"""The judge's tokens stand in the run file and below the table, apart from the agent's."""

from __future__ import annotations

import pytest
from shell_agent import read_runs

SPEC = """
tasks:
  - name: Asked
    prompt: "echo ok; echo '!tokens 1000'"
    expect: There is an answer.
  - name: Not asked
    prompt: echo ok
    assert: assert attempt.answer == "ok"
"""


@pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["ahead", "n2"])
def test_the_judges_tokens_are_kept_and_told_apart(project, extra):
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
from dataclasses import replace
from pytest_caliper.runs.records import Usage

class Counting(ShellAgent):
    name, aliases = "counting", ()
    def read_judge(self, raw):
        return replace(super().read_judge(raw), usage=Usage(input_tokens=500, output_tokens=30))

def pytest_caliper_backends(config):
    return [ShellAgent(), Counting()]
"""
    )
    project.spec(SPEC)
    result = project.session(
        "demo.eval.yaml", "--caliper-k=2", "--caliper-judge-model=counting", "--caliper-judge-votes=3", *extra
    )
    assert result.ret == 0
    [run] = read_runs(project.path / "results")
    asked, free = run["task_results"]
    assert [attempt["judge_usage"]["total_tokens"] for attempt in asked["attempts"]] == [1590, 1590]
    assert [attempt["usage"]["input_tokens"] for attempt in asked["attempts"]] == [1000, 1000]
    assert [attempt["judge_usage"] for attempt in free["attempts"]] == [None, None]
    result.stdout.fnmatch_lines(["Tokens  * 2.0K in / 2 out*", "Judge  * 3.0K in / 180 out, not counted above"])


def test_nothing_is_told_of_a_judge_that_does_not_count(project):
    project.spec(SPEC)
    result = project.session("demo.eval.yaml", "--caliper-k=1")
    assert not any(line.startswith("Judge  ") for line in result.outlines)
