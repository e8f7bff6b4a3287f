"""`caliper compare`: two saved runs of a spec, task by task."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.cli.finding import NotFound, find_run, runs_before, shown
from pytest_caliper.cli.output import deliver, deliver_json, deliver_text, refuse, style, suggest
from pytest_caliper.cli.parsing import add_format, add_output, add_results, described
from pytest_caliper.runs.errors import RunFileError

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands
    from pytest_caliper.reporting.comparing import RunComparison

_EPILOG = """\
A and B are each a spec (its latest run), a spec with ~N (the Nth run before
that), a run's id, or a file. Without B, the run before A is compared with A.

Examples:
  caliper compare commit                      the latest run with the one before
  caliper compare commit-short commit-full    the latest runs of two specs
  caliper compare before.json after.json --fail-on worse

"worse" and "better" are said by an exact test over the tasks that both runs
measured and that ask for the same; tokens and times never decide.

Exit status: 0; 1 with --fail-on worse on that verdict; 2 when a run cannot be
found or read.
Next: caliper report B, which shows why its attempts failed
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "compare",
        description="Compare two saved runs task by task, tasks matched by name: better, worse, or no evidence.",
        epilog=_EPILOG,
    )
    parser.add_argument("a", metavar="A", help="the run before: SPEC, SPEC~N, an id or a file")
    parser.add_argument("b", metavar="B", nargs="?", help="the run after")
    add_format(parser, ("text", "json", "md", "html"))
    parser.add_argument("--fail-on", choices=("worse",), help="end with 1 when the verdict is this one")
    parser.add_argument("--verbose", "-v", action="count", default=0, help="intervals, p values and spend of each task")
    add_output(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    from pytest_caliper.reporting.comparing import compare_runs
    from pytest_caliper.runs.reading import load_run

    try:
        if arguments.b is None:
            after = find_run(arguments.a, arguments.results)
            before = _before(after)
        else:
            before, after = (find_run(name, arguments.results) for name in (arguments.a, arguments.b))
        one, other = (replace(load_run(path), saved=shown(path)) for path in (before, after))
    except (NotFound, RunFileError) as error:
        return refuse(error)
    comparison = compare_runs(one, other)
    try:
        status = _write(comparison, before, after, arguments)
    except RunFileError as error:  # a transcript, which is read as the page is written
        return refuse(error)
    if status == 0 and arguments.fail_on is not None and comparison.comparison is not None:
        return int(comparison.comparison.word == arguments.fail_on)
    return status


def _before(after: Path) -> Path:
    """The complete run before this one of the same spec. Raises NotFound."""
    earlier = runs_before(after)
    if not earlier:
        raise NotFound(f"{shown(after)}: there is no run before it; name the run to compare with as well")
    return earlier[-1]


def _write(comparison: RunComparison, before: Path, after: Path, arguments: argparse.Namespace) -> int:
    output: Path | None = arguments.output
    if arguments.format == "json":
        from pytest_caliper.reporting.comparison_json import comparison_json

        return deliver_json(comparison_json(comparison), output)
    if arguments.format == "md":
        from pytest_caliper.reporting.markdown_comparison import render_markdown_comparison

        return deliver_text(render_markdown_comparison(comparison), output)
    if arguments.format == "html":
        from pytest_caliper.reporting.html import write_html_comparison

        return deliver(lambda out: write_html_comparison(before, after, out), output)
    from pytest_caliper.reporting.comparison import render_comparison

    status = deliver_text(render_comparison(comparison, style=style(output), verbosity=arguments.verbose), output)
    suggest("caliper report", arguments.b or arguments.a, arguments=arguments)
    return status
