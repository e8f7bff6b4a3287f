"""What a trial found wrong with a task's checks, with the place and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_caliper.checking.kinds import Kind
from pytest_caliper.runs.records import AttemptRecord
from pytest_caliper.spec.model import Task

Fault = Literal["vacuous", "crashing", "unsatisfiable", "judge_error", "setup", "solution", "cleanup", "infra_error"]

_IMPORTS = ("ModuleNotFoundError", "ImportError")
_MAX_SAID = 200
"""Characters of somebody else's words within a message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that is wrong. Already redacted."""

    fault: Fault
    path: str
    """Absolute path of the spec, or of the script that an `assert:` names."""
    line: int
    """1-based line in it."""
    message: str
    """One line: what is wrong and what to do."""
    detail: str = ""
    """Values, output or the judge's reasons: any number of lines, empty where there are none."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        return cls(**data)


def findings_of(kind: Kind, task: Task, spec: Path, record: AttemptRecord, *, said: str = "") -> tuple[Finding, ...]:
    """What is wrong with `task` (of the file `spec`) by what a trial came to; nothing where all is as it must be.

    `said` is what a hook that failed had printed.
    """
    return (*_of_outcome(kind, task, spec, record, said), *_of_cleanup(task, spec, record, said))


def _of_outcome(kind: Kind, task: Task, spec: Path, record: AttemptRecord, said: str) -> Iterator[Finding]:
    if record.outcome in ("infra_error", "timeout", "cheat"):
        yield _of_hook(task, spec, record.reason or record.outcome, said)
    elif kind == "judge-says-no":
        yield from _of_judge(task, spec, record)
    elif record.outcome == "judge_error":
        yield _crashing(kind, task, spec, record)
    elif kind == "assert-fails" and record.outcome == "pass":
        what = "this assert passes although nothing was done: assert what the finished task alone has, a file or `attempt.answer`"
        yield _at_assert(task, spec, None, "vacuous", what)
    elif kind == "solution-passes" and record.outcome == "task_fail":
        evidence = record.assert_evidence or ""
        line, words = _told(task, evidence, record.reason or "failed")
        words = re.sub(r"^AssertionError:?\s*", "", words) or "it failed"
        what = f"this assert fails on the task's own solution ({words}): fix the assert or the solution"
        yield _at_assert(task, spec, line, "unsatisfiable", what, evidence)


def _of_judge(task: Task, spec: Path, record: AttemptRecord) -> Iterator[Finding]:
    line = _line(task, "expect")
    if record.outcome == "pass":
        what = "the judge says yes although there is neither a transcript nor an answer: say in `expect` what must be there"
        detail = record.autorater_reasoning or ""
        yield Finding(fault="vacuous", path=str(spec), line=line, message=what, detail=detail)
    elif record.outcome == "judge_error":
        remedy = record.fatal or "try again, or name another with --caliper-judge-model"
        what = f"{_short(record.reason or 'there is no verdict')} (asked about an empty attempt): {_short(remedy)}"
        yield Finding(fault="judge_error", path=str(spec), line=line, message=what)


def _crashing(kind: Kind, task: Task, spec: Path, record: AttemptRecord) -> Finding:
    evidence = record.assert_evidence or ""
    line, words = _told(task, evidence, record.reason or "no verdict")
    when = "on the task's own solution" if kind == "solution-passes" else "when nothing was done"
    if not evidence:  # a judge of somebody's own
        return _at_assert(task, spec, None, "crashing", f"there is no verdict {when} ({words}): fix the judge")
    if words.partition(":")[0] in _IMPORTS:
        remedy = "install the module where pytest runs, or fix the import"
    elif kind == "solution-passes":
        remedy = "fix the assert or the solution"
    else:
        remedy = "that is no verdict instead of a failure, so look first with `assert`, as in `assert Path(…).exists()`"
    return _at_assert(task, spec, line, "crashing", f"this assert ends in {words} {when}: {remedy}", evidence)


def _of_hook(task: Task, spec: Path, reason: str, said: str) -> Finding:
    """`reason` begins with the name of the hook that failed, where one did."""
    word = reason.partition(" ")[0]
    if word == "setup":
        what = f"`setup` {_short(reason.removeprefix('setup '))}, which makes every attempt an infra_error: fix the command"
        return Finding(fault="setup", path=str(spec), line=_line(task, "setup"), message=what, detail=said)
    if word == "solution":
        what = f"`solution` {_short(reason.removeprefix('solution '))}: fix the command"
        return Finding(fault="solution", path=str(spec), line=_line(task, "solution"), message=what, detail=said)
    what = f"the check could not be tried ({_short(reason)}): try again"
    return Finding(fault="infra_error", path=str(spec), line=task.line + 1, message=what, detail=said)


def _of_cleanup(task: Task, spec: Path, record: AttemptRecord, said: str) -> Iterator[Finding]:
    if record.cleanup_error is not None:
        what = f"`cleanup` {_short(record.cleanup_error.removeprefix('cleanup '))}: fix the command"
        line = _line(task, "cleanup")
        detail = said if record.outcome != "infra_error" else ""
        yield Finding(fault="cleanup", path=str(spec), line=line, message=what, detail=detail)


def _at_assert(task: Task, spec: Path, line: int | None, fault: Fault, message: str, detail: str = "") -> Finding:
    """A finding at a line of the assert, the first one unless another is told."""
    if task.assertion is None:
        return Finding(fault=fault, path=str(spec), line=task.line + 1, message=message, detail=detail)
    first = task.assertion.line + 1
    return Finding(fault=fault, path=str(task.assertion.path), line=line or first, message=message, detail=detail)


def _told(task: Task, evidence: str, otherwise: str) -> tuple[int | None, str]:
    """(line, words) of an assert's evidence, whose first line is `file:line: words`; the line is one of the assert's own file."""
    first = evidence.partition("\n")[0]
    if task.assertion is not None and first:
        name = re.escape(task.assertion.path.name)
        if found := re.match(rf"(?:.*/)?{name}(?::(\d+))?: ?(.*)", first):
            return (int(found[1]) if found[1] else None), _short(found[2])
    return None, _short(first or otherwise)


def _line(task: Task, key: str) -> int:
    return task.lines.get(key, task.line + 1)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_SAID else f"{flat[: _MAX_SAID - 1]}…"
