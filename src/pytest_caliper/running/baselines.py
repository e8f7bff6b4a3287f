"""`--caliper-baseline-from`: take the baseline arm from a saved run where all that it depends on is the same.

Decided when a spec is opened, before its attempts are collected, by the controller alone; xdist workers are told. What a CLI
does with its default model is only known afterwards: see `contradiction`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_caliper import __version__
from pytest_caliper.contracts import EngineError
from pytest_caliper.judging.autorater import judge_prompt_hash
from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.text import one_line
from pytest_caliper.running.resuming import spec_nodeid
from pytest_caliper.running.runtime import FoundClis
from pytest_caliper.runs.digests import surroundings_hash, task_hash
from pytest_caliper.runs.place import path_in
from pytest_caliper.runs.reading import RunFileError, iter_transcripts, list_runs, load_meta, load_run
from pytest_caliper.runs.records import AttemptRecord, BaselineSource, Run, TaskResult
from pytest_caliper.spec.model import SpecError

if TYPE_CHECKING:
    from pytest_caliper.contracts import Engine
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.state import State

_NAMED = 3
"""Tasks named in one sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reused:
    """A baseline arm that need not run."""

    path: Path
    run: Run
    results: Mapping[str, TaskResult]
    """Task id of the spec as it is now -> the attempts, as that run has them."""

    def source(self, project: Path) -> BaselineSource:
        """Where it was measured first: a run that took its baseline over is not where."""
        meta = self.run.meta
        if meta.baseline_from is not None:
            return meta.baseline_from
        return BaselineSource(id=meta.id, timestamp=meta.timestamp, file=path_in(project, self.path))

    @property
    def records(self) -> list[AttemptRecord]:
        return [record for result in self.results.values() for record in result.attempts]


class Baselines:
    """The decisions of one session; on the controller."""

    def __init__(self, state: State, asked: Path | Literal["latest"]) -> None:
        self._state, self._asked = state, asked
        self._reused: dict[str, Reused | None] = {}
        self._lines: dict[str, str] = {}
        self.error: str | None = None
        """Why the file that was named is no run: a usage error, told before anything is paid for."""

    def of(self, plan: SpecPlan) -> Reused | None:
        """The arm to take over, decided once per spec; None where the baseline runs."""
        path = str(plan.spec.path)
        if path not in self._reused:
            self._reused[path] = self._decide(plan)
        return self._reused[path]

    def line(self, plan: SpecPlan) -> str | None:
        """What was decided, in a sentence."""
        return self._lines.get(str(plan.spec.path))

    def check(self, plans: Iterable[SpecPlan]) -> None:
        """Raises pytest.UsageError for a file that is no run, or that is to serve several specs."""
        with_baseline = [plan for plan in plans if plan.skills]
        if isinstance(self._asked, Path) and len(with_baseline) > 1:
            raise pytest.UsageError("--caliper-baseline-from names one run, but several specs were selected: use latest")
        if self.error is not None:
            raise pytest.UsageError(f"--caliper-baseline-from: {self.error}")

    def _decide(self, plan: SpecPlan) -> Reused | None:
        name, path = plan.spec.path.name, self._source(plan)
        if path is None:
            self._lines[str(plan.spec.path)] = f"{name}: there is no earlier run with a baseline, so it runs"
            return None
        try:
            run = load_run(path)
        except RunFileError as error:
            self.error = str(error)
            return None
        results = _same_tasks(run, plan)
        differing = list(_differences(run, results, plan, self._state))
        if differing:
            self._lines[str(plan.spec.path)] = (
                f"{name}: the baseline of {path.name} does not fit, so it runs: {'; '.join(differing)}"
            )
            return None
        counts = sorted({len(result.attempts) for result in results.values()})
        k = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        more = "" if counts == [plan.settings.k] else f", {k} attempts per task there and {plan.settings.k} here"
        self._lines[str(plan.spec.path)] = (
            f"{name}: the baseline is that of {path.name}: all that it depends on is the same{more}"
        )
        return Reused(path=path, run=run, results=results)

    def _source(self, plan: SpecPlan) -> Path | None:
        if isinstance(self._asked, Path):
            return self._asked
        for path in reversed(list_runs(plan.results)):
            with contextlib.suppress(RunFileError):  # some other file: commands that read runs name it
                if load_meta(path).baseline:
                    return path
        return None


def tell(state: State) -> list[str]:
    """Decide for every spec that the command line leads to. -> node ids of those whose baseline need not run, for workers."""
    from pytest_caliper.running.named_specs import named_specs

    for path in named_specs(state.config):
        with contextlib.suppress(SpecError):  # the workers report it as a collection error
            state.open_spec(path)
    return [spec_nodeid(state.config, path) for path, plan in state.specs.items() if plan.baseline_known]


def bring(reused: Reused, plan: SpecPlan, directory: Path) -> dict[str, TaskResult]:
    """The results with their transcripts as side files of this session. A damaged transcript is marked as truncated."""
    wanted = {(result.task_id, record.key.attempt): now for now, result in reused.results.items() for record in result.attempts}
    places: dict[tuple[str, int], tuple[str, bool]] = {}
    with contextlib.suppress(OSError, RunFileError):
        directory.mkdir(parents=True, exist_ok=True)
        for arm, task_id, attempt, turns in iter_transcripts(reused.path):
            mine = wanted.get((task_id, attempt)) if arm == "baseline" else None
            if mine is None:
                continue
            target, whole = directory / f"{mine}-baseline-{attempt}.jsonl", True
            try:
                with open(target, "w", encoding="ascii") as out:
                    for turn in turns:
                        out.write(json.dumps(turn.to_json(), ensure_ascii=True) + "\n")
            except (OSError, RunFileError):
                whole = False
            places[mine, attempt] = str(target), whole
    return {task_id: _brought(result, plan, task_id, places) for task_id, result in reused.results.items()}


def _brought(result: TaskResult, plan: SpecPlan, task_id: str, places: Mapping[tuple[str, int], tuple[str, bool]]) -> TaskResult:
    records = []
    for record in result.attempts:
        place, whole = places.get((task_id, record.key.attempt), (None, False))
        key = replace(record.key, spec=str(plan.spec.path), task_id=task_id)
        cut = record.transcript_truncated or not whole
        records.append(replace(record, key=key, transcript_path=place, transcript_truncated=cut))
    return replace(result, task_id=task_id, attempts=tuple(records))


def contradiction(reused: Reused, records: Iterable[AttemptRecord]) -> str | None:
    """Why the arm does not go with the attempts that ran, after all; None when nothing speaks against it."""
    ran = list(records)
    for name, what in (
        ("model", "model"),
        ("cli_version", "agent's version"),
        ("judge_model", "judge's model"),
        ("judge_cli_version", "judge's version"),
    ):
        before, now = ({getattr(record, name) for record in some} - {None} for some in (reused.records, ran))
        if before and now and before != now:
            return f"the {what} was {_listed(before)} there and is {_listed(now)} here"
    return None


def _same_tasks(run: Run, plan: SpecPlan) -> dict[str, TaskResult]:
    """Task id now -> the baseline attempts of the task that asked for the same, by hash."""
    hashes = {str(value): str(task_id) for task_id, value in dict(run.meta.contract.get("tasks") or {}).items()}
    there = {result.task_id: result for result in run.baseline_results or ()}
    found = {task.task_id: there.get(hashes.get(task_hash(task), "")) for task in plan.spec.tasks}
    return {task_id: result for task_id, result in found.items() if result is not None}


def _differences(run: Run, results: Mapping[str, TaskResult], plan: SpecPlan, state: State) -> Iterator[str]:
    """What of all that a baseline depends on is not the same, or not known to be, a clause each."""
    meta, contract, settings = run.meta, run.meta.contract, plan.settings
    if not contract:
        yield "it does not say what it was made under"
        return
    if run.baseline_results is None:
        yield "it has no baseline"
        return
    if meta.replay:
        yield "it was replayed from cassettes"
    if meta.user_customizations or settings.user_customizations:
        yield "your own skills and settings were loaded, which may have changed"
    if meta.pytest_caliper != __version__:
        yield f"it was made by pytest-caliper {meta.pytest_caliper or '?'}, this is {__version__}"
    known = set(dict(contract.get("tasks") or {}).values())
    yield from _tasks("changed or new", [task.name for task in plan.spec.tasks if task_hash(task) not in known])
    unmeasured = [
        task.name
        for task in plan.spec.tasks
        if task_hash(task) in known and not (task.task_id in results and results[task.task_id].usable)
    ]
    yield from _tasks("without a usable attempt there", unmeasured)
    if contract.get("surroundings") != surroundings_hash(plan.spec):
        yield "mcp: or sandbox: of the spec changed"
    if contract.get("timeout_s") != settings.timeout_s:
        yield f"the time-out was {_seconds(contract.get('timeout_s'))}, now it is {_seconds(settings.timeout_s)}"
    yield from _engines(contract, results, plan, state, meta.judge_prompt_hash)


def _engines(
    contract: Mapping[str, object], results: Mapping[str, TaskResult], plan: SpecPlan, state: State, prompt_hash: str | None
) -> Iterator[str]:
    records = [record for result in results.values() for record in result.attempts]
    judged = [record for record in records if record.autorater_passed is not None or record.durations.judge is not None]
    try:
        backends = state.gathered_backends()
        engine, judge = plan.engine(backends), plan.judge(backends)
    except EngineError as error:
        yield one_line(str(error))
        return
    clis = FoundClis(backends, dict(os.environ))
    if contract.get("engine") != str(engine):
        yield f"the engine was {contract.get('engine')}, now it is {engine}"
    elif said := _version(engine, clis, {record.cli_version for record in records}):
        yield said
    if not any(task.expect is not None for task in plan.spec.tasks):
        return
    if contract.get("judge") != str(judge):
        yield f"the judge was {contract.get('judge')}, now it is {judge}"
    elif judged and (said := _version(judge, clis, {record.judge_cli_version for record in judged})):
        yield f"as the judge, {said}"
    if contract.get("judge_votes") != plan.settings.judge_votes:
        yield f"the judge was asked {contract.get('judge_votes')} times, now {plan.settings.judge_votes}"
    if judged and prompt_hash != judge_prompt_hash():
        yield "the judge's instructions changed"


def _version(engine: Engine, clis: Mapping[str, object], before: set[str | None]) -> str | None:
    try:
        now = getattr(clis[engine.backend], "version", None)
    except EngineError as error:
        return one_line(str(error))
    if before == {now}:
        return None
    return f"{engine.backend} was {_listed(before)}, now it is {now}"


def _tasks(what: str, names: list[str]) -> Iterator[str]:
    if names:
        shown = ", ".join(repr(one_line(name)) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{numbers.plural(len(names), 'task')} {what} ({shown}{more})"


def _listed(values: Iterable[str | None]) -> str:
    return " and ".join(sorted("of no known version" if value is None else one_line(value) for value in values))


def _seconds(value: object) -> str:
    return f"{value:g} s" if isinstance(value, (int, float)) else "not told"
