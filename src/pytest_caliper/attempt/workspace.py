"""Private directories: one root per session, one below it per attempt, outside any repository, gone afterwards."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from pytest_caliper.contracts import Workspace
from pytest_caliper.process import TAG_VARIABLE

PREFIX = "caliper-"


OWNER = ".caliper-owner"
"""In every directory that a session may leave behind when it and its watchdog are killed: locked (flock(2)) while it lives. Holds
the session's tag."""
_TAG = re.compile(r"[A-Za-z0-9-]{8,200}")


def session_root() -> Path:
    """A new private directory for all attempts of this process; what killed sessions left goes. Raises OSError when none can be
    made."""
    base = Path(tempfile.gettempdir()).resolve()
    if _in_repository(base) and not _in_repository(Path("/tmp")):  # an agent must not find a repository above its work
        base = Path("/tmp").resolve()
    sweep(base)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))


def own(directory: Path, tag: str = "") -> int:
    """Mark the directory as this process's until the descriptor that is returned is closed, at the latest by the process's end.

    A sweep ends the processes that carry `tag`, where one is given, before it removes the directory. Raises OSError.
    """
    import fcntl

    unlocked = directory / f"{OWNER}-new"  # under its name only when it is locked: a sweep may look at any moment
    descriptor = os.open(unlocked, os.O_WRONLY | os.O_CREAT, 0o600)
    with suppress(OSError):  # a full disk
        os.write(descriptor, tag.encode())
    with suppress(OSError):  # a file system without locks: then it is never swept
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        unlocked.rename(directory / OWNER)
    return descriptor


def sweep(base: Path) -> list[Path]:
    """Remove directories of ours whose process is gone, with the copies of credentials in them, and end what that process had
    started. -> which.

    Only what carries the mark, belongs to this user and is no link is touched.
    """
    gone = []
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and (tag := _tag_of_abandoned(entry)) is not None:
                _end_orphans(tag)
                remove(Path(entry.path))
                gone.append(Path(entry.path))
    return gone


def _tag_of_abandoned(entry: os.DirEntry[str]) -> str | None:
    """The tag of the session that left the directory, "" when it is not known; None for a directory that is not abandoned."""
    import fcntl

    try:
        if not entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid != os.geteuid():
            return None
        descriptor = os.open(Path(entry.path) / OWNER, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.read(descriptor, 1024).decode("ascii", "replace")
    except OSError:  # somebody lives; or a file system without locks, where nobody can tell
        return None
    finally:
        os.close(descriptor)


def _end_orphans(tag: str) -> None:
    """Do what the watchdog of a killed session would have done, had it not been killed as well."""
    ours = os.environ.get(TAG_VARIABLE, "")
    if not _TAG.fullmatch(tag) or ours == tag or ours.startswith(f"{tag}/"):  # we may be such an orphan ourselves
        return
    from pytest_caliper.process.watchdog import Watchdog

    Watchdog([f"{TAG_VARIABLE}={tag}".encode()]).kill()


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
