"""`caliper report`: a saved run again, for people and for programs."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_caliper.cli.finding import NotFound, find_run, has_run_before, shown
from pytest_caliper.cli.output import deliver, deliver_json, deliver_text, refuse, style, suggest
from pytest_caliper.cli.parsing import add_format, add_output, add_results, described
from pytest_caliper.runs.errors import RunFileError

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands

_EPILOG = """\
RUN is a spec (its latest run), a spec with ~N (the Nth run before that), a
run's id, or a file. A run with a baseline is shown as a comparison of its arms.

Examples:
  caliper report commit                     the summary, and why attempts failed
  caliper report commit --format html --output commit.html
                                            everything, with transcripts
  caliper report commit --format md         as a comment on a pull request
  caliper report commit~1 --format json     the run file, with totals

Exit status: 0, whatever the run came to; 2 when it cannot be found or read.
Next: caliper compare commit, which shows what changed since the run before
"""


def add_parser(commands: Commands) -> None:
    parser = described(commands, "report", description="Show a saved run again.", epilog=_EPILOG)
    parser.add_argument("run", metavar="RUN", help="SPEC, SPEC~N, an id or a file")
    add_format(parser, ("text", "html", "md", "json", "junit"))
    parser.add_argument(
        "--verbose", "-v", action="count", default=0, help="every failing attempt, the judge's reasons; twice: in full"
    )
    add_output(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        return _report(find_run(arguments.run, arguments.results), arguments)
    except (NotFound, RunFileError) as error:
        return refuse(error)


def _report(path: Path, arguments: argparse.Namespace) -> int:
    output: Path | None = arguments.output
    if arguments.format == "html":
        from pytest_caliper.reporting.html import write_html

        return deliver(lambda out: write_html(path, out), output)
    from pytest_caliper.runs.reading import load_run

    saved = replace(load_run(path), saved=shown(path))
    if arguments.format == "json":
        from pytest_caliper.reporting.saved_run import derived_json

        return deliver_json({**_document(path), **derived_json(saved)}, output)
    if arguments.format == "md":
        from pytest_caliper.reporting.markdown import render_markdown

        return deliver_text(render_markdown(saved), output)
    if arguments.format == "junit":
        from pytest_caliper.reporting.junit import render_junit

        return deliver_text(render_junit(saved), output)
    from pytest_caliper.reporting.saved_run import render_run

    status = deliver_text(render_run(saved, style=style(output), verbosity=arguments.verbose), output)
    if has_run_before(path):
        suggest("caliper compare", arguments.run, arguments=arguments)
    else:
        suggest("caliper report", arguments.run, "--format", "html", "--output", "report.html", arguments=arguments)
    return status


def _document(path: Path) -> dict[str, Any]:
    """The file as it is, transcripts and all. It was read as a run before, so it holds an object."""
    try:
        document: dict[str, Any] = json.loads(path.read_bytes(), parse_constant=lambda _: None)
    except (OSError, ValueError, RecursionError) as error:
        raise RunFileError(path, f"cannot be read: {error}") from error
    return document
