"""What a run will take, told before its first attempt: by the runs before it, and only as far as they tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.contracts import Engine
from pytest_caliper.reporting.numbers import plural
from pytest_caliper.reporting.numbers import tokens as in_words
from pytest_caliper.running.makespan import Job, about, makespan
from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.names import list_runs
from pytest_caliper.runs.reading import load_meta, load_run
from pytest_caliper.runs.records import Arm, AttemptKey, AttemptRecord, RunMeta, Usage

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.state import State

_LOOKED_AT = 30
"""Files whose heads are read for runs of the same engine."""
_OPENED = 3
"""Runs that are read: a run of some tasks may have come after the last run of all."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The attempts of one task in one arm."""

    spec: str
    task_id: str
    arm: Arm

    @classmethod
    def of(cls, key: AttemptKey) -> Cell:
        return cls(key.spec, key.task_id, key.arm)


@dataclass(kw_only=True, slots=True)
class Past:
    """What earlier runs with the same engine tell of a session's attempts, one by one."""

    seconds: dict[Cell, float] = field(default_factory=dict)
    """Mean seconds of an attempt, set-up to clean-up."""
    tokens: dict[Cell, float] = field(default_factory=dict)
    """Mean tokens of an attempt and its judge; nothing where no attempt told any."""
    days: set[str] = field(default_factory=set)
    """When those runs were, `2026-11-30`."""


PAST: pytest.StashKey[Past] = pytest.StashKey()
"""On the controller's config, from before the first attempt."""


def tell_beforehand(
    state: State,
    engines: Mapping[SpecPlan, tuple[Engine, Engine]],
    keys: Sequence[AttemptKey],
    *,
    one_by_one: Collection[AttemptKey] = frozenset(),
    unjudged: Collection[AttemptKey] = frozenset(),
) -> list[str]:
    """Lines on how much will run, how long and for how many tokens; none for replayed runs, which cost nothing.

    `one_by_one` are attempts that run in the main thread's turn, `unjudged` those whose judge is not ours.
    """
    config = state.config
    past = config.stash[PAST] = Past()
    if state.settings.replay or not keys or config.get_verbosity() < 0:
        return []
    for plan, (engine, _) in engines.items():
        _learn(past, plan, engine, {Cell.of(key) for key in keys if key.spec == str(plan.spec.path)})
    lines = [_how_many(list(engines), keys, unjudged, state.settings.judge_votes)]
    workers = workers_of(config, state)
    used = min(workers, len(keys))
    known = [key for key in keys if Cell.of(key) in past.seconds]
    if not known:
        limit = makespan([Job(state.settings.timeout_s)] * len(keys), used)
        return [*lines, f"no earlier run tells time or tokens; time-outs allow {about(limit)}"]
    groups = groups_of(engines)
    order = sorted(known, key=lambda key: (key.attempt, -past.seconds[Cell.of(key)]))
    jobs = [
        Job(past.seconds[Cell.of(key)], "main thread" if key in one_by_one else groups.get((key.spec, key.task_id)))
        for key in order
    ]
    tokens = [past.tokens[Cell.of(key)] for key in known if Cell.of(key) in past.tokens]
    lines += _how_long(past, makespan(jobs, used), used, tokens, len(known), len(keys))
    limit_tokens = state.settings.max_tokens
    if limit_tokens is not None and sum(tokens) > limit_tokens:
        lines.append(f"that is more than --caliper-max-tokens {limit_tokens:,}: not all of them will begin")
    return lines


def workers_of(config: pytest.Config, state: State) -> int:
    """How many attempts run at the same time at most, here or in xdist's workers."""
    dsession: Any = config.pluginmanager.get_plugin("dsession")
    if dsession is None:
        alone = config.option.usepdb or getattr(config.option, "trace", False)
        return 1 if alone else state.settings.workers
    nodes = len(getattr(getattr(dsession, "nodemanager", None), "specs", ())) or len(config.getoption("tx", None) or ()) or 1
    return min(nodes, state.settings.workers) if state.settings.workers_said else nodes


def groups_of(plans: Iterable[SpecPlan]) -> dict[tuple[str, str], tuple[str, str]]:
    """(spec, task id) -> itself, for tasks whose attempts run one at a time."""
    tasks = ((plan, task) for plan in plans for task in plan.spec.tasks)
    found = ((str(plan.spec.path), task.task_id) for plan, task in tasks if plan.shares_paths(task))
    return {pair: pair for pair in found}


def tokens_of(record: AttemptRecord) -> int | None:
    """What an attempt and its judge used; None when its CLI did not say."""
    if record.usage is None or not _told(record.usage):
        return None
    return record.usage.total_tokens + (record.judge_usage.total_tokens if record.judge_usage is not None else 0)


def _told(usage: Usage) -> bool:
    return any(getattr(usage, name) is not None for name in Usage.__dataclass_fields__)


def _learn(past: Past, plan: SpecPlan, engine: Engine, wanted: set[Cell]) -> None:
    """Add what the newest runs of the spec with this engine tell of the wanted attempts."""
    ids = {task.name: task.task_id for task in plan.spec.tasks}
    for path in _runs_of(plan, engine):
        missing = {cell for cell in wanted if cell not in past.seconds}
        if not missing:
            return
        try:
            run = load_run(path)
        except RunFileError:  # `caliper list` names it
            continue
        for result in (*run.results, *(run.baseline_results or ())):
            cell = Cell(str(plan.spec.path), ids.get(result.task_name, ""), result.arm)
            if cell not in missing or not result.attempts:
                continue
            past.days.add(run.meta.timestamp[:10])
            past.seconds[cell] = sum(record.wall_seconds for record in result.attempts) / len(result.attempts)
            told = [count for record in result.attempts if (count := tokens_of(record)) is not None]
            if told:
                past.tokens[cell] = sum(told) / len(told)


def _runs_of(plan: SpecPlan, engine: Engine) -> Iterator[Path]:
    """The newest complete runs with this engine, at most a few."""
    found = 0
    for path in list(reversed(list_runs(plan.results)))[:_LOOKED_AT]:
        try:
            meta = load_meta(path)
        except RunFileError:
            continue
        if not (meta.replay or meta.interrupted or meta.partial) and _is_of(meta, engine):
            yield path
            found += 1
        if found == _OPENED:
            return


def _is_of(meta: RunMeta, engine: Engine) -> bool:
    said = meta.contract.get("engine")
    if isinstance(said, str):
        return said == str(engine)
    return meta.backend == engine.backend and engine.model in (None, meta.model)


def _how_many(plans: Sequence[SpecPlan], keys: Sequence[AttemptKey], unjudged: Collection[AttemptKey], votes: int) -> str:
    """`18 attempts (3 tasks x 3 x skill and baseline), up to 18 judge calls`."""
    sizes = Counter(Cell.of(key) for key in keys)
    tasks = len({(cell.spec, cell.task_id) for cell in sizes})
    arms = len({cell.arm for cell in sizes})
    even = len(set(sizes.values())) == 1 and len(sizes) == tasks * arms
    each = f" x {next(iter(sizes.values()))}" + (" x skill and baseline" if arms == 2 else "") if even else ""
    line = plural(len(keys), "attempt") + (f" ({plural(tasks, 'task')}{each})" if len(keys) > 1 else "")
    expecting = {(str(plan.spec.path), task.task_id) for plan in plans for task in plan.spec.tasks if task.expect is not None}
    calls = votes * sum((key.spec, key.task_id) in expecting and key not in unjudged for key in keys)
    return f"{line}, up to {plural(calls, 'judge call')}" if calls else line


def _how_long(past: Past, seconds: float, workers: int, tokens: Sequence[float], known: int, asked: int) -> Iterator[str]:
    """`about 12 min with 4 workers and 1.2M tokens, by the run of 2026-11-30`; more where that holds for some alone."""
    line = f"{about(seconds)} with {plural(workers, 'worker')}"
    if not tokens:
        line += ", tokens unknown"
    else:
        line += f" and {'at least ' if len(tokens) < known else ''}{in_words(round(sum(tokens)))} tokens"
    days = sorted(past.days)
    source = f"the run of {days[0]}" if len(days) == 1 else f"the runs of {days[0]} to {days[-1]}"
    if known == asked:
        yield f"{line}, by {source}"
        return
    yield f"{known:,} of them: {line}, as on {days[-1]}"
    yield f"{asked - known:,} never ran with this engine, so that is all that is known"
