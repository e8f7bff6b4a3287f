"""The end of a session: save, gate, and say what it came to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.announcing import has_announced
from pytest_caliper.options import is_spec
from pytest_caliper.process.interrupts import uninterrupted
from pytest_caliper.state import STATE, UNOPENED, State

if TYPE_CHECKING:
    from pytest_caliper.runs.records import Run


def finish(session: pytest.Session, state: State) -> None:
    """Save the runs. "Empty is never green": with a problem, a session that would end with 0 ends with 1.

    pytest's own 2, 3, 4 and 5 keep their meaning.
    """
    if state.session is None or session.config.getoption("collectonly"):
        return
    state.close()
    state.session.problems += state.unkept
    uninterrupted(state.session.finish)
    if state.cut is not None and state.cut.holds_nothing():
        state.session.notes.append(state.cut.holds_nothing_text())
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:  # a CI matrix must not fail for being wider than need be
            session.exitstatus = pytest.ExitCode.OK
    if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and has_announced(session.config):
        session.exitstatus = pytest.ExitCode.OK
    _publish(session.config, state.session.runs, state.session.notes)
    if state.session.problems and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _publish(config: pytest.Config, runs: Sequence[Run], notes: list[str]) -> None:
    """Append the reports to the summary of the step that runs this on GitHub; a note when that is not possible."""
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target and runs and config.pluginmanager.has_plugin("caliper-github"):
        from pytest_caliper.reporting.github import append_summary

        if (missing := append_summary(runs, Path(target))) is not None:
            notes.append(missing)


def _annotate(reporter: Any, config: pytest.Config) -> None:
    """Tell GitHub what failed, a line per task. Where a plugin annotates every failing test, failures are left to it."""
    annotations = config.pluginmanager.get_plugin("caliper-github")
    if annotations is not None:
        others = config.pluginmanager.has_plugin("pytest_github_actions_annotate_failures")
        for line in annotations.lines(failures=not others):
            reporter.write_line(line)


def summarise(reporter: Any, config: pytest.Config) -> None:
    """Write the summary of every run, then notes, then problems, then what did not run for want of an opt-in."""
    state = config.stash.get(STATE, None)
    session = None if state is None else state.session
    if session is not None and session.runs:
        from pytest_caliper.reporting.terminal import render_summary
        from pytest_caliper.terminal import style_of

        if config.get_verbosity() >= 0:
            reporter.section("caliper")
        reporter.write(render_summary(session.runs, style=style_of(config), verbosity=config.get_verbosity()))
    if session is not None:
        from pytest_caliper.reporting.text import printable

        for note in dict.fromkeys(session.notes):
            reporter.write_line(printable(f"note: {note}"), yellow=True)
        if state is not None and state.ahead is not None:
            _say_who_waited(reporter, state)
        for problem in session.problems:
            reporter.write_line(printable(f"caliper: {problem}"), red=True)
    _say_what_did_not_run(reporter, config)
    if state is not None:
        _say_what_comes_next(reporter, state)
    _annotate(reporter, config)


def _say_what_comes_next(reporter: Any, state: State) -> None:
    from pytest_caliper.next_step import is_for_people, next_step
    from pytest_caliper.reporting.text import one_line

    if is_for_people(state.config) and (step := next_step(state)) is not None:
        reporter.write_line(f"next: {one_line(step)}")


def _say_who_waited(reporter: Any, state: State) -> None:
    reasons = list(dict.fromkeys(state.ahead.reasons.values())) if state.ahead is not None else []
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        reporter.write_line(f"note: attempts ran one after another because of {reasons[0]}{more}")


def _say_what_did_not_run(reporter: Any, config: pytest.Config) -> None:
    specs = [one for one in config.stash[UNOPENED] if is_spec(one)]
    tests = [one for one in config.stash[UNOPENED] if not is_spec(one)]
    if not specs and not tests:
        return
    kinds = [(len(ones), word) for ones, word in ((specs, "spec"), (tests, "test")) if ones]
    counts = [f"{count} {word}" + ("" if count == 1 else "s") for count, word in kinds]
    remedy = "run them with --caliper"
    if specs and not tests:
        remedy += f", or name them: pytest {os.path.relpath(specs[0], config.invocation_params.dir)}"
    reporter.write_line(f"caliper: {' and '.join(counts)} not run, since attempts call agents that may cost money; {remedy}")
