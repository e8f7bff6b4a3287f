"""Given a program of the user's as agent and judge, when pytest runs a spec, then its attempts are attempts like any other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shell_agent import read_runs

PAGE = Path(__file__).parents[2] / "docs" / "command-backend.md"
COMMAND = "command:python3 ./my_agent.py"
SPEC = """
skill: ./pirate
tasks:
  - name: Greets
    prompt: Greet Bob.
    assert: |
      assert attempt.answer == "Ahoy!"
      assert attempt.skills == ["pirate"]
      assert [call.name for call in attempt.tool_calls] == ["read_file"]
    expect: The answer is a pirate's greeting.
"""


@pytest.fixture
def agent(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with the page's example and a skill."""
    (text,) = re.findall(r"<!-- command example.*?-->\n```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (pytester.path / "my_agent.py").write_text(text)
    pytester.mkdir("pirate").joinpath("SKILL.md").write_text("---\nname: pirate\ndescription: Greets.\n---\nLike a pirate.\n")
    (pytester.path / "demo.eval.yaml").write_text(SPEC)
    pytester.makefile(".ini", pytest="[pytest]\ncaliper_results = results\n")
    return pytester


def run(agent: pytest.Pytester, *options: str) -> pytest.RunResult:
    engines = (f"--caliper-model={COMMAND}", f"--caliper-judge-model={COMMAND}")
    return agent.runpytest_subprocess("demo.eval.yaml", *engines, "--caliper-k=2", "-p", "no:cacheprovider", *options)


def test_the_pages_example_runs_and_judges(agent: pytest.Pytester) -> None:
    result = run(agent, "--caliper-baseline")

    result.assert_outcomes(passed=2, xfailed=2)
    (saved,) = read_runs(agent.path / "results")
    assert (saved["run"]["backend"], saved["run"]["model"]) == ("command", "my-model-1")
    attempts = saved["task_results"][0]["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["pass", "pass"]
    assert attempts[0]["skills_reported"] == ["pirate"]
    assert attempts[0]["skills_used"] == ["pirate"]
    assert attempts[0]["usage"]["output_tokens"] == 1
    assert attempts[0]["autorater_reasoning"] == "It did not give up."
    baseline = saved["baseline_task_results"][0]["attempts"]
    assert [attempt["skills_reported"] for attempt in baseline] == [[], []]


def test_it_is_recorded_and_replayed(agent: pytest.Pytester) -> None:
    run(agent, "--caliper-record").assert_outcomes(passed=2)
    (agent.path / "my_agent.py").unlink()

    run(agent, "--caliper-replay").assert_outcomes(passed=2)


def test_a_missing_program_is_a_usage_error(agent: pytest.Pytester) -> None:
    result = agent.runpytest_subprocess(
        "demo.eval.yaml", "--caliper-model=command:./no-agent", "--caliper-judge-model=command:true"
    )

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*command: *no-agent is no executable file: correct the target, or install the program*"])
