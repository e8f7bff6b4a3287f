"""Each attempt, on disk the moment it ends: what a killed session leaves behind, and what a later one continues.

One line of ASCII JSON per record after a header line. The suffix is `.jsonl`, so that who looks for run files does not meet it.
The session that writes it holds a lock on it (flock(2)), which ends with its process, however that ends.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.jsontext import line
from pytest_caliper.runs.place import prepare
from pytest_caliper.runs.records import AttemptKey, AttemptRecord

JOURNAL_VERSION = 1
SUFFIX = ".jsonl"
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
"""Some network file systems have no locks: there only the user can know that a session is over."""


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
        path = directory / f"{run_id}{SUFFIX}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND
        journal = cls(path, os.open(path, flags, 0o666))
        try:
            journal._lock_file()
            journal.begin(header)
        except BaseException:
            journal.discard()
            raise
        return journal

    @classmethod
    def reopen(cls, path: Path) -> Journal:
        """The journal of a session that has ended, to be continued; a last line that was cut short goes.

        Raises BlockingIOError when a living session writes it, OSError when it cannot be written.
        """
        journal = cls(path, os.open(path, os.O_RDWR | os.O_APPEND))
        try:
            journal._lock_file()
            journal._drop_torn_line()
        except BaseException:
            journal.close()
            raise
        return journal

    def begin(self, header: Mapping[str, Any]) -> None:
        """Write a header; a later one takes the place of an earlier one. Raises OSError."""
        self._write({"journal": JOURNAL_VERSION, "run_id": self.path.stem, "header": header})

    @property
    def lost(self) -> bool:
        """Whether the file has no name any more: somebody removed it, or its directory, and what is written goes nowhere."""
        with self._lock:
            if self._descriptor is None:
                return False
            try:
                here, there = os.fstat(self._descriptor), self.path.stat()
            except OSError:
                return True
            return (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino)

    def append(self, record: AttemptRecord) -> int:
        """Write one record, on disk when this returns. -> where it begins, for `read`.

        Raises OSError, and ValueError once the journal is closed.
        """
        return self._write(record.to_json())

    def read(self, begin: int) -> AttemptRecord:
        """The record that `append` wrote at `begin`, also when the file has lost its name. Raises RunFileError, OSError."""
        text = b""
        with self._lock:
            if self._descriptor is None:
                raise ValueError(f"{self.path}: the journal is closed")
            while b"\n" not in text:
                piece = os.pread(self._descriptor, 65536, begin + len(text))
                if not piece:
                    break
                text += piece
        value = json.loads(text.partition(b"\n")[0])
        return _record(self.path, 0, value)

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

    def _lock_file(self) -> None:
        import fcntl  # not on Windows, where no session runs but files are read

        assert self._descriptor is not None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise

    def _drop_torn_line(self) -> None:
        """What follows the last line break is a record that was cut short, or one whose line break alone is missing."""
        assert self._descriptor is not None
        size = end = os.fstat(self._descriptor).st_size
        tail = b""
        while end > 0 and b"\n" not in tail:
            begin = max(0, end - 65536)
            tail, end = os.pread(self._descriptor, end - begin, begin) + tail, begin
        torn = tail.rpartition(b"\n")[2]
        if not torn:
            return
        try:
            json.loads(torn)
        except (ValueError, RecursionError):
            os.ftruncate(self._descriptor, size - len(torn))
        else:
            os.write(self._descriptor, b"\n")

    def _write(self, value: Mapping[str, Any]) -> int:
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
            return before


def is_in_use(path: Path) -> bool:
    """Whether a living session writes this journal. False where that cannot be told."""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def read_journal(path: Path) -> tuple[Mapping[str, Any], tuple[AttemptRecord, ...]]:
    """-> (header, records in the order of their ends, the last one of each attempt).

    A last line that is cut short is what a killed process leaves, and is left out. Raises RunFileError for damage anywhere else,
    naming the line. One line at a time: memory holds the records alone.
    """
    header: Mapping[str, Any] | None = None
    records: dict[AttemptKey, AttemptRecord] = {}
    try:
        with open(path, "rb") as source:
            for number, text in enumerate(source, 1):
                value = _value(path, number, text, last=not source.peek(1))
                if value is None:
                    break
                if header is None or "journal" in value:
                    header = _header(path, number, value)
                    continue
                record = _record(path, number, value)
                records.pop(record.key, None)
                records[record.key] = record
    except OSError as error:
        raise RunFileError(path, f"cannot be read: {error.strerror}") from error
    if header is None:
        raise RunFileError(path, "is an empty journal; delete it")
    return header, tuple(records.values())


def _value(path: Path, number: int, text: bytes, *, last: bool) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if last:
            return None
        raise RunFileError(path, f"line {number} is damaged ({error})") from error
    if not isinstance(value, dict):
        raise RunFileError(path, f"line {number} is damaged (not an object)")
    return value


def _header(path: Path, number: int, value: Mapping[str, Any]) -> Mapping[str, Any]:
    header = value.get("header")
    if "journal" not in value or not isinstance(header, dict):
        raise RunFileError(path, f"line {number} is no header: this is not a journal of pytest-caliper")
    if value["journal"] != JOURNAL_VERSION:
        raise RunFileError(path, f"is a journal of version {value['journal']}; this pytest-caliper reads {JOURNAL_VERSION}")
    return header


def _record(path: Path, number: int, value: Mapping[str, Any]) -> AttemptRecord:
    try:
        return AttemptRecord.from_json(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFileError(path, f"line {number} is no attempt's record ({error!r})") from error
