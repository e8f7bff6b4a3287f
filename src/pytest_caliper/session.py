"""The controller: gathers the records of a session, keeps each as it ends, gates, saves. Only one process has one."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_caliper import __version__
from pytest_caliper.attempt.redaction import Redactor
from pytest_caliper.contracts import Engine, Skill
from pytest_caliper.judging.autorater import judge_prompt_hash
from pytest_caliper.runs.journal import Journal
from pytest_caliper.runs.place import path_in
from pytest_caliper.runs.records import Arm, AttemptKey, AttemptRecord, Run, RunMeta, SkillSnapshot, TaskResult
from pytest_caliper.runs.store import save_run, write_copy
from pytest_caliper.spec.model import Task

if TYPE_CHECKING:
    from pytest_caliper.options import Settings
    from pytest_caliper.running.planning import SessionId, SpecPlan


@dataclass(kw_only=True, slots=True)
class _SpecRun:
    """What is gathered for one spec."""

    plan: SpecPlan
    engine: Engine
    judge: Engine
    expected: tuple[AttemptKey, ...]
    journal: Journal | None = None


@dataclass(kw_only=True)
class Session:
    """Records, journals, run files and gates of one pytest session."""

    config: pytest.Config
    settings: Settings
    session_id: SessionId
    runs: list[Run] = field(default_factory=list)
    """Filled by `finish`, in the order of the specs."""
    problems: list[str] = field(default_factory=list)
    """Sentences, each of which makes the session fail."""
    notes: list[str] = field(default_factory=list)
    """Sentences that only inform."""

    def __init__(self, config: pytest.Config, settings: Settings, session_id: SessionId) -> None:
        self.config, self.settings, self.session_id = config, settings, session_id
        self.runs, self.problems, self.notes = [], [], []
        self._specs: dict[str, _SpecRun] = {}
        self._records: dict[AttemptKey, AttemptRecord] = {}
        self._reported: set[AttemptKey] = set()
        self._expected: set[AttemptKey] = set()
        self._lock = threading.Lock()
        self._finished = False

    def expect(self, plans: Mapping[SpecPlan, tuple[Engine, Engine]], keys: Iterable[AttemptKey]) -> None:
        """Say what will run: `keys` are the selected attempts, `plans` their specs. Opens the journals.

        Raises pytest.UsageError, with no journal left, when results cannot be kept: nobody should pay for what is lost.
        """
        wanted = list(keys)
        lost: list[str] = []
        for plan, (engine, judge) in plans.items():
            path = str(plan.spec.path)
            run = _SpecRun(plan=plan, engine=engine, judge=judge, expected=tuple(k for k in wanted if k.spec == path))
            self._specs[path] = run
            if not run.expected:
                continue
            try:
                run.journal = Journal.create(plan.results, self.session_id.run_name(plan.spec.path), self._contract(run))
            except OSError as error:
                lost.append(
                    f"{self._shown(plan.spec.path)}: results cannot be kept in {plan.results} ({error.strerror or error}): "
                    "make it writable, or name another place with --caliper-results"
                )
        if lost:
            for run in self._specs.values():
                if run.journal is not None:
                    run.journal.discard()
            self._specs.clear()
            raise pytest.UsageError("\n".join(lost))
        self._expected.update(wanted)

    @property
    def expected(self) -> int:
        """How many attempts were selected."""
        return sum(len(run.expected) for run in self._specs.values())

    def finished(self, record: AttemptRecord) -> bool:
        """Keep a record the moment it exists; any thread. The first record of a key wins. -> whether this was the first."""
        with self._lock:
            if record.key in self._records:
                return False
            self._records[record.key] = record
            run = self._specs.get(record.key.spec)
            if run is not None and run.journal is not None:
                try:
                    run.journal.append(record)
                except OSError as error:
                    run.journal = None
                    self.problems.append(f"{self._shown(run.plan.spec.path)}: the journal cannot be written: {error}")
            return True

    def reported(self, record: AttemptRecord) -> None:
        """pytest reported the attempt; main thread. Calls the hook `pytest_caliper_record` once per attempt."""
        self.finished(record)
        if record.key in self._reported:
            return
        self._reported.add(record.key)
        if record.key not in self._expected:
            self.problems.append(
                f"{self._shown(Path(record.key.spec))}: an attempt that nobody had announced ran "
                f"({record.task_name}, {record.key.arm} {record.key.attempt}); it is in no run file"
            )
        self.config.hook.pytest_caliper_record(config=self.config, record=self._records[record.key])

    def finish(self) -> None:
        """Build and save the runs, and find what must not be green. Doing it again changes nothing."""
        if self._finished:
            return
        self._finished = True
        for run in self._specs.values():
            if run.expected:
                self._finish_spec(run)

    def _finish_spec(self, run: _SpecRun) -> None:
        records = {key: self._records[key] for key in run.expected if key in self._records}
        shown = self._shown(run.plan.spec.path)
        missing = [key for key in run.expected if key not in self._reported]
        if missing:
            names = ", ".join(dict.fromkeys(_attempt_name(run.plan, key) for key in missing[:3]))
            more = ", …" if len(missing) > 3 else ""
            kept = sum(key in records for key in missing)
            ended = f"; {kept} of them had ended and are kept" if kept else ""
            self.problems.append(f"{shown}: {len(missing)} of {len(run.expected)} attempts never reported ({names}{more}){ended}")
        result = self._build(run, records, interrupted=bool(missing))
        self._find_empty_arms(shown, run, result)
        self.runs.append(self._save(run, result, shown))

    def _find_empty_arms(self, shown: str, run: _SpecRun, result: Run) -> None:
        never = {(key.task_id, key.arm) for key in run.expected if key not in self._reported}
        for arm in (*result.results, *(result.baseline_results or ())):
            if arm.attempts and not arm.usable and (arm.task_id, arm.arm) not in never:
                who = "no attempt" if arm.arm == "skill" else "no baseline attempt"
                reason = arm.attempts[-1].reason or arm.attempts[-1].outcome
                self.problems.append(f"{shown}: {arm.task_name}: {who} was usable, so nothing was measured ({reason})")

    def _save(self, run: _SpecRun, result: Run, shown: str) -> Run:
        """Write the run file and drop the journal it replaces; a run that cannot be saved is shown all the same."""
        try:
            path = save_run(result, run.plan.results)
        except OSError as error:
            left = "" if run.journal is None else f"; what had ended is in {run.journal.path}"
            self.problems.append(f"{shown}: the run could not be saved in {run.plan.results}: {error}{left}")
            return result
        if run.journal is not None:
            run.journal.close()
            if not result.meta.interrupted:
                run.journal.discard()
        if not result.meta.interrupted:
            shutil.rmtree(run.plan.transcripts(self.session_id), ignore_errors=True)  # streamed into the run file by now
        if self.settings.output is not None:
            try:
                write_copy(path, self.settings.output)
            except OSError as error:
                self.problems.append(f"{shown}: --caliper-output {self.settings.output}: {error}")
        return replace(result, saved=_relative(path, self.config.invocation_params.dir))

    def _build(self, run: _SpecRun, records: Mapping[AttemptKey, AttemptRecord], *, interrupted: bool) -> Run:
        plan = run.plan
        whole = {(key.task_id, key.arm): 0 for task in plan.spec.tasks for key in plan.keys(task)}
        for key in run.expected:
            whole[(key.task_id, key.arm)] += 1
        selected = [task for task in plan.spec.tasks if any(whole[(task.task_id, arm)] for arm in plan.arms)]
        partial = any(whole[(task.task_id, arm)] != self.settings.k for task in selected for arm in plan.arms)

        redactor = Redactor.from_environment(dict(os.environ), (), {plan.project: "$PROJECT"})

        def results(arm: Arm) -> tuple[TaskResult, ...]:
            return tuple(_task_result(plan, task, arm, whole[(task.task_id, arm)], records, redactor) for task in selected)

        baseline = results("baseline") if "baseline" in plan.arms else None
        used = list(records.values())
        judged = [record for record in used if record.autorater_passed is not None or record.durations.judge is not None]
        meta = RunMeta(
            id=self.session_id.run_id(plan.spec.path),
            spec=path_in(plan.project, plan.spec.path),
            timestamp=_iso(self.session_id.stamp),
            k=self.settings.k,
            backend=run.engine.backend,
            model=_only(record.model for record in used) or run.engine.model,
            judge_backend=run.judge.backend if judged else None,
            judge_model=(_only(record.judge_model for record in judged) or run.judge.model) if judged else None,
            pytest_caliper=__version__,
            workers=self.settings.workers,
            baseline=baseline is not None,
            interrupted=interrupted,
            selected_tasks=None if len(selected) == len(plan.spec.tasks) else tuple(task.name for task in selected),
            partial=partial,
            user_customizations=self.settings.user_customizations,
            replay=self.settings.replay,
            cli_version=_only(record.cli_version for record in used),
            judge_cli_version=_only(record.judge_cli_version for record in judged),
            judge_prompt_hash=judge_prompt_hash() if judged else None,
            contract=self._contract(run),
        )
        return Run(
            meta=meta,
            results=results("skill"),
            baseline_results=baseline,
            skills=tuple(_redacted(skill.snapshot, redactor) for skill in plan.skills),
        )

    def _contract(self, run: _SpecRun) -> dict[str, object]:
        """What a later session must share to continue or compare: hashes and names, nothing private."""
        return {
            "spec": run.plan.spec.digest,
            "tasks": {task.task_id: task_hash(task) for task in run.plan.spec.tasks},
            "skill": skill_hash(run.plan.skills),
            "engine": str(run.engine),
            "judge": str(run.judge),
            "judge_votes": self.settings.judge_votes,
            "k": self.settings.k,
            "user_customizations": self.settings.user_customizations,
            "baseline": "baseline" in run.plan.arms,
        }

    def _shown(self, path: Path) -> str:
        return _relative(path, self.config.rootpath)


def task_hash(task: Task) -> str:
    """`sha256:` over everything that a task asks for and judges by."""
    source = task.assertion.source if task.assertion else None
    parts = (task.name, task.prompt, task.expect, source, task.setup, task.cleanup)
    return "sha256:" + hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def skill_hash(skills: Sequence[Skill]) -> str | None:
    """`sha256:` over the names and files of the installed skills; None for the bare agent."""
    if not skills:
        return None
    text = "\n\n".join(skill.snapshot.digest_source for skill in skills)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _redacted(snapshot: SkillSnapshot, redactor: Redactor) -> SkillSnapshot:
    """A skill's files as they may be written: a key that somebody left in one of them goes no further."""
    files = {
        name: {**entry, "content": redactor.redact(entry["content"])} if "content" in entry else dict(entry)
        for name, entry in snapshot.files.items()
    }
    return replace(snapshot, files=files)


def _task_result(
    plan: SpecPlan,
    task: Task,
    arm: Arm,
    planned: int,
    records: Mapping[AttemptKey, AttemptRecord],
    redactor: Redactor,
) -> TaskResult:
    attempts = [records[key] for key in plan.keys(task) if key.arm == arm and key in records]
    return TaskResult(
        task_id=task.task_id,
        task_name=redactor.redact(task.name),
        arm=arm,
        planned=planned,
        attempts=tuple(attempts),
        prompt=redactor.redact(task.prompt),
        expect=None if task.expect is None else redactor.redact(task.expect),
        assert_=None if task.assertion is None else redactor.redact(task.assertion.source),
    )


def _only(values: Iterable[str | None]) -> str | None:
    """The one value that all share, unknown ones left out; None when they differ or none is known."""
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None


def _attempt_name(plan: SpecPlan, key: AttemptKey) -> str:
    name = next(task.name for task in plan.spec.tasks if task.task_id == key.task_id)
    return f"{' '.join(name.split())} {'attempt' if key.arm == 'skill' else 'baseline'}-{key.attempt}"


def _relative(path: Path, base: Path) -> str:
    """`path` below `base`, else as it is; forward slashes."""
    try:
        return path.relative_to(base).as_posix()
    except ValueError:
        return str(path)


def _iso(stamp: str) -> str:
    """`2026-01-02T03-04-05Z` as ISO 8601."""
    day, _, clock = stamp.rstrip("Z").partition("T")
    return f"{day}T{clock.replace('-', ':')}+00:00"
