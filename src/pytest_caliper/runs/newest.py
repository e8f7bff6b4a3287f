"""The latest run of a results directory, whatever else lies there."""

from __future__ import annotations

from pathlib import Path

from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.names import list_runs
from pytest_caliper.runs.reading import load_run
from pytest_caliper.runs.records import Run


def newest_run(directory: Path) -> tuple[Run | None, tuple[RunFileError, ...]]:
    """The newest complete run that can be read, None when there is none; and the newer files that cannot.

    An interrupted run is not complete: caliper-eval keeps those beside the others.
    """
    problems: list[RunFileError] = []
    for path in reversed(list_runs(directory)):
        try:
            run = load_run(path)
        except RunFileError as error:
            problems.append(error)
            continue
        if not (run.meta.interrupted or run.meta.partial):
            return run, tuple(problems)
    return None, tuple(problems)
