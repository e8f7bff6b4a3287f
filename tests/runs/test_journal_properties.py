"""Any kill point, any interleaving: what was acknowledged is in the journal, once, and it can be gone on with."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.journal import Journal, is_in_use, read_journal
from pytest_caliper.runs.records import AttemptKey, AttemptRecord

HEADER = {"contract": {"k": 3}, "planned": []}


def record(number: int, text: str = "", outcome: str = "pass") -> AttemptRecord:
    return AttemptRecord(
        key=AttemptKey(spec="/s", task_id=f"task-{number:03}", arm="skill", attempt=1),
        task_name=f"T{number}",
        outcome=outcome,
        reason=None,
        output=text,
        duration_seconds=0.0,
        started=0.0,
        wall_seconds=0.0,
    )


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)  # line separators and controls too
sessions = st.lists(st.lists(texts, max_size=6), min_size=1, max_size=5)


@settings(deadline=None, max_examples=150)
@given(sessions=sessions, data=st.data())
def test_kills_at_any_byte(sessions, data):
    """Each session appends and is then killed: the file is cut anywhere after the last record that was acknowledged."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run.jsonl"
        acknowledged: dict[str, str] = {}
        number = 0
        for n, appended in enumerate(sessions):
            journal = Journal.create(path.parent, "run", HEADER) if n == 0 else Journal.reopen(path)
            for text in appended:
                journal.append(record(number, text))
                acknowledged[f"T{number}"] = text
                number += 1
            whole = path.stat().st_size
            journal.append(record(number, "not acknowledged"))  # the kill comes somewhere in this write
            journal.close()
            size = data.draw(st.integers(whole, path.stat().st_size), label="size after the kill")
            survived = size >= path.stat().st_size - 1  # all but the line break is all
            with open(path, "r+b") as file:
                file.truncate(size)
            if survived:
                acknowledged[f"T{number}"] = "not acknowledged"
            number += 1
            header, records = read_journal(path)
            assert header == HEADER
            assert {r.task_name: r.output for r in records} == acknowledged
            assert len(records) == len(acknowledged)
        last = Journal.reopen(path)
        last.append(record(number, "after"))
        last.close()
        assert [r.task_name for r in read_journal(path)[1]] == [*acknowledged, f"T{number}"]
        assert path.read_bytes().endswith(b"\n")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["pass", "infra_error"])), max_size=20))
def test_the_last_record_of_an_attempt_counts(order):
    with tempfile.TemporaryDirectory() as place:
        journal = Journal.create(Path(place), "run", HEADER)
        for number, outcome in order:
            journal.append(record(number, outcome=outcome))
        journal.close()
        records = read_journal(journal.path)[1]
        assert {r.task_name: r.outcome for r in records} == {f"T{n}": outcome for n, outcome in order}
        assert len(records) == len({n for n, _ in order})


def test_threads_never_mix_their_lines(tmp_path):
    journal = Journal.create(tmp_path, "run", HEADER)
    threads = [
        threading.Thread(target=lambda n=n: [journal.append(record(n * 100 + i, "x" * 5000)) for i in range(20)])
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert len(read_journal(journal.path)[1]) == 160


def test_a_later_header_takes_the_place_of_an_earlier_one(tmp_path):
    journal = Journal.create(tmp_path, "run", HEADER)
    journal.append(record(1))
    journal.begin({"contract": {"k": 5}, "planned": []})
    journal.append(record(2))
    journal.close()
    header, records = read_journal(journal.path)
    assert header["contract"] == {"k": 5}
    assert len(records) == 2


def test_one_session_at_a_time(tmp_path):
    journal = Journal.create(tmp_path, "run", HEADER)
    assert is_in_use(journal.path)
    with pytest.raises(BlockingIOError):
        Journal.reopen(journal.path)
    journal.close()
    assert not is_in_use(journal.path)
    again = Journal.reopen(journal.path)
    assert is_in_use(journal.path)
    again.discard()
    assert not journal.path.exists()


@pytest.mark.parametrize("how", ["file", "directory", "replaced"])
def test_a_journal_knows_that_its_file_is_gone(tmp_path, how):
    place = tmp_path / "results"
    journal = Journal.create(place, "run", HEADER)
    assert not journal.lost
    journal.path.unlink()
    if how == "directory":
        place.rmdir()
    elif how == "replaced":
        journal.path.write_text("somebody else's")
    assert journal.lost
    journal.close()
    assert not journal.lost


def test_a_header_alone_that_was_cut_is_an_empty_journal(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"journal": 1, "hea')
    with pytest.raises(RunFileError, match="empty journal"):
        read_journal(path)
