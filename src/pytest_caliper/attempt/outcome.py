"""From what happened to one of the six outcomes. The only place that knows their precedence."""

from __future__ import annotations

import re
from typing import NamedTuple

from pytest_caliper.contracts import AttemptPlan, HarnessResult, Verdict
from pytest_caliper.judging.verdict import combine
from pytest_caliper.runs.records import Outcome

MAX_REASON = 300
"""Characters of a reason; it is one line of a summary."""


class Decision(NamedTuple):
    outcome: Outcome
    reason: str | None
    """One line; None for `pass`."""


def before_checks(result: HarnessResult, plan: AttemptPlan) -> Decision | None:
    """The outcome of an attempt that got no fair shot: time-out first, then infra_error. None when the checks may speak.

    A time-out counts only when no finished answer came before it. An arm that is not what it claims to be (a baseline whose CLI
    saw the skill, a skill arm whose CLI did not) measures nothing.
    """
    if result.timed_out and not result.finished:
        return Decision("timeout", one_line(result.error or f"no finished answer after {result.duration_s:.0f} s"))
    if result.error is not None or not result.finished:
        return Decision("infra_error", one_line(result.error or "the agent's output ended without its end marker"))
    if result.skills_reported is not None:
        seen = set(result.skills_reported)
        if leaked := [name for name in plan.absent_skills if name in seen]:
            return Decision("infra_error", f"control contaminated: the agent could see {', '.join(leaked)} in the baseline")
        if hidden := [skill.name for skill in plan.skills if skill.name not in seen]:
            return Decision("infra_error", f"skill not visible: the agent's CLI did not list {', '.join(hidden)}")
    return None


def of_cheating(evidence: tuple[str, ...]) -> Decision:
    """The outcome of an attempt that read what it must not."""
    more = f" (and {len(evidence) - 1} more)" if len(evidence) > 1 else ""
    return Decision("cheat", one_line(f"read a forbidden file: {evidence[0]}{more}"))


def of_checks(verdict: Verdict) -> Decision:
    """The outcome that the checks give. A failing check fails the task; otherwise a lost check is judge_error."""
    outcome = combine(verdict)
    if outcome == "pass":
        return Decision("pass", None)
    if outcome == "judge_error":
        return Decision("judge_error", one_line(verdict.error or "a check gave no verdict"))
    if verdict.assert_passed is False:
        return Decision("task_fail", one_line(_said_by_assert(verdict.assert_evidence or "")))
    return Decision("task_fail", one_line(f"expect: {verdict.autorater_reasoning or 'the judge said no'}"))


def _said_by_assert(evidence: str) -> str:
    """What an assert's evidence says was wrong, from its first line, `path:line: AssertionError: message`."""
    first = next((line.strip() for line in evidence.split("\n") if line.strip()), "failed")
    message = re.sub(r"^.*?:\d+: AssertionError:?\s*", "", first) or "failed"
    return message if message.startswith("assert ") else f"assert: {message}"


def one_line(text: str) -> str:
    """`text` as one bounded line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_REASON else flat[: MAX_REASON - 1] + "…"
