"""Bars in words, and in the summaries of a run."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from builders import run, task

from pytest_caliper.gates import thin_coverage, unjudged
from pytest_caliper.reporting.bars import bar_line, bar_reason, bar_text, bar_verdict, hopeless, share
from pytest_caliper.reporting.terminal import Style, render_summary
from pytest_caliper.runs.records import Bar, TaskResult
from pytest_caliper.scoring import BarPolicy, BarVerdict

STYLE = Style(width=100, color=False, unicode=True)


def barred(strip: str, rate: str = "4/5", policy: BarPolicy = "point", least: str = "1/2") -> TaskResult:
    return task(strip, bar=Bar(rate=Fraction(rate), policy=policy, min_coverage=Fraction(least)))


def verdict(*arguments: str) -> BarVerdict:
    found = bar_verdict(barred(*arguments))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("4/5", "80%"),
        ("1", "100%"),
        ("5/8", "62.5%"),
        ("2/3", "2/3"),
        ("1/1000", "0.1%"),
        ("999/1000", "99.9%"),
        ("1/10000", "1/10000"),
    ],
)
def test_a_rate_is_told_exactly(rate: str, words: str) -> None:
    assert share(Fraction(rate)) == words


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("PPPPF",), "bar 80%: met"),
        (("PPF",), "bar 80%: missed"),
        (("UUU",), "bar 80%: unmeasured"),
        (("PUU",), "bar 80%: met, but coverage 1/3 is below 50%"),
        (
            ("PPP", "4/5", "lower"),
            "bar 80% (lower bound): inconclusive, 13 more usable attempts at this rate would settle it (16 in all)",
        ),
        (("PPPPF", "4/5", "lower"), "bar 80% (lower bound): inconclusive"),
        (
            ("P", "999/1000", "lower"),
            "bar 99.9% (lower bound): inconclusive, it takes over 1000 usable attempts to settle it at this rate",
        ),
    ],
)
def test_the_line_of_a_task(arguments: tuple[str, ...], line: str) -> None:
    assert bar_line(verdict(*arguments)) == line


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("PPPPF",), "the bar of 80% is met: 4/5 passed, 80.0% [37.6, 96.4]"),
        (("UUU",), "the bar of 80% is not met: no attempt was usable"),
        (("FFF", "4/5", "lower"), "the bar of 80% is missed: 0/3 passed, 0.0% [0.0, 56.1]"),
        (
            ("PPP", "1", "lower"),
            "the bar of 100% is not met, inconclusive: 3/3 passed, 100.0% [43.9, 100.0]; no number of attempts clears a lower bound of "
            "100%: take a lower bar, or the policy point",
        ),
    ],
)
def test_the_reason_is_one_line(arguments: tuple[str, ...], reason: str) -> None:
    assert bar_reason(verdict(*arguments)) == reason


def test_the_whole_text() -> None:
    assert bar_text(verdict("PFTU-", "4/5", "lower"), location="x.eval.yaml:3", selected_of=9).splitlines() == [
        "x.eval.yaml:3: the bar of 80% is not met, inconclusive: 1/2 passed, 50.0% [9.5, 90.5]; 6 more usable attempts at this rate "
        "would settle it (8 in all)",
        "",
        "  Rate:         1/2 usable attempts passed: 50.0%, 95% interval [9.5, 90.5]",
        "  Bar:          80%, which the lower end of the 95% interval must reach (policy lower)",
        "  Coverage:     2/5 planned attempts were usable, at least 50% wanted",
        "  Lost:         3 of 5: 20.0% had they failed, 80.0% had they passed",
        "  To settle it: 6 more usable attempts at this rate would settle it (8 in all)",
        "  Partial:      5 of 9 attempts of this task were selected",
    ]
    assert "To settle" not in bar_text(verdict("PPF"), location="x:1", selected_of=None)
    assert "the rate is the bar itself" in bar_text(verdict("PPPPF", "4/5", "lower"), location="x:1", selected_of=None)


def test_too_few_attempts_are_told_before_they_run() -> None:
    assert hopeless(Fraction(4, 5), 15) == "15 attempts cannot clear a lower bound of 80%, even if all pass: it takes 16"
    assert hopeless(Fraction(4, 5), 16) is None
    assert (
        hopeless(Fraction(999, 1000), 5) == "5 attempts cannot clear a lower bound of 99.9%, even if all pass: it takes over 1000"
    )


def test_summaries_tell_the_bar() -> None:
    made = run(barred("PPF"), replace(barred("PPP"), task_id="task-002"), task("PPP", number=3))
    text = render_summary([made], style=STYLE, verbosity=0)
    assert [line.strip() for line in text.splitlines() if "bar" in line] == ["bar 80%: missed", "bar 80%: met"]
    assert "; bars 1/2 met" in render_summary([made], style=STYLE, verbosity=-1)
    assert "bars" not in render_summary([run(task("PPP"))], style=STYLE, verbosity=-1)
    narrow = render_summary(
        [run(barred("PPP", "4/5", "lower"), saved=None)], style=replace(STYLE, width=40, unicode=False), verbosity=0
    )
    assert max(map(len, narrow.splitlines())) <= 40
    assert narrow.isascii()


def test_coverage_is_told_once_for_whom_it_concerns() -> None:
    made = run(task("PUU"), task("PPU", number=2), task("UUU", number=3), task("P--", number=4, name="a\x1b[31m\u2028b"))
    told = list(thin_coverage(made, Fraction(1, 2), set()))
    assert len(told) == 2
    assert "coverage 1/3 is below 50% (--caliper-min-coverage): the rate is between 33.3% and 100.0%" in told[0]
    assert told[1].isprintable()
    assert len(list(thin_coverage(made, Fraction(1, 2), {("task-004", "skill")}))) == 1
    assert not list(thin_coverage(made, Fraction(0), set()))


def test_bars_that_were_not_reached() -> None:
    assert unjudged(["A"]) == "1 bar never judged (A)"
    assert unjudged(["A", "B\nC"]) == "2 bars never judged (A, B C)"
