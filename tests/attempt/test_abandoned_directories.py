"""Temporary roots that a killed session left are removed by the next one; nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_caliper.attempt.workspace import OWNER, own, session_root, sweep

CHILD = """
import sys, tempfile
from pathlib import Path
from pytest_caliper.attempt.workspace import own, session_root
root = session_root()
mark = own(root)
(root / "home").mkdir()
(root / "home" / "credentials.json").write_text("secret")
print(root, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child(tmp_path, monkeypatch):
    """A session in another process, with its root, below `tmp_path`."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    root = Path(process.stdout.readline().strip())
    yield process, root
    process.kill()
    process.communicate()


def test_a_killed_session_leaves_nothing_for_long(child, tmp_path):
    process, root = child
    assert sweep(tmp_path) == []
    assert (root / "home" / "credentials.json").exists(), "a living session lost its directory"
    process.kill()
    process.wait()
    assert root.exists()
    assert sweep(tmp_path) == [root]
    assert not root.exists()


def test_the_next_session_sweeps(child, tmp_path, monkeypatch):
    process, root = child
    process.kill()
    process.wait()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    new = session_root()
    assert not root.exists()
    assert new.exists()


def test_read_only_leftovers_go_too(child, tmp_path):
    process, root = child
    (root / "home").chmod(0o500)
    process.kill()
    process.wait()
    assert sweep(tmp_path) == [root]


@pytest.mark.parametrize("kind", ["no mark", "link", "other name", "mark is a link", "file"])
def test_what_is_not_certainly_ours_stays(tmp_path, kind):
    place = tmp_path / ("other-x" if kind == "other name" else "caliper-x")
    if kind == "file":
        place.write_text("")
    elif kind == "link":
        target = tmp_path / "target"
        target.mkdir()
        (target / OWNER).touch()
        place.symlink_to(target)
    else:
        place.mkdir()
        (place / "work").mkdir()
        if kind == "other name":
            (place / OWNER).touch()
        elif kind == "mark is a link":
            (tmp_path / "elsewhere").touch()
            (place / OWNER).symlink_to(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    assert sweep(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_mark_ends_with_its_descriptor(tmp_path):
    root = tmp_path / "caliper-mine"
    root.mkdir()
    mark = own(root)
    assert sweep(tmp_path) == []
    os.close(mark)
    assert sweep(tmp_path) == [root]


def test_a_directory_that_cannot_be_listed_is_no_error(tmp_path):
    assert sweep(tmp_path / "missing") == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_what_a_killed_session_had_started_ends(tmp_path):
    tag = f"abandoned-{os.getpid()}"
    started = {
        value: subprocess.Popen(["sleep", "300"], env={**os.environ, "CALIPER_TAG": value}, start_new_session=True)
        for value in (tag, f"{tag}/1/agent", f"{tag}0/1", "other")
    }
    try:
        root = tmp_path / "caliper-mine"
        root.mkdir()
        os.close(own(root, tag))
        assert sweep(tmp_path) == [root]
        started[tag].wait(60)
        started[f"{tag}/1/agent"].wait(60)
        assert [started[value].poll() for value in (f"{tag}0/1", "other")] == [None, None]
    finally:
        for process in started.values():
            process.kill()
            process.wait()


@pytest.mark.parametrize("mark", ["", "x", "a b-session", "*", "é" * 20])
def test_a_mark_without_a_sessions_tag_ends_nobody(tmp_path, mark, monkeypatch):
    monkeypatch.setattr("pytest_caliper.process.watchdog.Watchdog.kill", lambda _: pytest.fail("somebody was to be killed"))
    root = tmp_path / "caliper-mine"
    root.mkdir()
    os.close(own(root, mark))
    assert sweep(tmp_path) == [root]


def test_an_attempt_of_a_dead_session_does_not_end_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIPER_TAG", "session-main/1/agent")
    monkeypatch.setattr("pytest_caliper.process.watchdog.Watchdog.kill", lambda _: pytest.fail("somebody was to be killed"))
    root = tmp_path / "caliper-mine"
    root.mkdir()
    os.close(own(root, "session-main"))
    assert sweep(tmp_path) == [root]
