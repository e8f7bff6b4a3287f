"""Parse the command line of `caliper` and call a room. Running specs is pytest's work: `run` only respells options."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper import __version__
from pytest_caliper.options import OPTIONS

if TYPE_CHECKING:
    from pytest_caliper.spec.model import Diagnostic

EPILOG = "Running specs is pytest's work as well: pytest my-skill.eval.yaml --caliper-k=3 --caliper-baseline"


def main(argv: Sequence[str] | None = None) -> int:
    """The console script. -> exit status: pytest's own for `run`; 0, or 1 when something is wrong, 2 for bad usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["run"]:
        return _run(words[1:])
    arguments = _parser().parse_args(words)
    if arguments.command == "schema":
        return _schema()
    if arguments.command == "update-cli":
        from pytest_caliper.cli.update_cli import update_cli

        return update_cli(arguments.backend, check_only=arguments.check)
    return _validate(arguments.spec)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="caliper", description="Measure how often an agent skill works.", epilog=EPILOG, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"pytest-caliper {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser(
        "run",
        add_help=False,
        help="run specs with pytest: --k 3 --baseline --model TARGET --judge-model TARGET --workers 4 --timeout 120 …",
    )
    validate = commands.add_parser("validate", help="check specs without running anything")
    validate.add_argument("spec", nargs="+", type=Path, help="a .eval.yaml file")
    update = commands.add_parser("update-cli", help="show installed and newest versions of agent CLIs, and update them")
    update.add_argument("backend", nargs="?", help="one backend; all without it")
    update.add_argument("--check", action="store_true", help="only show")
    commands.add_parser("schema", help="print the JSON Schema of the spec format, for editors")
    return parser


def _run(words: list[str]) -> int:
    if "-h" in words or "--help" in words:
        sys.stdout.write(_run_help())
        return 0
    # A fresh interpreter: pytest wants to see this package before anybody imports it. Signals and exit status stay pytest's own.
    sys.stdout.flush()
    return os.execv(sys.executable, [sys.executable, "-m", "pytest", *respelled(words)])


def respelled(words: Sequence[str]) -> list[str]:
    """`--k 3` as `--caliper-k 3`; what is no option of ours goes to pytest as it is. `--verbose` is pytest's own."""
    ours = {f"--{option.name}" for option in OPTIONS}
    out = ["--caliper"]
    for word in words:
        name, equals, value = word.partition("=")
        out.append(f"--caliper-{name[2:]}{equals}{value}" if name in ours else word)
    return out


def _run_help() -> str:
    lines = ["usage: caliper run SPEC [SPEC …] [options] [pytest options]", "", "options (pytest takes them as --caliper-NAME):"]
    for option in OPTIONS:
        name = f"--{option.name}" + (f" {option.metavar}" if option.metavar else "")
        lines.append(f"  {name:<24}{option.help}")
    return "\n".join([*lines, "", "Everything else goes to pytest: -k, -x, -v, -n 4, --junitxml=FILE …", ""])


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
                sys.stdout.write(printable(f"{_below_here(diagnostic)}\n"))
            continue
        for warning in (*spec.warnings, *warnings):
            sys.stdout.write(printable(f"{_below_here(warning)} (warning)\n"))
        for task in spec.tasks:
            for shared in absolute_paths(task):
                note = f"{path}:{task.line + 1}: names {shared}, outside its work directory; its attempts run one at a time"
                sys.stdout.write(printable(f"{note} (warning)\n"))
        count = f"{len(spec.tasks)} task" + ("" if len(spec.tasks) == 1 else "s")
        sys.stdout.write(printable(f"{path}: valid, {count}\n"))
    return status


def _below_here(diagnostic: Diagnostic) -> Diagnostic:
    """With its path as people type it: relative to the current directory where it lies below."""
    here = Path.cwd()
    return replace(diagnostic, path=diagnostic.path.relative_to(here)) if diagnostic.path.is_relative_to(here) else diagnostic


def _schema() -> int:
    from pytest_caliper.spec.schema import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
    return 0
