"""SIGKILL of pytest: the watchdog clears up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from process_bench import Bench, alive, pid_in, until

from pytest_caliper.process import watchdog
from pytest_caliper.process.guard import Guard

SESSION = """
import os, pathlib, sys
from pytest_caliper.contracts import Command
from pytest_caliper.process import Processes
here = pathlib.Path(sys.argv[1])
processes = Processes("test-killed-" + str(os.getpid()))
processes.remove_on_death(here / "caliper-root")
command = Command(argv=("sh", "-c", sys.argv[2]), cwd=here, env=dict(os.environ))
if len(sys.argv) > 3:
    if os.fork() == 0:  # holds the watchdog's pipe, as a test's own fork does
        import time
        time.sleep(1000)
processes.run(command, stdout=here / "o", stderr=here / "e", timeout_s=600, tag=processes.session_tag + "/1")
"""

DETACH = f"{sys.executable} -I -S -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])'"

TREE = f"""trap '' INT TERM
sleep 1000 & echo $! > in-group
{DETACH} sh -c 'echo $$ > left-group; exec sleep 1000' &
env -i {DETACH} /bin/sh -c 'echo $$ > hidden; exec sleep 1000' &
echo $$ > leader
wait; wait; wait"""


def watchdog_of(pid: int) -> int:
    """The one watchdog of a session, once it shows its name."""
    found: list[int] = []

    def look() -> bool:
        children = psutil.Process(pid).children()
        found[:] = [child.pid for child in children if alive(child.pid) and any("watchdog.py" in arg for arg in child.cmdline())]
        return len(found) == 1

    until(look)
    return found[0]


@pytest.mark.parametrize("pipe", ["alone", "held by a fork"])
def test_nothing_survives_the_sigkill_of_the_session(tmp_path: Path, pipe: str) -> None:
    root = tmp_path / "caliper-root"
    (root / "home").mkdir(parents=True)
    (root / "home" / "credentials").write_text("secret")
    (root / "home").chmod(0o500)
    extra = [] if pipe == "alone" else ["fork"]
    with subprocess.Popen([sys.executable, "-c", SESSION, str(tmp_path), TREE, *extra], start_new_session=True) as session:
        try:
            tree = [pid_in(tmp_path / name) for name in ("leader", "in-group", "left-group", "hidden")]
            watchdog_pid = watchdog_of(session.pid)
            session.kill()
            session.wait()
            until(lambda: not any(alive(pid) for pid in [*tree, watchdog_pid]))
            assert not root.exists()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(session.pid, signal.SIGKILL)


def test_the_directory_stays_when_the_session_closes(bench: Bench) -> None:
    root = bench.dir / "caliper-root"
    root.mkdir()
    bench.processes.remove_on_death(root)
    bench.processes.close()
    assert root.exists()


def test_only_own_directories_are_taken_for_removal(bench: Bench) -> None:
    (bench.dir / "precious").mkdir()
    (bench.dir / "caliper-file").write_text("x")
    (bench.dir / "caliper-link").symlink_to(bench.dir / "precious")
    for name in ("precious", "caliper-file", "caliper-link", "caliper-missing"):
        with pytest.raises(ValueError, match=r"caliper-\*"):
            bench.processes.remove_on_death(bench.dir / name)


def test_a_directory_that_was_replaced_is_not_removed(tmp_path: Path) -> None:
    root, link = tmp_path / "caliper-root", tmp_path / "caliper-other"
    for path in (root, link):
        path.mkdir()
    dog = watchdog.Watchdog([b"CALIPER_TAG=none"])
    for path in (root, link):
        dog.take(b"d" + os.fsencode(path).hex().encode())
    link.rename(tmp_path / "moved")
    link.symlink_to(tmp_path / "moved")
    root.rename(tmp_path / "also-moved")
    root.mkdir()
    dog.clear()
    assert (tmp_path / "moved").exists()
    assert root.exists()


def test_a_path_with_odd_bytes_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "caliper-a\nb\u2028é"
    (root / "below").mkdir(parents=True)
    (root / "below" / "link").symlink_to(tmp_path)
    dog = watchdog.Watchdog([b"CALIPER_TAG=none"])
    dog.take(b"d" + os.fsencode(root).hex().encode())
    dog.clear()
    assert not root.exists()
    assert tmp_path.exists()


def test_a_watchdog_that_somebody_ended_is_replaced(bench: Bench) -> None:
    bench.sh("exit 0")
    first = watchdog_of(os.getpid())
    os.kill(first, signal.SIGKILL)
    until(lambda: not alive(first))
    assert bench.sh("exit 0").returncode == 0
    second = watchdog_of(os.getpid())
    assert second != first


def test_the_watchdog_has_no_terminal_no_tag_and_ignores_signals(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALIPER_TAG", "outer/attempt")
    bench.sh("exit 0")
    pid = watchdog_of(os.getpid())
    process = psutil.Process(pid)
    assert "CALIPER_TAG" not in process.environ()
    assert os.getsid(pid) == pid
    assert process.cwd() == "/"
    if Path("/proc/self/fd").exists():
        assert {Path(f"/proc/{pid}/fd/{number}").readlink() for number in (0, 1, 2)} == {Path(os.devnull)}


def test_a_closed_guard_starts_nothing(bench: Bench) -> None:
    guard = Guard(bench.processes.session_tag)
    guard.close()
    guard.add(999_999)
    guard.discard(999_999)
    assert guard.pid is None


def test_without_proc_the_watchdog_finds_groups_and_descendants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bystanders: list[psutil.Popen]
) -> None:
    monkeypatch.setattr(watchdog, "stats_of_all", watchdog.stats_from_ps)
    monkeypatch.setattr(watchdog, "read_environ", lambda _: b"")
    leader = psutil.Popen(["sh", "-c", TREE], cwd=tmp_path, start_new_session=True)
    other = psutil.Popen(["sleep", "1000"], start_new_session=True)
    bystanders += [leader, other]
    tree = [pid_in(tmp_path / name) for name in ("leader", "in-group", "left-group", "hidden")]
    dog = watchdog.Watchdog([b"CALIPER_TAG=none"])
    dog.take(b"+%d" % leader.pid)
    dog.kill()
    assert not any(alive(pid) for pid in tree)
    assert alive(other.pid)
