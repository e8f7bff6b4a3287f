"""Which of the protected files a named path reaches."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase, translate
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path, PurePath

from pytest_caliper.attempt.named import MAX_PATH, Named, joined, real, resolve
from pytest_caliper.contracts import Workspace

_GLOB = re.compile(r"[*?\[]")
_UNKNOWN = re.compile(r"\$(?:\{\w+\}|\w+)")
"""A variable whose value is not known."""
MAX_NAMES = 2_000
"""Files of a protected directory whose names are compared with globs."""


@dataclass(frozen=True, kw_only=True)
class _Place:
    """One of the names of a protected file or directory."""

    path: Path
    """As it was given."""
    name: str
    """Normal and absolute, folded."""
    is_dir: bool

    @cached_property
    def files(self) -> frozenset[str]:
        """The names of the file, or of those below the directory. Looked for only when an agent comes near."""
        return frozenset(map(_fold, _names_below(self.path))) if self.is_dir else frozenset({_fold(self.path.name)})


class ProtectedFiles:
    """Files and directories that the agent must not touch, by every name they have."""

    def __init__(self, paths: Sequence[Path], workspace: Workspace) -> None:
        root = {_fold(str(workspace.root)), _fold(os.path.realpath(workspace.root))}
        self._places: list[_Place] = []
        self._ids: dict[tuple[int, int], Path] = {}
        self._real: dict[str, str | None] = {}
        for path in paths:
            names = dict.fromkeys((_fold(os.path.normpath(path)), _fold(os.path.realpath(path))))
            if any(_below(inside, name) for inside in root for name in names):
                continue  # else the whole workspace would be out of bounds
            is_dir = path.is_dir()
            self._places += [_Place(path=path, name=name, is_dir=is_dir) for name in names]
            self._remember(path)

    def _remember(self, path: Path) -> None:
        """Note the file's identity, by which hard links and other spellings of its name are known."""
        try:
            found = path.stat()
        except OSError:
            return
        self._ids[found.st_dev, found.st_ino] = path

    def match(self, named: Named) -> Path | None:
        """The first protected path that `named` is, is below of, or reads on its way; None when there is none."""
        if not named.walks and _UNKNOWN.search(named.path):  # `cat dir/$f` in a loop reads what `cat dir/*` reads
            named = replace(named, path=_UNKNOWN.sub("*", named.path), dotted=True)
        if not self._places or not 0 < len(named.path) <= MAX_PATH or "\0" in named.path or named.path.startswith("-"):
            return None
        for candidate in self._spellings(named):
            for place in self._places:
                if _below(candidate, place.name) or (named.walks and _walked(named, candidate, place)):
                    return place.path
                if not named.lists and _GLOB.search(candidate) and _glob_reaches(named, candidate, place):
                    return place.path
        return self._same_file(named)

    def _spellings(self, named: Named) -> Iterator[str]:
        lexical = resolve(named.path, named.base)
        yield _fold(lexical)
        path = joined(named.path, named.base)
        if path not in self._real:
            self._real[path] = real(named.path, named.base)
        followed = self._real[path]
        if followed is not None and followed != lexical:
            yield _fold(followed)

    def _same_file(self, named: Named) -> Path | None:
        try:
            found = os.stat(joined(named.path, named.base))  # noqa: PTH116 - for every word of every command
        except (OSError, ValueError):
            return None
        return self._ids.get((found.st_dev, found.st_ino))


def _fold(path: str) -> str:
    """`path` as the file system compares it: macOS' ignores letter case by default."""
    return path.casefold() if sys.platform == "darwin" else path


def _below(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies below it; both are normal absolute paths."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _names_below(directory: Path) -> Iterator[str]:
    """The names of the files below a directory, as many as matter."""
    found = (name for _, _, names in os.walk(directory) for name in names)
    return islice(found, MAX_NAMES)


def _walked(named: Named, candidate: str, place: _Place) -> bool:
    return _below(place.name, candidate) and _is_read(named, PurePath(place.name).relative_to(candidate), place)


def _is_read(named: Named, rest: PurePath, place: _Place) -> bool:
    """Whether a walk with the globs of `named` reads a file of `place`, which is at `rest` below its start."""
    if any(_fits(part, glob) for glob in named.but for part in (*rest.parts, str(rest))):
        return False
    left = [name for name in place.files if not any(_fits(name, glob) for glob in named.but)]
    if not named.only:
        return bool(left) or not place.files
    return any(_fits(name, glob.rsplit("/", 1)[-1]) for glob in named.only for name in left)


def _fits(name: str, glob: str) -> bool:
    return any(fnmatchcase(name, _fold(text)) for text in _alternatives(glob))


def _alternatives(glob: str) -> list[str]:
    match = re.search(r"\{([^{}]*)\}", glob)
    if match is None:
        return [glob]
    return [glob[: match.start()] + part + glob[match.end() :] for part in match[1].split(",")[:64]]


def _glob_reaches(named: Named, glob: str, place: _Place) -> bool:
    """Whether the expansion of `glob` holds `place`, a file below it, or (for a walk) a directory above it."""
    patterns, parts = glob.strip("/").split("/"), place.name.strip("/").split("/")
    reached = {0}
    """How many of `parts` the patterns so far may have used up."""
    for pattern in patterns:
        if place.is_dir and len(parts) in reached:
            last = patterns[-1]
            return last == "**" or any(_part_fits(name, last, named.dotted) for name in place.files)
        if pattern == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(parts) and _part_fits(parts[at], pattern, named.dotted)}
    if len(parts) in reached:
        return True
    return named.walks and any(_is_read(named, PurePath(*parts[at:]), place) for at in reached if at)


def _part_fits(part: str, pattern: str, dotted: bool) -> bool:
    if part.startswith(".") and not dotted and not pattern.startswith("."):
        return False
    return _compiled(pattern).match(part) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
