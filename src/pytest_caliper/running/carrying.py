"""The way of a transcript from a worker that does not share the controller's files: in the report, bounded."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_caliper.runs.records import AttemptRecord

MOST_CHARACTERS = 4 * 1024 * 1024
"""Reports wait in the controller's memory."""
NAME = "caliper_transcript"
"""The report's attribute: ASCII text, one JSON turn per line."""


def pack(report: Any, record: AttemptRecord) -> AttemptRecord:
    """Put the side file of a record on its report and remove it. -> the record as it goes along."""
    if record.transcript_path is None:
        return record
    path = Path(record.transcript_path)
    turns, room, whole = [], MOST_CHARACTERS, True
    with open(path, encoding="ascii") as file:
        for turn in file:
            room -= len(turn)
            if room < 0:
                whole = False
                break
            turns.append(turn)
    setattr(report, NAME, "".join(turns))
    path.unlink()
    return replace(record, transcript_path=None, transcript_truncated=record.transcript_truncated or not whole)


def unpack(report: Any, record: AttemptRecord, directory: Path, worker: str) -> AttemptRecord:
    """Take a transcript off a report and write it to a side file below `directory`; without one nothing changes."""
    text: str | None = vars(report).pop(NAME, None)
    if text is None:
        return record
    path = directory / f"{record.key.task_id}-{record.key.arm}-{record.key.attempt}-{_file_name(worker)}.jsonl"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    except OSError:
        return replace(record, transcript_truncated=True)
    return replace(record, transcript_path=str(path))


def _file_name(worker: str) -> str:
    """`--tx ssh=host//id=a/b` lets users name workers."""
    return re.sub(r"[^\w.-]", "_", worker)
