"""A task's bar in words: in a cell, in a line, and in full where it failed."""

from __future__ import annotations

from fractions import Fraction

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import planned
from pytest_caliper.runs.records import TaskResult
from pytest_caliper.scoring import BarVerdict, Over, flawless_needed, judge_bar

BAR_STYLES = {"met": "green", "missed": "red", "inconclusive": "yellow", "unmeasured": "magenta"}
"""Rich styles of the verdict's words."""


def share(value: Fraction) -> str:
    """A bar as people say it, exact: `80%`, `62.5%`, else `2/3`."""
    tenths = value * 1000
    return f"{float(value * 100):g}%" if tenths.denominator == 1 else str(value)


def bar_verdict(result: TaskResult) -> BarVerdict | None:
    """The task against its bar, judged anew from its attempts; None without a bar."""
    if result.bar is None:
        return None
    asked = result.bar
    return judge_bar(result.successes, result.usable, planned(result), asked.rate, asked.policy, min_coverage=asked.min_coverage)


def was_judged(result: TaskResult) -> bool:
    """Whether the session came to judging the task's bar: an interrupted one did not."""
    return result.aborted or len(result.attempts) >= planned(result)


def bar_line(verdict: BarVerdict) -> str:
    """`bar 80%: met`, or `bar 80% (lower bound): inconclusive, 13 more usable attempts at this rate…`."""
    name = f"bar {share(verdict.bar)}" + (" (lower bound)" if verdict.policy == "lower" else "")
    added = [] if verdict.covered or verdict.word == "unmeasured" else [f"but {_coverage(verdict)}"]
    if settle := settling(verdict):
        added.append(settle)
    return f"{name}: {verdict.word}" + (f", {'; '.join(added)}" if added else "")


def bar_reason(verdict: BarVerdict) -> str:
    """One line: what became of the bar, and the numbers that decided."""
    bar = f"the bar of {share(verdict.bar)}"
    if verdict.word == "unmeasured":
        return f"{bar} is not met: no attempt was usable"
    seen = f"{verdict.successes}/{verdict.usable} passed, {_measured(verdict)}"
    if verdict.word == "inconclusive":
        settle = settling(verdict)
        return f"{bar} is not met, inconclusive: {seen}" + (f"; {settle}" if settle else "")
    if verdict.word == "met" and not verdict.covered:
        return f"{bar} is met by too few attempts: {seen}, {_coverage(verdict)}"
    return f"{bar} is {verdict.word}: {seen}"


def bar_text(verdict: BarVerdict, *, location: str, selected_of: int | None) -> str:
    """Everything that decided, a fact per line, for pytest's FAILURES section. `selected_of` is k where fewer were selected."""
    facts = [
        ("Rate", f"{verdict.successes}/{verdict.usable} usable attempts passed: {_measured(verdict, '95% interval')}"),
        ("Bar", f"{share(verdict.bar)}, {_policy(verdict)}"),
        ("Coverage", f"{verdict.usable}/{verdict.planned} planned attempts were usable{_wanted(verdict)}"),
    ]
    if verdict.lost is not None:
        low, high = verdict.lost
        count = verdict.planned - verdict.usable
        had = "had it" if count == 1 else "had they"
        worst = f"{numbers.rate(low)} {had} failed, {numbers.rate(high)} {had} passed" if verdict.usable else "nothing is known"
        facts.append(("Lost", f"{count} of {verdict.planned}: {worst}"))
    if verdict.word == "inconclusive":
        facts.append(("To settle it", settling(verdict) or "no number of attempts would: the rate is the bar itself"))
    if selected_of is not None:
        facts.append(("Partial", f"{verdict.planned} of {selected_of} attempts of this task were selected"))
    width = max(len(name) for name, _ in facts) + 2
    return "\n".join([f"{location}: {bar_reason(verdict)}", "", *(f"  {name + ':':<{width}}{fact}" for name, fact in facts)])


def settling(verdict: BarVerdict) -> str | None:
    """How many attempts would settle an inconclusive bar; None where there is nothing to settle, or no number would."""
    if verdict.word != "inconclusive":
        return None
    if verdict.bar == 1:
        return "no number of attempts clears a lower bound of 100%: take a lower bar, or the policy point"
    more = verdict.more
    if more is None:
        return None
    if isinstance(more, Over):
        return f"it takes {more} usable attempts to settle it at this rate"
    return f"{numbers.plural(more, 'more usable attempt')} at this rate would settle it ({verdict.needed} in all)"


def hopeless(bar: Fraction, planned: int) -> str | None:
    """Why so few attempts cannot clear the bar by their lower bound, even if all pass; None when they can."""
    needed = flawless_needed(bar)
    if needed is None:
        return "no number of attempts clears a lower bound of 100%: take a lower bar, or the policy point"
    if isinstance(needed, int) and planned >= needed:
        return None
    return f"{numbers.plural(planned, 'attempt')} cannot clear a lower bound of {share(bar)}, even if all pass: it takes {needed}"


def _measured(verdict: BarVerdict, named: str = "") -> str:
    rate = None if verdict.rate is None else float(verdict.rate)
    return " ".join(filter(None, [numbers.rate(rate) + ("," if named else ""), named, numbers.interval(verdict.interval)]))


def _policy(verdict: BarVerdict) -> str:
    if verdict.policy == "point":
        return "which the rate must reach (policy point)"
    return "which the lower end of the 95% interval must reach (policy lower)"


def _coverage(verdict: BarVerdict) -> str:
    return f"coverage {verdict.usable}/{verdict.planned} is below {share(verdict.min_coverage)}"


def _wanted(verdict: BarVerdict) -> str:
    return f", at least {share(verdict.min_coverage)} wanted" if verdict.min_coverage else ""
