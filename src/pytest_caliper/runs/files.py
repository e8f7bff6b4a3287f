"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}


@contextlib.contextmanager
def written_whole(path: Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """Gives a file that becomes `path` when the block ends without an error: on disk, and under its name at once.

    Raises FileExistsError at the end when `path` exists and `overwrite` is false, OSError when the disk does not take it; then
    nothing is left behind. The directory must exist.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as out:
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
