"""The controller: gathers the records of a session, keeps each as it ends, gates, saves. Only one process has one."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_caliper import __version__
from pytest_caliper.attempt.redaction import Redactor
from pytest_caliper.contracts import Engine, Skill
from pytest_caliper.gates import NoRegression, thin_coverage, unjudged
from pytest_caliper.judging.autorater import judge_prompt_hash
from pytest_caliper.running.baselines import bring, contradiction
from pytest_caliper.running.resuming import bring_transcripts, differences, unfinished_runs
from pytest_caliper.runs.digests import surroundings_hash, task_hash
from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.journal import Journal
from pytest_caliper.runs.place import path_in
from pytest_caliper.runs.records import Arm, AttemptKey, AttemptRecord, Run, RunMeta, SkillSnapshot, TaskResult
from pytest_caliper.runs.store import save_run, write_copy
from pytest_caliper.spec.env_refs import references
from pytest_caliper.spec.model import SpecError, Task
from pytest_caliper.state import state_of
from pytest_caliper.terminal import say
from pytest_caliper.testing.planning import FilePlan

if TYPE_CHECKING:
    from pytest_caliper.options import Settings
    from pytest_caliper.running.baselines import Reused
    from pytest_caliper.running.planning import SessionId, SpecPlan
    from pytest_caliper.running.resuming import Resuming, Unfinished
    from pytest_caliper.running.stopping import Stopping


@dataclass(kw_only=True, slots=True)
class _SpecRun:
    """What is gathered for one spec."""

    plan: SpecPlan
    engine: Engine
    judge: Engine
    expected: tuple[AttemptKey, ...]
    reused: Reused | None = None
    """The baseline arm that was taken from a saved run."""
    bare: Mapping[str, TaskResult] = field(default_factory=dict)
    """Task id -> its attempts in that arm, with transcripts as side files."""
    unfinished: Unfinished | None = None
    """The run of an earlier session that this one goes on with."""
    journal: Journal | None = None
    places: dict[AttemptKey, int] = field(default_factory=dict)
    """Where in the journal the records are that were made in this session."""
    unkept: list[AttemptRecord] = field(default_factory=list)
    """Records that the journal did not take yet."""


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

    def __init__(self, config: pytest.Config, settings: Settings, session_id: SessionId, stopping: Stopping) -> None:
        self.stopping = stopping
        self.config, self.settings, self.session_id = config, settings, session_id
        self.runs, self.problems, self.notes = [], [], []
        self._specs: dict[str, _SpecRun] = {}
        self._records: dict[AttemptKey, AttemptRecord] = {}
        self._reported: set[AttemptKey] = set()
        self._expected: set[AttemptKey] = set()
        self._lock = threading.Lock()
        self._finished = False
        self.no_regression: NoRegression | None = None
        self._skill_keys: dict[tuple[str, str], list[AttemptKey]] = {}
        self._alarms: list[str] = []
        self._refused: dict[AttemptKey, str] = {}

    def expect(
        self,
        plans: Mapping[SpecPlan, tuple[Engine, Engine]],
        keys: Iterable[AttemptKey],
        resuming: Resuming | None = None,
    ) -> None:
        """Say what will run: `keys` are the selected attempts without those that `resuming` knows, `plans` their specs.

        Raises pytest.UsageError when a run cannot be continued, naming what is different now, or one to compare with not read.
        """
        wanted = list(keys)
        refused: list[str] = []
        if self.settings.no_regression is not None:  # first: it may be no run, and then nothing has begun
            self.no_regression = NoRegression(self.settings.no_regression, plans)
            self.notes += self.no_regression.damaged
        for plan, (engine, judge) in plans.items():
            path = str(plan.spec.path)
            unfinished = None if resuming is None else resuming.find(plan)
            known = () if unfinished is None else tuple(unfinished.records)
            expected = (*known, *(key for key in wanted if key.spec == path))
            reused = state_of(self.config).reused(plan)
            run = _SpecRun(plan=plan, engine=engine, judge=judge, expected=expected, unfinished=unfinished, reused=reused)
            self._specs[path] = run
            if unfinished is not None:
                refused += [
                    f"{self._shown(plan.spec.path)}: {unfinished.source.name} cannot be resumed: {difference}"
                    for difference in differences(unfinished, self._contract(run), expected, plan)
                ]
        if refused:
            self._specs.clear()
            raise pytest.UsageError("\n".join([*refused, "leave --caliper-resume out to start a new run"]))
        self._expected.update(key for run in self._specs.values() for key in run.expected)

    def forget(self) -> None:
        """Expect nothing any more."""
        self._specs.clear()
        self._expected.clear()

    def open(self) -> None:
        """Begin what is kept of each run, so that nothing that ends is lost. What cannot be kept is told at once."""
        for run in self._specs.values():
            if not run.expected:
                continue
            shown = self._shown(run.plan.spec.path)
            if run.reused is not None:
                run.bare = bring(run.reused, run.plan, run.plan.transcripts(self.session_id))
            if run.unfinished is not None:
                self._continue(run, run.unfinished, shown)
                continue
            left = next(unfinished_runs(run.plan.results), None)
            if left is not None:
                self.notes.append(f"{shown}: {left.name} is a run that did not end; --caliper-resume goes on with it")
            try:
                run.journal = self._new_journal(run)
            except OSError as error:
                self._cannot_keep(run, error)

    def _continue(self, run: _SpecRun, unfinished: Unfinished, shown: str) -> None:
        """Take the records that are known, and the journal that holds them, or begin one that does."""
        header = self._header(run)
        known = unfinished.records
        if unfinished.journal is None:
            known = bring_transcripts(unfinished, run.plan.transcripts(self.session_id))
        self._records.update(known)
        self.notes.append(f"{shown}: {len(known)} of {len(run.expected)} attempts are those of {unfinished.source.name}")
        run.journal = unfinished.journal
        try:
            if run.journal is None:
                run.journal = self._new_journal(run)
                for record in known.values():
                    run.journal.append(record)
            elif (unfinished.contract, unfinished.planned) != (header["contract"], frozenset(run.expected)):
                run.journal.begin(header)
        except OSError as error:
            self._cannot_keep(run, error)

    def known(self) -> Iterator[tuple[SpecPlan, list[AttemptRecord]]]:
        """The attempts of earlier sessions that these runs go on from, in the order of their ends."""
        for run in self._specs.values():
            if run.unfinished is not None:
                yield run.plan, [self._records[key] for key in run.unfinished.records]

    def with_the_skill(self, spec: str, task_id: str) -> tuple[list[AttemptKey], list[AttemptRecord]]:
        """The selected attempts of a task with the skill, and the records of those that have one."""
        if not self._skill_keys:
            for key in (key for run in self._specs.values() for key in run.expected if key.arm == "skill"):
                self._skill_keys.setdefault((key.spec, key.task_id), []).append(key)
        keys = self._skill_keys.get((spec, task_id), [])
        return keys, [self._records[key] for key in keys if key in self._records]

    def all_reported(self, spec: str, task_id: str) -> bool:
        """Whether the task has selected attempts with the skill, and all were reported or not let begin."""
        keys, _ = self.with_the_skill(spec, task_id)
        return bool(keys) and all(key in self._reported or key in self._refused for key in keys)

    @property
    def expected(self) -> int:
        """How many attempts were selected."""
        return sum(len(run.expected) for run in self._specs.values())

    def left_and_ended(self) -> tuple[list[AttemptKey], list[tuple[AttemptKey, float]]]:
        """The attempts that nothing is known of yet, and those of this session that ended with their seconds; any thread."""
        with self._lock:
            left = [key for key in list(self._expected) if self.lacks(key)]
            return left, [(key, record.wall_seconds) for key, record in self._records.items()]

    def has(self, key: AttemptKey) -> bool:
        """Whether it is known what became of an attempt."""
        with self._lock:
            return key in self._records

    def finished(self, record: AttemptRecord) -> bool:
        """Keep a record the moment it exists; any thread. The first record of a key wins. -> whether this was the first."""
        with self._lock:
            if record.key in self._records:
                return False
            self._records[record.key] = record
            run = self._specs.get(record.key.spec)
            if run is not None:
                self._keep(run, record)
        self.stopping.ended(record)
        return True

    def lacks(self, key: AttemptKey) -> bool:
        """Whether the attempt was selected and nothing is known of it yet."""
        return key in self._expected and key not in self._records and key not in self._refused

    def refused(self, key: AttemptKey, reason: str) -> None:
        """The attempt was not let begin: planned, without a record."""
        self._refused.setdefault(key, reason)

    def withdrawn(self, key: AttemptKey) -> None:
        """A mark or a fixture of the user's skipped the test that makes the attempt: it is not planned any more; main thread."""
        run = self._specs.get(key.spec)
        if run is None or key not in self._expected or key in self._records:
            return
        with self._lock:
            run.expected = tuple(other for other in run.expected if other != key)
            self._expected.discard(key)
            self._skill_keys.clear()

    def _keep(self, run: _SpecRun, record: AttemptRecord) -> None:
        """Append to the journal what is not in it yet: a disk that was full a while ago may take it now."""
        run.unkept.append(record)
        try:
            if run.journal is not None and run.journal.lost:
                run.unkept[:] = [self._full(run, self._records[key]) for key in run.expected if key in self._records]
                run.journal.close()
                run.journal = None
                run.places.clear()
                self._alarm(f"{self._shown(run.plan.spec.path)}: {run.plan.results} was removed while the session ran")
            if run.journal is None:
                run.journal = self._new_journal(run)
            while run.unkept:
                kept = run.unkept[0]
                run.places[kept.key] = run.journal.append(kept)
                if kept.outcome == "pass":  # nobody asks for its texts before they are in the run file
                    self._records[kept.key] = replace(kept, output="", changed_files=())
                del run.unkept[0]
        except OSError as error:
            self._cannot_keep(run, error)

    def _full(self, run: _SpecRun, record: AttemptRecord) -> AttemptRecord:
        """The record with all its texts."""
        place = run.places.get(record.key)
        if place is None or run.journal is None:
            return record
        try:
            return run.journal.read(place)
        except (OSError, ValueError, RunFileError) as error:
            self._alarm(f"{self._shown(run.plan.spec.path)}: the answers of some attempts are lost: {error}")
            return record

    def _new_journal(self, run: _SpecRun) -> Journal:
        return Journal.create(run.plan.results, self.session_id.run_name(run.plan.spec.path), self._header(run))

    def _header(self, run: _SpecRun) -> dict[str, object]:
        planned = [[key.task_id, key.arm, key.attempt] for key in run.expected]
        bars = state_of(self.config).bars.deciding(str(run.plan.spec.path))
        return {"contract": self._contract(run), "planned": planned, "bars": bars}

    def _cannot_keep(self, run: _SpecRun, error: OSError) -> None:
        self._alarm(
            f"{self._shown(run.plan.spec.path)}: attempts cannot be kept in {run.plan.results} ({error.strerror or error}): "
            "they run and are shown, but are lost if the session is killed; make room or make it writable, "
            "or name another place with --caliper-results"
        )

    def _alarm(self, text: str) -> None:
        """A problem that people should hear of now, once; any thread."""
        if text not in self.problems:
            self.problems.append(text)
            self._alarms.append(text)

    def sound_alarms(self) -> None:
        """Show what went wrong since the last call; main thread."""
        while self._alarms:
            say(self.config, [self._alarms.pop(0)])

    def reported(self, record: AttemptRecord) -> None:
        """pytest reported the attempt; main thread. Calls the hook `pytest_caliper_record` once per attempt."""
        self.finished(record)
        self.sound_alarms()
        if record.key in self._reported:
            return
        self._reported.add(record.key)
        if record.key not in self._expected:
            self.problems.append(
                f"{self._shown(Path(record.key.spec))}: an attempt that nobody had announced ran "
                f"({record.task_name}, {record.key.arm} {record.key.attempt}); it is in no run file"
            )
        self.config.hook.pytest_caliper_record(config=self.config, record=record)

    def learn(self, key: AttemptKey, skills: Sequence[str]) -> None:
        """A test in Python named skills when it ran in a worker, relative to its file: the run file is to have them."""
        run = self._specs.get(key.spec)
        if run is None or not isinstance(run.plan, FilePlan):
            return
        try:
            run.plan.learn(run.plan.resolved(skills, 0))
        except SpecError as error:
            self._alarm(f"{self._shown(run.plan.spec.path)}: a skill is not here, so the run file lacks it: {error}")

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
        missing = [key for key in run.expected if key not in self._reported and key not in self._refused]
        if missing:
            names = ", ".join(dict.fromkeys(_attempt_name(run.plan, key) for key in missing[:3]))
            more = ", …" if len(missing) > 3 else ""
            kept = sum(key in records for key in missing)
            ended = f"; {kept} of them had ended and are kept" if kept else ""
            self.problems.append(f"{shown}: {len(missing)} of {len(run.expected)} attempts never reported ({names}{more}){ended}")
        spent = any(self._refused.get(key, "").startswith("not begun") for key in run.expected)  # a resume goes on from there
        result = self._build(run, records, interrupted=bool(missing) or spent)
        self._find_empty_arms(shown, run, result)
        self._find_refused(shown, run)
        self._gate(shown, run, result)
        self.runs.append(self._save(run, result, shown))

    def _find_empty_arms(self, shown: str, run: _SpecRun, result: Run) -> None:
        never = {(key.task_id, key.arm) for key in run.expected if key not in self._reported and key not in self._refused}
        for arm in (*result.results, *(result.baseline_results or ())):
            if arm.attempts and not arm.usable and (arm.task_id, arm.arm) not in never:
                who = "no attempt" if arm.arm == "skill" else "no baseline attempt"
                reason = arm.attempts[-1].reason or arm.attempts[-1].outcome
                self.problems.append(f"{shown}: {arm.task_name}: {who} was usable, so nothing was measured ({reason})")

    def _gate(self, shown: str, run: _SpecRun, result: Run) -> None:
        """Bars that were not reached, too few usable attempts, a regression."""
        never = {(key.task_id, key.arm) for key in run.expected if key not in self._reported and key not in self._refused}
        if left := state_of(self.config).bars.unjudged(str(run.plan.spec.path)):
            self.problems.append(f"{shown}: {unjudged(left)}")
        self.problems += [f"{shown}: {thin}" for thin in thin_coverage(result, Fraction(self.settings.min_coverage), never)]
        if self.no_regression is not None:
            found = self.no_regression.judge(run.plan, result)
            (self.problems if found.worse else self.notes).append(f"{shown}: {found.text}")

    def _find_refused(self, shown: str, run: _SpecRun) -> None:
        counts: dict[tuple[str, str], int] = {}
        tasks = {task.task_id: task.name for task in run.plan.spec.tasks}
        for key in run.expected:
            if (reason := self._refused.get(key)) is not None:
                arm = f"{tasks[key.task_id]}{'' if key.arm == 'skill' else ' (baseline)'}: "
                of = (arm if reason.startswith("aborted") else "", reason)
                counts[of] = counts.get(of, 0) + 1
        for (arm, reason), count in counts.items():
            self.problems.append(f"{shown}: {arm}{count} planned attempt{'' if count == 1 else 's'} did not run: {reason}")

    def _save(self, run: _SpecRun, result: Run, shown: str) -> Run:
        """Write the run file and drop the journal it replaces. Where the results do not take it, another place may."""
        spare = run.plan.spare(self.session_id)
        full = partial(self._full, run)
        try:
            path = save_run(result, run.plan.results, replaces=run.unfinished is not None, full=full)
        except OSError as error:
            try:
                spare.mkdir(mode=0o700, exist_ok=True)
                path = save_run(result, spare, full=full)
            except OSError:
                left = "" if run.journal is None else f"; what had ended is in {run.journal.path}"
                self.problems.append(f"{shown}: the run could not be saved in {run.plan.results}: {error}{left}")
                return result
            self.problems.append(f"{shown}: the run could not be saved in {run.plan.results} ({error}); it is {path}")
        if run.journal is not None:
            run.journal.close()
            if not result.meta.interrupted:
                run.journal.discard()
        if not result.meta.interrupted:  # streamed into the run file by now
            shutil.rmtree(run.plan.transcripts(self.session_id), ignore_errors=True)
            shutil.rmtree(run.plan.spare_transcripts(self.session_id), ignore_errors=True)
            with suppress(OSError):
                spare.rmdir()  # unless the run is kept there
        if self.settings.output is not None:
            try:
                if self.settings.output_is_directory:
                    self.settings.output.mkdir(parents=True, exist_ok=True)
                write_copy(path, self.settings.output)
            except OSError as error:
                self.problems.append(f"{shown}: --caliper-output {self.settings.output}: {error}")
        return replace(result, saved=_relative(path, self.config.invocation_params.dir))

    def _build(self, run: _SpecRun, records: Mapping[AttemptKey, AttemptRecord], *, interrupted: bool) -> Run:
        plan = run.plan
        whole = {(key.task_id, key.arm): 0 for task in plan.spec.tasks for key in plan.keys(task)}
        for key in run.expected:
            whole[(key.task_id, key.arm)] += 1
        selected = [task for task in plan.spec.tasks if any(whole[(task.task_id, arm)] for arm in plan.arms_of(task))]
        partial = any(whole[(task.task_id, arm)] != plan.k_of(task) for task in selected for arm in plan.arms_of(task))

        aborted = {(key.task_id, key.arm) for key in run.expected if key in self._refused}
        names = tuple(reference.name for reference in references(plan.spec))
        redactor = Redactor.from_environment(dict(os.environ), names, {plan.project: "$PROJECT"})

        def results(arm: Arm) -> tuple[TaskResult, ...]:
            having = [task for task in selected if arm in plan.arms_of(task)]
            found = (_task_result(plan, task, arm, whole[(task.task_id, arm)], records, redactor) for task in having)
            return tuple(replace(result, aborted=(result.task_id, arm) in aborted) for result in found)

        baseline = results("baseline") if "baseline" in plan.arms else self._bare(run, selected, records.values())
        used = list(records.values())
        judged = [record for record in used if record.autorater_passed is not None or record.durations.judge is not None]
        meta = RunMeta(
            id=self.session_id.run_id(plan.spec.path),
            spec=path_in(plan.project, plan.spec.path),
            timestamp=_iso(self.session_id.run_stamp(plan.spec.path)),
            k=plan.k,
            backend=run.engine.backend,
            model=_only(record.model for record in used) or run.engine.model,
            judge_backend=run.judge.backend if judged else None,
            judge_model=(_only(record.judge_model for record in judged) or run.judge.model) if judged else None,
            pytest_caliper=__version__,
            workers=self.settings.workers,
            baseline=baseline is not None,
            baseline_from=run.reused.source(plan.project) if run.reused is not None and baseline is not None else None,
            interrupted=interrupted,
            selected_tasks=tuple(task.name for task in selected)
            if len(selected) < len(plan.spec.tasks) or not plan.names_all
            else None,
            partial=partial,
            user_customizations=self.settings.user_customizations,
            replay=self.settings.replay,
            cli_version=_only(record.cli_version for record in used),
            judge_cli_version=_only(record.judge_cli_version for record in judged),
            judge_prompt_hash=judge_prompt_hash() if judged else None,
            contract=self._contract(run),
            shard=None if (cut := state_of(self.config).cut) is None else cut.of_run(self.config, plan),
        )
        return Run(
            meta=meta,
            results=results("skill"),
            baseline_results=baseline,
            skills=tuple(_redacted(skill.snapshot, redactor) for skill in plan.all_skills),
        )

    def _bare(self, run: _SpecRun, tasks: Sequence[Task], ran: Iterable[AttemptRecord]) -> tuple[TaskResult, ...] | None:
        """The baseline arm of a saved run, unless what ran shows that it does not fit after all."""
        if run.reused is None:
            return None
        if (why := contradiction(run.reused, ran)) is not None:
            self.problems.append(
                f"{self._shown(run.plan.spec.path)}: the baseline of {run.reused.path.name} does not fit: {why}; "
                "it is left out, run it again with --caliper-baseline"
            )
            return None
        return tuple(run.bare[task.task_id] for task in tasks)

    def _contract(self, run: _SpecRun) -> dict[str, object]:
        """What a later session must share to continue or compare: hashes and names, nothing private."""
        return {
            "spec": run.plan.spec.digest,
            "tasks": {task.task_id: task_hash(task) for task in run.plan.spec.tasks},
            "skill": skill_hash(run.plan.all_skills),
            "engine": str(run.engine),
            "judge": str(run.judge),
            "judge_votes": self.settings.judge_votes,
            "k": run.plan.k,
            "user_customizations": self.settings.user_customizations,
            "baseline": "baseline" in run.plan.arms if run.reused is None else f"from {run.reused.source(run.plan.project).id}",
            "surroundings": surroundings_hash(run.plan.spec),
            "timeout_s": self.settings.timeout_s,
        }

    def _shown(self, path: Path) -> str:
        return _relative(path, self.config.rootpath)


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
        bar=plan.bar(task) if arm == "skill" else None,
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
