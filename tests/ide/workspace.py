"""A workspace as an editor opens it: specs whose agent is a shell, run by processes that the editor's side starts."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "support"
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
addopts = -p no:cacheprovider
"""
BOUND_S = 120.0
"""Far above what any of these sessions takes."""

NASTY = (
    "plain",
    "Grüße an 世界",
    "emoji 🎉 👩‍👩‍👧‍👦",
    "שלום עולם",
    "left \u202eright\u202c left",
    "param[1]",
    "[",
    "]]unbalanced[[",
    "a::b",
    "::a::",
    "ends with a colon:",
    "a/b/c.py",
    "back\\slash",
    "line\nbreak",
    "carriage\rreturn",
    "line\u2028separator",
    "next\u0085line and vertical\u000btab",
    "tab\there",
    " $HOME `x` $(x) ",
    "'single' and \"double\"",
    "semi; & | > out",
    "--caliper-k=7",
    "-x",
    "@group",
    "..",
    "dots.in.the.name v1.2",
    "name (with parentheses)",
    "name(glued)",
    "percent %s %20 {0}",
    "|service[message]|n##teamcity",
    "<b>html</b> &amp;",
    "bell\u0007 and \u001b[31mred\u001b[0m",
    "x" * 300,
    "🎉" * 300,
)
"""Names of tasks that some editor's side has been seen to stumble over."""


PYTHON = """\
import pytest


@pytest.mark.caliper(k=2)
@pytest.mark.parametrize("word", ["a b", "x/y"])
def test_says(caliper, word):
    run = caliper.run(f"echo {word}")
    assert run.answer == "a b"


def test_unit():
    pass
"""
"""Attempts in plain Python, beside a test that is none."""


class Workspace:
    """A directory with an ini file, the shell agent and whatever specs are put in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "conftest.py").write_text(CONFTEST)
        (path / "pytest.ini").write_text(INI)

    def spec(self, text: str, name: str = "demo.eval.yaml") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def ini(self, *lines: str) -> None:
        """Add settings to the ini file."""
        (self.path / "pytest.ini").write_text("\n".join([INI, *lines]) + "\n")

    def environment(self, **more: str) -> dict[str, str]:
        """What the editor was started with, and what it adds."""
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TEAMCITY_"))}
        return {**known, "PYTHONDONTWRITEBYTECODE": "1", **more}


def text_of(value: str) -> str:
    """`value` as a double-quoted YAML scalar, pure ASCII."""

    def one(char: str) -> str:
        if char in '"\\':
            return "\\" + char
        code = ord(char)
        return char if 0x20 <= code < 0x7F else f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"

    return '"' + "".join(map(one, value)) + '"'


def nasty_spec(names: tuple[str, ...] = NASTY) -> str:
    """A spec with one task per name; every second one fails."""
    tasks = [f"  - {{name: {text_of(name)}, prompt: echo hi, assert: assert {n % 2 == 0}}}\n" for n, name in enumerate(names)]
    return "tasks:\n" + "".join(tasks)


python = sys.executable
