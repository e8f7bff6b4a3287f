"""`caliper validate`: the mistakes in specs, found without running anything."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.cli.output import say, suggest
from pytest_caliper.cli.parsing import described

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands
    from pytest_caliper.spec.model import Diagnostic

_EPILOG = """\
Examples:
  caliper validate commit.eval.yaml
  caliper validate evals/*.eval.yaml

Exit status: 0; 1 when there are mistakes; warnings alone leave it at 0.
Next: caliper check commit.eval.yaml, then caliper run commit.eval.yaml --k 1
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "validate",
        description="Check specs and their skills without running anything: a line for each mistake, with its file and line.",
        epilog=_EPILOG,
    )
    parser.add_argument("spec", nargs="+", type=Path, metavar="SPEC", help="a .eval.yaml file")


def run(arguments: argparse.Namespace) -> int:
    return _validate(arguments.spec)


def _validate(paths: Sequence[Path]) -> int:
    from pytest_caliper.reporting.text import printable
    from pytest_caliper.runs.place import project_of
    from pytest_caliper.sources import resolve_skills
    from pytest_caliper.spec.files import files_named
    from pytest_caliper.spec.loading import load_spec
    from pytest_caliper.spec.model import SpecError
    from pytest_caliper.spec.paths import absolute_paths

    status = 0
    for path in paths:
        try:
            spec = load_spec(path.absolute())
            _, warnings = resolve_skills(spec, exclude=files_named(spec), project=project_of(spec.path, Path.cwd()))
        except SpecError as error:
            status = 1
            for diagnostic in error.diagnostics:
                say(printable(f"{_below_here(diagnostic)}\n"))
            continue
        for warning in (*spec.warnings, *warnings):
            say(printable(f"{_below_here(warning)} (warning)\n"))
        for task in spec.tasks:
            for shared in absolute_paths(task):
                note = f"{path}:{task.line + 1}: names {shared}, outside its work directory; its attempts run one at a time"
                say(printable(f"{note} (warning)\n"))
        count = f"{len(spec.tasks)} task" + ("" if len(spec.tasks) == 1 else "s")
        say(printable(f"{path}: valid, {count}\n"))
    if status == 0:
        suggest("caliper check", paths[0])
    return status


def _below_here(diagnostic: Diagnostic) -> Diagnostic:
    """With its path as people type it: relative to the current directory where it lies below."""
    here = Path.cwd()
    return replace(diagnostic, path=diagnostic.path.relative_to(here)) if diagnostic.path.is_relative_to(here) else diagnostic
