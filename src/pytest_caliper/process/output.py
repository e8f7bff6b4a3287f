"""Where one process writes: two files, bounded together."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType

from pytest_caliper.process.table import FileId

FIRST_LOOK_S, LONGEST_PAUSE_S, SHORTEST_PAUSE_S = 0.05, 0.5, 0.02


class Output:
    """The stdout and stderr files of one run, open for as long as it lasts.

    They are opened for appending, so a process that goes on writing after they were cut short starts again at the cut. A symlink
    in their place is refused: an agent may have put it there. Raises OSError when a file cannot be made.
    """

    def __init__(self, stdout: Path, stderr: Path, max_bytes: int) -> None:
        self.paths = (stdout, stderr)
        self.max_bytes = max_bytes
        self._fds: list[int] = []
        self._seen = 0
        self._looked_s: float | None = None
        self._pause_s = FIRST_LOOK_S
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
        try:
            for path in self.paths:
                self._fds.append(os.open(path, flags, 0o600))
        except OSError:
            self.close()
            raise

    @property
    def stdout_fd(self) -> int:
        return self._fds[0]

    @property
    def stderr_fd(self) -> int:
        return self._fds[1]

    @property
    def files(self) -> frozenset[FileId]:
        """What names the files for good; devices are not among them, since others may have those open too."""
        return frozenset(self._by_file())

    def too_large(self) -> bool:
        return sum(size for _, size in self._by_file().values()) > self.max_bytes

    def next_look_s(self, now_s: float) -> float:
        """When the size should be looked at again: soon while it grows fast, seldom while it does not."""
        size = sum(size for _, size in self._by_file().values())
        grown = size - self._seen
        if self._looked_s is not None:
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            if grown > 0:
                seconds_left = (self.max_bytes - size) / grown * (now_s - self._looked_s)
                self._pause_s = max(min(seconds_left / 2, self._pause_s), SHORTEST_PAUSE_S)
        self._seen, self._looked_s = size, now_s
        return now_s + self._pause_s

    def cut(self) -> bool:
        """Shorten the files to `max_bytes` together, the smaller one last; True when there was something to cut."""
        files = sorted(self._by_file().values(), key=lambda file: file[1])
        if sum(size for _, size in files) <= self.max_bytes:
            return False
        left = self.max_bytes
        for waiting, (fd, size) in zip(range(len(files), 0, -1), files, strict=True):
            keep = min(size, left // waiting)
            if keep < size:
                os.ftruncate(fd, keep)
            left -= keep
        return True

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _by_file(self) -> dict[FileId, tuple[int, int]]:
        """Descriptor and size in bytes of each regular file; one entry when both names are the same file."""
        found = {}
        for fd in self._fds:
            status = os.fstat(fd)
            if stat.S_ISREG(status.st_mode):
                found[status.st_dev, status.st_ino] = (fd, status.st_size)
        return found
