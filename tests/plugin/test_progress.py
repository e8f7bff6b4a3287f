"""What a session shows while attempts run: a line that comes and goes on a terminal, and never a trace of it in what pytest wrote."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from screen import Screen

from pytest_caliper.running.estimate import Cell, Past
from pytest_caliper.running.heartbeat import short_line
from pytest_caliper.running.progress import Running, expected, time_left
from pytest_caliper.running.status_line import StatusLine, fitting
from pytest_caliper.runs.records import AttemptKey


def key(task: str = "a", attempt: int = 1, arm: str = "skill") -> AttemptKey:
    return AttemptKey(spec="s", task_id=task, arm=arm, attempt=attempt)


# -- how long what is left takes ------------------------------------------------------------------------------------------------


def test_nothing_tells_nothing():
    assert expected([], Past(), [key()]) is None


def test_this_session_goes_before_earlier_ones_and_others_stand_in_for_what_is_new():
    past = Past(seconds={Cell.of(key("a")): 100.0, Cell.of(key("b")): 50.0})
    ended = [(key("a", 1), 10.0), (key("a", 2), 20.0)]
    assert expected(ended, past, [key("a", 3), key("b", 3), key("c", 3)]) == {
        Cell.of(key("a")): 15.0,
        Cell.of(key("b")): 50.0,
        Cell.of(key("c")): 15.0,
    }
    assert expected([], past, [key("c")]) == {Cell.of(key("c")): 75.0}


@pytest.mark.parametrize(
    ("left", "running", "workers", "seconds"),
    [
        ([key("a", 1), key("a", 2)], [(key("a", 1), 4.0)], 1, 16.0),
        ([key("a", 1), key("a", 2)], [(key("a", 1), 4.0)], 2, 10.0),
        ([key("a", 1)], [(key("a", 1), 400.0)], 2, 0.0),  # longer than expected: nobody knows how much longer
        ([key("a", 2)], [(key("a", 1), 4.0), (None, 3.0)], 2, 10.0),  # what has ended, and what is no attempt, holds no place
    ],
)
def test_what_runs_has_a_part_behind_it(left, running, workers, seconds):
    now = [Running(nodeid="x", seconds=so_far, key=one) for one, so_far in running]
    assert time_left(left, {Cell.of(key("a")): 10.0}, now, workers, {}) == seconds


def test_attempts_of_one_group_are_left_one_after_another():
    left = [key("a", n) for n in (1, 2, 3)]
    now = [Running(nodeid="x", seconds=4.0, key=left[0])]
    assert time_left(left, {Cell.of(key("a")): 10.0}, now, 4, {("s", "a"): "group"}) == 26.0


# -- the line -------------------------------------------------------------------------------------------------------------------


def test_the_line_says_what_runs_what_is_left_and_what_takes_longest():
    running = [("d/x.eval.yaml::Task one::attempt-2", 84.2), ("d/x.eval.yaml::Two::attempt-1", 3.0)]
    assert short_line(running, "9 of 18 left, about 4 min") == (
        "caliper: 2 running, 9 of 18 left, about 4 min; longest 84 s: Task one attempt-2"
    )
    assert short_line([("test_it.py", 3.0)]) == "caliper: 1 running; longest 3 s: test_it.py"
    assert short_line([], "9 of 18 left") == ""


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("short", 10, "short"),
        ("just ten..", 10, "just ten.."),
        ("more than ten", 10, "more th..."),
        ("漢字漢字漢字", 10, "漢字漢..."),
        ("e\u0301" * 10, 10, "e\u0301" * 10),
        ("a\x1b[2Jb\nc\u202ed", 40, r"a\x1b[2Jb c\u202ed"),
    ],
)
def test_names_are_cut_by_columns_and_made_harmless(text, columns, shown):
    assert fitting(text, columns) == shown


@given(st.text(), st.integers(10, 100))
def test_whatever_the_text_it_stays_within_its_line(text, columns):
    shown = fitting(text, columns)
    screen = Screen(width=columns + 1)
    screen.feed(shown)
    assert screen.row == 0


class Terminal:
    """A screen that pytest's words and the line are written to in turn, as on a terminal."""

    def __init__(self, width: int = 80, height: int = 6) -> None:
        self.screen, self.wrote = Screen(width, height), Screen(width, height)
        self.text, self._read_end = "caliper: 2 running", None
        self._read, self._out = os.pipe()
        os.set_blocking(self._read, False)
        self.line = StatusLine(
            lambda: self.text, column=lambda: self.wrote.column, width=lambda: width, unicode=True, out=self._out
        )

    def take(self):
        try:
            self.screen.feed(os.read(self._read, 65536).decode())
        except BlockingIOError:
            pass

    def write(self, text, *, hold=False):
        """pytest writes."""
        with self.line.away(hold=hold):
            self.take()
            self.screen.feed(text)
            self.wrote.feed(text)

    def show(self):
        self.line.show()
        self.take()

    def end(self):
        self.line.close()
        self.take()
        os.close(self._read)
        os.close(self._out)


@contextmanager
def terminal(**size):
    made = Terminal(**size)
    try:
        yield made
    finally:
        made.end()


def test_the_line_stands_below_and_the_cursor_where_it_was():
    with terminal() as term:
        term.write("demo.eval.yaml ..")
        term.show()
        assert term.screen.lines == ["demo.eval.yaml ..", "caliper: 2 running"]
        assert (term.screen.row, term.screen.column) == (0, 17)
        term.write("F")
        assert [line for line in term.screen.lines if line] == ["demo.eval.yaml ..F"]
        term.text = "caliper: 1 running, and more"
        term.show()
        term.text = "caliper: 1 running"
        term.show()
        assert term.screen.lines == ["demo.eval.yaml ..F", "caliper: 1 running"]


def test_nothing_is_shown_before_pytest_has_written_nor_while_others_may_write():
    with terminal() as term:
        term.show()
        assert term.screen.lines == [""]
        term.write("x", hold=True)
        term.show()
        assert term.screen.lines == ["x"]
        term.write("y")
        term.show()
        assert term.screen.lines == ["xy", "caliper: 2 running"]


def test_nothing_is_shown_where_the_cursor_is_not_known():
    with terminal(width=40) as term:
        term.line._column = lambda: 41
        term.write("x" * 41)
        term.show()
        assert [line for line in term.screen.lines if line] == ["x" * 40, "x"]


@given(
    st.lists(
        st.one_of(
            st.just(None),
            st.text("ab", min_size=1, max_size=30).map(lambda text: text + "\n"),
            st.sampled_from([".", "F", "\n", "name.eval.yaml "]),
        ),
        max_size=60,
    )
)
def test_what_pytest_wrote_is_what_stays(steps):
    with terminal(width=60, height=5) as term:
        shown = 0
        for step in steps:
            if step is None:
                shown += 1
                term.text = f"caliper: {shown} running"
                term.show()
            elif term.wrote.column + len(step) < 60:
                term.write(step)
        term.line.close()
        term.take()
        assert [line for line in term.screen.lines if line] == [line for line in term.wrote.lines if line]


# -- a session on a terminal ----------------------------------------------------------------------------------------------------

FAST = "\nimport pytest_caliper.running.status_line\npytest_caliper.running.status_line.INTERVAL_S = 0.05\n"
SPEC = """
tasks:
  - {name: Slow, prompt: 'for i in $(seq 600); do [ -e SEEN ] && break; sleep 0.1; done; echo a', expect: x}
  - {name: Fast, prompt: echo SAY-NO, expect: x}
"""


def on_a_terminal(project, *words, until=None, env=None, interrupt=False, spec=SPEC):
    """Run pytest on a terminal of 80 columns; the slow task ends when `until` was written. -> all that was written, status."""
    project.makeconftest((project.path / "conftest.py").read_text() + FAST)
    seen = project.path / "seen"
    project.spec(spec.replace("SEEN", str(seen)))
    if until is None:
        seen.touch()
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in {"CI", "COLUMNS", "NO_COLOR", "GITHUB_ACTIONS"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "demo.eval.yaml", "--caliper-k=2", *words],
        cwd=project.path,
        env={**clean, "TERM": "xterm", "COLUMNS": "80", **(env or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    text, end = b"", time.monotonic() + 120
    while time.monotonic() < end:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(ours, 65536)
        except OSError:  # Linux: the other end is closed
            data = b""
        text += data
        if not data:
            break
        if until is not None and re.search(until, text.decode("utf-8", "replace")):
            if interrupt:
                process.send_signal(2)
            seen.touch()
            until = None
    process.kill() if process.poll() is None and time.monotonic() >= end else None
    status = process.wait(60)
    os.close(ours)
    assert until is None, text.decode("utf-8", "replace")
    return text.decode("utf-8", "replace"), status


def after(text: str) -> list[str]:
    screen = Screen(80)
    screen.feed(text)
    return screen.lines


@pytest.mark.parametrize("extra", [[], ["-v"], ["-n2"], ["--color=no"]], ids=["pool", "verbose", "n2", "plain"])
def test_a_line_tells_what_runs_and_leaves_no_trace(project, extra):
    text, status = on_a_terminal(project, *extra, until=r"caliper: \d running, \d of 4 left")
    assert status == 1
    assert "; longest " in text
    lines = after(text)
    assert not [line for line in lines if " running, " in line]
    assert any(re.match(r"demo\.eval\.yaml(::| )|[.F]{4}", line) for line in lines)
    if not extra:
        assert any(re.fullmatch(r"demo\.eval\.yaml [.F]{4} +\[100%\]", line) for line in lines), lines


def test_when_attempts_have_ended_it_says_about_how_long_the_rest_takes(project):
    on_a_terminal(
        project, until=r"caliper: \d running, [123] of 4 left, (under 10 s|about \d+ \w+); longest \d+ s: Slow attempt-\d"
    )


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (["-q"], {}),
        (["-s"], {}),
        (["--capture=tee-sys"], {}),
        (["--setup-show"], {}),
        (["-p", "no:terminal"], {}),
        (["--log-cli-level=info"], {}),
        ([], {"TERM": "dumb"}),
        ([], {"CI": "true"}),
        ([], {"PYCHARM_HOSTED": "1"}),
    ],
    ids=["quiet", "s", "tee", "setup-show", "no-terminal", "live-logs", "dumb", "ci", "pycharm"],
)
def test_where_it_could_meet_other_words_there_is_no_line(project, words, env):
    text, _ = on_a_terminal(project, *words, env=env)
    assert "\x1b[A" not in text
    assert " running" not in text


def test_ctrl_c_takes_it_away_and_the_next_step_is_to_go_on(project):
    text, status = on_a_terminal(project, until=r"caliper: \d running, \d of 4 left", interrupt=True)
    assert status == 2
    lines = after(text)
    assert not [line for line in lines if " running, " in line]
    assert "next: pytest demo.eval.yaml --caliper-k=2 --caliper-resume" in lines


# -- what comes next ------------------------------------------------------------------------------------------------------------


def next_of(project, *words, env=None, spec=SPEC) -> list[str]:
    text, _ = on_a_terminal(project, *words, env=env, spec=spec)
    return [line for line in after(text) if line.startswith("next: ")]


def test_the_summary_suggests_one_step(project):
    (line,) = next_of(project)
    assert re.match(r"next: caliper report results/demo/\S+\.json --format ht", line), line  # the rest is on the next row
    assert next_of(project, "-k", "Slow") == ["next: pytest demo.eval.yaml --caliper-k=2 -k Slow --caliper-baseline"]
    (line,) = next_of(project, "-k", "Slow", "--caliper-baseline")
    assert line.startswith("next: caliper compare results/demo/")
    assert next_of(project, "--caliper-check", "--caliper-no-judge") == []
    assert next_of(project, "-q") == []
    assert next_of(project, env={"CI": "1"}) == []


def test_after_checks_that_are_in_order_comes_a_first_run(project):
    spec = """
    tasks:
      - {name: A, prompt: go, solution: touch out, assert: 'from pathlib import Path; assert Path("out").exists()'}
    """
    assert next_of(project, "--caliper-check", spec=spec) == ["next: caliper run demo.eval.yaml --k 1"]
    assert next_of(project, "--caliper-check", spec=spec.replace("touch", "echo")) == []


def test_in_a_pipe_nothing_is_suggested(project):
    project.spec(SPEC.replace("SEEN", "/"))
    assert "next: " not in project.runpytest("demo.eval.yaml", "--caliper-k=1").stdout.str()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--caliper-basline", "there is no option --caliper-basline; did you mean --caliper-baseline?"),
        ("--caliper-modle=x", "there is no option --caliper-modle; did you mean --caliper-model?"),
        ("--caliper-zzz", "there is no option --caliper-zzz; pytest --help lists those of caliper"),
    ],
)
def test_a_slip_in_an_option_is_told_with_what_was_meant(project, word, said):
    result = project.runpytest("demo.eval.yaml", word)
    assert result.ret == 4
    assert f"ERROR: {said}" in result.stderr.lines


def test_an_option_of_somebody_else_that_begins_so_is_theirs(project):
    project.makeconftest(
        (project.path / "conftest.py").read_text() + "\ndef pytest_addoption(parser):\n    parser.addoption('--caliper-colour')\n"
    )
    project.makepyfile("def test_it():\n    pass\n")
    assert project.runpytest("--caliper-colour=red").ret == 0
