"""Private directories: one root per session, one below it per attempt, outside any repository, gone afterwards."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from pytest_caliper.contracts import Workspace

PREFIX = "caliper-"


def session_root() -> Path:
    """A new private directory for all attempts of this process. Raises OSError when none can be made."""
    base = Path(tempfile.gettempdir()).resolve()
    if _in_repository(base) and not _in_repository(Path("/tmp")):  # an agent must not find a repository above its work
        base = Path("/tmp").resolve()
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))


def _in_repository(path: Path) -> bool:
    return any((parent / ".git").exists() for parent in (path, *path.parents))


def create(workspace: Workspace) -> None:
    """Make the directories of an attempt, readable by their owner alone. Doing it again changes nothing."""
    for directory in (workspace.root, workspace.home, workspace.work, workspace.tmp):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def restore(workspace: Workspace) -> None:
    """Make the directories of an attempt again where its agent has removed, replaced or closed them. Raises OSError.

    A link in the place of one goes: `cleanup:` must not run where it leads.
    """
    for directory in (workspace.root, workspace.home, workspace.work, workspace.tmp):
        if directory.is_symlink() or directory.is_file():
            directory.unlink()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(stat.S_IRWXU)


def remove(root: Path) -> bool:
    """Remove a root with all below it, also where an agent took its own write permission away. -> whether it is gone."""
    shutil.rmtree(root, ignore_errors=True)
    if root.is_dir():
        for directory, _, _ in os.walk(root):  # top down: a directory is opened before its children are listed
            with suppress(OSError):
                Path(directory).chmod(stat.S_IRWXU)
        shutil.rmtree(root, ignore_errors=True)
    return not root.exists()
