"""Joining the run files of shards into the run that one machine would have made."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_caliper.runs.names import parse_timestamp
from pytest_caliper.runs.reading import iter_transcripts, load_run
from pytest_caliper.runs.records import Arm, AttemptKey, AttemptRecord, Run, RunMeta, TaskResult

_FLAGS = {"baseline": "--caliper-baseline", "user_customizations": "--caliper-user-customizations"}
_VALUES = {"engine": "engine", "judge": "judge", "judge_votes": "number of judge votes", "k": "k"}
_HASHES = {"spec": "the spec differs outside its tasks", "skill": "the skill differs"}


class MergeRefused(Exception):
    """The files do not make one run. `problems` are sentences, each naming a file and what is wrong with it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The run file of one shard."""

    path: Path
    run: Run
    digest: str
    """Of the file's bytes, hexadecimal."""

    @property
    def shard(self) -> Mapping[str, Any]:
        return self.run.meta.shard or {}

    @property
    def index(self) -> int:
        return int(self.shard["index"])


def load_part(path: Path) -> Part | None:
    """The shard in a file; None for a run that is no shard. Raises RunFileError."""
    run = load_run(path)
    if not _is_shard(run.meta.shard) or not isinstance(run.meta.contract.get("tasks"), Mapping):
        return None
    with open(path, "rb") as source:
        digest = hashlib.sha256()
        while block := source.read(1 << 20):
            digest.update(block)
    return Part(path=path, run=run, digest=digest.hexdigest())


def _is_shard(shard: object) -> bool:
    if not isinstance(shard, Mapping) or not isinstance(shard.get("tasks"), Mapping):
        return False
    numbers = (shard.get("index"), shard.get("of"), *shard["tasks"].values())
    return all(type(number) is int and number >= 1 for number in numbers) and isinstance(shard.get("plan"), str)


def by_spec(parts: Iterable[Part]) -> dict[str, list[Part]]:
    """Path of a spec relative to its project -> its shards by number; specs and equals in the order of `parts`."""
    specs: dict[str, list[Part]] = {}
    for part in parts:
        specs.setdefault(part.run.meta.spec, []).append(part)
    return {spec: sorted(some, key=lambda part: part.index) for spec, some in specs.items()}


def merge(parts: Sequence[Part], *, partial: bool = False) -> Run:
    """One run of the shards of one spec, by number, as `save_run` takes it; its records have no transcripts yet.

    `partial` allows tasks to be missing; the run is then a partial one. Raises MergeRefused with everything that is wrong. The
    run's id follows from the files: the same files make the same run.
    """
    first = parts[0]
    problems = [problem for part in parts[1:] for problem in _differences(part, first)]
    if not problems:
        problems = [*_met_twice(parts), *_strays(parts)]
    missing = [] if problems else _missing(parts)
    if problems or (missing and not partial):
        raise MergeRefused(problems or [*missing, "name all of them, or join what is there with --partial"])
    meta = _meta(parts, missing=bool(missing))
    order = {task_id: number for number, task_id in enumerate(_contract(first)["tasks"])}
    return Run(
        meta=meta,
        results=_in_order((part.run.results for part in parts), order),
        baseline_results=_in_order((part.run.baseline_results or () for part in parts), order) if meta.baseline else None,
        skills=first.run.skills,
    )


def _in_order(results: Iterable[Iterable[TaskResult]], order: Mapping[str, int]) -> tuple[TaskResult, ...]:
    return tuple(sorted((result for some in results for result in some), key=lambda result: order[result.task_id]))


# -- what does not belong together ----------------------------------------------------------------------------------------------


def _contract(part: Part) -> Mapping[str, Any]:
    return part.run.meta.contract


def _differences(part: Part, first: Part) -> Iterator[str]:
    """Why a shard is not of the same run as the first one, a sentence each."""
    one, other = part.run.meta, first.run.meta
    told = [*_contract_differences(one.contract, other.contract)]
    if one.pytest_caliper != other.pytest_caliper:
        told.append(f"it was made by pytest-caliper {one.pytest_caliper}, not {other.pytest_caliper}")
    if one.replay != other.replay:
        told.append("it is a replay" if one.replay else "it is no replay")
    if (part.run.baseline_results is None) != (first.run.baseline_results is None) and not told:
        told.append("it has no baseline" if part.run.baseline_results is None else "it has a baseline")
    prompts = {one.judge_prompt_hash, other.judge_prompt_hash} - {None}
    if len(prompts) > 1:
        told.append("its judge was asked with another prompt")
    if part.shard["of"] != first.shard["of"]:
        told.append(f"it is one of {part.shard['of']} shards, not {first.shard['of']}")
    elif not told and (part.shard["plan"], dict(part.shard["tasks"])) != (first.shard["plan"], dict(first.shard["tasks"])):
        told.append("its tasks were dealt out differently: all machines need the same specs, command line and last runs")
    for difference in told:
        yield f"{part.path} does not belong to {first.path}: {difference}"


def _contract_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    tasks, theirs = one.get("tasks") or {}, other.get("tasks") or {}
    changed = [task_id for task_id in {**theirs, **tasks} if tasks.get(task_id) != theirs.get(task_id)]
    if changed:
        yield f"{'these tasks differ' if len(changed) > 1 else 'a task differs'}: {', '.join(changed)}"
    for name in dict.fromkeys((*other, *one)):
        if name == "tasks" or one.get(name) == other.get(name) or (name == "spec" and changed):
            continue
        if name == "baseline" and any(isinstance(contract.get(name), str) for contract in (one, other)):
            yield f"its baseline is {_baseline(one)}, not {_baseline(other)}"
        elif name in _FLAGS:
            yield f"it was made {'with' if one.get(name) else 'without'} {_FLAGS[name]}"
        elif name in _VALUES:
            yield f"its {_VALUES[name]} is {one.get(name)}, not {other.get(name)}"
        else:
            yield _HASHES.get(name, f"{name} differs")


def _baseline(contract: Mapping[str, Any]) -> str:
    """Where the baseline of a run was measured."""
    said = contract.get("baseline")
    return said if isinstance(said, str) else "its own" if said else "none"


def _met_twice(parts: Sequence[Part]) -> Iterator[str]:
    seen: dict[int, Part] = {}
    for part in parts:
        if part.index in seen:
            number = f"shard {part.index} of {part.shard['of']} of {part.run.meta.spec}"
            yield f"{part.path} and {seen[part.index].path} are both {number}: leave one of them out"
        seen.setdefault(part.index, part)


def _strays(parts: Sequence[Part]) -> Iterator[str]:
    """Results that are not where the plan puts them: nothing of ours writes such a file."""
    for part in parts:
        have = {result.task_id for result in (*part.run.results, *(part.run.baseline_results or ()))}
        for task_id in sorted(have - set(_tasks_of(part, part.index))):
            yield f"{part.path}: {task_id} is no task of shard {part.index} of {part.shard['of']}"


def _tasks_of(part: Part, index: int) -> list[str]:
    """The tasks that the plan gives to a shard, in the order of the spec."""
    known = set(_contract(part).get("tasks") or ())
    return [task_id for task_id, shard in part.shard["tasks"].items() if shard == index and task_id in known]


def _missing(parts: Sequence[Part]) -> list[str]:
    first = parts[0]
    there = {part.index for part in parts}
    shards = sorted(set(first.shard["tasks"].values()) - there)
    return [
        f"{first.run.meta.spec}: shard {index} of {first.shard['of']} is missing, with {', '.join(_tasks_of(first, index))}"
        for index in shards
    ]


# -- what the run is ------------------------------------------------------------------------------------------------------------


def _meta(parts: Sequence[Part], *, missing: bool) -> RunMeta:
    metas = [part.run.meta for part in parts]
    results = [result for part in parts for result in (*part.run.results, *(part.run.baseline_results or ()))]
    ran = [result for result in results if result.arm == "skill" or metas[0].baseline_from is None]
    records = [record for result in ran for record in result.attempts]
    judged = [record for record in records if record.autorater_passed is not None or record.durations.judge is not None]
    have, contract = {result.task_id: result.task_name for result in results}, metas[0].contract
    names = tuple(have[task_id] for task_id in contract["tasks"] if task_id in have)
    judge_backend = next((meta.judge_backend for meta in metas if meta.judge_backend is not None), None)
    return replace(
        metas[0],
        id=hashlib.sha256("\n".join(sorted(part.digest for part in parts)).encode()).hexdigest()[:8],
        timestamp=min((meta.timestamp for meta in metas), key=parse_timestamp),
        model=_only(record.model for record in records) or _asked_model(contract.get("engine")),
        judge_backend=judge_backend,
        judge_model=(_only(r.judge_model for r in judged) or _asked_model(contract.get("judge"))) if judge_backend else None,
        workers=_only(meta.workers for meta in metas),
        interrupted=any(meta.interrupted for meta in metas),
        selected_tasks=None if len(names) == len(contract["tasks"]) else names,
        partial=missing or any(meta.partial for meta in metas),
        cli_version=_only(record.cli_version for record in records),
        judge_cli_version=_only(record.judge_cli_version for record in judged),
        judge_prompt_hash=_only(meta.judge_prompt_hash for meta in metas),
        shard=None,
    )


def _asked_model(engine: object) -> str | None:
    """The model in `backend:model`."""
    return (str(engine or "").partition(":")[2]) or None


def _only(values: Iterable[Any]) -> Any:
    """The one value that all share, unknown ones left out; None when they differ or none is known."""
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None


# -- transcripts ----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def with_transcripts(run: Run, parts: Sequence[Part]) -> Iterator[Run]:
    """The merged run with the transcripts of its parts as side files, which go at the end; one turn is in memory at a time.

    Raises RunFileError where a part is damaged, OSError when the temporary directory does not take them.
    """
    with tempfile.TemporaryDirectory(prefix="caliper-merge-") as directory:
        places: dict[tuple[Arm, str, int], str] = {}
        for part in parts:
            for arm, task_id, attempt, turns in iter_transcripts(part.path):
                place = Path(directory) / f"{len(places)}.jsonl"
                places[arm, task_id, attempt] = str(place)
                with open(place, "w", encoding="ascii") as out:
                    for turn in turns:
                        out.write(json.dumps(turn.to_json(), ensure_ascii=True) + "\n")

        def located(record: AttemptRecord) -> AttemptRecord:
            return replace(record, transcript_path=_kept(record, places[_place(record.key)]))

        yield replace(
            run,
            results=_each(run.results, located),
            baseline_results=None if run.baseline_results is None else _each(run.baseline_results, located),
        )


def _place(key: AttemptKey) -> tuple[Arm, str, int]:
    return key.arm, key.task_id, key.attempt


def _kept(record: AttemptRecord, place: str) -> str | None:
    """None for a transcript that was lost, which is another thing than an empty one."""
    lost = record.transcript_truncated and not Path(place).stat().st_size
    return None if lost else place


def _each(results: Iterable[TaskResult], change: Callable[[AttemptRecord], AttemptRecord]) -> tuple[TaskResult, ...]:
    return tuple(replace(result, attempts=tuple(map(change, result.attempts))) for result in results)
