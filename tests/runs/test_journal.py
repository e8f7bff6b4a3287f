from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_runs import names, record

from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.journal import Journal, read_journal

HEADER = {"spec": "x.eval.yaml", "k": 3}
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


def written(directory: Path, count: int = 3) -> Path:
    journal = Journal.create(directory, "run", HEADER)
    for number in range(1, count + 1):
        journal.append(record(attempt=number))
    journal.close()
    return journal.path


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    header, records = read_journal(written(tmp_path))
    assert header == HEADER
    assert records == tuple(record(attempt=number) for number in (1, 2, 3))


def test_a_journal_is_no_run_file(tmp_path: Path) -> None:
    assert written(tmp_path).name == "run.jsonl"


def test_each_record_is_one_ascii_line_whatever_it_says(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "run", HEADER)
    journal.append(record(output="a\u2028b\nc\x1b[31m\udc80é", duration_seconds=float("nan")))
    data = journal.path.read_bytes()
    journal.close()
    assert data.isascii()
    assert data.count(b"\n") == 2
    assert b"NaN" not in data
    assert read_journal(journal.path)[1][0].output == "a\u2028b\nc\x1b[31m\ufffdé"


def test_it_is_on_disk_before_it_is_closed(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "run", HEADER)
    journal.append(record())
    assert len(read_journal(journal.path)[1]) == 1
    journal.close()


def test_one_journal_per_run(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(FileExistsError):
        Journal.create(tmp_path, "run", HEADER)


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "run", HEADER)

    def work(start: int) -> None:
        for number in range(start, start + 25):
            journal.append(record(attempt=number, output="x" * 5000))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 200, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert sorted(one.key.attempt for one in read_journal(journal.path)[1]) == list(range(200))


def test_closed_is_closed(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "run", HEADER)
    journal.close()
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append(record())


def test_discard_leaves_nothing(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "run", HEADER)
    journal.discard()
    journal.discard()
    assert names(tmp_path) == []


def test_the_directory_is_prepared(tmp_path: Path) -> None:
    written(tmp_path / ".caliper" / "results" / "x")
    assert (tmp_path / ".caliper" / ".gitignore").read_text() == "*\n"


def test_a_file_in_the_way_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "x"):
        with pytest.raises(OSError, match="file"):
            Journal.create(directory, "run", HEADER)


def test_a_disk_that_fills_up_midway_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.create(tmp_path, "run", HEADER)
    journal.append(record(attempt=1))
    real, left = os.write, [100]

    def write(descriptor: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = real(descriptor, data[: left[0]])
        left[0] -= taken
        return taken

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(OSError, match="No space"):
            journal.append(record(attempt=2))
    journal.append(record(attempt=3))
    journal.close()
    assert [one.key.attempt for one in read_journal(journal.path)[1]] == [1, 3]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outputs=st.lists(ANY_TEXT, max_size=4), share=st.floats(0, 1))
def test_a_write_that_was_torn_loses_only_its_own_record(tmp_path: Path, outputs: list[str], share: float) -> None:
    path = tmp_path / "run.jsonl"
    path.unlink(missing_ok=True)
    journal = Journal.create(tmp_path, "run", HEADER)
    ends = [path.stat().st_size]
    for number, output in enumerate(outputs, 1):
        journal.append(record(attempt=number, output=output))
        ends.append(path.stat().st_size)
    journal.close()
    cut = round(ends[0] + share * (ends[-1] - ends[0]))
    os.truncate(path, cut)
    header, records = read_journal(path)
    assert header == HEADER
    # A record whose text is complete counts, with or without its line's end.
    assert [one.key.attempt for one in records] == [n for n, end in enumerate(ends) if n and end - 1 <= cut]


@pytest.mark.parametrize("junk", [b'{"key": {"spec"', b"\0\0\0\0", b"garbage\n", b"\xff\xfe"])
def test_a_damaged_last_line_is_left_out(tmp_path: Path, junk: bytes) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes() + junk)
    assert len(read_journal(path)[1]) == 3


def test_damage_elsewhere_is_named(tmp_path: Path) -> None:
    path = written(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2][:50]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(RunFileError, match=r"run\.jsonl: line 3 is damaged") as caught:
        read_journal(path)
    assert "\n" not in str(caught.value)


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"key": {}}\n')
    with pytest.raises(RunFileError, match="line 5 is no attempt's record"):
        read_journal(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty journal"),
        (b'{"journal": 1, "hea', "empty journal"),
        (b'{"key": 1}\n', "no header"),
        (json.dumps({"journal": 2, "header": {}}).encode(), "version 2"),
    ],
)
def test_what_is_no_journal(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(RunFileError, match=says):
        read_journal(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="cannot be read: No such file"):
        read_journal(tmp_path / "x.jsonl")
