"""The fixture `caliper` as a test sees it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_caliper.attempt.outcome import one_line
from pytest_caliper.contracts import AttemptPlan
from pytest_caliper.judging.attempt_view import AttemptView, view_data, view_from
from pytest_caliper.runs.records import AttemptRecord, Outcome, Usage
from pytest_caliper.spec.model import SpecError
from pytest_caliper.testing.course import Course, planned
from pytest_caliper.testing.marker import MarkError, skill_names

if TYPE_CHECKING:
    from typing import Literal

    from pytest_caliper.contracts import Workspace
    from pytest_caliper.testing.items import FunctionAttempt


class NoVerdict(pytest.skip.Exception):  # type: ignore[misc,name-defined]
    """The attempt is unusable: nothing was measured."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class AgentRun(AttemptView):
    """What the agent did: all that an `assert:` of a spec sees of its `attempt`, and whether the agent kept to the rules."""

    outcome: Outcome | None
    """None while the test decides; `cheat` when the agent read a file that it must not read."""
    reason: str | None = None
    """One line where there is an outcome."""
    duration_s: float = 0.0
    """Seconds that the agent took."""
    model: str | None = None
    """The model that answered, where the CLI tells."""

    @property
    def ok(self) -> bool:
        """Whether the agent ended by itself and broke no rule. False only for a cheat: what is unusable skips the test."""
        return self.outcome is None

    def __repr__(self) -> str:
        """Short: pytest shows it in assertions."""
        return f"<AgentRun: {self.reason}>" if self.reason else "<AgentRun>"


@dataclass(frozen=True, slots=True, repr=False)
class Judgement:
    """The judge's verdict; true when the criterion is met."""

    passed: bool
    reasoning: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        """As pytest shows it when `assert caliper.judge(…)` fails."""
        return f"<the judge says {'yes' if self.passed else 'no'}: {one_line(self.reasoning)}>"


class Caliper:
    """One attempt. The test calls `run` once, looks at what it gives, and may ask the judge."""

    def __init__(self, attempt: FunctionAttempt, workspace: Workspace, course: Course, plan: AttemptPlan) -> None:
        self._attempt, self._workspace, self._course, self._plan = attempt, workspace, course, plan

    @property
    def workdir(self) -> Path:
        """The agent's working directory: empty until the test or `setup` puts files there; gone after the test."""
        return self._workspace.work

    @property
    def home(self) -> Path:
        """The agent's HOME."""
        return self._workspace.home

    @property
    def arm(self) -> Literal["skill", "baseline"]:
        """`baseline` in the attempts without the skill."""
        return self._attempt.key.arm

    @property
    def attempt(self) -> int:
        """1 to k."""
        return self._attempt.key.attempt

    def run(
        self,
        prompt: str,
        *,
        skill: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        setup: str | None = None,
        cleanup: str | None = None,
    ) -> AgentRun:
        """Run the agent once with this prompt.

        `skill` is the path of a SKILL.md, its directory or a command's `.md`, relative to the test's file, or several; those of
        the mark are installed too. In the baseline none is. `setup` and `cleanup` are shell, as in a spec.

        An attempt that measured nothing (time-out, an error of the CLI or of `setup`) skips the test, as unusable. Raises
        ValueError for a prompt that is blank, RuntimeError for a second call; fails for a skill that cannot be installed.
        """
        __tracebackhide__ = True
        if self._course.begun:
            raise RuntimeError("caliper.run was called twice: one attempt is one run of the agent; write a second test")
        if not isinstance(prompt, str) or not prompt.strip():
            raise ValueError(f"the prompt must be a text that is not blank, got {prompt!r}")
        names = (*self._attempt.asked.marked.skills, *_names(skill))
        try:
            skills = self._attempt.plan.resolved(names, self._attempt.task.line)
        except SpecError as error:
            pytest.fail(str(error), pytrace=False)
        if self.arm == "baseline" and not skills:
            pytest.fail("a baseline leaves the skill out, but the test names none: give run() skill=…", pytrace=False)
        self._attempt.learn(names, skills)
        plan = planned(self._plan, prompt=prompt, setup=setup, cleanup=cleanup, skills=skills)
        told = self._course.run(plan)
        if isinstance(told, AttemptRecord):
            return self._without_checks(told)
        view = view_from(view_data(told, self._workspace))
        return AgentRun(
            **{name: getattr(view, name) for name in AttemptView.__slots__},
            outcome=None,
            duration_s=told.duration_s,
            model=told.model,
        )

    def _without_checks(self, record: AttemptRecord) -> AgentRun:
        __tracebackhide__ = True
        if not record.usable:
            from pytest_caliper.reports import shown_reason

            raise NoVerdict(shown_reason(record))
        return AgentRun(
            answer=record.output,
            tool_calls=[],
            commands=[],
            files=[file.path for file in record.changed_files],
            skills=list(record.skills_used),
            usage=record.usage,
            workdir=self.workdir,
            outcome=record.outcome,
            reason=record.reason,
            duration_s=record.duration_seconds,
            model=record.model,
        )

    def judge(self, run: AgentRun, criterion: str) -> Judgement:
        """Ask the judge whether the attempt meets the criterion. It sees the whole transcript and the files.

        Costs a call of the judge. When it gives no verdict the test is skipped, as unusable. Raises ValueError for a criterion
        that is blank, RuntimeError before `run`.
        """
        __tracebackhide__ = True
        if not isinstance(criterion, str) or not criterion.strip():
            raise ValueError(f"the criterion must be a text that is not blank, got {criterion!r}")
        if not self._course.begun or not isinstance(run, AgentRun):
            raise RuntimeError("caliper.judge needs what caliper.run gave: caliper.judge(run, 'The answer …')")
        if not run.ok:
            return Judgement(False, run.reason or "the agent broke a rule")
        settings = self._attempt.plan.settings
        if self._course.judged and (settings.record or settings.replay):
            pytest.fail("a recording keeps one caliper.judge() per test: join the criteria into one", pytrace=False)
        verdict = self._course.judge(criterion)
        if verdict.autorater_passed is None:
            raise _Undecided(verdict.error or "the judge gave no verdict", verdict.fatal)
        return Judgement(verdict.autorater_passed, verdict.autorater_reasoning or "")


class _Undecided(NoVerdict):
    """The judge gave no verdict."""

    def __init__(self, reason: str, fatal: str | None) -> None:
        super().__init__(f"judge_error: {one_line(reason)}")
        self.reason, self.fatal = reason, fatal


def _names(skill: object) -> tuple[str, ...]:
    __tracebackhide__ = True
    try:
        return skill_names(skill)
    except MarkError as error:
        raise ValueError(str(error)) from None


__all__ = ["AgentRun", "Caliper", "Judgement", "NoVerdict", "Usage"]
