"""`caliper history`: how a spec's rate went over its runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytest_caliper.cli.finding import NotFound, find_spec, skimmed
from pytest_caliper.cli.output import deliver_json, deliver_text, refuse, style, suggest
from pytest_caliper.cli.parsing import add_format, add_output, add_results, described, whole_number

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands

_LAST = 30
_EPILOG = """\
Examples:
  caliper history commit
  caliper history commit --last 0 --format json

Complete runs alone, the oldest first; below each change of engine, judge, skill
or spec stands the first run after it. A run is called better or worse than the
one before it only where the exact test says so, corrected for the number of
runs.

Exit status: 0; 2 when nothing of that name is saved.
Next: caliper compare commit~1 commit, caliper report commit
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands, "history", description="Show how a spec's rate went over its runs, in all and by task.", epilog=_EPILOG
    )
    parser.add_argument("spec", metavar="SPEC", help="a spec's path or name")
    add_format(parser, ("text", "json", "md"))
    parser.add_argument(
        "--last", type=whole_number, default=_LAST, metavar="N", help=f"the N newest runs (default: {_LAST}; 0: all)"
    )
    add_output(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    from pytest_caliper.reporting.history import history_grid, history_json, render_history
    from pytest_caliper.reporting.listing import markdown_grid
    from pytest_caliper.reporting.trends import point

    try:
        spec = find_spec(arguments.spec, arguments.results)
        if not spec.runs:
            raise NotFound(f"{spec.name}: no complete run; {spec.unfinished} unfinished or partial: see caliper list {spec.name}")
    except NotFound as error:
        return refuse(error)
    wanted = spec.runs[-arguments.last :] if arguments.last else spec.runs
    points = [point(counts) for counts in skimmed(wanted)]
    if not points:
        return refuse(NotFound(f"{spec.name}: none of its run files can be read"))
    if arguments.format == "json":
        return deliver_json(history_json(spec.name, points, of=len(spec.runs)), arguments.output)
    if arguments.format == "md":
        return deliver_text(markdown_grid(history_grid(points)), arguments.output)
    text = render_history(spec.name, points, of=len(spec.runs), style=style(arguments.output))
    status = deliver_text(text, arguments.output)
    suggest("caliper compare" if len(points) > 1 else "caliper report", spec.name, arguments=arguments)
    return status
