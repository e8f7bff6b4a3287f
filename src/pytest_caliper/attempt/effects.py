"""Doing again what an agent did to files, without ever leaving the directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PERMISSIONS = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO


class UnsafeEffect(ValueError):
    """An effect would reach outside the directory, or contradicts what is there. The text names the path."""


class EffectsTooLarge(ValueError):
    """The files hold too much to be recorded. The text names the largest."""

    @classmethod
    def of(cls, sizes: Mapping[str, int], max_bytes: int) -> EffectsTooLarge:
        """For files of `sizes` in bytes."""
        largest = sorted(sizes, key=lambda path: (-sizes[path], path))[:3]
        named = ", ".join(f"{path} ({_mib(sizes[path])})" for path in largest)
        total = sum(sizes.values())
        return cls(f"the agent's files hold {_mib(total)}, more than {_mib(max_bytes)} can be recorded; the largest: {named}")


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MiB"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEffect:
    """One file, directory or symbolic link that was added, modified or deleted."""

    path: str
    """Relative to `work/`, with forward slashes."""
    change: Literal["added", "modified", "deleted"]
    mode: int
    """`st_mode` afterwards, type and permissions; of a deleted one, what it was. Permissions alone mean a regular file."""
    data: bytes | None = None
    """All bytes of a regular file; None for anything else, and for a file that could not be read."""
    link: str | None = None
    """Where a symbolic link leads."""

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)


def apply_effects(effects: Iterable[FileEffect], work: Path) -> None:
    """Do all `effects` to `work`, in whatever order they come. Owner, times and special permission bits are not restored.

    Raises UnsafeEffect for a path that is absolute, has `..`, or leads through a symbolic link, and OSError from the file system.
    """
    listed = sorted(effects, key=lambda effect: effect.path.split("/"))
    for effect in listed:
        _check(effect.path)
    gone = [effect for effect in listed if effect.change == "deleted"]
    made = [effect for effect in listed if effect.change != "deleted"]
    directories = [effect for effect in made if effect.is_directory]
    for effect in directories:
        _make_directory(effect.path, work)
    for effect in reversed(gone):
        _remove(_place(effect.path, work), missing_ok=True)
    for effect in made:
        if not effect.is_directory:
            _write(effect, work)
    for effect in reversed(directories):  # a directory closed to writing must get its files first
        _place(effect.path, work).chmod(effect.mode & PERMISSIONS)


def _check(path: str) -> None:
    parts = path.split("/")
    if not path or path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise UnsafeEffect(f"{path!r} is not a path below the working directory")


def _place(path: str, work: Path) -> Path:
    """Where `path` is, every directory above it being a real one."""
    place = work
    for part in path.split("/")[:-1]:
        place = place / part
        if place.is_symlink():
            raise UnsafeEffect(f"{path!r} leads through the symbolic link {place.name!r}")
    return place / path.rsplit("/", 1)[-1]


def _kind(place: Path) -> int | None:
    """The file type bits of what is at `place`, links not followed; None when nothing is."""
    try:
        return stat.S_IFMT(place.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _remove(place: Path, *, missing_ok: bool) -> None:
    """Remove a file, a link, or an empty directory; a directory that still holds something stays."""
    kind = _kind(place)
    if kind is None and missing_ok:
        return
    if kind != stat.S_IFDIR:
        place.unlink()
        return
    try:
        place.rmdir()
    except OSError:
        if not any(place.iterdir()):
            raise


def _make_directory(path: str, work: Path) -> None:
    place = _place(path, work)
    kind = _kind(place)
    if kind == stat.S_IFDIR:
        place.chmod(stat.S_IRWXU)
        return
    if kind is not None:
        place.unlink()
    place.mkdir(parents=True, mode=0o700)


def _write(effect: FileEffect, work: Path) -> None:
    place = _place(effect.path, work)
    place.parent.mkdir(parents=True, exist_ok=True)
    if _kind(place) is not None:
        _remove(place, missing_ok=False)
        if _kind(place) is not None:
            raise UnsafeEffect(f"{effect.path!r} is a directory that is not empty")
    if effect.link is not None:
        place.symlink_to(effect.link)
        return
    fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(effect.data or b"")
        os.fchmod(fd, effect.mode & PERMISSIONS)
