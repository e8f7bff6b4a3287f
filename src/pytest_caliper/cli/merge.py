"""`caliper merge`: the run files of shards become the run file that one machine would have written."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.cli.output import complain, say, suggest
from pytest_caliper.cli.parsing import described

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands
    from pytest_caliper.runs.merging import Part
    from pytest_caliper.runs.records import Run

_EPILOG = """\
Examples:
  caliper merge shards/    every shard below it, into the results of the spec
  caliper merge a.json b.json --output whole.json

Exit status: 0; 2 when the files do not make one run; then nothing is written.
Next: caliper report SPEC
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "merge",
        description="Join the run files that --caliper-shard made, of one spec or several, into one run file for each spec.",
        epilog=_EPILOG,
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILES", help="run files of shards, or directories of them")
    parser.add_argument("--partial", action="store_true", help="join what is there when shards are missing, into a partial run")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--output", type=Path, metavar="PATH", help="write this .json file, or into this directory; never over a file"
    )
    place.add_argument("--into-results", action="store_true", help="fail when the spec is not found, instead of writing here")
    parser.add_argument("--results", type=Path, metavar="DIR", help="the results directory, if --caliper-results named one")


def run(arguments: argparse.Namespace) -> int:
    from pytest_caliper.runs.errors import RunFileError
    from pytest_caliper.runs.merging import MergeRefused, by_spec, merge

    try:
        specs = list(by_spec(_parts(arguments.files)).values())
        runs: list[Run] = []
        problems: list[str] = []
        for parts in specs:  # all are looked at before the first is written
            try:
                runs.append(merge(parts, partial=arguments.partial))
            except MergeRefused as error:
                problems += error.problems
        if problems:
            raise MergeRefused(problems)
        targets = [_target(one, arguments, several=len(runs) > 1) for one in runs]
        for one, parts, target in zip(runs, specs, targets, strict=True):
            _write(one, parts, target)
        suggest("caliper report", _shown(targets[0]))
    except MergeRefused as error:
        for problem in error.problems:
            complain(problem)
        return 2
    except RunFileError as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(f"{error.filename or 'the merged run'}: cannot be written: {error.strerror or error}")
        return 2
    return 0


def _parts(paths: Sequence[Path]) -> list[Part]:
    """The shards in the files and directories, each file once. Raises MergeRefused for a file that is none."""
    from pytest_caliper.cli.finding import journal_advice
    from pytest_caliper.runs.errors import RunFileError
    from pytest_caliper.runs.merging import MergeRefused, load_part

    parts: dict[Path, Part] = {}
    problems: list[str] = []
    others = 0
    for path in paths:
        for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
            if not file.is_file():  # a pipe or a device would be waited for
                if file == path:
                    problems.append(f"{file}: cannot be read: it is no file")
                continue
            if file.suffix == ".jsonl":
                problems.append(journal_advice(file))
                continue
            try:
                part = load_part(file)
            except RunFileError as error:
                if file != path:
                    complain(f"left out: {error}")
                else:
                    problems.append(str(error))
                continue
            if part is not None:
                parts.setdefault(file.resolve(), part)
            elif file == path:
                problems.append(f"{file}: is the run file of no shard; shards are made with --caliper-shard I/N")
            else:
                others += 1
    if problems:
        raise MergeRefused(problems)
    if not parts:
        places = ", ".join(map(str, paths))
        raise MergeRefused([f"{places}: no shard is there" + (f", only {others:,} other runs" if others else "")])
    return list(parts.values())


def _target(merged: Run, arguments: argparse.Namespace, *, several: bool) -> Path:
    """The file to write. Raises MergeRefused when there is no good place, or another file has it."""
    from pytest_caliper.runs.merging import MergeRefused
    from pytest_caliper.runs.names import run_file_name
    from pytest_caliper.runs.store import place_of

    name = run_file_name(merged.meta.timestamp, merged.meta.id)
    output: Path | None = arguments.output
    if output is not None:
        if several and output.is_file():
            raise MergeRefused([f"{output}: is one file, but there are several specs; name a directory"])
        target = output / name if several or output.is_dir() or output.suffix != ".json" else output
    else:
        results = _results(merged.meta.spec, arguments.results)
        if results is None and (arguments.into_results or arguments.results is not None):
            raise MergeRefused([f"{merged.meta.spec}: there is no such spec at or above {Path.cwd()}; go to its repository"])
        target = Path.cwd() / name if results is None else place_of(merged.meta, results) / name
    if target.exists() and not _is_there(merged, target):
        raise MergeRefused([f"{target}: exists; delete it, or name another place with --output"])
    return target


def _results(spec: str, override: Path | None) -> Path | None:
    """The results directory of the spec that a run file calls `spec`, looked for from the current directory; None without one."""
    from pytest_caliper.runs.place import path_in, project_of, results_directory

    here = Path.cwd()
    for base in (here, *here.parents):
        path = base / spec
        if path.is_file() and path_in(project_of(path, base), path) == spec:
            return results_directory(path, override=None if override is None else override.absolute(), rootdir=base)
    return None


def _is_there(merged: Run, target: Path) -> bool:
    """Whether the file is this very merge: its id follows from the shards."""
    from pytest_caliper.runs.errors import RunFileError
    from pytest_caliper.runs.reading import load_meta

    try:
        meta = load_meta(target)
    except RunFileError:
        return False
    return (meta.spec, meta.id, meta.timestamp) == (merged.meta.spec, merged.meta.id, merged.meta.timestamp)


def _write(merged: Run, parts: Sequence[Part], target: Path) -> None:
    from pytest_caliper.reporting.text import one_line
    from pytest_caliper.runs.merging import with_transcripts
    from pytest_caliper.runs.store import write_run

    if target.exists():
        done = "were merged before into"
    else:
        with with_transcripts(merged, parts) as whole:
            write_run(whole, target)
        done = "merged into"
    shards = f"{len(parts)} shard" + ("" if len(parts) == 1 else "s")
    tasks = f"{len(merged.results)} task" + ("" if len(merged.results) == 1 else "s")
    say(one_line(f"{merged.meta.spec}: {shards} with {tasks} {done} {_shown(target)}{_apart(merged)}") + "\n")
    for note in _notes(parts):
        complain(f"{merged.meta.spec}: {note}")


def _apart(merged: Run) -> str:
    why = [word for word, true in (("partial", merged.meta.partial), ("interrupted", merged.meta.interrupted)) if true]
    return f" ({', '.join(why)}: never taken for the latest run)" if why else ""


def _notes(parts: Sequence[Part]) -> list[str]:
    """What the shards need not share, but a reader should know."""
    notes = []
    for name, word in (("cli_version", "versions of the agent's CLI"), ("model", "models"), ("judge_model", "judge models")):
        values = sorted({str(value) for part in parts if (value := getattr(part.run.meta, name)) is not None})
        if len(values) > 1:
            notes.append(f"the shards ran with different {word}: {', '.join(values)}")
    return notes


def _shown(path: Path) -> str:
    shown = os.path.relpath(path)
    return str(path) if shown.startswith("..") else shown
