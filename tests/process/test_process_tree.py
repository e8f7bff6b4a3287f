"""Nothing of ours survives, nothing of others is touched."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from pathlib import Path

import psutil
import pytest
from process_bench import Bench, alive, pid_in, until

from pytest_caliper.contracts import Command
from pytest_caliper.process import TAG_VARIABLE, Ended, Processes, table
from pytest_caliper.process.reaping import Family
from pytest_caliper.process.watchdog import carries

DETACH = f"{sys.executable} -I -S -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])'"
"""`setsid` for shells, also where there is no such program; to be put into the background."""


@pytest.fixture(params=["own table", "psutil"])
def any_table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Once with the table of this machine, once with the one that macOS has."""
    if request.param == "psutil":
        monkeypatch.setattr("pytest_caliper.process.processes.process_table", table.PsutilTable)
    return str(request.param)


@pytest.mark.usefixtures("any_table")
class TestAfterTheEnd:
    def test_a_child_in_the_group_is_killed(self, bench: Bench) -> None:
        ended = bench.sh("sleep 1000 & echo $! > child")
        assert (ended.returncode, ended.cause, ended.strays) == (0, "exit", 1)
        assert not alive(bench.pid("child"))

    def test_a_grandchild_that_left_and_holds_stdout_neither_delays_nor_survives(self, bench: Bench) -> None:
        ended = bench.sh(
            f"{DETACH} sh -c 'echo $$ > child; exec sleep 1000' & while [ ! -s child ]; do sleep 0.01; done; echo done"
        )
        assert (ended.returncode, ended.cause, ended.strays) == (0, "exit", 1)
        assert bench.stdout.read_bytes() == b"done\n"
        assert not alive(bench.pid("child"))

    def test_a_whole_tree_is_killed_when_the_time_is_up(self, bench: Bench) -> None:
        script = f"""trap '' INT TERM
            {DETACH} sh -c 'trap "" INT TERM; sleep 1000 & echo $! > inner; echo $$ > outer; wait' > /dev/null 2>&1 &
            while :; do sleep 0.05; done"""
        ended = bench.sh(script, timeout_s=1.0)
        assert ended.cause == "timeout"
        assert not alive(bench.pid("inner"))
        assert not alive(bench.pid("outer"))

    def test_one_that_also_emptied_its_environment_is_found_by_its_parent(self, bench: Bench) -> None:
        hidden = f"env -i {DETACH} /bin/sh -c 'echo $$ > child; exec sleep 1000' > /dev/null 2>&1 &"
        ended = bench.sh(f"trap 'exit 0' INT; {hidden} while :; do sleep 0.05; done", timeout_s=1.0)
        assert ended.cause == "timeout"
        assert not alive(bench.pid("child"))

    def test_a_hidden_child_of_a_tagged_child_is_found(self, bench: Bench) -> None:
        hidden = f"env -i {DETACH} /bin/sh -c 'echo $$ > child; exec sleep 1000' > /dev/null 2>&1 & wait"
        (bench.dir / "middle.sh").write_text(hidden)
        ended = bench.sh(f"{DETACH} sh middle.sh > /dev/null 2>&1 & while [ ! -s child ]; do sleep 0.01; done")
        assert (ended.cause, ended.strays) == ("exit", 2)
        assert not alive(bench.pid("child"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_hidden_orphan_is_found_by_the_output_that_it_holds(bench: Bench) -> None:
    orphan = f"(env -i {DETACH} /bin/sh -c 'echo $$ > child; exec sleep 1000' &)"
    ended = bench.sh(f"{orphan}; while [ ! -s child ]; do sleep 0.01; done")
    assert (ended.cause, ended.strays) == ("exit", 1)
    assert not alive(bench.pid("child"))


def start_tagged(tag: str, *, variable: str = TAG_VARIABLE) -> psutil.Popen:
    return psutil.Popen(["sleep", "1000"], env={"PATH": "/usr/bin:/bin", variable: tag}, start_new_session=True)


@pytest.mark.usefixtures("any_table")
def test_only_exactly_the_tag_and_what_is_below_it_is_reaped(tmp_path: Path, bystanders: list[psutil.Popen]) -> None:
    with Processes(f"test-{uuid.uuid4().hex}") as processes:
        tag = processes.session_tag + "/a"
        ours = [start_tagged(tag), start_tagged(tag + "/judge")]
        others = [start_tagged(tag + "b"), start_tagged(processes.session_tag), start_tagged(tag, variable="X" + TAG_VARIABLE)]
        bystanders += ours + others
        assert processes.reap(tag) == 2
        until(lambda: not any(alive(process.pid) for process in ours))
        assert all(alive(process.pid) for process in others)


def test_the_sessions_end_leaves_a_session_with_a_longer_name_alone(bench: Bench, bystanders: list[psutil.Popen]) -> None:
    bench.sh("exit 0")
    ours = start_tagged(bench.processes.session_tag)
    other = start_tagged(bench.processes.session_tag + "d")
    bystanders += [ours, other]
    bench.processes.close()
    until(lambda: not alive(ours.pid))
    assert alive(other.pid)


def test_two_sessions_in_one_process_do_not_meet(bench: Bench, tmp_path: Path) -> None:
    ended: list[Ended] = []
    command = bench.command("sh", "-c", "echo $$ > one; while [ ! -e go ]; do sleep 0.01; done")
    thread = threading.Thread(target=lambda: ended.append(bench.run(command)))
    thread.start()
    pid = bench.pid("one")
    with Processes(f"test-{uuid.uuid4().hex}") as other:
        other.run(bench.command("true"), stdout=tmp_path / "o", stderr=tmp_path / "e", timeout_s=60, tag=other.session_tag)
        other.cancel_all(now=True)
    assert alive(pid)
    assert not bench.processes.cancelled
    (bench.dir / "go").touch()
    thread.join()
    assert ended[0].cause == "exit"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (b"A=1\0CALIPER_TAG=abc\0B=2\0", True),
        (b"CALIPER_TAG=abc", True),
        (b"CALIPER_TAG=abc/1\0", True),
        (b"CALIPER_TAG=abcd\0", False),
        (b"XCALIPER_TAG=abc\0", False),
        (b"A=CALIPER_TAG=abc\0", False),
        (b"CALIPER_TAG=ab\0", False),
        (b"", False),
    ],
)
def test_a_tag_is_matched_whole(environ: bytes, expected: bool) -> None:
    assert carries(environ, b"CALIPER_TAG=abc") is expected


def test_a_pid_that_was_used_again_is_not_signalled(bystanders: list[psutil.Popen]) -> None:
    process = psutil.Popen(["sleep", "1000"])
    bystanders.append(process)
    machine = table.process_table()
    entry = machine.entry(process.pid)
    assert entry is not None
    assert not machine.send(entry._replace(born=entry.born - 1), 9)
    assert alive(process.pid)
    assert machine.send(entry, 9)
    assert process.wait() == -9


def test_a_member_that_is_just_starting_another_program_is_looked_at_again(bench: Bench, bystanders: list[psutil.Popen]) -> None:
    """Its environment is empty for a moment."""

    class Between(type(table.process_table())):  # type: ignore[misc]
        asked = 0

        def carries(self, pid: int, _tag: str) -> bool | None:
            if pid != stray.pid:
                return False
            self.asked += 1
            return None if self.asked == 1 else True

    stray = start_tagged(bench.tag)
    bystanders.append(stray)
    assert Family(table=Between(), tag=bench.tag).kill(frozenset()) == 1
    assert stray.wait() == -9


def test_a_forked_copy_of_the_session_neither_runs_nor_ends_anything(tmp_path: Path) -> None:
    script = """
import os, sys, pathlib
from pytest_caliper.process import Processes
from pytest_caliper.contracts import Command
here = pathlib.Path(sys.argv[1])
processes = Processes("test-fork-" + str(os.getpid()))
def run():
    command = Command(argv=("true",), cwd=here, env=dict(os.environ))
    return processes.run(command, stdout=here / "o", stderr=here / "e", timeout_s=60, tag=processes.session_tag)
if os.fork() == 0:
    try:
        run()
    except RuntimeError as error:
        print("refused:", error, flush=True)
    processes.close()
    os._exit(0)
os.wait()
print(run().cause, processes.cancelled, flush=True)
processes.close()
"""
    result = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60)
    refused, own = result.stdout.splitlines()
    assert refused.startswith("refused: the processes of session test-fork-")
    assert own == "exit False"


def test_the_command_is_not_looked_for_in_the_hosts_path(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.dir / "bin").mkdir()
    tool = bench.dir / "bin" / "only-here"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    command = Command(argv=("only-here",), cwd=bench.dir, env={"PATH": f"{bench.dir / 'bin'}:/bin:/usr/bin"})
    assert bench.run(command).returncode == 0
    monkeypatch.setenv("PATH", f"{bench.dir / 'bin'}:/bin:/usr/bin")
    with pytest.raises(FileNotFoundError):
        bench.run(Command(argv=("only-here",), cwd=bench.dir, env={"PATH": "/bin:/usr/bin"}))


def test_pid_files_are_whole(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text("12\n")
    assert pid_in(tmp_path / "pid") == 12
