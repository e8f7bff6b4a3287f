"""Names of run files, and which of them is the latest."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

from pytest_caliper.runs.place import PARTIAL

_RUN_FILE = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(-[\w-]+)?\.json")
_SECOND = re.compile(r"(.*)-(\d{1,3})")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def run_file_name(timestamp: str, run_id: str) -> str:
    """`%Y-%m-%dT%H-%M-%SZ-<id>.json`. ValueError for a timestamp that is not ISO 8601 or an id unfit for a file's name."""
    if not _ID.fullmatch(run_id):
        raise ValueError(f"run id {run_id!r} is not fit for a file's name")
    return f"{parse_timestamp(timestamp):%Y-%m-%dT%H-%M-%SZ}-{run_id}.json"


def parse_timestamp(text: str) -> datetime:
    """An ISO 8601 time in UTC; without an offset it is taken for UTC. Raises ValueError."""
    # fromisoformat takes a Z, and fractions of any length, only from Python 3.11 on.
    zoned = re.sub(r"[zZ]$", "+00:00", text.strip())
    whole = re.sub(r"\.(\d+)", lambda match: f".{match[1]:0<6.6}", zoned)
    moment = datetime.fromisoformat(whole)
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)


def list_runs(directory: Path, *, partial: bool = False) -> tuple[Path, ...]:
    """The run files of a spec's results directory by time, the oldest first; those below `partial/` only when asked for.

    Empty when there is no such directory. Nothing is opened.
    """
    places = (directory, directory / PARTIAL) if partial else (directory,)
    found = [path for place in places if place.is_dir() for path in place.iterdir() if _RUN_FILE.fullmatch(path.name)]
    return tuple(sorted((path for path in found if path.is_file()), key=run_order))


def run_order(path: Path) -> tuple[str, str, int]:
    """By time, and a file whose name was taken (`…Z-2.json`, `…Z-<id>-2.json`) after the one that took it."""
    stamp, rest = path.stem[:20], path.stem[20:]
    if found := _SECOND.fullmatch(rest):
        return stamp, found[1], int(found[2])
    return stamp, rest, 1


def latest_run(directory: Path) -> Path | None:
    """The newest complete run by its name; never a partial one. None when there is none."""
    runs = list_runs(directory)
    return runs[-1] if runs else None
