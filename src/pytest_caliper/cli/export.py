"""`caliper export`: a saved run as the skill-creator's `benchmark.json` and `grading.json`."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_caliper.cli.finding import NotFound, find_run
from pytest_caliper.cli.output import complain, refuse, say
from pytest_caliper.cli.parsing import add_results, described
from pytest_caliper.runs.errors import RunFileError

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands
    from pytest_caliper.reporting.skill_creator import Graded
    from pytest_caliper.runs.records import Run

_EPILOG = """\
Examples:
  caliper export my-skill                         into benchmarks/<run>
  caliper export my-skill --output iteration-1    into that directory

Written are benchmark.json, and a grading.json for each attempt, such as
eval-1/with_skill/run-1/grading.json. Attempts without a verdict (time-outs,
lost connections) have no grading.json and count as nothing: benchmark.json
names them.

Exit status: 0; 2 when the run cannot be read or the directory not written. It
is never written over.
Next: open benchmark.json with the skill-creator's viewer
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands, "export", description="Write a run as the skill-creator skill writes its benchmarks.", epilog=_EPILOG
    )
    parser.add_argument("run", metavar="RUN", help="SPEC, SPEC~N, an id or a file")
    parser.add_argument("--output", "-o", type=Path, metavar="DIR", help="a new or empty directory (default: benchmarks/<run>)")
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    from pytest_caliper.reporting.skill_creator import benchmark_json, graded
    from pytest_caliper.runs.reading import load_run

    try:
        path = find_run(arguments.run, arguments.results)
        saved = load_run(path)
        attempts = graded(saved, _activities(path))
    except (NotFound, RunFileError) as error:
        return refuse(error)
    target: Path = arguments.output or Path("benchmarks") / path.stem
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            complain(f"{target}: is there already; name a new directory with --output")
            return 2
        _write(target, benchmark_json(saved, attempts), attempts)
    except OSError as error:
        complain(f"{target}: cannot be written: {error.strerror or error}")
        return 2
    say(_told(saved, target, attempts))
    return 0


def _activities(path: Path) -> dict[Any, Any]:
    from pytest_caliper.reporting.skill_creator import activity
    from pytest_caliper.runs.reading import iter_transcripts

    return {(arm, task_id, number): activity(turns) for arm, task_id, number, turns in iter_transcripts(path)}


def _write(target: Path, benchmark: Mapping[str, Any], attempts: list[Graded]) -> None:
    """All files or none. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=target.parent))
    try:
        place = scratch / "made"  # mkdtemp's own directory is for its owner alone
        place.mkdir()
        _put(place / "benchmark.json", benchmark)
        for one in attempts:
            (place / one.place).mkdir(parents=True)
            _put(place / one.place / "grading.json", one.grading)
        place.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _put(path: Path, value: Mapping[str, Any]) -> None:
    from pytest_caliper.runs.jsontext import plain

    path.write_text(json.dumps(plain(value), indent=2, allow_nan=False) + "\n", encoding="ascii")


def _told(saved: Run, target: Path, attempts: list[Graded]) -> str:
    from pytest_caliper.reporting.text import one_line

    results = (*saved.results, *(saved.baseline_results or ()))
    lost = sum(task.unusable for task in results)
    rest = f"; {lost} without a verdict named in it" if lost else ""
    count = f"{len(attempts)} grading.json" if attempts else "no grading.json"
    return one_line(f"{target}/benchmark.json: written, with {count}{rest}") + "\n"
