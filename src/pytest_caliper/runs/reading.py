"""Run files, ours and caliper-eval's, as data again. Derived numbers in them are not read: the facts are counted anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from pytest_caliper.runs import older
from pytest_caliper.runs.document import SCHEMA_VERSION
from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.names import latest_run, list_runs, parse_timestamp
from pytest_caliper.runs.records import (
    Arm,
    AttemptKey,
    AttemptRecord,
    Bar,
    BaselineSource,
    Outcome,
    Run,
    RunMeta,
    SkillSnapshot,
    TaskResult,
    Turn,
    UncheckedAttempt,
    Usage,
)
from pytest_caliper.runs.sound import fields_of, fits
from pytest_caliper.scoring import BarPolicy
from pytest_caliper.spec.rates import parse_rate

__all__ = ["RunFileError", "iter_transcript", "iter_transcripts", "latest_run", "list_runs", "load_meta", "load_run"]

_OURS = b'{"schema_version": '
"""How our files begin. Only they keep transcripts on lines of their own."""
_OPEN, _CLOSE = b'"transcript": [\n', b"]"
_OUTCOMES = get_args(Outcome)

T = TypeVar("T")
MAX_SECONDS = 1e9


def load_run(path: Path) -> Run:
    """The run in a file, without transcripts: those of our own files are not even parsed.

    `key.spec` of the records is the spec's path relative to its project, and `started` the start of the run: a file does not
    hold more. Raises RunFileError.
    """
    return _checked(path, lambda: _run(_document(path), path))


def load_meta(path: Path) -> RunMeta:
    """Only `run` of a file, from its first lines where it is ours. Raises RunFileError."""
    return _checked(path, lambda: _meta(_head(path), path))


def iter_transcript(path: Path, arm: Arm, task_id: str, attempt: int) -> Iterator[Turn]:
    """The turns of one attempt, in order; nothing when none were kept. Raises RunFileError, at the first turn asked for."""
    with _damage(path), open(path, "rb") as source:
        ours = _is_ours(source.readline())
        turns = _scan(source, arm, task_id, attempt) if ours else None
        if turns is None:  # another layout, such as ours after it went through jq
            turns = _find(_document(path), arm, task_id, attempt)
        if turns is None:
            raise RunFileError(path, f"holds no attempt {attempt} of {task_id} in the {arm} arm")
        for turn in turns:
            yield _turn(turn)


def iter_transcripts(path: Path) -> Iterator[tuple[Arm, str, int, Iterator[Turn]]]:
    """All attempts of a file in its order, each as (arm, task id, number, turns), in one pass and with one turn in memory.

    The turns of an attempt are there until the next attempt is asked for; those not taken are passed over unparsed. Raises
    RunFileError, here and from the turns.
    """
    with _damage(path), open(path, "rb") as source:
        attempts = _scan_all(source) if _is_ours(source.readline()) else iter(())
        first = next(attempts, None)
        if first is None:  # another layout, or no attempt at all
            attempts = _find_all(_document(path))
            first = next(attempts, None)
        for arm, task_id, attempt, turns in () if first is None else chain((first,), attempts):
            yield arm, task_id, attempt, _turns_of(path, turns)


def _turns_of(path: Path, turns: Iterator[Mapping[str, Any]]) -> Iterator[Turn]:
    with _damage(path):
        yield from map(_turn, turns)


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Faults of a transcript as RunFileError."""
    try:
        yield
    except OSError as error:
        raise RunFileError(path, f"cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RunFileError(path, f"has a damaged transcript: {error}") from error


def _checked(path: Path, build: Callable[[], T]) -> T:
    try:
        return build()
    except OSError as error:
        raise RunFileError(path, f"cannot be read: {error.strerror}") from error
    except KeyError as error:
        raise RunFileError(path, f"is not a run file: {error.args[0]!r} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RunFileError(path, f"is not a run file: {error}") from error


def _document(path: Path) -> Mapping[str, Any]:
    with open(path, "rb") as source:
        first = source.readline()
        rest = _without_turns(source) if _is_ours(first) else source
        return _object(b"".join((first, *rest)))


def _head(path: Path) -> Mapping[str, Any]:
    with open(path, "rb") as source:
        first, second = source.readline(), source.readline()
    if _is_ours(first) and second.startswith(b'"run": ') and second.endswith(b",\n"):
        return _object(first + second[:-2] + b"}")
    return _document(path)


def _is_ours(first: bytes) -> bool:
    """Whether a file with this first line is laid out as `store` does it, line breaks included."""
    return first.startswith(_OURS) and first.endswith(b",\n")


def _without_turns(lines: Iterable[bytes]) -> Iterator[bytes]:
    inside = False
    for line in lines:
        if inside and line.startswith(_CLOSE):
            inside = False
        if not inside:
            yield line
        if line.endswith(_OPEN):
            inside = True


def _scan(lines: Iterator[bytes], arm: Arm, task_id: str, attempt: int) -> Iterator[Mapping[str, Any]] | None:
    """The turns of an attempt in the rest of one of our files, read as they are asked for; None when it is not there."""
    for *found, turns in _scan_all(lines):
        if found == [arm, task_id, attempt]:
            return turns
    return None


_Found = tuple[Arm, str, int, Iterator[Mapping[str, Any]]]


def _scan_all(lines: Iterator[bytes]) -> Iterator[_Found]:
    """The attempts in the rest of one of our files; their turns are read as they are asked for."""
    task = ""
    for line in lines:
        if line.startswith(b'{"task_id": '):
            task = json.loads(line[: line.rindex(b', "attempts": ')] + b"}")["task_id"]
        elif line.startswith(b'{"attempt": '):
            # Whatever follows the name: turns on lines of their own, or null.
            head = json.loads(line[: line.rindex(b', "transcript": ')] + b"}")
            yield head["arm"], task, head["attempt"], _turns_here(lines) if line.endswith(_OPEN) else iter(())


def _find_all(data: Mapping[str, Any]) -> Iterator[_Found]:
    arms: tuple[tuple[Arm, str], ...] = (("skill", "task_results"), ("baseline", "baseline_task_results"))
    for arm, name in arms:
        for task in data.get(name) or ():
            for entry in (*task["attempts"], *task.get("not_checked", ())):
                yield arm, task["task_id"], entry["attempt"], iter(entry.get("transcript") or ())


def _turns_here(lines: Iterator[bytes]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        if line.startswith(_CLOSE):
            return
        yield json.loads(line.rstrip(b",\n"))
    raise ValueError("the file ends inside it")


def _find(data: Mapping[str, Any], arm: Arm, task_id: str, attempt: int) -> Iterator[Mapping[str, Any]] | None:
    for task in data.get("task_results" if arm == "skill" else "baseline_task_results") or ():
        if task["task_id"] == task_id:
            for entry in (*task["attempts"], *task.get("not_checked", ())):
                if entry["attempt"] == attempt:
                    return iter(entry.get("transcript") or ())
    return None


def _turn(data: Mapping[str, Any]) -> Turn:
    return Turn(
        role=data["role"],
        content=_typed(data, "content", str),
        tool_name=data.get("tool_name"),
        tool_input=data.get("tool_input"),
        tool_output=data.get("tool_output"),
    )


def _object(text: bytes) -> Mapping[str, Any]:
    # Python's own writer puts NaN into files unless told not to: unknown is what it means.
    data = json.loads(text, parse_constant=lambda _: None)
    if not isinstance(data, dict):
        raise TypeError("it holds no JSON object")
    version = data.get("schema_version", SCHEMA_VERSION)
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise ValueError(f"schema version {version!r}, this pytest-caliper reads {SCHEMA_VERSION}; upgrade it")
    return data if "schema_version" in data else older.as_ours(data)


def _run(data: Mapping[str, Any], path: Path) -> Run:
    meta = _meta(data, path)
    baseline = data.get("baseline_task_results")
    return Run(
        meta=meta,
        results=tuple(_task(task, "skill", meta) for task in _typed(data, "task_results", list)),
        baseline_results=None if baseline is None else tuple(_task(task, "baseline", meta) for task in baseline),
        skills=tuple(_skills(data)),
        saved=str(path),
    )


def _sound(kind: type[T], value: T, *, but: frozenset[str] = frozenset()) -> T:
    """`value`, if its fields hold what they are declared to hold, `but` these. TypeError that names the field otherwise."""
    for name, hint in fields_of(cast(Any, kind)):
        if name not in but and not fits(getattr(value, name), hint):
            raise TypeError(f"{name.rstrip('_')!r} is {type(getattr(value, name)).__name__}, or holds what it must not")
    return value


def _meta(data: Mapping[str, Any], path: Path) -> RunMeta:
    run = _typed(data, "run", dict)
    known = {name: run[name] for name in RunMeta.__dataclass_fields__ if name in run}
    defaults: dict[str, Any] = {
        "id": path.stem,
        "model": None,
        "judge_backend": None,
        "judge_model": None,
        "pytest_caliper": "",
        "workers": None,
        "baseline": data.get("baseline_task_results") is not None,
        "interrupted": False,
        "selected_tasks": None,
        "partial": False,
    }
    for name, kind in (("spec", str), ("timestamp", str), ("k", int), ("backend", str)):
        _typed(run, name, kind)
    meta = {**defaults, **known}
    meta["baseline"] = bool(meta["baseline"])  # it may name the run that the baseline was taken from
    if (source := meta.get("baseline_from")) is not None:
        meta["baseline_from"] = BaselineSource(**{name: _typed(source, name, str) for name in ("id", "timestamp", "file")})
    if meta["selected_tasks"] is not None:
        meta["selected_tasks"] = tuple(meta["selected_tasks"])
    parse_timestamp(meta["timestamp"])
    return _sound(RunMeta, RunMeta(**meta))


def _skills(data: Mapping[str, Any]) -> Iterator[SkillSnapshot]:
    entries = data.get("skill_snapshots")
    if entries is None:
        only = data.get("skill_snapshot") or {}
        entries = [only] if only.get("path") else []
    for entry in entries:
        path = _typed(entry, "path", str)
        snapshot = SkillSnapshot(
            name=entry.get("name") or Path(path).parent.name or path,
            path=path,
            kind=entry.get("kind") or "directory",
            files=_typed(entry, "files", dict),
            git_repo=entry.get("git_repo"),
            git_sha=entry.get("git_sha"),
        )
        yield _sound(SkillSnapshot, snapshot)


def _task(data: Mapping[str, Any], arm: Arm, meta: RunMeta) -> TaskResult:
    task_id, name = _typed(data, "task_id", str), _typed(data, "task_name", str)
    attempts = tuple(_attempt(entry, task_id, name, arm, meta) for entry in _typed(data, "attempts", list))
    planned = data.get("planned", meta.k)
    result = TaskResult(
        task_id=task_id,
        task_name=name,
        arm=arm,
        planned=planned,
        attempts=attempts,
        prompt=data.get("prompt") or "",
        expect=data.get("expect"),
        assert_=data.get("assert"),
        # 0.9 does not say it, and leaves attempts out for no other reason.
        aborted=data.get("aborted", len(attempts) < planned),
        bar=None if data.get("bar") is None else _bar(_typed(data, "bar", dict)),
        not_checked=tuple(_unchecked(entry, task_id, arm, meta) for entry in data.get("not_checked") or ()),
        foreign=data.get("foreign") or {},
    )
    return _sound(TaskResult, result, but=_LOOKED_AT)


_LOOKED_AT = frozenset({"attempts", "not_checked"})
"""Each entry on its own."""


def _bar(data: Mapping[str, Any]) -> Bar:
    policy = _typed(data, "policy", str)
    if policy not in get_args(BarPolicy):
        raise ValueError(f"the policy of a bar, {policy!r}, is not known")
    least = parse_rate(data.get("min_coverage") or "0", least=0)
    return Bar(rate=parse_rate(_typed(data, "rate", str)), policy=cast(BarPolicy, policy), min_coverage=least)


def _unchecked(data: Mapping[str, Any], task_id: str, arm: Arm, meta: RunMeta) -> UncheckedAttempt:
    usage = data.get("usage")
    return UncheckedAttempt(
        key=AttemptKey(spec=meta.spec, task_id=task_id, arm=arm, attempt=_typed(data, "attempt", int)),
        outcome=_typed(data, "outcome", str),
        output=_typed(data, "output", str),
        duration_seconds=_typed(data, "duration_seconds", (int, float)),
        usage=None if usage is None else Usage(**{name: usage.get(name) for name in Usage.__dataclass_fields__}),
        skills_used=tuple(data.get("skills_used") or ()),
        foreign=data.get("foreign") or {},
    )


def _attempt(data: Mapping[str, Any], task_id: str, task_name: str, arm: Arm, meta: RunMeta) -> AttemptRecord:
    outcome = _typed(data, "outcome", str)
    if outcome not in _OUTCOMES:
        raise ValueError(f"outcome {outcome!r} is not known")
    _typed(data, "output", str)
    duration = _typed(data, "duration_seconds", (int, float))
    number = _typed(data, "attempt", int)
    record = AttemptRecord.from_json(
        {
            "task_name": task_name,
            "reason": None,
            "wall_seconds": duration,
            **data,
            "key": {"spec": meta.spec, "task_id": task_id, "arm": arm, "attempt": number},
            "started": parse_timestamp(meta.timestamp).timestamp(),
            "transcript_path": None,
        }
    )
    _sound(AttemptRecord, record)
    times = (record.duration_seconds, record.wall_seconds, *record.durations.to_json().values())
    if any(seconds is not None and not 0 <= seconds < MAX_SECONDS for seconds in times):
        raise ValueError("an attempt has a duration that cannot be")
    return record


def _typed(data: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """A member that must be there and of its type. KeyError or TypeError when it is not."""
    value = data[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{name!r} is {type(value).__name__}")
    return value
