"""The six outcomes and which of them goes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_caliper.attempt import outcome
from pytest_caliper.contracts import AttemptPlan, Engine, HarnessResult, Skill, Verdict
from pytest_caliper.runs.records import AttemptKey, SkillSnapshot
from pytest_caliper.spec.model import Sandbox, Task

SKILL = Skill(
    name="greeter",
    root=Path("/skill"),
    kind="directory",
    files=("SKILL.md",),
    snapshot=SkillSnapshot(name="greeter", path="skill", kind="directory", files={}),
)


def plan(*, bare: bool = False) -> AttemptPlan:
    return AttemptPlan(
        key=AttemptKey(spec="/p/x.eval.yaml", task_id="task-001", arm="baseline" if bare else "skill", attempt=1),
        task=Task(task_id="task-001", name="T", prompt="p", line=0),
        spec_path=Path("/p/x.eval.yaml"),
        engine=Engine(backend="claude-code"),
        judge=Engine(backend="claude-code"),
        skills=() if bare else (SKILL,),
        absent_skills=("greeter",) if bare else (),
        sandbox=Sandbox(),
        mcp=(),
        env={},
        protected=(),
        timeout_s=1.0,
        root=Path("/r"),
        tag="t/a",
        transcript_path=Path("/t"),
    )


def result(**values) -> HarnessResult:
    return HarnessResult(**{"answer": "a", "finished": True, **values})


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (result(), None),
        (result(finished=False), "infra_error"),
        (result(error="429"), "infra_error"),
        (result(error="429", finished=False), "infra_error"),
        (result(timed_out=True, finished=False), "timeout"),
        (result(timed_out=True, finished=False, error="retrying after 429"), "timeout"),
        (result(timed_out=True), None),
        (result(skills_reported=("greeter", "doctor")), None),
        (result(skills_reported=("doctor",)), "infra_error"),
        (result(skills_reported=None), None),
    ],
)
def test_what_keeps_the_checks_from_speaking(what, expected):
    decision = outcome.before_checks(what, plan())
    assert (decision.outcome if decision else None) == expected
    assert decision is None or decision.reason


def test_a_baseline_that_could_see_the_skill_measures_nothing():
    decision = outcome.before_checks(result(skills_reported=("doctor", "greeter")), plan(bare=True))
    assert decision == ("infra_error", "control contaminated: the agent could see greeter in the baseline")
    assert outcome.before_checks(result(skills_reported=("doctor",)), plan(bare=True)) is None


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(assert_passed=True), ("pass", None)),
        (Verdict(autorater_passed=True, autorater_reasoning="fine"), ("pass", None)),
        (Verdict(assert_passed=True, autorater_passed=False, autorater_reasoning="no"), ("task_fail", "expect: no")),
        (
            Verdict(assert_passed=False, assert_evidence="x.eval.yaml:9: AssertionError: assert 3 == 8\n> assert a == b"),
            ("task_fail", "assert 3 == 8"),
        ),
        (
            Verdict(assert_passed=False, assert_evidence="x.eval.yaml:9: AssertionError: no file: a.txt\nassert False"),
            ("task_fail", "assert: no file: a.txt"),
        ),
        (Verdict(assert_passed=False, assert_evidence=None), ("task_fail", "assert: failed")),
        (Verdict(assert_passed=True, error="the judge rambled"), ("judge_error", "the judge rambled")),
        (Verdict(autorater_passed=False, autorater_reasoning="no", error="the assert crashed"), ("task_fail", "expect: no")),
        (Verdict(), ("judge_error", "a check gave no verdict")),
    ],
)
def test_what_the_checks_decide(verdict, expected):
    assert outcome.of_checks(verdict) == expected


def test_reasons_are_one_bounded_line():
    reason = outcome.of_checks(Verdict(autorater_passed=False, autorater_reasoning="a\nb\u2028c " + "x" * 1000)).reason
    assert reason is not None
    assert reason.startswith("expect: a b c x")
    assert len(reason) == outcome.MAX_REASON
    assert reason.endswith("…")


def test_cheating_names_the_first_of_many():
    assert outcome.of_cheating(("Read: 'x' …", "b", "c")).reason == "read a forbidden file: Read: 'x' … (and 2 more)"
