"""The specs that a command line leads to, before anything is collected: xdist's controller never collects itself."""

from __future__ import annotations

import fnmatch
import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.options import is_spec

if TYPE_CHECKING:
    import pytest

NEVER = frozenset({".git", ".hg", ".svn", ".caliper", "node_modules", "__pycache__"})
"""Directories that hold no specs whatever `norecursedirs` says: walking them costs seconds."""


def named_specs(config: pytest.Config) -> list[Path]:
    """Absolute paths of the spec files that the arguments (or testpaths, or the current directory) lead to, each once.

    In the order of the arguments, below a directory by name. What pytest leaves out is left out: `--ignore`, `--ignore-glob`,
    `norecursedirs`, virtual environments. What only a conftest leaves out (`collect_ignore`, hooks) is still named. Opens no
    spec. Directories that cannot be read are passed over: pytest tells that itself.
    """
    starts = [start for arg in config.args if (start := _start(config, str(arg))) is not None]
    rules = _Rules.of(config, starts)
    found: dict[Path, None] = {}
    for start in starts:
        if start.is_dir():
            found.update(dict.fromkeys(_below(start, rules, frozenset({start.resolve()}))))
        elif is_spec(start.name) and start.is_file():
            found[start] = None
    return list(found)


def _start(config: pytest.Config, arg: str) -> Path | None:
    """The file or directory of an argument, made absolute as pytest does it, with links as typed; None where there is none."""
    whole, cut = arg, arg.partition("[")[0].split("::", 1)[0]
    for text in (whole, cut):
        path = Path(os.path.abspath(config.invocation_params.dir / text))  # noqa: PTH100  resolve() would follow links
        if _exists(path):
            return path
    return _package(cut) if config.getoption("pyargs", False) else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or holds NUL
        return False


def _package(name: str) -> Path | None:
    """The directory of a package that `--pyargs` names."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    places = None if found is None else found.submodule_search_locations
    return next((Path(os.path.abspath(place)) for place in places or ()), None)  # noqa: PTH100


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rules:
    """What pytest does not collect."""

    norecurse: Sequence[str]
    ignored: frozenset[Path]
    globs: Sequence[str]
    in_venv: bool
    """Whether virtual environments are searched."""
    kept: frozenset[Path]
    """What the command line names, and all directories above: never left out."""

    @classmethod
    def of(cls, config: pytest.Config, starts: Sequence[Path]) -> _Rules:
        # pytest takes these relative to the process's directory.
        absolute = [os.path.abspath(str(text)) for text in config.getoption("ignore", None) or ()]  # noqa: PTH100
        globs = [os.path.abspath(str(text)) for text in config.getoption("ignore_glob", None) or ()]  # noqa: PTH100
        return cls(
            norecurse=config.getini("norecursedirs"),
            ignored=frozenset(map(Path, absolute)),
            globs=globs,
            in_venv=bool(config.getoption("collect_in_virtualenv", False)),
            kept=frozenset(path for start in starts for path in (start, *start.parents)),
        )

    def leave_out(self, path: Path, *, directory: bool) -> bool:
        if path in self.kept:
            return False
        if path in self.ignored or any(fnmatch.fnmatch(str(path), glob) for glob in self.globs):
            return True
        if not directory:
            return False
        if path.name in NEVER or any(_matches(pattern, path) for pattern in self.norecurse):
            return True
        return not self.in_venv and ((path / "pyvenv.cfg").is_file() or (path / "conda-meta" / "history").is_file())


def _matches(pattern: str, path: Path) -> bool:
    """A pattern of `norecursedirs`: one without a separator is about the name, another about the whole path."""
    if os.sep not in pattern:
        return fnmatch.fnmatch(path.name, pattern)
    return fnmatch.fnmatch(str(path), pattern if os.path.isabs(pattern) else f"*{os.sep}{pattern}")  # noqa: PTH117


def _below(directory: Path, rules: _Rules, above: frozenset[Path]) -> Iterator[Path]:
    """Specs below a directory: its own by name, then those of its directories by name. `above` are resolved ancestors."""
    try:
        with os.scandir(directory) as entries:
            listed = sorted((entry.name, _is_directory(entry), entry.is_symlink()) for entry in entries)
    except OSError:
        return
    for name, is_directory, _ in listed:
        path = directory / name
        if not is_directory and is_spec(name) and path.is_file() and not rules.leave_out(path, directory=False):
            yield path
    for name, is_directory, is_link in listed:
        path = directory / name
        if not is_directory or rules.leave_out(path, directory=True):
            continue
        if is_link and path.resolve() in above:  # a link to where we come from would go round for ever
            continue
        yield from _below(path, rules, above | {path.resolve()} if is_link else above)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
