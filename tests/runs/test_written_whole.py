"""Files that are there whole or not at all, and what a killed writer leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_caliper.runs.files import remove_abandoned, written_whole

WRITER = """
import sys, time
from pathlib import Path
from pytest_caliper.runs.files import written_whole
with written_whole(Path(sys.argv[1]), overwrite=True) as out:
    out.write(b"half")
    out.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def writer(tmp_path: Path):
    """A process that has written half of `tmp_path / "run.json"`."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "run.json")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_what_a_killed_writer_left_goes(writer, tmp_path: Path) -> None:
    assert remove_abandoned(tmp_path) == []  # somebody writes it
    (left,) = tmp_path.iterdir()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert left.exists()
    assert remove_abandoned(tmp_path) == [left]
    assert list(tmp_path.iterdir()) == []


def test_files_of_others_stay(tmp_path: Path) -> None:
    names = [".tmp", ".x.tmp", "a.tmp", ".0123456789abcdef.tmp.json", ".0123456789ABCDEF.tmp", "0123456789abcdef.tmp"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / ".00000000000000aa.tmp").symlink_to(tmp_path / "a.tmp")
    (tmp_path / ".00000000000000ab.tmp").mkdir()
    os.mkfifo(tmp_path / ".00000000000000ac.tmp.pipe")
    assert remove_abandoned(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == len(names) + 3


def test_a_directory_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    assert remove_abandoned(tmp_path / "nowhere") == []


def test_an_error_in_the_block_leaves_nothing(tmp_path: Path) -> None:
    def fails() -> None:
        with written_whole(tmp_path / "x", overwrite=True) as out:
            out.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_whole_file_is_alone(tmp_path: Path, overwrite: bool) -> None:
    with written_whole(tmp_path / "x", overwrite=overwrite) as out:
        out.write(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"whole"


def test_a_file_that_exists_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(FileExistsError), written_whole(tmp_path / "x", overwrite=False) as out:
        out.write(b"new")
    assert (tmp_path / "x").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
