"""Which files of a skill's directory are installed."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_caliper.sources.never import ExcludedFiles, is_never_installed, is_virtualenv

MAX_FILES = 1_000
MAX_BYTES = 20_000_000
_GIVE_UP = 50_000
"""Entries after which the rest is not looked at: the answer is "too many" by then."""


class SelectionError(Exception):
    """A skill's directory cannot be installed as it is. The text is one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selected:
    """One file to install."""

    path: str
    """Relative to the skill's directory, forward slashes."""
    size: int
    """Bytes, links followed."""


def select(root: Path, *, exclude: ExcludedFiles, ignored: Collection[str], keep: str) -> tuple[Selected, ...]:
    """The files below `root` (absolute, no link in it) that are installed, sorted by path.

    `ignored` are relative paths that stay behind, `keep` is the file that never does. Links to files and directories inside
    count as what they point to. Raises SelectionError for links that leave `root` or point nowhere, for what is neither file
    nor directory, for what cannot be read, and for too much of it.
    """
    walk = _Walk(root, exclude, frozenset(ignored), keep)
    found: list[Selected] = []
    try:
        for entry in walk.below("", (os.path.realpath(root),)):
            found.append(entry)
    except OSError as error:
        raise SelectionError(f"{_relative(root, error.filename)} cannot be read: {error.strerror}") from error
    if walk.seen > _GIVE_UP or len(found) > MAX_FILES:
        count = f"more than {_GIVE_UP:,} entries" if walk.seen > _GIVE_UP else f"{len(found):,} files"
        raise SelectionError(f"{count}, the limit is {MAX_FILES:,} files; {_fullest(found)}: git-ignore it or move it away")
    if (total := sum(entry.size for entry in found)) > MAX_BYTES:
        largest = max(found, key=lambda entry: entry.size)
        raise SelectionError(
            f"{_mb(total)}, the limit is {_mb(MAX_BYTES)}; the largest file is {largest.path} ({_mb(largest.size)}): "
            "git-ignore it or move it away"
        )
    return tuple(sorted(found, key=lambda entry: entry.path))


class _Walk:
    def __init__(self, root: Path, exclude: ExcludedFiles, ignored: frozenset[str], keep: str) -> None:
        self.root, self.exclude, self.ignored, self.keep = root, exclude, ignored, keep
        self.real_root = os.path.realpath(root)
        self.seen = 0

    def below(self, directory: str, trail: tuple[str, ...]) -> Iterator[Selected]:
        """`trail` holds the real paths of the directories on the way, so that a link back up is found."""
        with os.scandir(self.root / directory) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            self.seen += 1
            if self.seen > _GIVE_UP:
                return
            yield from self._entry(f"{directory}/{name}" if directory else name, name, trail)

    def _entry(self, path: str, name: str, trail: tuple[str, ...]) -> Iterator[Selected]:
        # Git knows a file below a linked directory by its real path alone.
        real = os.path.relpath(os.path.join(trail[-1], name), self.real_root)  # noqa: PTH118
        if path != self.keep and (is_never_installed(name) or real in self.ignored):
            return
        place = self.root / path
        status = place.lstat()
        if stat.S_ISLNK(status.st_mode):
            if not self._may_follow(path, place):
                if path == self.keep:
                    raise SelectionError(f"the link {path} points to what is never installed; replace it by the file itself")
                return
            status = place.stat()
        if path != self.keep and self.exclude.holds(status):
            return
        if stat.S_ISDIR(status.st_mode):
            resolved = os.path.realpath(place)
            if resolved in trail:
                raise SelectionError(f"the link {path} leads back to a directory above it; remove it")
            if not is_virtualenv(place):
                yield from self.below(path, (*trail, resolved))
        elif stat.S_ISREG(status.st_mode):
            yield Selected(path=path, size=status.st_size)
        else:
            raise SelectionError(f"{path} is a {_kind(status.st_mode)}, only files and directories can be installed; remove it")

    def _may_follow(self, path: str, place: Path) -> bool:
        """Whether what a link points to may be installed itself."""
        real = os.path.realpath(place)
        if real != self.real_root and not real.startswith(self.real_root.rstrip(os.sep) + os.sep):
            raise SelectionError(f"the link {path} leads out of the skill's directory; replace it by the file itself")
        if not os.path.lexists(real) or Path(real).is_symlink():  # realpath stops at what is missing and at a loop of links
            raise SelectionError(f"the link {path} points nowhere; remove it")
        target = os.path.relpath(real, self.real_root)
        parts = PurePosixPath(target).parts
        above = [self.root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
        hidden = any(map(is_never_installed, parts)) or target in self.ignored or any(map(is_virtualenv, above))
        return not hidden and not any(self.exclude.holds(one.stat()) for one in above)


def _fullest(found: list[Selected]) -> str:
    """The deepest directory that still holds most of the files, or the fullest one at the top."""
    counts: Counter[str] = Counter()
    for entry in found:
        counts.update(str(parent) for parent in PurePosixPath(entry.path).parents)
    below = {name: count for name, count in counts.items() if name != "."}
    if not below:
        return "all of them lie in the directory itself"
    most = [name for name, count in below.items() if count * 2 > len(found)]
    name = max(most, key=lambda one: (one.count("/"), below[one])) if most else max(below, key=lambda one: below[one])
    return f"{name}/ holds {below[name]:,} of them"


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "named pipe"
    return "socket" if stat.S_ISSOCK(mode) else "device"


def _relative(root: Path, name: object) -> str:
    return os.path.relpath(os.fsdecode(name), root) if isinstance(name, (str, bytes, os.PathLike)) else "it"


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
