"""A run on disk: one JSON file, written whole or not at all, never over another one.

One line per turn, attempt and task, so that `reading` can pass over transcripts without parsing them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pytest_caliper.runs import document, jsontext
from pytest_caliper.runs.files import remove_abandoned, written_whole
from pytest_caliper.runs.names import run_file_name
from pytest_caliper.runs.place import PARTIAL, prepare
from pytest_caliper.runs.records import AttemptRecord, Run, RunMeta, TaskResult

_ROLES = ("assistant", "tool_use", "tool_result", "user")
_MOST_NAMES = 1000


Full = Callable[[AttemptRecord], AttemptRecord]
"""Gives a record with all its texts: those that are held in memory may be without."""


def save_run(run: Run, directory: Path, *, replaces: bool = False, full: Full = lambda record: record) -> Path:
    """Write a run below its spec's results directory and return the file, `%Y-%m-%dT%H-%M-%SZ-<id>.json`.

    Partial and interrupted runs and shards go to `partial/`. Transcripts are streamed from the records' side files, which stay;
    one that is missing or damaged is marked as truncated. `full` is asked for each record when it is written. With `replaces` the
    run went on from an earlier, interrupted session, whose file of the same name below `partial/` goes. Raises OSError when the
    disk does not take it.
    """
    place = place_of(run.meta, directory)
    prepare(place)
    for written_to in (directory, directory / PARTIAL):
        remove_abandoned(written_to)
    name = Path(run_file_name(run.meta.timestamp, run.meta.id))
    earlier = directory / PARTIAL / name.name
    if replaces and earlier == place / name.name:
        with written_whole(earlier, overwrite=True) as out:
            _write(run, out, full)
        return earlier
    for number in range(1, _MOST_NAMES):
        path = place / (name.name if number == 1 else f"{name.stem}-{number}.json")
        if path.exists():
            continue
        try:
            with written_whole(path, overwrite=False) as out:
                _write(run, out, full)
        except FileExistsError:  # taken since the look: the next name
            continue
        if replaces:
            earlier.unlink(missing_ok=True)
        return path
    raise FileExistsError(f"{place / name}: exists, and so do {_MOST_NAMES - 2} more of that name")


def place_of(meta: RunMeta, directory: Path) -> Path:
    """The directory of a run's file: below its spec's results directory, apart from the runs that may be the latest one."""
    apart = meta.partial or meta.interrupted or meta.shard is not None
    return directory / PARTIAL if apart else directory


def write_run(run: Run, path: Path) -> None:
    """Write a run as this very file, making its directory. Raises FileExistsError, OSError when the disk does not take it."""
    prepare(path.parent)
    with written_whole(path, overwrite=False) as out:
        _write(run, out)


def write_copy(saved: Path, output: Path) -> Path:
    """Copy a run file to where the user wants it, replacing what is there, and return the copy's path.

    A directory gets a file of the same name; missing directories are created. Devices and pipes are written to. Raises OSError.
    """
    target = output / saved.name if output.is_dir() else output
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and saved.samefile(target):
        return target
    with open(saved, "rb") as source, _copy_target(target) as out:
        shutil.copyfileobj(source, out)
    return target


@contextmanager
def _copy_target(target: Path) -> Iterator[IO[bytes]]:
    if target.exists() and not target.is_file():  # /dev/stdout must stay what it is
        with open(target, "wb") as out:
            yield out
    else:
        with written_whole(target.resolve(), overwrite=True) as out:
            yield out


def _write(run: Run, out: IO[bytes], full: Full = lambda record: record) -> None:
    head = {
        "schema_version": document.SCHEMA_VERSION,
        "run": document.meta_json(run.meta),
        "aggregate": document.aggregate_json(run.results),
        "skill_snapshot": document.first_snapshot_json(run.skills),
        "skill_snapshots": [document.snapshot_json(skill) for skill in run.skills],
    }
    _put(out, "{" + ",\n".join(f'"{name}": {jsontext.line(value)}' for name, value in head.items()))
    _put(out, ',\n"task_results": [')
    _write_tasks(run.results, out, full)
    _put(out, '],\n"baseline_task_results": ')
    if run.baseline_results is None:
        _put(out, "null")
    else:
        _put(out, "[")
        _write_tasks(run.baseline_results, out, full)
        _put(out, "]")
    _put(out, "}\n")


def _write_tasks(tasks: Iterable[TaskResult], out: IO[bytes], full: Full) -> None:
    for number, task in enumerate(tasks):
        _put(out, (",\n" if number else "\n") + _opened(document.task_json(task), "attempts") + "[")
        for place, record in enumerate(task.attempts):
            _put(out, ",\n" if place else "\n")
            _write_attempt(full(record), out)
        _put(out, "]}")


def _write_attempt(record: AttemptRecord, out: IO[bytes]) -> None:
    _put(out, _opened(document.attempt_json(record), "transcript"))
    whole = not record.transcript_truncated
    try:
        source = None if record.transcript_path is None else open(record.transcript_path, "rb")  # noqa: SIM115
    except OSError:
        source, whole = None, False
    if source is None:
        _put(out, "null")
    else:
        with source:
            whole = _write_turns(source, out) and whole
    _put(out, f', "transcript_truncated": {json.dumps(not whole)}}}')


def _write_turns(source: Iterable[bytes], out: IO[bytes]) -> bool:
    """-> whether every turn of the side file could be kept."""
    whole, first = True, True
    _put(out, "[\n")
    for text in source:
        turn = _turn(text)
        if turn is None:
            whole = False
            continue
        _put(out, turn if first else ",\n" + turn)
        first = False
    _put(out, "]" if first else "\n]")
    return whole


def _turn(text: bytes) -> str | None:
    """One turn as a line of the run file; None when it is damaged."""
    try:
        turn = json.loads(text)
        if not isinstance(turn, dict) or turn.get("role") not in _ROLES or not isinstance(turn.get("content"), str):
            return None
        return jsontext.line({name: value for name, value in turn.items() if _fits(name, value)})
    except (ValueError, RecursionError):
        return None


def _fits(name: str, value: Any) -> bool:
    if name == "tool_input":
        return isinstance(value, dict)
    return name in {"role", "content", "tool_name", "tool_output"} and isinstance(value, str)


def _opened(value: dict[str, Any], name: str) -> str:
    """A JSON object that is left open after the name of its last member."""
    return f'{jsontext.line(value)[:-1]}, "{name}": '


def _put(out: IO[bytes], text: str) -> None:
    out.write(text.encode("ascii"))
