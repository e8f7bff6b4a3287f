"""What pytest's own `--junitxml` says of attempts."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

TASKS = """
tasks:
  - name: Works
    prompt: |
      echo '!tokens 70'
      echo fine
    assert: assert "fine" in attempt.answer
  - name: Fails
    prompt: echo no
    assert: assert "fine" in attempt.answer
  - name: Lost
    prompt: echo '!error lost'
    expect: The answer is there.
"""


def cases(project: pytest.Pytester) -> dict[str, ET.Element]:
    root = ET.parse(project.path / "out.xml").getroot()
    return {f"{case.attrib['classname']}::{case.attrib['name']}": case for case in root.iter("testcase")}


def said(case: ET.Element) -> dict[str, str]:
    return {entry.attrib["name"]: entry.attrib["value"] for entry in case.findall("properties/property")}


@pytest.mark.parametrize("options", [(), ("-n2",), ("-o", "junit_family=xunit1")], ids=" ".join)
def test_every_attempt_has_its_properties(project, options):
    project.spec(TASKS)
    project.session("demo.eval.yaml", "--caliper-k=2", "--caliper-baseline", "--junitxml=out.xml", *options)
    found = cases(project)

    assert len(found) == 12
    told = said(found["demo.eval.yaml.Works::baseline-2"])
    assert float(told.pop("caliper.duration_seconds")) >= 0
    assert float(told.pop("caliper.wall_seconds")) > 0
    assert told == {
        "caliper.task": "Works",
        "caliper.arm": "baseline",
        "caliper.attempt": "2",
        "caliper.outcome": "pass",
        "caliper.engine": "shell-agent",
        "caliper.model": "shell-1",
        "caliper.tokens_in": "70",
        "caliper.tokens_out": "1",
    }
    outcomes = {name: said(case)["caliper.outcome"] for name, case in found.items()}
    assert [outcomes[f"demo.eval.yaml.{task}::attempt-1"] for task in ("Works", "Fails", "Lost")] == [
        "pass",
        "task_fail",
        "infra_error",
    ]
    for case in found.values():
        names = [entry.attrib["name"] for entry in case.findall("properties/property")]
        assert len(names) == len(set(names))


def test_properties_of_the_users_own_stay(project):
    project.makeconftest(
        (project.path / "conftest.py").read_text()
        + """
import pytest

@pytest.fixture(autouse=True)
def mark(record_property):
    record_property("before", 1)
    yield
    record_property("after", 2)
"""
    )
    project.spec(TASKS)
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "--junitxml=out.xml")
    told = said(cases(project)["demo.eval.yaml.Works::attempt-1"])

    assert (told["before"], told["after"], told["caliper.outcome"]) == ("1", "2", "pass")


def test_the_file_is_valid_whatever_an_agent_says(project):
    project.spec(
        r"""
tasks:
  - name: "odd \x07 ]]> <name> 😀"
    prompt: |
      printf '\000 \033[31m ]]> <b> \357\277\276 \377 \302\205 "&amp;\n'
    assert: |
      assert attempt.answer == "x\x00\ufffe\ud800", attempt.answer
  - name: lost
    prompt: printf '!error \033[31m ]]> \357\277\276 \001\n'
    expect: The answer is there.
"""
    )
    result = project.session(
        "demo.eval.yaml", "--caliper-k=1", "--caliper-baseline", "--junitxml=out.xml", "-o", "junit_logging=all"
    )

    assert result.ret == 1
    assert len(cases(project)) == 4
    text = (project.path / "out.xml").read_bytes()
    assert not set(text) & {0, 1, 7, 27}


def test_resumed_attempts_have_them_too(project):
    """Attempts known from before have no item: their properties come another way."""
    project.spec(TASKS)
    project.session("demo.eval.yaml", "--caliper-k=2", "-x")
    project.session("demo.eval.yaml", "--caliper-k=2", "--caliper-resume", "--junitxml=out.xml")

    told = {name: said(case).get("caliper.outcome") for name, case in cases(project).items()}
    assert len(told) == 6
    assert set(told.values()) == {"pass", "task_fail", "infra_error"}
