"""Where the runs of a spec are kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

CALIPER_DIRECTORY = ".caliper"
PARTIAL = "partial"
"""Directory below a spec's results that holds the runs which never are "the latest run"."""

_REPOSITORY_MARKS = (".git", ".hg", ".jj", ".svn")
"""A file or a directory: git's worktrees and submodules have a file."""
_SUFFIXES = (".eval.yaml", ".eval.yml")


def project_of(spec: Path, rootdir: Path) -> Path:
    """The directory that holds the `.caliper/` of a spec.

    The nearest one that has a `.caliper/` at or above the spec inside its repository, else the repository's root. Without a
    repository the same search ends at `rootdir`, which is the answer when nothing is found.
    """
    above = _absolute(spec).parents
    root = next((directory for directory in above if is_repository(directory)), None)
    boundary = root or rootdir
    if _relative(above[0], boundary) is None:
        return boundary
    for directory in above:
        if (directory / CALIPER_DIRECTORY).is_dir():
            return directory
        if directory.resolve() == boundary.resolve():
            break
    return boundary


def results_directory(spec: Path, *, override: Path | None, rootdir: Path) -> Path:
    """The directory of a spec's run files; creates nothing.

    `override` is `--caliper-results`: it takes the place of `<project>/.caliper/results`. A spec outside its project gets a
    directory named after its own, with a hash of the whole path, so that specs from different places never share one.
    """
    project = project_of(spec, rootdir)
    base = override if override is not None else project / CALIPER_DIRECTORY / "results"
    directory = _absolute(spec).parent
    relative = _relative(directory, project)
    if relative is None:
        relative = Path(f"{directory.name or 'root'}-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:8]}")
    stem = spec_stem(spec)
    return base / relative / (f"{stem}_" if stem == PARTIAL else stem)


def prepare(directory: Path) -> None:
    """Create a results directory. A `.caliper/` that did not exist gets a `.gitignore` of `*`; one that did is left alone.

    Raises OSError.
    """
    for parent in reversed(directory.parents):
        if parent.name == CALIPER_DIRECTORY:
            _create_ignored(parent)
    directory.mkdir(parents=True, exist_ok=True)


def spec_stem(spec: Path) -> str:
    """The file's name without `.eval.yaml` or `.eval.yml`."""
    name = spec.name
    for suffix in _SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)] or "eval"
    return spec.name if name.endswith(".py") else spec.stem  # a test's file may stand beside a spec of its name


def path_in(project: Path, path: Path, *, outside: str | None = None) -> str:
    """`path` relative to the project with forward slashes; `outside` (the path's last name) when it lies elsewhere."""
    relative = _relative(_absolute(path), project)
    if relative is None:
        return path.name if outside is None else outside
    return relative.as_posix()


def _create_ignored(directory: Path) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir()
    except FileExistsError:
        return
    try:
        with open(directory / ".gitignore", "x", encoding="ascii") as out:
            out.write("*\n")
    except FileExistsError:
        return


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100  links stay: the spec is where its user sees it


def is_repository(directory: Path) -> bool:
    """Whether a directory is the root of a repository."""
    return any((directory / mark).exists() for mark in _REPOSITORY_MARKS)


def _relative(path: Path, base: Path) -> Path | None:
    """`path` below `base`, None when it lies outside; links are followed only where the names alone do not tell."""
    for one, other in _spellings(path, base):
        if one.is_relative_to(other):
            return one.relative_to(other)
    return None


def _spellings(path: Path, base: Path) -> Iterator[tuple[Path, Path]]:
    yield path, _absolute(base)
    yield path.resolve(), base.resolve()
