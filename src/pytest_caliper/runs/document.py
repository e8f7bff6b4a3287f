"""The JSON of a run file, piece by piece: a superset of caliper-eval 0.9's.

`successes`, `usable`, `unusable`, `score`, `pass_at_k`, `pass_hat_k`, `passed`, `cheated` and `aggregate` follow from the facts
beside them. They are written for 0.9's reader, which requires them, and never read back; nor is a bar's `verdict`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pytest_caliper.runs.records import AttemptRecord, RunMeta, SkillSnapshot, TaskResult
from pytest_caliper.scoring import judge_bar, pass_at_k, pass_hat_k, success_rate, suite_rate

SCHEMA_VERSION = 1

_PRIVATE = ("key", "started", "transcript_path", "transcript_truncated")
"""Fields of a record that are not written, or (the last) not where the others are."""


def meta_json(meta: RunMeta) -> dict[str, Any]:
    """`run` of the file."""
    data = _without_foreign(asdict(meta))
    if meta.baseline_from is not None:
        data["baseline"] = meta.baseline_from.id
    return data


def _without_foreign(data: dict[str, Any]) -> dict[str, Any]:
    """Runs of ours have nothing foreign."""
    if not data.get("foreign"):
        data.pop("foreign", None)
    return data


def snapshot_json(skill: SkillSnapshot) -> dict[str, Any]:
    """One entry of `skill_snapshots`."""
    return {
        "name": skill.name,
        "path": skill.path,
        "kind": skill.kind,
        "git_repo": skill.git_repo,
        "git_sha": skill.git_sha,
        "files": {path: dict(entry) for path, entry in skill.files.items()},
    }


def first_snapshot_json(skills: tuple[SkillSnapshot, ...]) -> dict[str, Any]:
    """`skill_snapshot`, which 0.9 requires: the first skill, or an empty one."""
    if not skills:
        return {"path": "", "git_repo": None, "git_sha": None, "files": {}}
    return snapshot_json(skills[0])


def task_json(task: TaskResult) -> dict[str, Any]:
    """One entry of `task_results`, without its attempts."""
    return {
        "task_id": task.task_id,
        "task_name": task.task_name,
        "prompt": task.prompt,
        "expect": task.expect,
        "assert": task.assert_,
        "planned": task.planned,
        "aborted": task.aborted,
        "successes": task.successes,
        "unusable": task.unusable,
        "usable": task.usable,
        "score": success_rate(task.successes, task.usable),
        "pass_at_k": pass_at_k(task.successes, task.usable),
        "pass_hat_k": pass_hat_k(task.successes, task.usable),
        "bar": bar_json(task),
    }


def bar_json(task: TaskResult) -> dict[str, Any] | None:
    """`bar` of a task: what was asked, and the verdict, which is never read back."""
    if task.bar is None:
        return None
    planned = max(task.planned, len(task.attempts))
    bar = task.bar
    verdict = judge_bar(task.successes, task.usable, planned, bar.rate, bar.policy, min_coverage=bar.min_coverage)
    return {
        "rate": str(task.bar.rate),
        "policy": task.bar.policy,
        "min_coverage": str(task.bar.min_coverage),
        "verdict": verdict.word,
        "reached": verdict.reached,
    }


def attempt_json(record: AttemptRecord) -> dict[str, Any]:
    """One entry of `attempts`, without its transcript and `transcript_truncated`."""
    facts = {name: value for name, value in _without_foreign(record.to_json()).items() if name not in _PRIVATE}
    return {
        "attempt": record.key.attempt,
        "arm": record.key.arm,
        "passed": record.outcome == "pass",
        "cheated": record.outcome == "cheat",
        **facts,
    }


def aggregate_json(results: Iterable[TaskResult]) -> dict[str, Any]:
    """`aggregate`: 0.9 wants a number even where nothing was measured; 0.10 then looks at `scored_tasks`."""
    tasks = tuple(results)
    rate = suite_rate([(task.successes, task.usable) for task in tasks])
    return {
        "avg_score": 0.0 if rate is None else rate.rate,
        "scored_tasks": sum(task.usable > 0 for task in tasks),
        "per_task": [_per_task(task) for task in tasks],
    }


def _per_task(task: TaskResult) -> Mapping[str, Any]:
    return {
        "task_id": task.task_id,
        "task_name": task.task_name,
        "k": task.planned,
        "successes": task.successes,
        "score": success_rate(task.successes, task.usable),
    }
