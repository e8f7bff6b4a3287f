"""One child process from its start to its exit status."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pytest_caliper.contracts import Command
from pytest_caliper.process.output import Output
from pytest_caliper.process.table import TAG_VARIABLE


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """What the kernel says of a child that has ended."""

    returncode: int
    """Exit code, or minus the signal's number."""
    cpu_s: float
    """User and system time, with that of the children that it waited for."""


def spawn(command: Command, output: Output, tag: str) -> int:
    """Start the command as leader of its own session; its pid. The caller waits for it."""
    with _stdin(command.stdin, output.paths[0].parent) as source:
        child = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env={**command.env, TAG_VARIABLE: tag},
            stdin=source,
            stdout=output.stdout_fd,
            stderr=output.stderr_fd,
            start_new_session=True,
        )
    child.returncode = 0  # so that Popen never waits: that would free the pid while it is still in use
    return child.pid


@contextmanager
def _stdin(data: bytes, directory: Path) -> Iterator[IO[bytes]]:
    """A file without a name that holds `data`, read from its beginning: a CLI may wait for the end of its input."""
    if not data:
        with Path(os.devnull).open("rb") as nothing:
            yield nothing
        return
    with tempfile.TemporaryFile(dir=directory) as file:
        file.write(data)
        file.flush()
        file.seek(0)
        yield file


def await_end(pid: int) -> Collected | None:
    """Block until the process has ended. It stays a zombie, so that its number stays its own, and None is returned.

    Without `os.waitid` (macOS before Python 3.13) it is collected here; the number is then checked by its start time.
    """
    if not hasattr(os, "waitid"):
        return collect(pid)
    with suppress(ChildProcessError):  # `collect` says it
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return None


def collect(pid: int) -> Collected:
    """Wait for the child and free its number. Raises ChildProcessError when somebody else has done so."""
    try:
        _, status, usage = os.wait4(pid, 0)
    except ChildProcessError as error:
        text = "the exit status was lost: something in this process ignores SIGCHLD or waits for any child"
        raise ChildProcessError(error.errno, text) from None
    return Collected(returncode=os.waitstatus_to_exitcode(status), cpu_s=usage.ru_utime + usage.ru_stime)
