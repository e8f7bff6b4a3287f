"""Runners, and PyCharm, obey lines of a log. None of ours may be one of its commands unless it was meant to be."""

from __future__ import annotations

import itertools
import re

import builders as b
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from pytest_caliper.reporting.comparing import compare_runs
from pytest_caliper.reporting.comparison import render_comparison
from pytest_caliper.reporting.failures import render_failure
from pytest_caliper.reporting.layout import wrapped
from pytest_caliper.reporting.saved_run import render_run
from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.terminal import render_summary
from pytest_caliper.reporting.text import inert_in_logs, one_line, printable

COMMANDS = (
    "::error file=a.py,line=1::pwned",
    "::add-mask::e",
    "::stop-commands::x",
    "##[error]pwned",
    "##[group]g",
    "::set-env name=PATH::x",
    "##teamcity[testFinished name='a']",
    "##teamcity['message']",
    "##vso[task.setvariable]x",
)
EDGES = [
    "\n",
    "\r",
    "\r\n",
    " ",
    "\t",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\x0b",
    "\x0c",
    "\x85",
    "\x1b[31m",
    "a",
    "x" * 30,
    "日本",
    "::",
    "##",
    "#",
    ":",
]
texts = st.lists(st.sampled_from([*EDGES, *COMMANDS]), max_size=12).map("".join)


def obeyed(log: str) -> list[str]:
    """The lines that a runner takes for commands, as its ActionCommand.cs reads them."""
    lines = re.split(r"\r\n|\r|\n", log)
    spaces = "".join(c for c in map(chr, range(0x3001)) if c.isspace() and c not in "\x1c\x1d\x1e\x1f")
    return [
        line
        for line in lines
        if re.match(r"::[A-Za-z-]+( [^\n]*)?::", line.lstrip(spaces))
        or re.search(r"##(teamcity|VSO|vso)?\[['A-Za-z.-]+( [^\]]*)?\]", line)
    ]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("before", ["", "  ", "\t", "\u00a0", "text\n", "text\r\n", "\n\n \u3000"])
def test_the_check_itself_finds_commands(command, before):
    assert obeyed(before + command)
    assert not obeyed(inert_in_logs(before + command))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", "\\x3a:error::x"),
        ("a\n  ::group::x", "a\n  \\x3a:group::x"),
        ("see ##[debug]x", "see \\x23#[debug]x"),
        ("##teamcity[testStarted name='a']", "\\x23#teamcity[testStarted name='a']"),
        ("a ##VSO[task.complete]", "a \\x23#VSO[task.complete]"),
        ("## teamcity[x] ##team[x]", "## teamcity[x] ##team[x]"),
        ("std::vector<int>", "std::vector<int>"),
        ("a.py::test_b", "a.py::test_b"),
        ("## [Unreleased]\n##[1.0]\n::1", "## [Unreleased]\n##[1.0]\n::1"),
    ],
)
def test_only_commands_are_told_apart(text, shown):
    assert printable(text) == inert_in_logs(text) == shown
    assert inert_in_logs(shown) == shown


@settings(deadline=None)
@given(texts)
def test_no_text_is_a_command(text: str):
    assert not obeyed(printable(text))
    assert not obeyed(inert_in_logs(text))
    assert not obeyed(one_line(text))


@settings(deadline=None)
@given(texts, st.integers(40, 90), st.sampled_from(["", "  ", "            "]))
def test_wrapping_makes_no_command(text: str, width: int, indent: str):
    style = Style(width=width, color=False, unicode=True)
    lines = wrapped(Text(one_line(text)), style, indent=indent, first=Text("Key"[: len(indent)]))

    assert not obeyed("\n".join(line.plain for line in lines))
    assert all(line.cell_len <= width for line in lines)


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.sampled_from([40, 63, 80]), st.sampled_from([-1, 0, 1, 2]), st.booleans())
def test_no_report_makes_a_command_of_anybodys_words(said: list[str], width: int, verbosity: int, unicode: bool):
    words = itertools.cycle(said)
    fields = ("reason", "output", "assert_evidence", "autorater_reasoning", "cleanup_error", "fatal", "model", "judge_model")
    told = {name: next(words) for name in fields}
    one = b.task("PFT", name=next(words), assert_passed=False, autorater_passed=False, cheat_evidence=(next(words),), **told)
    made = b.run(
        one, b.task("CU-", number=2, name=next(words), **told), selected_tasks=(next(words),), spec=next(words), model=next(words)
    )
    style = Style(width=width, color=False, unicode=unicode)

    assert not obeyed(render_summary([made], style=style, verbosity=verbosity))
    assert not obeyed(render_run(made, style=style, verbosity=max(0, verbosity)))
    assert not obeyed(render_comparison(compare_runs(made, b.run(one)), style=style, verbosity=max(0, verbosity)))
    for record in one.attempts:
        text = render_failure(record, location=next(words), expect=next(words), transcript=next(words), style=style)
        assert not obeyed(text)
