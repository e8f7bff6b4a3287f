"""The client's end of the warm helper: starting it, and one call to it. The protocol is told in `assert_server`."""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

SERVER = Path(__file__).with_name("assert_server.py")

_START_S = 60.0
"""For a helper to come up and fork; on an idle machine it takes 0.3 s."""
_LOOK_S = 0.2
"""How often a thread that waits for the helper asks whether the session stops."""
_CLOSE_S = 2.0
_CHUNK = 65_536
_KEEP = 16_384
"""Bytes kept of the beginning, and as many of the end, of what an assert prints."""


class HelperError(Exception):
    """The helper did not run the assert; nothing of it has been executed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """What is known of an assert's process."""

    answer: Mapping[str, Any] | None
    """`passed`, `evidence` and `duration_s`; None when it gave none."""
    exit: int | None
    """Its exit code, or minus the signal's number; None where it is not known (yet)."""
    printed: bytes
    """What it wrote to stdout and stderr, bounded."""
    stack: bytes = b""
    """What faulthandler wrote when it was ended or crashed."""

    def line_in(self, path: Path) -> int | None:
        """The innermost line of the file `path` that ran when `stack` was written."""
        found = re.search(rb'File "' + re.escape(os.fsencode(path)) + rb'", line (\d+)', self.stack)
        return None if found is None else int(found.group(1))


@dataclass(kw_only=True, slots=True)
class Helper:
    """A running helper."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    lock: threading.Lock = field(default_factory=threading.Lock)
    hung: bool = False

    @classmethod
    def start(cls, env: Mapping[str, str], cwd: Path) -> Helper:
        """Does not wait for it. Raises OSError where this system cannot."""
        if not hasattr(os, "fork") or not hasattr(socket, "AF_UNIX"):
            raise OSError("this system has no fork")
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        try:
            process = subprocess.Popen(
                [sys.executable, str(SERVER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=dict(env),
                cwd=cwd,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(process=process, control=ours)

    @property
    def usable(self) -> bool:
        """False once it hangs or has ended; its end shows on the socket a moment before the process is gone."""
        if self.hung or self.process.poll() is not None:
            return False
        try:
            return self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def send(self, descriptors: list[int]) -> None:
        """Raises OSError when the helper is gone."""
        with self.lock:
            socket.send_fds(self.control, [b"+"], descriptors)

    def close(self) -> None:
        """End it; its children end with it."""
        self.control.close()
        try:
            self.process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Call:
    """One assert, from the request to the end of its process."""

    def __init__(self, helper: Helper, connection: socket.socket, output: int, request: IO[bytes], stack: ExitStack) -> None:
        self._helper, self._connection, self._output, self._request = helper, connection, output, request
        self._stack = stack
        self._lines = b""
        self._printed = _HeadAndTail()
        self._messages: dict[str, Any] = {}
        self._closed = False
        """Whether nobody is left who could say anything."""

    @classmethod
    def begin(cls, helper: Helper, request: bytes) -> Call:
        """Raises OSError when the helper is gone."""
        with ExitStack() as stack:
            # A file, not a stream: nobody has to read for as long as somebody writes.
            file = stack.enter_context(tempfile.TemporaryFile(buffering=0))
            file.write(request)
            connection, theirs = socket.socketpair(socket.AF_UNIX)
            stack.enter_context(connection)
            with theirs:
                output, their_output = os.pipe()
                stack.callback(os.close, output)
                try:
                    os.set_blocking(output, False)
                    connection.setblocking(False)
                    helper.send([theirs.fileno(), their_output, file.fileno()])
                finally:
                    os.close(their_output)
            return cls(helper, connection, output, file, stack.pop_all())

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait_for_pid(self, stop: Callable[[], bool]) -> int | None:
        """The process id of the assert, a group leader; None as soon as `stop` says so. Raises HelperError."""
        deadline = time.monotonic() + _START_S
        while "pid" not in self._messages:
            if stop():
                return None
            if time.monotonic() > deadline:
                self._helper.hung = True
                raise HelperError(f"the assert helper did not answer within {_START_S:g} s")
            self._listen(_LOOK_S)
            if "refused" in self._messages:
                raise HelperError(str(self._messages["refused"]))
            if self._closed and "pid" not in self._messages:
                raise HelperError("the assert helper ended")
        return int(self._messages["pid"])

    def wait_for_end(self, limit_s: float) -> End:
        """Blocks until the assert has answered, its process is dead, or `limit_s` is over."""
        deadline = time.monotonic() + limit_s
        while not (self._closed or "passed" in self._messages or "exit" in self._messages):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._listen(left)
        self._read_output()
        answered = "passed" in self._messages
        return End(
            answer={name: self._messages[name] for name in ("passed", "evidence", "duration_s")} if answered else None,
            exit=self._messages.get("exit"),
            printed=self._printed.value(),
            stack=b"" if answered else self._read_stack(),
        )

    def _listen(self, limit_s: float) -> None:
        """Take in what comes next."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        if not self._printed.ended:
            poll.register(self._output, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(limit_s * 1000)}
        if self._output in ready:
            self._read_output(chunks=1)
        if self._connection.fileno() in ready:
            self._read_messages()

    def _read_messages(self) -> None:
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        self._closed = not data
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:  # blank, or cut off by the death of its writer
                continue
            self._messages.update(message)

    def _read_output(self, chunks: int = 32) -> None:
        """What is there, and not for ever: a writer that outlives the assert could always have more."""
        for _ in range(chunks):
            try:
                data = os.read(self._output, _CHUNK)
            except BlockingIOError:
                return
            self._printed.add(data)
            if not data:
                return

    def _read_stack(self) -> bytes:
        self._request.seek(0)
        return self._request.read(_CHUNK)


class _HeadAndTail:
    """Keeps the beginning and the end of a stream."""

    def __init__(self) -> None:
        self._head, self._tail, self._cut = b"", b"", 0
        self.ended = False

    def add(self, data: bytes) -> None:
        """An empty `data` is the end of the stream."""
        self.ended = not data
        room = _KEEP - len(self._head)
        self._head += data[:room]
        tail = self._tail + data[room:]
        self._cut += max(0, len(tail) - _KEEP)
        self._tail = tail[-_KEEP:]

    def value(self) -> bytes:
        return (
            b"%s\n[\xe2\x80\xa6 %d bytes cut \xe2\x80\xa6]\n%s" % (self._head, self._cut, self._tail)
            if self._cut
            else self._head + self._tail
        )
