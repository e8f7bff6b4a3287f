"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_LOCKED = ".tmp"
_OURS = re.compile(r"\.[0-9a-f]{16}\.tmp")
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}


@contextlib.contextmanager
def written_whole(path: Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """Gives a file that becomes `path` when the block ends without an error: on disk, and under its name at once.

    Raises FileExistsError at the end when `path` exists and `overwrite` is false, OSError when the disk does not take it; then
    nothing is left behind. The directory must exist.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.new")
    try:
        with open(temporary, "xb") as out:
            if _lock(out.fileno()):
                temporary = temporary.rename(temporary.with_suffix(_LOCKED))
            yield out
            out.flush()
            os.fsync(out.fileno())
            if overwrite:
                temporary.replace(path)
            else:
                _take_name(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def remove_abandoned(directory: Path) -> list[Path]:
    """Remove what processes left in a directory that were killed while they wrote a file there. -> which.

    A file that is being written carries its name only when it is locked (flock(2)): one without a lock has lost its writer.
    """
    gone = []
    with contextlib.suppress(OSError):
        for path in directory.glob(f".*{_LOCKED}"):
            with contextlib.suppress(OSError):
                if _OURS.fullmatch(path.name) and _is_abandoned(path):
                    path.unlink()
                    gone.append(path)
    return gone


def _is_abandoned(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        return _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether the file is this process's now; not on file systems without locks, nor where another process has it."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _take_name(temporary: Path, path: Path) -> None:
    """A hard link is the one rename that never overwrites; without them, the name is reserved first."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        try:
            temporary.replace(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _sync_directory(directory: Path) -> None:
    """Puts the new name on disk. Some file systems cannot sync a directory: the file itself is safe by then."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES}:
            raise
    finally:
        os.close(descriptor)
