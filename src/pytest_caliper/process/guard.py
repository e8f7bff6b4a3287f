"""The session's side of the watchdog: starts it, tells it what lives."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from pytest_caliper.process import watchdog
from pytest_caliper.process.table import TAG_VARIABLE


class Guard:
    """One watchdog process, started when there is something to guard; started anew should somebody end it."""

    def __init__(self, session_tag: str) -> None:
        self._needle = f"{TAG_VARIABLE}={session_tag}"
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: int | None = None
        self._groups: set[int] = set()
        self._directories: set[str] = set()
        self._closed = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return None if process is None else process.pid

    def start(self) -> None:
        """Raises OSError when there can be no watchdog."""
        with self._lock:
            if self._process is None and not self._closed:
                self._start()

    def add(self, group: int) -> None:
        """A process group that shall not outlive this process."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def discard(self, group: int) -> None:
        """To be called while the group's number cannot have been used again."""
        with self._lock:
            self._groups.discard(group)
            if self._pipe is not None:
                self._tell(f"-{group}\n")

    def remove_on_death(self, path: Path) -> None:
        """Raises ValueError for anything but an own directory named `caliper-*`."""
        absolute = os.path.abspath(path)  # noqa: PTH100 - resolving would follow the very symlink that is refused
        if watchdog.removable(absolute) is None:
            raise ValueError(f"{path}: only a directory of one's own named caliper-* can be removed after a kill")
        with self._lock:
            self._directories.add(absolute)
            self._tell(_directory_line(absolute))

    def close(self) -> None:
        """Send the watchdog home: it does nothing."""
        with self._lock:
            self._closed = True
            process, pipe = self._process, self._pipe
            self._process = self._pipe = None
        if process is None or pipe is None:
            return
        try:
            os.write(pipe, b"q\n")
        except BrokenPipeError:  # somebody ended it
            pass
        finally:
            os.close(pipe)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _tell(self, line: str) -> None:
        """Tell the watchdog; where there is none (any more), start one, which is told everything."""
        if self._pipe is not None:
            try:
                os.write(self._pipe, line.encode())
                return
            except BrokenPipeError:
                self._forget()
        self.start()

    def _start(self) -> None:
        """Start it and tell it all that is known."""
        reading, writing = os.pipe()
        argv = [sys.executable, "-I", "-S", watchdog.__file__, str(reading), self._needle]
        # Without a tag: when this session runs inside another one's agent, the outer scan shall not end the inner watchdog.
        env = {name: value for name, value in os.environ.items() if name != TAG_VARIABLE}
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                argv, cwd="/", env=env, stdin=quiet, stdout=quiet, stderr=quiet, pass_fds=(reading,), start_new_session=True
            )
        except OSError:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        self._process, self._pipe = process, writing
        known = "".join([f"+{group}\n" for group in self._groups] + [_directory_line(path) for path in self._directories])
        os.write(writing, known.encode())

    def _forget(self) -> None:
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if pipe is not None:
            os.close(pipe)
        if process is not None:
            process.wait()


def _directory_line(path: str) -> str:
    return f"d{os.fsencode(path).hex()}\n"
