"""One attempt whose checks are the body of a test: between the test, in pytest's thread, and the attempt, in one of the pool's.

The attempt goes the way of every attempt (`attempt.lifecycle`): set-up, agent, cheat check, checks, clean-up, record. Where a
judge would speak it waits for the test, which may ask the real judge meanwhile. So pytest's thread only ever waits.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_caliper.contracts import AttemptPlan, Cancelled, Harness, HarnessResult, Judge, Skill, Verdict, Workspace
from pytest_caliper.runs.records import AttemptRecord, Usage

if TYPE_CHECKING:
    from pytest_caliper.running.ahead import Ahead
    from pytest_caliper.testing.items import FunctionAttempt

_POLL_S = 0.5


class Course:
    """Begins when the agent is called, and ends with the record."""

    def __init__(self, ahead: Ahead, attempt: FunctionAttempt, workspace: Workspace, harness: Harness, judge: Judge) -> None:
        self._ahead, self._attempt, self._workspace = ahead, attempt, workspace
        self._harness, self._judge = harness, judge
        self._plan: AttemptPlan | None = None
        self._questions: queue.SimpleQueue[str | Verdict | None] = queue.SimpleQueue()
        """Criteria for the judge, then the verdict of the test; None to give up."""
        self._answers: queue.SimpleQueue[Verdict | BaseException] = queue.SimpleQueue()
        self._answered = threading.Event()
        self._reached = threading.Event()
        self.result: HarnessResult | None = None
        self.judged: list[Verdict] = []
        self.record: AttemptRecord | None = None
        self.over = False
        """Whether nothing more comes of it: there is a record, or the attempt was not let begin, or the session stops."""

    @property
    def begun(self) -> bool:
        """Whether the agent was called."""
        return self._plan is not None

    def run(self, plan: AttemptPlan) -> HarnessResult | AttemptRecord:
        """Run the agent. -> what it did, or the record where nothing is left to be checked: unusable, or a cheat."""
        self._plan = plan
        self._ahead.begin(self._attempt, plan, self._workspace, self._harness, self._check)
        if self._ahead.wait(self._attempt, self._reached.is_set):
            return self._take()
        assert self.result is not None
        return self.result

    def judge(self, criterion: str) -> Verdict:
        """What the judge says of the attempt. Raises what the judge raised."""
        self._answered.clear()
        self._questions.put(criterion)
        if self._ahead.wait(self._attempt, self._answered.is_set):
            self.over = True
            raise pytest.skip.Exception("the session stopped before the judge answered")
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        self.judged.append(answer)
        return answer

    def end(self, verdict: Verdict) -> AttemptRecord:
        """Say what the test came to. -> the record."""
        if self.record is None:
            self._questions.put(verdict)
            return self._take()
        return self.record

    def _take(self) -> AttemptRecord:
        self.over = True
        self.record = self._ahead.record(self._attempt)
        return self.record

    def abandon(self) -> None:
        """The session stops: the attempt makes no record."""
        self._questions.put(None)

    def _check(self, plan: AttemptPlan, result: HarnessResult, workspace: Workspace) -> Verdict:
        """In the attempt's thread, where a judge would be: wait for the test."""
        self.result = result
        self._reached.set()
        self._ahead.pool.look()
        while True:
            asked = self._next()
            if isinstance(asked, Verdict):
                return asked
            try:
                task = replace(plan.task, expect=asked, assertion=None)
                self._answers.put(self._judge(replace(plan, task=task, assert_code=None), result, workspace))
            except BaseException as error:  # noqa: BLE001  raised again in the test
                self._answers.put(error)
            self._answered.set()
            self._ahead.pool.look()

    def _next(self) -> str | Verdict:
        while True:
            try:
                asked = self._questions.get(timeout=_POLL_S)
            except queue.Empty:
                if self._ahead.cancelled:
                    raise Cancelled from None
                continue
            if asked is None:
                raise Cancelled
            return asked


def passed(judged: Sequence[Verdict]) -> Verdict:
    """The test held. What it asked the judge is kept; a no that the test wanted (`assert not …`) is no failure."""
    agreed = all(verdict.autorater_passed for verdict in judged)
    return replace(_together(judged), assert_passed=True, autorater_passed=True if judged and agreed else None)


def failed(judged: Sequence[Verdict], evidence: str) -> Verdict:
    """The test failed: by the judge's no, where it gave one, else by an assertion of its own."""
    if judged and judged[-1].autorater_passed is False:
        return replace(_together(judged), autorater_passed=False)
    agreed = bool(judged) and all(verdict.autorater_passed for verdict in judged)
    return replace(_together(judged), assert_passed=False, assert_evidence=evidence, autorater_passed=True if agreed else None)


def undecided(judged: Sequence[Verdict], reason: str, fatal: str | None = None) -> Verdict:
    """The test said neither."""
    return replace(_together(judged), error=reason, fatal=fatal, autorater_passed=None)


def _together(judged: Sequence[Verdict]) -> Verdict:
    """All that was asked, as one: tokens and seconds added up, reasons one below the other."""
    if not judged:
        return Verdict()
    reasons = [verdict.autorater_reasoning for verdict in judged if verdict.autorater_reasoning]
    seconds = [verdict.judge_s for verdict in judged if verdict.judge_s is not None]
    last = judged[-1]
    return Verdict(
        autorater_reasoning="\n".join(reasons) or None,
        judge_votes=last.judge_votes,
        judge_model=last.judge_model,
        judge_cli_version=last.judge_cli_version,
        judge_usage=Usage.sum(verdict.judge_usage for verdict in judged),
        judge_s=sum(seconds) if seconds else None,
    )


def planned(plan: AttemptPlan, *, prompt: str, setup: str | None, cleanup: str | None, skills: tuple[Skill, ...]) -> AttemptPlan:
    """The plan of an attempt with what the test asks for."""
    bare = plan.arm == "baseline"
    return replace(
        plan,
        task=replace(plan.task, prompt=prompt, setup=setup, cleanup=cleanup, expect=None),
        skills=() if bare else skills,
        absent_skills=tuple(skill.name for skill in skills) if bare else (),
    )
