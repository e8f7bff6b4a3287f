"""Run files of caliper-eval 0.1 to 0.21 in the shape that `reading` knows.

Facts only: whatever follows from them is counted anew. What such a file tells and a run of ours does not have is kept under its
own name in `foreign`. What changed between its versions:

- before 0.4: `passed` and `cheated`, no `outcome`; a CLI's failure stands in `assert_evidence`
- 0.4: outcomes; the baseline arm is a score without attempts (`baseline`, `delta`), until 0.8 keeps `baseline_task_results`
- 0.10: `skill_snapshots`, `run.era`, `run.ablated` (a run without some skills instead of a baseline arm), `activated`, and the
  outcome `not_checked` of tasks that only ask which skills are used
- later: `run.interrupted`, `judge_seconds`, `retries`, `hook_failures`, the CLIs' versions, `prompt` and `expect`
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from pytest_caliper.runs.records import AttemptRecord, RunMeta

_REASON_CHARS = 300
_MADE_ANEW = frozenset(
    {
        *("passed", "cheated", "score", "pass_at_k", "pass_hat_k", "successes", "usable", "unusable"),
        *("activation_usable", "activation_successes", "activation_score", "attempts", "transcript"),
    }
)
"""Follows from facts, or is carried elsewhere."""
_TASK_FIELDS = frozenset({"task_id", "task_name", "prompt", "expect"})
_WHOLE_RUN = ("baseline", "delta")
"""What 0.4 kept of a baseline arm."""
_VERDICTS = frozenset({"pass", "task_fail", "judge_error"})
"""Outcomes of an attempt that a check was made of, or tried."""


def as_ours(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document without `schema_version` in our shape. What has the wrong type stays as it is, for the reader to name."""
    out = dict(data)
    run = data.get("run")
    if isinstance(run, dict):
        out["run"] = {**run, "foreign": _foreign_run(data, run)}
    k = run.get("k") if isinstance(run, dict) else None
    for name in ("task_results", "baseline_task_results"):
        if isinstance(data.get(name), list):
            out[name] = [_task(task, k) for task in data[name]]
    if _are_objects(data.get("skill_snapshots")):
        out["skill_snapshots"] = [_snapshot(skill) for skill in data["skill_snapshots"]]
    elif isinstance(data.get("skill_snapshot"), dict):
        out["skill_snapshot"] = _snapshot(data["skill_snapshot"])
    return out


def writer(data: Mapping[str, Any]) -> str:
    """Which versions of caliper-eval write a document like this one, for people."""
    aggregate = data.get("aggregate")
    if "skill_snapshots" in data:
        return "caliper-eval 0.10 or later"
    if not isinstance(aggregate, dict) or "avg_pass_at_k" not in aggregate:
        return "caliper-eval 0.8 or 0.9"
    tasks = data.get("task_results")
    attempts = (
        [attempt for task in tasks for attempt in task.get("attempts") or ()]
        if isinstance(tasks, list) and _are_objects(tasks)
        else []
    )
    old = any(isinstance(attempt, dict) and "outcome" not in attempt for attempt in attempts)
    return "caliper-eval before 0.4" if old else "caliper-eval 0.4 to 0.7"


def _snapshot(skill: dict[str, Any]) -> dict[str, Any]:
    out = dict(skill)
    path, files = skill.get("path"), skill.get("files")
    if isinstance(path, str) and path.lower().endswith(".md") and PurePath(path).name != "SKILL.md":
        out.update(kind="command", name=skill.get("name") or PurePath(path).stem)
    if isinstance(files, dict) and all(isinstance(file, dict) for file in files.values()):
        # 0.18 and later: null for what is no text
        out["files"] = {name: {**file, "content": file.get("content") or ""} for name, file in files.items()}
    return out


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _foreign_run(data: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in run.items() if name not in RunMeta.__dataclass_fields__ and _tells(value)}
    found.update({name: data[name] for name in _WHOLE_RUN if _tells(data.get(name))})
    return {"written_by": writer(data), **found}


def _tells(value: Any) -> bool:
    return value is not None and value not in ([], {})


def _task(task: Any, k: Any) -> Any:
    if not isinstance(task, dict) or not _are_objects(task.get("attempts")):
        return task
    attempts = [_attempt(entry) for entry in task["attempts"]]
    words = {entry["outcome"] for entry in attempts if isinstance(entry.get("outcome"), str)}
    # A task of which nothing but the use of skills was asked: a time-out of it is no lost verdict either.
    only_asked_for_skills = "not_checked" in words and not words & _VERDICTS
    checked: list[Any] = []
    unchecked: list[Any] = []
    for entry in attempts:
        outcome = entry.get("outcome")
        asked = outcome == "cheat" if only_asked_for_skills else outcome != "not_checked"
        (checked if asked else unchecked).append(entry)
    more = {name: value for name, value in task.items() if name not in _TASK_FIELDS | _MADE_ANEW and _tells(value)}
    out = {**task, "attempts": checked, "not_checked": unchecked, "foreign": more}
    if isinstance(k, int):
        out["planned"] = len(checked) if only_asked_for_skills else max(0, k - len(unchecked))
    return out


def _attempt(entry: dict[str, Any]) -> dict[str, Any]:
    known = {*AttemptRecord.__dataclass_fields__, *_MADE_ANEW, "attempt", "activated", "judge_seconds"}
    out = {**entry, "foreign": {name: value for name, value in entry.items() if name not in known and _tells(value)}}
    if "outcome" not in entry and "passed" in entry:
        out["outcome"] = _outcome(entry)
    out["durations"] = {"agent": entry.get("duration_seconds"), "judge": entry.get("judge_seconds")}
    if isinstance(entry.get("activated"), list):
        out["skills_used"] = entry["activated"]
    out["reason"] = _reason(out)
    return out


def _outcome(entry: Mapping[str, Any]) -> str:
    """The outcome of an attempt from before 0.4, which wrote the failure of a CLI down as that of an assert."""
    if entry.get("cheated"):
        return "cheat"
    if entry["passed"]:
        return "pass"
    evidence = entry.get("assert_evidence")
    if isinstance(evidence, str) and entry.get("autorater_passed") is None:
        if evidence == "timeout":
            return "timeout"
        if evidence.startswith("harness exited "):
            return "infra_error"
    return "task_fail"


def _reason(entry: Mapping[str, Any]) -> str | None:
    """One line that tells why, from what the file has; None for a pass and where it says nothing."""
    outcome = entry.get("outcome")
    told: Any = None
    if outcome == "timeout":
        seconds = entry.get("duration_seconds")
        told = f"stopped after {seconds:.0f} s" if isinstance(seconds, (int, float)) else None
    elif outcome == "cheat":
        told = next(iter(entry.get("cheat_evidence") or ()), None)
    elif outcome == "infra_error":
        told = entry.get("assert_evidence") or entry.get("output") or None
    elif outcome in {"task_fail", "judge_error"}:
        of_assert, of_judge = entry.get("assert_evidence"), entry.get("autorater_reasoning")
        failed = entry.get("assert_passed") is False
        told = of_assert if failed else of_judge or of_assert
    if not isinstance(told, str) or not told.strip():
        return None
    # Of a traceback its last line says it.
    return " ".join((told.strip().splitlines()[-1] if told.startswith("Traceback ") else told).split())[:_REASON_CHARS]
