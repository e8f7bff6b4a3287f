"""Specs that run on the shell agent, in a directory of their own."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
import yaml  # noqa: F401  pytester forgets what a session imported, and its C parser cannot be imported twice

SUPPORT = Path(__file__).parent.parent / "support"
sys.path.insert(0, str(SUPPORT))

CONFTEST = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from shell_agent import ShellAgent

def pytest_caliper_backends(config):
    return [ShellAgent()]
"""

INI = """
[pytest]
caliper_model = shell-agent
caliper_judge_model = shell-agent
caliper_results = results
addopts = -p no:cacheprovider -p no:hypothesispytest -p no:anyio -p no:pytest-teamcity
"""


@pytest.fixture
def project(pytester: pytest.Pytester):
    """`pytester` with the shell agent as the default engine, a skill, `spec(text)`, which writes `demo.eval.yaml`, `session(…)`."""
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".ini", pytest=INI)
    skill = pytester.path / "skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: greeter\ndescription: Greets.\n---\nSay hello.\n")

    def spec(text: str, name: str = "demo", *, skill: bool = True) -> Path:
        path = pytester.path / f"{name}.eval.yaml"
        head = "skill:\n  path: ./skill\n" if skill else ""
        path.write_text(head + textwrap.dedent(text))
        return path

    def session(*args: object) -> pytest.RunResult:
        """A session in this process: several times faster than one of its own. One that is interrupted (status 2) returns too."""
        return pytester.runpytest_inprocess(*args, no_reraise_ctrlc=True)

    pytester.spec = spec
    pytester.session = session
    return pytester
