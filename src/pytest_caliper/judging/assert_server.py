"""The warm helper: imports what asserts need once, then forks a child for each.

Started with exec, once per session, by `assert_client`; it has one thread, so forking it is safe.

    python assert_server.py CONTROL           serve until the other end of the socket CONTROL (a descriptor) is closed
    python assert_server.py --once ANSWER     run the request on stdin in this process, append the answer to the file ANSWER

Per assert the client sends one byte over CONTROL with three descriptors: a connection (stream socket) for what we say, the
writing end of a pipe for what the assert prints, and a file that holds the request, and later the stack if the assert crashes.
Over the connection go lines of JSON:

    {"pid": 123}                              by the child, a group leader, before it does anything
    {"passed": true, "evidence": "", ...}     by the child, if the assert came to an end that can be told
    {"exit": 0}                               by the helper once the child is dead; minus the signal's number if one killed it
    {"refused": "..."}                        by the helper instead of all these, when it cannot fork

The dead child stays a zombie until the client hangs up: its process and group id are not given to anybody else before.
"""

from __future__ import annotations

import errno
import faulthandler
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":
    # Run by its path, so that nothing but this file has to be found; its own directory must not shadow anybody's modules.
    _here = Path(__file__).resolve()
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _here.parent]
    sys.path.append(str(_here.parents[2]))

from pytest_caliper.judging import assert_child
from pytest_caliper.judging.assert_explain import install_compare
from pytest_caliper.judging.assert_request import AssertRequest

DESCRIPTORS = 3
"""Connection, output, request."""


def warm() -> None:
    """Load what asserts need, and by a failing one what pytest imports only then."""
    import ast

    try:
        import pytest  # noqa: F401
        from _pytest.assertion.rewrite import rewrite_asserts
    except ImportError:  # asserts were compiled without rewriting then
        return
    install_compare()
    source = "assert {'a': [1]} == {'a': [2]}"
    tree = ast.parse(source)
    try:
        rewrite_asserts(tree, source.encode(), "<warm>", None)
        exec(compile(tree, "<warm>", "exec"), {})
    except Exception as error:  # noqa: BLE001  an unknown pytest is cold, and works or not in the assert itself
        assert_child.evidence_of(error, "<warm>", "/")


@dataclass(kw_only=True, slots=True)
class _Child:
    """A child and the connection of its client."""

    pid: int
    connection: socket.socket
    dead: bool = False


class Server:
    """Serves one client process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: list[_Child] = []
        self._wake, wake_writer = os.pipe()
        for descriptor in (self._wake, wake_writer):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides when it ends
        self._poll = select.poll()
        self._poll.register(self._control, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)

    def serve(self) -> None:
        """Until the client is gone; children die with it."""
        while True:
            ready = {descriptor for descriptor, _ in self._poll.poll()}
            if self._wake in ready:
                self._drain()
            for child in [one for one in self._children if one.dead and one.connection.fileno() in ready]:
                self._hang_up(child)
            if self._control.fileno() in ready and not self._accept():
                break
        for child in self._children:
            _kill_group(child.pid)

    def _accept(self) -> bool:
        """Fork for one request. -> False when the client is gone."""
        byte, descriptors, _, _ = socket.recv_fds(self._control, 1, DESCRIPTORS)
        if not byte:
            return False
        if descriptors:
            self._fork(socket.socket(fileno=descriptors[0]), descriptors[1:])
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        return True

    def _fork(self, connection: socket.socket, descriptors: list[int]) -> None:
        try:
            if len(descriptors) != DESCRIPTORS - 1:
                raise OSError(errno.EMFILE, "too many open files")
            pid = os.fork()
        except OSError as error:
            _tell(connection, {"refused": f"cannot fork: {error.strerror}"})
            connection.close()
            return
        if pid == 0:
            self._become_child(connection, *descriptors)
        self._children.append(_Child(pid=pid, connection=connection))

    def _drain(self) -> None:
        """Find the dead, and tell their clients."""
        try:
            while os.read(self._wake, 512):
                pass
        except BlockingIOError:
            pass
        for child in [one for one in self._children if not one.dead]:
            status = _exit_status(child.pid)
            if status is None:
                continue
            child.dead = True
            if _tell(child.connection, {"exit": status}):
                self._poll.register(child.connection, select.POLLIN)
            else:
                self._forget(child)

    def _hang_up(self, child: _Child) -> None:
        """The client says nothing over a connection; what can be read is its end."""
        self._poll.unregister(child.connection)
        self._forget(child)

    def _forget(self, child: _Child) -> None:
        child.connection.close()
        try:
            os.waitpid(child.pid, 0)
        except ChildProcessError:  # collected by `_exit_status` where that could not leave it
            pass
        self._children.remove(child)

    def _become_child(self, connection: socket.socket, output: int, request: int) -> NoReturn:
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            # The default, not KeyboardInterrupt: a session that stops ends an assert at once.
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            self._control.close()
            for child in self._children:
                child.connection.close()
            for descriptor in (output, request, connection.fileno()):
                os.set_inheritable(descriptor, False)
            connection.sendall(json.dumps({"pid": os.getpid()}).encode() + b"\n")
            _redirect(output)
            run(_take(request), connection.sendall)
        finally:
            os._exit(0)


def run(data: bytes, answer: Callable[[bytes], object]) -> None:
    """Run the request in `data` in this process, which is over then. `answer` gets the line of an AssertAnswer, at most once."""
    pid, began_s = os.getpid(), time.monotonic()
    said = assert_child.execute(AssertRequest.from_bytes(data))
    assert_child.flush()
    if os.getpid() == pid:  # a fork that fell through the end of the assert has nothing to say
        answer(said.to_line(time.monotonic() - began_s))


def _take(request: int) -> bytes:
    """The request; its file then takes the stack if this process crashes or is told to end, so that the client knows the line."""
    with open(request, "rb+", buffering=0, closefd=False) as file:
        file.seek(0)
        data = file.read()
        file.seek(0)
        file.truncate()
    faulthandler.enable(file=request)
    faulthandler.register(signal.SIGINT, file=request, chain=True)
    return data


def _redirect(output: int) -> None:
    """stdin from nowhere, stdout and stderr to `output`."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(null)
    os.close(output)


def _exit_status(pid: int) -> int | None:
    """Exit code or minus the signal's number of a child, which stays a zombie; None while it lives."""
    if hasattr(os, "waitid"):
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
    gone, status = os.waitpid(pid, os.WNOHANG)  # macOS before Python 3.13: the id is free from here on
    return os.waitstatus_to_exitcode(status) if gone else None


def _tell(connection: socket.socket, message: dict[str, object]) -> bool:
    """-> whether the client can have got it. Never blocks: one client must not hold up the others."""
    try:
        connection.send(b"\n" + json.dumps(message).encode() + b"\n", socket.MSG_DONTWAIT)
    except OSError:
        return False
    return True


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def once(path: str) -> NoReturn:
    """The fallback where no helper can be had."""
    warm()
    data = sys.stdin.buffer.read()
    answers = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    try:
        run(data, lambda line: os.write(answers, line))
    finally:
        os._exit(0)


def main() -> None:
    if sys.argv[1] == "--once":
        once(sys.argv[2])
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    warm()
    gc.collect()
    gc.freeze()  # what is loaded stays shared with the children
    Server(control).serve()


if __name__ == "__main__":
    main()
