"""One process: its end, its input, its output, its limits."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest
from process_bench import Bench, alive, until

from pytest_caliper.process import TAG_VARIABLE

STUBBORN = (
    "import signal, time\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\nprint('up', flush=True)\nwhile True: time.sleep(60)"
)


def test_a_process_ends_by_itself(bench: Bench) -> None:
    ended = bench.sh("echo out; echo err >&2; exit 3")
    assert (ended.returncode, ended.cause, ended.strays) == (3, "exit", 0)
    assert (bench.stdout.read_bytes(), bench.stderr.read_bytes()) == (b"out\n", b"err\n")


def test_a_signal_is_a_negative_returncode(bench: Bench) -> None:
    assert bench.sh("kill -9 $$").returncode == -9


def test_cpu_time_of_the_process_and_its_children_is_reported(bench: Bench) -> None:
    ended = bench.sh(f"{sys.executable} -I -S -c 'import time\nwhile time.process_time() < 0.2: pass'")
    assert ended.cpu_s >= 0.2
    assert ended.duration_s > 0


def test_the_environment_is_the_commands_with_the_tag(bench: Bench) -> None:
    bench.run(bench.command("env"))
    lines = bench.stdout.read_text().splitlines()
    assert f"{TAG_VARIABLE}={bench.tag}" in lines
    assert {line.partition("=")[0] for line in lines} <= {"PATH", TAG_VARIABLE, "PWD", "_", "SHLVL"}


def test_the_working_directory_is_the_commands(bench: Bench) -> None:
    bench.sh("pwd -P")
    assert Path(bench.stdout.read_text().rstrip("\n")) == bench.dir.resolve()


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 800], ids=["none", "one byte", "200 kB"])
def test_stdin_is_delivered_and_ends(bench: Bench, data: bytes) -> None:
    ended = bench.run(bench.command("cat", stdin=data))
    assert ended.cause == "exit"
    assert bench.stdout.read_bytes() == data


def test_output_of_an_earlier_run_is_replaced(bench: Bench) -> None:
    bench.sh("echo a long first output")
    bench.sh("echo short")
    assert bench.stdout.read_bytes() == b"short\n"


def test_stdout_and_stderr_may_be_one_file(bench: Bench) -> None:
    both = bench.dir / "both"
    command = bench.command("sh", "-c", "echo a; echo b >&2; echo c")
    bench.processes.run(command, stdout=both, stderr=both, timeout_s=60, tag=bench.tag)
    assert both.read_bytes() == b"a\nb\nc\n"


def test_a_symlink_in_place_of_the_output_is_refused(bench: Bench) -> None:
    precious = bench.dir / "precious"
    precious.write_text("mine")
    bench.stdout.symlink_to(precious)
    with pytest.raises(OSError, match="stdout"):
        bench.sh("echo overwritten")
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("name", ["no-such-program", "./not-executable"])
def test_a_program_that_cannot_be_started_is_an_error_and_leaves_nothing(bench: Bench, name: str) -> None:
    (bench.dir / "not-executable").write_text("#!/bin/sh\n")
    before = sorted(bench.dir.iterdir())
    with pytest.raises(OSError, match=name.lstrip("./")):
        bench.run(bench.command(name))
    assert sorted(bench.dir.iterdir()) == before
    assert bench.sh("exit 0").returncode == 0


def test_a_tag_of_another_session_is_refused(bench: Bench) -> None:
    command = bench.command("true")
    for tag in ("other", bench.processes.session_tag + "d", bench.tag + "\0"):
        with pytest.raises(ValueError, match="not below the session's own"):
            bench.processes.run(command, stdout=bench.stdout, stderr=bench.stderr, timeout_s=60, tag=tag)


def test_a_stubborn_process_is_killed_at_its_time_limit(bench: Bench) -> None:
    ended = bench.python(STUBBORN, timeout_s=0.5)
    assert (ended.cause, ended.returncode) == ("timeout", -signal.SIGKILL)
    assert bench.stdout.read_bytes() == b"up\n"


def test_a_polite_process_gets_sigint_first_and_may_end_itself(bench: Bench) -> None:
    script = "trap 'echo usage > interrupted; exit 0' INT; trap 'echo x > terminated' TERM; while :; do sleep 0.05; done"
    ended = bench.sh(script, timeout_s=0.5)
    assert (ended.cause, ended.returncode) == ("timeout", 0)
    assert (bench.dir / "interrupted").read_text() == "usage\n"
    assert not (bench.dir / "terminated").exists()


def test_a_process_that_heeds_sigterm_only_is_not_killed(bench: Bench) -> None:
    ended = bench.sh("trap '' INT; trap 'exit 7' TERM; while :; do sleep 0.05; done", timeout_s=0.5)
    assert (ended.cause, ended.returncode) == ("timeout", 7)


def test_an_output_flood_is_stopped_and_cut(bench: Bench) -> None:
    flood = "import os\nblock = b'x' * 65536\nwhile True: os.write(1, block)"
    ended = bench.python(flood, max_bytes=1_000_000)
    assert (ended.cause, ended.returncode) == ("output", -signal.SIGKILL)
    assert bench.stdout.stat().st_size == 1_000_000


def test_an_output_that_was_too_large_when_the_process_ended_is_cut(bench: Bench) -> None:
    ended = bench.python("import os; os.write(1, b'x' * 5000); os.write(2, b'e' * 100)", max_bytes=1000)
    assert (ended.cause, ended.returncode) == ("output", 0)
    assert bench.stdout.read_bytes() == b"x" * 900
    assert bench.stderr.read_bytes() == b"e" * 100


def test_both_outputs_too_large_keep_half_each(bench: Bench) -> None:
    bench.python("import os; os.write(1, b'x' * 5000); os.write(2, b'e' * 6000)", max_bytes=1000)
    assert (bench.stdout.stat().st_size, bench.stderr.stat().st_size) == (500, 500)


def test_output_of_exactly_the_bound_is_whole(bench: Bench) -> None:
    ended = bench.python("import os; os.write(1, b'x' * 1000)", max_bytes=1000)
    assert (ended.cause, bench.stdout.stat().st_size) == ("exit", 1000)


def test_without_waitid_a_process_still_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "waitid")
    ended = bench.sh("sleep 1000 & echo $! > child; exit 4")
    assert (ended.returncode, ended.strays) == (4, 1)
    assert not alive(bench.pid("child"))
    assert bench.python(STUBBORN, timeout_s=0.5).cause == "timeout"


def test_a_lost_exit_status_is_an_error_and_no_number(bench: Bench) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(ChildProcessError, match="SIGCHLD"):
            bench.sh("exit 0")
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_many_runs_at_once_do_not_disturb_each_other(bench: Bench) -> None:
    codes: dict[int, int] = {}

    def one(number: int) -> None:
        out, err = bench.dir / f"{number}.out", bench.dir / f"{number}.err"
        command = bench.command("sh", "-c", f"sleep 100 & exit {number}")
        tag = f"{bench.processes.session_tag}/{number}"
        codes[number] = bench.processes.run(command, stdout=out, stderr=err, timeout_s=60, tag=tag).returncode

    threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {number: number for number in range(20)}


def open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_descriptors_and_zombies_do_not_pile_up(bench: Bench) -> None:
    children = len(psutil.Process().children())
    bench.sh("exit 0")
    fds = open_descriptors()
    for _ in range(5):
        bench.sh("exit 0")
    assert open_descriptors() == fds
    bench.processes.close()
    until(lambda: open_descriptors() < fds)
    assert len(psutil.Process().children()) == children
