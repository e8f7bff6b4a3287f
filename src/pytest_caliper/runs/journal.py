"""Each attempt, on disk the moment it ends: what a killed session leaves behind.

One line of ASCII JSON per record after a header line. The suffix is `.jsonl`, so that who looks for run files does not meet it.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.jsontext import line
from pytest_caliper.runs.place import prepare
from pytest_caliper.runs.records import AttemptRecord

JOURNAL_VERSION = 1


class Journal:
    """The journal of one run, open for appending. Any thread may append."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor
        self._lock = threading.Lock()

    @classmethod
    def create(cls, directory: Path, run_id: str, header: Mapping[str, Any]) -> Journal:
        """Start `<directory>/<run_id>.jsonl` with what `read_journal` gives back as its header; the directory is prepared.

        Raises FileExistsError when the run has a journal already, OSError when it cannot be written.
        """
        prepare(directory)
        path = directory / f"{run_id}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        journal = cls(path, os.open(path, flags, 0o666))
        try:
            journal._write({"journal": JOURNAL_VERSION, "run_id": run_id, "header": header})
        except BaseException:
            journal.discard()
            raise
        return journal

    def append(self, record: AttemptRecord) -> None:
        """Write one record, on disk when this returns. Raises OSError, and ValueError once the journal is closed."""
        self._write(record.to_json())

    def close(self) -> None:
        """Closing twice is closing once."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def discard(self) -> None:
        """Close and remove it: the run file holds everything now."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _write(self, value: Mapping[str, Any]) -> None:
        data = (line(value) + "\n").encode("ascii")
        with self._lock:
            if self._descriptor is None:
                raise ValueError(f"{self.path}: the journal is closed")
            before = os.fstat(self._descriptor).st_size
            try:
                written = os.write(self._descriptor, data)
                while written < len(data):  # a nearly full disk takes a part and refuses the rest
                    written += os.write(self._descriptor, data[written:])
            except OSError:
                with contextlib.suppress(OSError):  # the first error is the one to tell; a torn last line is readable
                    os.ftruncate(self._descriptor, before)
                raise
            os.fsync(self._descriptor)


def read_journal(path: Path) -> tuple[Mapping[str, Any], tuple[AttemptRecord, ...]]:
    """-> (header, records in the order of their ends).

    A last line that is cut short is what a killed process leaves, and is left out. Raises RunFileError for damage anywhere else,
    naming the line.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RunFileError(path, f"cannot be read: {error.strerror}") from error
    if lines[-1] == b"":
        lines.pop()
    values = [value for number, text in enumerate(lines, 1) if (value := _value(path, number, text, len(lines))) is not None]
    if not values:
        raise RunFileError(path, "is an empty journal; delete it")
    head = values[0]
    if "journal" not in head or not isinstance(head.get("header"), dict):
        raise RunFileError(path, "line 1 is no header: this is not a journal of pytest-caliper")
    if head["journal"] != JOURNAL_VERSION:
        raise RunFileError(path, f"is a journal of version {head['journal']}; this pytest-caliper reads {JOURNAL_VERSION}")
    return head["header"], tuple(_record(path, number, value) for number, value in enumerate(values[1:], 2))


def _value(path: Path, number: int, text: bytes, last: int) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if number == last:
            return None
        raise RunFileError(path, f"line {number} is damaged ({error})") from error
    if not isinstance(value, dict):
        raise RunFileError(path, f"line {number} is damaged (not an object)")
    return value


def _record(path: Path, number: int, value: Mapping[str, Any]) -> AttemptRecord:
    try:
        return AttemptRecord.from_json(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFileError(path, f"line {number} is no attempt's record ({error!r})") from error
