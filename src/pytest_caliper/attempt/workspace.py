"""Private directories: one root per session, one below it per attempt, outside any repository, gone afterwards."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
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


def remove(root: Path) -> bool:
    """Remove a root with all below it, also where an agent took its own write permission away. -> whether it is gone."""

    def retry(function: object, path: str, _error: object) -> None:
        parent = Path(path).parent
        try:
            for blocked in (parent, Path(path)):
                if not blocked.is_symlink():
                    blocked.chmod(stat.S_IRWXU)
            if Path(path).is_dir() and not Path(path).is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
        except OSError:
            return  # what remains is told by the return value

    shutil.rmtree(root, onerror=retry)
    return not root.exists()
