"""How one attempt runs, from its workspace to its record, with no way back."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pytest_caliper.attempt import outcome as outcomes
from pytest_caliper.attempt.changes import Snapshot, changed_files, snapshot
from pytest_caliper.attempt.cheating import find_cheating
from pytest_caliper.attempt.given import checked
from pytest_caliper.attempt.hooks import run_hook
from pytest_caliper.attempt.redaction import Redactor, redact_record, redact_turn
from pytest_caliper.attempt.workspace import create, restore
from pytest_caliper.contracts import (
    AttemptPlan,
    Cancelled,
    EngineError,
    Harness,
    HarnessResult,
    Judge,
    Verdict,
    Workspace,
)
from pytest_caliper.process import Processes
from pytest_caliper.runs.records import AttemptRecord, Durations, Turn

FAULTS = (Exception, SystemExit, pytest.fail.Exception, pytest.skip.Exception)
"""What harnesses and judges may raise. The last two are no Exceptions, and are nobody's answer to what an attempt came to."""

MAX_OUTPUT = 256 * 1024
"""Characters of an answer, and of one text of a transcript, that are kept."""
MAX_TRANSCRIPT = 16 * 1024 * 1024
"""Characters of a whole transcript that are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lifecycle:
    """What all attempts of a process share."""

    processes: Processes
    redactor: Redactor
    last_rites: Callable[[], Processes]
    """Gives fresh processes for `cleanup:` once the session's own are cancelled."""

    def run(self, plan: AttemptPlan, workspace: Workspace, harness: Harness, judge: Judge) -> AttemptRecord:
        """Run one attempt; its transcript goes to `plan.transcript_path`. Raises Cancelled when the session stops.

        Whatever happens, `cleanup:` runs and no process of the attempt survives.
        """
        started, clock = time.time(), time.monotonic()
        course = _Course(plan=plan, workspace=workspace, processes=self.processes)
        cleanup: tuple[str | None, float | None] = (None, None)
        try:
            create(workspace)
            course.go(harness, judge)
        except OSError as error:  # a full disk, a vanished directory: this attempt got no fair shot
            course.decision = outcomes.Decision("infra_error", outcomes.one_line(f"the attempt's workspace failed: {error}"))
        finally:
            try:
                cleanup = self._clean_up(plan, workspace)
            finally:
                self.processes.reap(plan.tag)
        if self.processes.cancelled and not course.complete:
            raise Cancelled
        record = course.record(started=started, wall=time.monotonic() - clock, cleanup=cleanup)
        return self._keep(record, course.result.transcript, plan, workspace)

    def _clean_up(self, plan: AttemptPlan, workspace: Workspace) -> tuple[str | None, float | None]:
        """-> (error, seconds) of `cleanup:`; both None when the task has none."""
        script = plan.task.cleanup
        if script is None:
            return None, None
        try:
            restore(workspace)  # what is to be cleaned up may lie elsewhere: a container, a row in a database
        except OSError as error:
            return outcomes.one_line(f"cleanup could not be started: {error}"), None
        processes = self.processes
        if processes.cancelled:
            processes = self.last_rites()
            plan = replace(plan, tag=f"{processes.session_tag}/{plan.key.task_id}")
        try:
            done = run_hook("cleanup", script, plan=plan, workspace=workspace, processes=processes)
        except Cancelled:
            return "cleanup was interrupted", None
        finally:
            if processes is not self.processes:
                processes.close()
        return done.error, done.duration_s

    def _keep(self, record: AttemptRecord, transcript: Sequence[Turn], plan: AttemptPlan, workspace: Workspace) -> AttemptRecord:
        """The one place where secrets and private paths leave: the record and the transcript's side file."""
        redactor = self.redactor.for_workspace(workspace)
        # Redacted before it is cut: what is left of a secret at a cut could not be found any more.
        turns, cut = bounded_turns(redact_turn(turn, redactor) for turn in transcript)
        places = [path for path in (plan.transcript_path, plan.transcript_spare) if path is not None]
        written = next((path for path in places if write_transcript(turns, path)), None)
        record = redact_record(record, redactor)
        if cut:
            record = replace(record, transcript_truncated=True)
        if written is not None:
            record = replace(record, transcript_path=str(written))
        else:
            record = replace(record, transcript_truncated=True)
        return replace(record, redactions=redactor.count)


def write_transcript(turns: Sequence[Turn], path: Path) -> bool:
    """One JSON turn per line. -> False when the disk does not take it: the attempt counts all the same."""
    try:
        for directory in reversed([path.parent, *(above for above in path.parent.parents if not above.exists())]):
            directory.mkdir(mode=0o700, exist_ok=True)  # `parents=True` would open the ones above to everybody
        with open(path, "w", encoding="ascii") as out:
            for turn in turns:
                out.write(json.dumps(turn.to_json(), ensure_ascii=True) + "\n")
            out.flush()
            os.fsync(out.fileno())
    except OSError:
        return False
    return True


@dataclass(kw_only=True, slots=True)
class _Course:
    """What is known of an attempt while it goes its way."""

    plan: AttemptPlan
    workspace: Workspace
    processes: Processes
    result: HarnessResult = field(default_factory=lambda: HarnessResult(answer="", finished=False))
    verdict: Verdict = field(default_factory=Verdict)
    evidence: tuple[str, ...] = ()
    setup_s: float | None = None
    agent_s: float | None = None
    decision: outcomes.Decision | None = None

    @property
    def complete(self) -> bool:
        return self.decision is not None

    def go(self, harness: Harness, judge: Judge) -> None:
        """Set-up, agent, cheat check, checks; the first phase that decides ends it."""
        plan, workspace = self.plan, self.workspace
        if plan.task.setup is not None:
            setup = run_hook("setup", plan.task.setup, plan=plan, workspace=workspace, processes=self.processes)
            self.setup_s = setup.duration_s
            if setup.error is not None:
                self.decision = outcomes.Decision("infra_error", outcomes.one_line(setup.error))
                return
        before = snapshot(workspace.work)
        self._run_agent(harness, before)
        self.decision = self.decision or outcomes.before_checks(self.result, self.plan)
        if self.decision is not None:
            return
        self.evidence = find_cheating(
            self.result.transcript,
            patterns=plan.sandbox.forbidden_files,
            protected=plan.protected,
            workspace=workspace,
        )
        if self.evidence:
            self.decision = outcomes.of_cheating(self.evidence)
            return
        self._ask_judge(judge)

    def _run_agent(self, harness: Harness, before: Snapshot) -> None:
        clock = time.monotonic()
        try:
            self.result = checked(harness(self.plan, self.workspace), HarnessResult)
        except (Cancelled, pytest.exit.Exception):
            raise
        except EngineError as error:
            self.decision = outcomes.Decision("infra_error", outcomes.one_line(str(error)))
        except FAULTS as error:  # a harness may be the user's own: its fault is this attempt's, not the session's
            self.decision = outcomes.Decision("infra_error", outcomes.one_line(f"the harness failed: {error!r}"))
        self.agent_s = self.result.duration_s or time.monotonic() - clock
        changes = changed_files(before, self.workspace.work)
        self.result = replace(self.result, changed_files=changes)

    def _ask_judge(self, judge: Judge) -> None:
        try:
            self.verdict = checked(judge(self.plan, self.result, self.workspace), Verdict)
        except (Cancelled, pytest.exit.Exception):
            raise
        except FAULTS as error:  # as above: a judge that breaks gave no verdict
            self.verdict = Verdict(error=f"the judge failed: {error!r}")
        self.decision = outcomes.of_checks(self.verdict)

    def record(self, *, started: float, wall: float, cleanup: tuple[str | None, float | None]) -> AttemptRecord:
        """Everything, not yet redacted."""
        if self.decision is None:
            raise AssertionError("an attempt without a decision has no record")
        result, verdict = self.result, self.verdict
        return AttemptRecord(
            key=self.plan.key,
            task_name=self.plan.task.name,
            outcome=self.decision.outcome,
            reason=self.decision.reason,
            output=_bounded(result.answer),
            duration_seconds=self.agent_s or 0.0,
            started=started,
            wall_seconds=wall,
            durations=Durations(
                setup=self.setup_s,
                agent=self.agent_s,
                assert_=verdict.assert_s,
                judge=verdict.judge_s,
                cleanup=cleanup[1],
            ),
            usage=result.usage,
            cheat_evidence=self.evidence,
            assert_passed=verdict.assert_passed,
            assert_evidence=verdict.assert_evidence,
            autorater_passed=verdict.autorater_passed,
            autorater_reasoning=verdict.autorater_reasoning,
            judge_votes=verdict.judge_votes,
            judge_usage=verdict.judge_usage,
            model=result.model,
            judge_model=verdict.judge_model,
            cli_version=result.cli_version,
            judge_cli_version=verdict.judge_cli_version,
            retries=result.retries,
            skills_reported=result.skills_reported,
            skills_used=result.skills_used,
            mcp_reported=result.mcp_reported,
            changed_files=result.changed_files,
            cleanup_error=cleanup[0],
            transcript_truncated=result.transcript_truncated,
            fatal=result.fatal or verdict.fatal,
        )


def bounded_turns(turns: Iterable[Turn]) -> tuple[list[Turn], bool]:
    """The turns with every text at most `MAX_OUTPUT` long, and all together `MAX_TRANSCRIPT`. -> (turns, whether any was cut)."""
    kept: list[Turn] = []
    room, cut = MAX_TRANSCRIPT, False
    for turn in turns:
        short = replace(turn, content=_bounded(turn.content), tool_output=turn.tool_output and _bounded(turn.tool_output))
        cut |= short != turn
        room -= len(short.content) + len(short.tool_output or "")
        if room < 0:
            return kept, True
        kept.append(short)
    return kept, cut


def _bounded(text: str) -> str:
    if len(text) <= MAX_OUTPUT:
        return text
    return f"{text[:MAX_OUTPUT]}\n[… {len(text) - MAX_OUTPUT} characters cut …]"
