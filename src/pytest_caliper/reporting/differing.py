"""What two runs do not share, in sentences: nothing here is a verdict, all of it may explain one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import planned
from pytest_caliper.reporting.foreign import loads_otherwise, writer
from pytest_caliper.reporting.text import one_line
from pytest_caliper.runs.digests import skills_digest
from pytest_caliper.runs.names import parse_timestamp
from pytest_caliper.runs.records import Run, RunMeta, SkillSnapshot, TaskResult

_NAMES = 4
"""Files, tasks or skills named in one sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Something to know before the numbers are believed."""

    kind: str
    """`same`, `order`, `spec`, `k`, `engine`, `cli`, `judge`, `judge_cli`, `judge_prompt`, `judge_votes`, `skill`, `version`,
    `customizations`, `replay`, `partial`, `interrupted`, `selection` or `unverified`."""
    text: str
    """One harmless line, without a final stop."""


def run_differences(before: Run, after: Run) -> tuple[Difference, ...]:
    """What is not the same in how two runs were made, the gravest first."""
    found = [
        *_told(_identity(before, after)),
        *meta_differences(before.meta, after.meta),
        *_told(_skills(before, after)),
        *_told(_states(before, after)),
    ]
    return tuple(found)


def task_changes(before: TaskResult, after: TaskResult, before_run: Run, after_run: Run) -> tuple[str, ...]:
    """What of a task is not the same: `prompt`, `expect`, `assert`, `setup or cleanup`. Empty where it is, or nobody can tell.

    The contract's hashes decide; where a file has none, the texts in both files do.
    """
    hashes = _task_hash(before, before_run), _task_hash(after, after_run)
    if None not in hashes and hashes[0] == hashes[1]:
        return ()
    if not (before.prompt and after.prompt):
        return ("task",) if None not in hashes else ()
    pairs = {"prompt": (before.prompt, after.prompt), "expect": (before.expect, after.expect)}
    pairs["assert"] = (before.assert_, after.assert_)
    changed = tuple(name for name, (one, other) in pairs.items() if one != other)
    if not changed and None not in hashes:
        return ("setup or cleanup",)
    return changed


def unverified(pairs: Sequence[tuple[TaskResult, TaskResult]], before: Run, after: Run) -> tuple[Difference, ...]:
    """A sentence when files do not tell whether the tasks, taken for the same, asked for the same."""
    unknown = [a for b, a in pairs if None in (_task_hash(b, before), _task_hash(a, after)) and not (b.prompt and a.prompt)]
    if not unknown:
        return ()
    text = f"whether prompts and checks are the same is not known for {_few(task.task_name for task in unknown)}"
    return (Difference(kind="unverified", text=one_line(text)),)


_Found = Iterator[tuple[str, str]]


def _told(found: _Found) -> Iterator[Difference]:
    return (Difference(kind=kind, text=one_line(text)) for kind, text in found)


def _identity(before: Run, after: Run) -> _Found:
    if (before.meta.id, before.meta.timestamp) == (after.meta.id, after.meta.timestamp):
        yield "same", "both are the same run"
    elif _moment(before) > _moment(after):
        yield "order", "the first run is the newer one: name the older one first to read changes in time"


def _moment(run: Run) -> datetime:
    return parse_timestamp(run.meta.timestamp)


def meta_differences(before: RunMeta, after: RunMeta) -> Iterator[Difference]:
    """What is not the same in spec, engine, judge and number of attempts: all that the heads of two run files tell."""
    yield from _told(_spec(before, after))
    yield from _told(_plain(before, after))


def _spec(b: RunMeta, a: RunMeta) -> _Found:
    if b.spec != a.spec:
        yield "spec", _differ("the specs differ", b.spec, a.spec)
        return
    if not _both_differ(b.contract.get("spec"), a.contract.get("spec")):
        return
    same = b.contract.get("tasks") == a.contract.get("tasks")
    where = "outside what its tasks ask for and judge by" if same else "in its tasks"
    yield "spec", f"the spec was edited between the runs, {where}"


def _plain(b: RunMeta, a: RunMeta) -> _Found:
    if b.k != a.k:
        yield "k", _differ("attempts per task differ", f"k={b.k}", f"k={a.k}")
    engines = _engine(b.backend, b.model), _engine(a.backend, a.model)
    if engines[0] != engines[1]:
        yield "engine", _differ("the engines differ", *engines)
    if _both_differ(b.cli_version, a.cli_version):
        yield "cli", _differ("the agent CLI's versions differ", b.cli_version, a.cli_version)
    judges = _engine(b.judge_backend, b.judge_model), _engine(a.judge_backend, a.judge_model)
    if judges[0] != judges[1]:
        yield "judge", _differ("the judges differ", *judges, none="none ran")
    elif _both_differ(b.judge_cli_version, a.judge_cli_version):
        yield "judge_cli", _differ("the judge CLI's versions differ", b.judge_cli_version, a.judge_cli_version)
    if _both_differ(b.judge_prompt_hash, a.judge_prompt_hash):
        yield "judge_prompt", "the judge was asked with another prompt"
    votes = _votes(b), _votes(a)
    if votes[0] != votes[1]:
        yield "judge_votes", _differ("the judge's votes per attempt differ", str(votes[0]), str(votes[1]))
    if writer(b) != writer(a):
        yield "version", _differ("written by different versions", writer(b), writer(a))
    if loads_otherwise(b, a):
        yield "version", "before caliper-eval 0.10 agents were given the skill, now they find it: the rates measure other things"


def _both_differ(before: str | None, after: str | None) -> bool:
    """What one file does not tell is not known to differ."""
    return None not in (before, after) and before != after


def _engine(backend: str | None, model: str | None) -> str | None:
    return backend if model is None or backend is None else f"{backend}:{model}"


def _votes(meta: RunMeta) -> int:
    votes = meta.contract.get("judge_votes", 1)
    return votes if isinstance(votes, int) else 1


def _differ(what: str, before: str | None, after: str | None, none: str = "unknown") -> str:
    return f"{what}: {none if before is None else before} → {none if after is None else after}"


def _skills(before: Run, after: Run) -> _Found:
    if skills_digest(before) == skills_digest(after):
        return
    one, other = ({skill.name: skill for skill in run.skills} for run in (before, after))
    if not one or not other:
        named = [_few(names) if names else "none" for names in (one, other)]
        yield "skill", _differ("the skills differ", *named)
        return
    told = [f"{name} only in the first run" for name in one if name not in other]
    told += [f"{name} only in the second run" for name in other if name not in one]
    told += [f"{name} ({_few(_file_changes(one[name], other[name]))})" for name in one if _changed(name, one, other)]
    yield "skill", f"the skill differs: {'; '.join(told)}" if told else "the skill differs"


def _changed(name: str, one: Mapping[str, SkillSnapshot], other: Mapping[str, SkillSnapshot]) -> bool:
    return name in other and bool(_file_changes(one[name], other[name]))


def _file_changes(before: SkillSnapshot, after: SkillSnapshot) -> list[str]:
    """`SKILL.md changed`, `a.md added`, `b.md gone`."""
    one, other = before.files, after.files
    found = [f"{path} changed" for path in one if path in other and one[path].get("hash") != other[path].get("hash")]
    found += [f"{path} added" for path in other if path not in one]
    return found + [f"{path} gone" for path in one if path not in other]


def _states(before: Run, after: Run) -> _Found:
    sides = (("the first run", before), ("the second run", after))
    for which, run in sides:
        if run.meta.interrupted:
            results = (*run.results, *(run.baseline_results or ()))
            ran, asked = sum(len(r.attempts) for r in results), sum(map(planned, results))
            yield "interrupted", f"{which} was interrupted: {ran:,} of {asked:,} planned attempts ran"
        if run.meta.partial:
            yield "partial", f"{which} is partial: attempts of its tasks were left out"
        if run.meta.selected_tasks is not None:
            yield "selection", f"{which} ran only {numbers.plural(len(run.meta.selected_tasks), 'selected task')}"
        if run.meta.replay:
            yield "replay", f"{which} was replayed from cassettes: no agent and no judge ran"
    if before.meta.user_customizations != after.meta.user_customizations:
        which = sides[1 if after.meta.user_customizations else 0][0]
        yield "customizations", f"only {which} loaded the user's own skills, memories and settings"


def _task_hash(result: TaskResult, run: Run) -> str | None:
    hashes = run.meta.contract.get("tasks")
    known = hashes.get(result.task_id) if isinstance(hashes, Mapping) else None
    return known if isinstance(known, str) else None


def _few(names: Iterable[str]) -> str:
    """At most `_NAMES` of them, and how many more there are."""
    every = list(names)
    more = len(every) - _NAMES
    return ", ".join(every[:_NAMES]) + (f" and {more} more" if more > 0 else "")
