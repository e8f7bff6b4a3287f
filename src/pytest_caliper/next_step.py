"""What people mostly do after a run: one line at the end of the summary, on a terminal alone, and only when it says something."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_caliper.options import SPEC_SUFFIXES
from pytest_caliper.runs.names import list_runs
from pytest_caliper.runs.place import path_in

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.runs.records import Run
    from pytest_caliper.state import State


def is_for_people(config: pytest.Config) -> bool:
    """Whether somebody sits there who may type the next command."""
    return config.get_verbosity() >= 0 and sys.stdout.isatty() and not os.environ.get("CI")


def next_step(state: State) -> str | None:
    """The command; None when there is nothing to suggest."""
    session, settings = state.session, state.settings
    if settings.check:
        return _after_checks(state)
    if session is None or not session.runs or settings.replay:
        return None
    typed = [str(word) for word in state.config.invocation_params.args]
    if any(run.meta.interrupted for run in session.runs):
        resumes = [word for word in typed if word.partition("=")[0] in {"--caliper-resume", "--caliper-resume-from"}]
        return _pytest(typed, *(() if resumes else ("--caliper-resume",)))
    failing = next((run for run in session.runs if _fails(run)), None)
    if failing is not None and (name := _name(state, failing)) is not None:
        return f"caliper report {name} --format html --output report.html"
    without = [run for run in session.runs if run.skills and run.baseline_results is None]
    if without and not any(run.meta.partial or run.meta.shard is not None for run in session.runs):
        return _pytest(typed, "--caliper-baseline")
    for plan in state.specs.values():
        if len(list_runs(plan.results)) > 1 and (run := _run_of(session.runs, plan)) and not run.meta.partial:
            name = _name(state, run)
            return None if name is None else f"caliper compare {name}"
    return None


def _after_checks(state: State) -> str | None:
    """A run of one attempt each, once all checks are in order."""
    session = state.config.pluginmanager.get_plugin("session")
    if session is None or session.testsfailed or not session.testscollected:
        return None
    here = state.config.invocation_params.dir
    return shlex.join(["caliper", "run", *(os.path.relpath(path, here) for path in state.specs), "--k", "1"])


def _fails(run: Run) -> bool:
    return any(record.outcome != "pass" for result in run.results for record in result.attempts)


def _pytest(typed: Sequence[str], *more: str) -> str:
    return shlex.join(["pytest", *typed, *more])


def _name(state: State, run: Run) -> str | None:
    """How the commands of `caliper` find the run: by its spec's name, or by its file where they do not look by themselves."""
    suffix = next((suffix for suffix in SPEC_SUFFIXES if run.meta.spec.lower().endswith(suffix)), None)
    if suffix is None or state.settings.results is not None or run.meta.partial:
        return None if run.saved is None else shlex.quote(run.saved)
    return shlex.quote(run.meta.spec[: -len(suffix)])


def _run_of(runs: Sequence[Run], plan: SpecPlan) -> Run | None:
    spec = path_in(plan.project, plan.spec.path)
    return next((run for run in runs if run.meta.spec == spec), None)
