"""An attempt's directories as set-up left them, so that an invocation that was lost half-way can begin again."""

from __future__ import annotations

import shutil
import stat
from contextlib import suppress
from pathlib import Path

from pytest_caliper.contracts import Workspace

MAX_FILES = 2_000
MAX_BYTES = 50 * 1024 * 1024
"""More than this is not copied before every attempt just in case: such an attempt is not tried again."""
_NAMES = ("home", "work", "tmp")


def keep(workspace: Workspace) -> Path | None:
    """Copy the attempt's directories beside them. -> the copy; None where they are too large or hold what cannot be copied."""
    copy = workspace.root / "pristine"
    try:
        if not _is_small(workspace):
            return None
        copy.mkdir(mode=0o700)
        for name, directory in _directories(workspace):
            if any(directory.iterdir()):  # nothing to copy is what most attempts have
                shutil.copytree(directory, copy / name, symlinks=True)
    except OSError:
        shutil.rmtree(copy, ignore_errors=True)
        return None
    return copy


def restore(copy: Path, workspace: Workspace) -> bool:
    """Make the directories what they were. -> whether it worked.

    They themselves stay: processes of set-up may stand in them.
    """
    try:
        for name, directory in _directories(workspace):
            if directory.is_symlink():
                return False
            directory.mkdir(mode=0o700, exist_ok=True)
            _empty(directory)
            if (copy / name).is_dir():
                shutil.copytree(copy / name, directory, symlinks=True, dirs_exist_ok=True)
    except OSError:
        return False
    return True


def _directories(workspace: Workspace) -> tuple[tuple[str, Path], ...]:
    return tuple(zip(_NAMES, (workspace.home, workspace.work, workspace.tmp), strict=True))


def _is_small(workspace: Workspace) -> bool:
    files = size = 0
    for _, directory in _directories(workspace):
        for path in directory.rglob("*"):
            status = path.lstat()
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode)):
                return False  # a pipe or socket of a server that set-up started
            files, size = files + 1, size + status.st_size
            if files > MAX_FILES or size > MAX_BYTES:
                return False
    return True


def _empty(directory: Path) -> None:
    directory.chmod(stat.S_IRWXU)
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            with suppress(OSError):
                _empty(entry)
            entry.rmdir()
        else:
            entry.unlink()
