"""`caliper list`: what is saved, of all specs or of one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.cli.finding import NotFound, SpecRuns, find_spec, results_root, saved_specs, shown, skimmed
from pytest_caliper.cli.output import complain, deliver_json, deliver_text, refuse, style, suggest
from pytest_caliper.cli.parsing import add_format, add_output, add_results, described, whole_number
from pytest_caliper.runs.names import run_order

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands
    from pytest_caliper.reporting.listing import RunEntry, SpecEntry

_EPILOG = """\
Examples:
  caliper list                      every spec with saved runs in this project
  caliper list commit               the runs of one spec, the newest first
  caliper list commit --last 10 --format json

A spec is named by its path, or by its name from anywhere in the project:
commit, evals/commit.

Exit status: 0; 2 when nothing of that name is saved.
Next: caliper report commit, caliper compare commit, caliper history commit
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "list",
        description="List specs with their number of runs and latest rate or, with SPEC, its runs, the newest first.",
        epilog=_EPILOG,
    )
    parser.add_argument("spec", metavar="SPEC", nargs="?", help="a spec's path or name")
    add_format(parser, ("text", "json", "md"))
    parser.add_argument("--last", type=whole_number, default=0, metavar="N", help="only the N newest runs of SPEC (default: all)")
    add_output(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        if arguments.spec is None:
            root = results_root(arguments.results)
            return _list_specs(root, saved_specs(root), arguments)
        return _list_runs(find_spec(arguments.spec, arguments.results), arguments)
    except NotFound as error:
        return refuse(error)


def _list_specs(root: Path, specs: Iterable[SpecRuns], arguments: argparse.Namespace) -> int:
    from pytest_caliper.reporting.listing import markdown_grid, prose, render_grid, shared_engine, spec_grid, spec_json, without

    entries = [_entry(spec) for spec in specs]
    if arguments.format == "json":
        return deliver_json({"results": str(root), "specs": [spec_json(entry) for entry in entries]}, arguments.output)
    if not entries:
        complain(f"no saved runs in {shown(root)}; make one with `caliper run SPEC`")
        return 0
    if arguments.format == "md":
        return deliver_text(markdown_grid(spec_grid(entries)), arguments.output)
    look = style(arguments.output)
    engine = shared_engine(entry.latest for entry in entries if entry.latest is not None)
    grid = spec_grid(entries) if engine is None else without(spec_grid(entries), "Engine")
    text = render_grid(grid, look) + ("\n" + prose(f"engine of all: {engine}", look, indent="  ") if engine else "")
    status = deliver_text(text, arguments.output)
    suggest("caliper list" if len(entries) > 1 else "caliper report", entries[0].name, arguments=arguments)
    return status


def _entry(spec: SpecRuns) -> SpecEntry:
    from pytest_caliper.reporting.listing import SpecEntry
    from pytest_caliper.reporting.trends import point

    latest = next((counts for counts in skimmed(reversed(spec.runs)) if not counts.meta.interrupted), None)
    return SpecEntry(
        name=spec.name,
        directory=spec.directory,
        runs=len(spec.runs),
        unfinished=spec.unfinished,
        latest=None if latest is None else point(latest),
    )


def _list_runs(spec: SpecRuns, arguments: argparse.Namespace) -> int:
    from pytest_caliper.reporting import listing
    from pytest_caliper.reporting.text import one_line

    newest = sorted((*spec.runs, *spec.partial), key=run_order, reverse=True)
    entries = list(_run_entries(newest[: arguments.last] if arguments.last else newest))
    journals = [shown(path) for path in spec.journals]
    if arguments.format == "json":
        return deliver_json(
            {"name": spec.name, "runs": [listing.run_json(entry) for entry in entries], "journals": journals}, arguments.output
        )
    if arguments.format == "md":
        return deliver_text(listing.markdown_grid(listing.run_grid(entries)), arguments.output)
    look = style(arguments.output)
    whole = [entry.point for entry in reversed(entries) if not entry.point.meta.partial and not entry.point.meta.interrupted]
    engine = listing.shared_engine(entry.point for entry in entries)
    grid = listing.run_grid(entries) if engine is None else listing.without(listing.run_grid(entries), "Engine")
    text = listing.prose(one_line(spec.name) + (f", engine {engine}" if engine else ""), look, indent="  ") + "\n"
    text += listing.render_grid(grid, look) if entries else "no run is saved whole\n"
    if len(whole) > 1:
        text += "\n" + listing.trend_line(whole, look)
    status = deliver_text(text + "".join(map(_unfinished, spec.journals)), arguments.output)
    if whole:
        suggest("caliper compare" if len(whole) > 1 else "caliper report", spec.name, arguments=arguments)
    return status


def _run_entries(paths: Iterable[Path]) -> Iterator[RunEntry]:
    from pytest_caliper.reporting.listing import RunEntry
    from pytest_caliper.reporting.trends import point

    return (RunEntry(path=shown(counts.path), point=point(counts)) for counts in skimmed(paths))


def _unfinished(journal: Path) -> str:
    from pytest_caliper.runs.journal import is_in_use

    if is_in_use(journal):
        return f"\nunder way: {shown(journal)}\n"
    return f"\ndid not end: {shown(journal)}\n  go on with it: caliper run SPEC --resume-from {shown(journal)}\n"
