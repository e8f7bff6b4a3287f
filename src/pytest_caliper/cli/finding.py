"""Which saved run is meant: a path, a spec's name from anywhere in the project, or a run's id."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pytest_caliper.cli.output import complain
from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.names import list_runs, run_order
from pytest_caliper.runs.place import CALIPER_DIRECTORY, PARTIAL, is_repository, results_directory
from pytest_caliper.runs.skimming import RunCounts, skim_run

SPEC_SUFFIXES = (".eval.yaml", ".eval.yml")
JOURNAL_SUFFIX = ".jsonl"
_EARLIER = re.compile(r"(?P<name>.+)~(?P<back>\d{1,6})")
_SHOWN = 8
"""Candidates named in one message."""


class NotFound(Exception):
    """What was named is not there, or is not one thing. The text is one line and says what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecRuns:
    """What is saved of one spec."""

    name: str
    """The directory below the results, with forward slashes: the spec's path without its suffix."""
    directory: Path
    runs: tuple[Path, ...]
    """Complete runs, the oldest first."""
    partial: tuple[Path, ...]
    """Runs below `partial/`: interrupted ones, and those that left attempts out."""
    journals: tuple[Path, ...]
    """Journals that no run file stands beside: of sessions that were killed, or are under way."""

    @property
    def unfinished(self) -> int:
        """Runs that are not whole."""
        return len(self.partial) + len(self.journals)


def results_root(override: Path | None, here: Path | None = None) -> Path:
    """The results directory of the project that `here` (the current directory) lies in. Raises NotFound.

    The nearest `.caliper/results` at or above it, up to the repository's root; `override` is `--results`.
    """
    start = Path.cwd() if here is None else here
    if override is not None:
        if not override.is_dir():
            raise NotFound(f"--results {override}: there is no such directory")
        return override.absolute()
    for directory in (start, *start.parents):
        found = directory / CALIPER_DIRECTORY / "results"
        if found.is_dir():
            return found
        if is_repository(directory):
            break
    raise NotFound(
        f"no saved runs in {start} or above it; make one with `caliper run SPEC`, "
        "or name the directory that holds them with --results"
    )


def saved_specs(root: Path) -> list[SpecRuns]:
    """Every spec below a results directory that something is saved of, by name. Nothing is opened."""
    found = []
    for directory, names, _ in os.walk(root):
        names[:] = sorted(name for name in names if not name.endswith(".parts"))
        place = Path(directory)
        if place.name == PARTIAL and place != root and _is_partial_of_a_spec(place):
            continue
        spec = runs_in(place, root)
        if spec is not None:
            found.append(spec)
    return sorted(found, key=lambda spec: spec.name)


def runs_in(directory: Path, root: Path) -> SpecRuns | None:
    """What is saved of the spec of this directory; None when nothing is."""
    runs, every = list_runs(directory), list_runs(directory, partial=True)
    stems = {path.stem for path in every}
    journals = sorted(path for path in _files(directory) if path.suffix == JOURNAL_SUFFIX and path.stem not in stems)
    if not every and not journals:
        return None
    name = directory.relative_to(root).as_posix() if directory.is_relative_to(root) else directory.name
    whole = set(runs)
    return SpecRuns(
        name=name,
        directory=directory,
        runs=runs,
        partial=tuple(path for path in every if path not in whole),
        journals=tuple(journals),
    )


def find_spec(text: str, override: Path | None) -> SpecRuns:
    """The spec that is meant by `x.eval.yaml`, `commit`, `dir/commit` or its directory of run files. Raises NotFound."""
    path = Path(text)
    if _is_source(text) and path.is_file():
        found = _of_spec_file(path.absolute(), override)
        if found is None:
            command = f"pytest {text} --caliper" if text.endswith(".py") else f"caliper run {text}"
            raise NotFound(f"{text}: no saved runs of it; make one with `{command}`")
        return found
    try:
        root = results_root(override)
    except NotFound:
        if path.is_dir() and (found := runs_in(path.absolute(), path.absolute().parent)) is not None:
            return found
        raise
    here = _relative(Path.cwd(), root.parent.parent) if override is None else None
    return _named(text, saved_specs(root), here)


def _is_source(text: str) -> bool:
    """Whether a name is that of a spec, or of a file of tests in Python, rather than of a run."""
    return text.lower().endswith((*SPEC_SUFFIXES, ".py"))


def _of_spec_file(path: Path, override: Path | None) -> SpecRuns | None:
    root = results_root(override, path.parent)
    project = Path.cwd() if override is not None else root.parent.parent
    return runs_in(results_directory(path, override=root, rootdir=project), root)


def find_run(text: str, override: Path | None) -> Path:
    """The run file that is meant: a path, a spec's name (its latest run; `commit~1` the one before), or a run's id.

    Damaged files are named on standard error and passed over. Raises NotFound.
    """
    path = Path(text)
    if path.is_file() and not _is_source(text):
        if path.suffix == JOURNAL_SUFFIX:
            raise NotFound(journal_advice(path))
        return path
    if path.suffix in {".json", JOURNAL_SUFFIX}:
        raise NotFound(f"{text}: there is no such file")
    earlier = _EARLIER.fullmatch(text)
    name, back = (earlier["name"], int(earlier["back"])) if earlier else (text, 0)
    try:
        spec = find_spec(name, override)
    except NotFound:
        by_id = _with_id(text, override)
        if by_id is None:
            raise
        return by_id
    return _latest(spec, back)


def journal_advice(path: Path) -> str:
    """How to go on with a run that has a journal and no file."""
    return (
        f"{path}: the journal of a run that did not end, no run file; "
        f"go on with it: caliper run SPEC --resume-from {path}, which runs only what is missing"
    )


def skimmed(paths: Iterable[Path]) -> Iterator[RunCounts]:
    """The counts of the run files that can be read; the others are named on standard error."""
    for path in paths:
        try:
            yield skim_run(path)
        except RunFileError as error:
            complain(f"left out: {error}")


def _latest(spec: SpecRuns, back: int) -> Path:
    seen = 0
    for counts in skimmed(reversed(spec.runs)):
        if counts.meta.interrupted:  # caliper-eval keeps them beside the others
            continue
        if seen == back:
            return counts.path
        seen += 1
    rest = [*spec.partial, *spec.journals]
    left = f"; {len(rest)} unfinished or partial, such as {shown(rest[-1])}" if rest else ""
    if seen:
        runs = "1 complete run" if seen == 1 else f"{seen} complete runs"
        raise NotFound(f"{spec.name}~{back}: there is no such run, {spec.name} has {runs}{left}")
    raise NotFound(f"{spec.name}: no complete run{left}")


def _named(text: str, specs: Sequence[SpecRuns], here: str | None) -> SpecRuns:
    """`here` is the current directory relative to the project: names are first read from there, then from the project's root."""
    wanted = _key(text)
    by_name = {spec.name: spec for spec in specs}
    for name in ([] if here is None else [os.path.normpath(f"{here}/{wanted}")]) + [wanted]:
        if name in by_name:
            return by_name[name]
    matching = [spec for spec in specs if f"/{spec.name}".endswith(f"/{wanted}")]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise NotFound(f"{text}: there are several: {_listed([spec.name for spec in matching])}; name one with its directory")
    if (spec := _by_directory(text, specs)) is not None:
        return spec
    raise NotFound(f"{text}: no saved runs of a spec of that name{_meant(wanted, list(by_name))}")


def _key(text: str) -> str:
    """`./evals/commit.eval.yaml` as results are named: `evals/commit`."""
    name = os.path.normpath(text).replace(os.sep, "/")
    for suffix in SPEC_SUFFIXES:
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return f"{name}_" if name.rpartition("/")[2] == PARTIAL else name


def _by_directory(text: str, specs: Sequence[SpecRuns]) -> SpecRuns | None:
    path = Path(text)
    if not path.is_dir():
        return None
    directory = path.resolve()
    found = next((spec for spec in specs if spec.directory.resolve() == directory), None)
    return found or runs_in(path.absolute(), path.absolute().parent)


def _meant(wanted: str, names: Sequence[str]) -> str:
    """Did-you-mean, else what there is."""
    if not names:
        return "; there are no saved runs at all"
    stems = {name.rpartition("/")[2]: name for name in reversed(names)}
    close = get_close_matches(wanted, [*names, *stems], n=3)
    close = list(dict.fromkeys(stems.get(name, name) for name in close))
    return f"; did you mean {_listed(close)}?" if close else f"; there are {_listed(names)}"


def _with_id(text: str, override: Path | None) -> Path | None:
    """The run file whose name ends in this id, or begins with it where no other does."""
    if not re.fullmatch(r"[\w-]{3,64}", text):
        return None
    try:
        specs = saved_specs(results_root(override))
    except NotFound:
        return None
    found = [path for spec in specs for path in (*spec.runs, *spec.partial) if path.stem[21:].startswith(text)]
    exact = [path for path in found if path.stem[21:] == text]
    if len(exact or found) > 1:
        raise NotFound(f"{text}: several runs have an id that begins so: {_listed([shown(path) for path in exact or found])}")
    return next(iter(exact or found), None)


def _is_partial_of_a_spec(directory: Path) -> bool:
    """Whether a directory of that name holds the unfinished runs of its parent, and no specs of a directory called so."""
    return bool(list_runs(directory))


def _files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    with os.scandir(directory) as entries:
        return [Path(entry.path) for entry in entries if _is_file(entry)]


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link to itself
        return False


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _relative(path: Path, base: Path) -> str | None:
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else None


def runs_before(run: Path) -> list[Path]:
    """The complete runs before this one of the same spec, the oldest first."""
    place = run.parent.parent if run.parent.name == PARTIAL else run.parent
    return [path for path in list_runs(place) if run_order(path) < run_order(run)]


def has_run_before(run: Path) -> bool:
    """Whether `caliper compare` finds something to compare the run with: run files that lie among others of their spec do."""
    return bool(list_runs(run.parent)) and bool(runs_before(run))


def shown(path: Path) -> str:
    """The path as people type it: relative to the current directory where it lies below."""
    return _relative(path, Path.cwd()) or str(path)
