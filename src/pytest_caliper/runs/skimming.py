"""The counts of a run file, without its texts: for lists of many runs.

Facts are counted here as everywhere; `aggregate` and the other derived numbers in the file are not looked at.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_caliper.runs.digests import skills_digest
from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.reading import load_meta, load_run
from pytest_caliper.runs.records import USABLE, Run, RunMeta, TaskResult

_TASK, _ATTEMPT, _OUTCOME = b'{"task_id": ', b'{"attempt": ', b'"outcome": "'
_ATTEMPTS_OPEN = b', "attempts": ['
_RESULTS, _BASELINE = b'"task_results": [', b'"baseline_task_results": ['
_NO_BASELINE = b'"baseline_task_results": null'
_TURNS_OPEN = b'"transcript": ['
_TURNS_CLOSE = b'\n], "transcript_truncated": '
"""Where `store` goes on after the turns of an attempt; no turn has a line break in it."""
_BEGIN, _END = b'{"schema_version": ', b"}\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskCounts:
    """One task in one arm."""

    task_id: str
    task_name: str
    planned: int
    """Attempts asked for; never fewer than ran."""
    ran: int
    usable: int
    successes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCounts:
    """What a list says of a run is made from this."""

    path: Path
    meta: RunMeta
    results: tuple[TaskCounts, ...]
    baseline_results: tuple[TaskCounts, ...] | None
    skill: str | None
    """Tells whether two runs had the same skills: their hash; None for the bare agent."""


def skim_run(path: Path) -> RunCounts:
    """The counts of a run file. Transcripts of our own files are passed over without being read line by line.

    Raises RunFileError.
    """
    meta = load_meta(path)
    found = _skimmed(path) if meta.pytest_caliper else None
    if found is None or not isinstance(meta.contract.get("skill", 0), (str, type(None))):
        return _counted(load_run(path), path)
    results, baseline = found
    return RunCounts(path=path, meta=meta, results=results, baseline_results=baseline, skill=meta.contract["skill"])


_Counts = tuple[tuple[TaskCounts, ...], "tuple[TaskCounts, ...] | None"]


def _skimmed(path: Path) -> _Counts | None:
    """The counts of both arms; None where the file has not the layout that `store` gives it."""
    try:
        with open(path, "rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _counts(data) if data[-len(_END) :] == _END else None
    except OSError as error:
        raise RunFileError(path, f"cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError):  # mmap says ValueError to an empty file
        return None


def _counts(data: mmap.mmap) -> _Counts:
    """Raises ValueError, KeyError or TypeError where the layout is another one."""
    skill: list[TaskCounts] = []
    baseline: list[TaskCounts] | None = None
    lines = _lines(data)
    if not next(lines).startswith(_BEGIN) or not any(line.startswith(_RESULTS) for line in lines):
        raise ValueError("another layout")
    head, outcomes = b"", []
    for line in lines:
        if line.startswith(_ATTEMPT):
            start = line.index(_OUTCOME) + len(_OUTCOME)
            outcomes.append(line[start : line.index(b'"', start)].decode("ascii"))
        elif line.startswith((_TASK, _BASELINE, _NO_BASELINE)):
            if head:
                (skill if baseline is None else baseline).append(_task(head, outcomes))
            head, outcomes = (line, []) if line.startswith(_TASK) else (b"", [])
            baseline = [] if line.startswith(_BASELINE) else baseline
    if head:
        (skill if baseline is None else baseline).append(_task(head, outcomes))
    return tuple(skill), None if baseline is None else tuple(baseline)


def _lines(data: mmap.mmap) -> Iterator[bytes]:
    """The file's lines but for those of the turns."""
    at, size = 0, len(data)
    while at < size:
        end = data.find(b"\n", at)
        end = size if end < 0 else end
        line = data[at:end]
        yield line
        if line.endswith(_TURNS_OPEN):
            end = data.find(_TURNS_CLOSE, end)
            if end < 0:
                raise ValueError("the turns of an attempt do not end")
            end = data.find(b"\n", end + 1)
            end = size if end < 0 else end
        at = end + 1


def _task(head: bytes, outcomes: list[str]) -> TaskCounts:
    facts = json.loads(head[: head.rindex(_ATTEMPTS_OPEN)] + b"}")
    return TaskCounts(
        task_id=facts["task_id"],
        task_name=facts["task_name"],
        planned=max(facts["planned"], len(outcomes)),
        ran=len(outcomes),
        usable=sum(outcome in USABLE for outcome in outcomes),
        successes=outcomes.count("pass"),
    )


def _counted(run: Run, path: Path) -> RunCounts:
    baseline = run.baseline_results
    return RunCounts(
        path=path,
        meta=run.meta,
        results=tuple(map(_of_task, run.results)),
        baseline_results=None if baseline is None else tuple(map(_of_task, baseline)),
        skill=skills_digest(run),
    )


def _of_task(result: TaskResult) -> TaskCounts:
    return TaskCounts(
        task_id=result.task_id,
        task_name=result.task_name,
        planned=max(result.planned, len(result.attempts)),
        ran=len(result.attempts),
        usable=result.usable,
        successes=result.successes,
    )
