"""Cancellation, Ctrl-C, the end of a session, and processes that somebody else forked."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from process_bench import Bench, alive, pid_in, until

from pytest_caliper.process import Ended, unsupported_reason
from pytest_caliper.process.interrupts import uninterrupted

STUBBORN = "trap '' INT TERM; sleep 1000 & echo $! > child; echo $$ > leader; while :; do sleep 0.05; done"


def in_thread(call: Callable[[], Ended]) -> tuple[threading.Thread, list[Ended]]:
    ended: list[Ended] = []
    thread = threading.Thread(target=lambda: ended.append(call()))
    thread.start()
    return thread, ended


@pytest.mark.parametrize("now", [False, True])
def test_cancel_all_ends_a_run_and_nothing_remains(bench: Bench, now: bool) -> None:
    thread, ended = in_thread(lambda: bench.sh(STUBBORN))
    leader, child = bench.pid("leader"), bench.pid("child")
    bench.processes.cancel_all(now=now)
    thread.join()
    assert (ended[0].cause, ended[0].returncode) == ("cancelled", -signal.SIGKILL)
    assert not alive(leader)
    assert not alive(child)
    assert bench.processes.cancelled


def test_cancelled_politely_a_process_may_say_goodbye(bench: Bench) -> None:
    thread, ended = in_thread(lambda: bench.sh("trap 'echo bye; exit 0' INT; echo $$ > leader; while :; do sleep 0.05; done"))
    bench.pid("leader")
    bench.processes.cancel_all()
    thread.join()
    assert (ended[0].cause, ended[0].returncode) == ("cancelled", 0)
    assert bench.stdout.read_bytes() == b"bye\n"


def test_a_run_after_cancel_all_never_starts(bench: Bench) -> None:
    bench.processes.cancel_all()
    ended = bench.sh("echo started > started")
    assert (ended.cause, ended.duration_s) == ("cancelled", 0.0)
    assert not (bench.dir / "started").exists()
    assert bench.stdout.read_bytes() == b""


def test_a_second_cancel_kills_what_the_first_asks_politely(bench: Bench) -> None:
    thread, ended = in_thread(
        lambda: bench.sh("trap 'echo asked > asked' INT; trap '' TERM; echo $$ > leader; while :; do sleep 0.05; done")
    )
    bench.pid("leader")
    bench.processes.cancel_all()
    until((bench.dir / "asked").exists)
    bench.processes.cancel_all(now=True)
    thread.join()
    assert (ended[0].cause, ended[0].returncode) == ("cancelled", -signal.SIGKILL)


def test_close_ends_what_lives_and_may_be_called_again(bench: Bench) -> None:
    thread, ended = in_thread(lambda: bench.sh(STUBBORN))
    leader, child = bench.pid("leader"), bench.pid("child")
    bench.processes.close()
    bench.processes.close()
    assert not alive(leader)
    assert not alive(child)
    thread.join()
    assert ended[0].cause == "cancelled"
    assert bench.sh("exit 0").cause == "cancelled"


def test_close_without_patience_kills(bench: Bench) -> None:
    thread, ended = in_thread(lambda: bench.sh(STUBBORN))
    leader = bench.pid("leader")
    bench.processes.close(patience_s=0)
    assert not alive(leader)
    thread.join()
    assert ended[0].returncode == -signal.SIGKILL


def test_close_before_anything_ran_starts_nothing(bench: Bench) -> None:
    before = threading.active_count()
    children = len(psutil.Process().children())
    bench.processes.close()
    assert threading.active_count() == before
    assert len(psutil.Process().children()) == children


def test_the_thread_and_the_watchdog_end_with_the_session(bench: Bench) -> None:
    children, threads = len(psutil.Process().children()), threading.active_count()
    bench.sh("exit 0")
    assert len(psutil.Process().children()) == children + 1
    bench.processes.close()
    assert len(psutil.Process().children()) == children
    until(lambda: threading.active_count() == threads)


INTERRUPTED = """
import os, pathlib, sys
from pytest_caliper.contracts import Command
from pytest_caliper.process import Processes
here = pathlib.Path(sys.argv[1])
processes = Processes("test-interrupt-" + str(os.getpid()))
command = Command(argv=("sh", "-c", sys.argv[2]), cwd=here, env=dict(os.environ))
print("ready", flush=True)
try:
    if sys.argv[3] == "run":
        processes.run(command, stdout=here / "o", stderr=here / "e", timeout_s=600, tag=processes.session_tag)
    else:
        import threading
        run = lambda: processes.run(command, stdout=here / "o", stderr=here / "e", timeout_s=600, tag=processes.session_tag)
        threading.Thread(target=run).start()
        while not (here / "leader").exists(): pass
        processes.close(patience_s=600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
processes.close()
print("closed", flush=True)
"""


def interrupt(here: Path, *, script: str, during: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", INTERRUPTED, str(here), script, during]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_ctrl_c_in_the_main_thread_stops_its_run_politely(tmp_path: Path) -> None:
    polite = "trap 'echo bye > bye; exit 0' INT; echo $$ > leader; while :; do sleep 0.05; done"
    with interrupt(tmp_path, script=polite, during="run") as process:
        leader = pid_in(tmp_path / "leader")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert out.split() == ["ready", "interrupted", "closed"]
    assert (tmp_path / "bye").exists()
    assert not alive(leader)


@pytest.mark.parametrize("during", ["run", "close"])
def test_a_second_ctrl_c_kills_and_still_clears_up(tmp_path: Path, during: str) -> None:
    """`close` was called because of a first Ctrl-C, so the first that it meets is the second."""
    script = (
        "sleep 1000 & echo $! > child; trap 'echo x > asked' INT; trap '' TERM; echo $$ > leader; while :; do sleep 0.05; done"
    )
    with interrupt(tmp_path, script=script, during=during) as process:
        leader, child = pid_in(tmp_path / "leader"), pid_in(tmp_path / "child")
        if during == "run":
            process.send_signal(signal.SIGINT)
        until((tmp_path / "asked").exists)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert out.split() == ["ready", "interrupted", "closed"]
    assert not alive(leader)
    assert not alive(child)


def test_uninterrupted_work_hands_over_results_and_errors() -> None:
    assert uninterrupted(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)


def forked(script: str, here: Path, *, tag: str) -> psutil.Popen:
    return psutil.Popen(["sh", "-c", script], cwd=here, env={**os.environ, "CALIPER_TAG": tag}, start_new_session=True)


def test_a_watched_child_is_left_in_peace_until_the_end(bench: Bench, bystanders: list[psutil.Popen]) -> None:
    child = forked("sleep 1000 & echo $! > child; exit 5", bench.dir, tag=bench.tag)
    bystanders.append(child)
    with bench.processes.watch(child.pid, timeout_s=60, tag=bench.tag) as watched:
        assert child.wait() == 5
        assert alive(bench.pid("child"))
    assert watched.cause == "exit"
    until(lambda: not alive(bench.pid("child")))


def test_a_watched_child_is_killed_with_its_tree_when_the_caller_leaves(bench: Bench, bystanders: list[psutil.Popen]) -> None:
    child = forked("sleep 1000 & echo $! > child; wait", bench.dir, tag=bench.tag)
    bystanders.append(child)
    grandchild = bench.pid("child")
    with pytest.raises(RuntimeError, match="gave up"), bench.processes.watch(child.pid, timeout_s=60, tag=bench.tag):
        raise RuntimeError("gave up")
    assert child.wait() == -signal.SIGKILL
    assert not alive(grandchild)


def test_a_watched_child_meets_its_deadline(bench: Bench, bystanders: list[psutil.Popen]) -> None:
    child = forked("exec sleep 1000", bench.dir, tag=bench.tag)
    bystanders.append(child)
    with bench.processes.watch(child.pid, timeout_s=0.3, tag=bench.tag) as watched:
        assert child.wait() == -signal.SIGINT
    assert watched.cause == "timeout"


def test_a_watched_child_is_cancelled_with_the_session(bench: Bench, bystanders: list[psutil.Popen]) -> None:
    child = forked("echo $$ > leader; exec sleep 1000", bench.dir, tag=bench.tag)
    bystanders.append(child)
    bench.pid("leader")
    with bench.processes.watch(child.pid, timeout_s=60, tag=bench.tag) as watched:
        bench.processes.cancel_all()
        assert child.wait() == -signal.SIGINT
    assert watched.cause == "cancelled"


def test_watching_begins_cancelled_after_cancel_all(bench: Bench, bystanders: list[psutil.Popen]) -> None:
    child = forked("exec sleep 1000", bench.dir, tag=bench.tag)
    bystanders.append(child)
    bench.processes.cancel_all()
    with bench.processes.watch(child.pid, timeout_s=60, tag=bench.tag) as watched:
        assert watched.cause == "cancelled"
        assert child.wait() < 0


def test_a_watched_child_that_has_ended_is_no_timeout(bench: Bench, bystanders: list[psutil.Popen]) -> None:
    """It stays a zombie past its deadline, as it does when its verdict is read late."""
    child = forked("exit 0", bench.dir, tag=bench.tag)
    bystanders.append(child)
    until(lambda: not alive(child.pid))
    with bench.processes.watch(child.pid, timeout_s=0.0, tag=bench.tag) as watched:
        watched.tick(math.inf)
    assert watched.cause == "exit"


@pytest.mark.parametrize("pid", [0, 1, -1])
def test_watching_nobodys_child_is_refused(bench: Bench, pid: int) -> None:
    with (
        pytest.raises(ValueError, match="cannot be looked after"),
        bench.processes.watch(pid, timeout_s=60, tag=bench.tag),
    ):
        pass


def test_watching_ourselves_is_refused(bench: Bench) -> None:
    with (
        pytest.raises(ValueError, match="cannot be looked after"),
        bench.processes.watch(os.getpid(), timeout_s=60, tag=bench.tag),
    ):
        pass


def test_windows_is_told_about_wsl(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unsupported_reason() is None
    monkeypatch.setattr(sys, "platform", "win32")
    reason = unsupported_reason()
    assert reason is not None
    assert "WSL" in reason
    assert "\n" not in reason


def test_the_package_can_be_imported_without_posix() -> None:
    script = """
import os, select, signal, subprocess, tempfile, threading
for name in ("waitid", "wait4", "killpg", "getpgrp", "getpgid", "getsid", "geteuid", "getuid", "fork", "O_NOFOLLOW", "O_CLOEXEC",
             "O_NOCTTY", "P_PID", "WEXITED", "WNOWAIT", "pidfd_open", "setsid"):
    if hasattr(os, name): delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGSTOP", "SIGCHLD", "pidfd_send_signal"):
    if hasattr(signal, name): delattr(signal, name)
del select.poll
import pytest_caliper.process as process
process.Processes("abc").close()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
