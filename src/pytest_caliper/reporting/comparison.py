"""Two sides on the terminal: the tasks before -> after, then the verdict, then what it cost and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import TypeVar

from rich.text import Text

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.comparing import ComparedTask, RunComparison, Side
from pytest_caliper.reporting.figures import ArmFigures, planned, spend
from pytest_caliper.reporting.layout import Column, Group, Row, Table, rendered, to_string, wrapped
from pytest_caliper.reporting.style import WORD_STYLES, Style
from pytest_caliper.reporting.summary import engine_text, judge_text
from pytest_caliper.reporting.table import delta_text, legend_of, marks_of, strip_text
from pytest_caliper.reporting.text import one_line
from pytest_caliper.reporting.totals import attempts_fact, difference_text, worst_case_fact
from pytest_caliper.runs.records import TaskResult
from pytest_caliper.scoring import bounds, wilson

_KEY = 16
_STRIP = 20
"""Attempts per side up to which they are drawn one by one."""
_WORDS = {"better": "better", "worse": "worse", "no evidence": "no evidence of a difference"}
_COLUMNS = (
    Column(header="Attempts"),
    Column(header="Rate", align="right"),
    Column(header="", align="right"),
    Column(header=""),
)
_DELTA = 2

N = TypeVar("N", int, float)


def render_comparison(comparison: RunComparison, *, style: Style, verbosity: int) -> str:
    """The text, each line ended by a newline. From `verbosity` 1 on with the tasks' intervals, p values and spend per attempt."""
    lines = [*_title(comparison, style), *_notices(comparison, style), Text()]
    groups = [_group(task, comparison, style, verbosity) for task in comparison.tasks]
    if groups:
        lines += [*_table(groups, comparison, style), *_legend(comparison, style), Text()]
    lines += _verdict(comparison, style)
    return to_string([*lines, *_facts(comparison, style), *_left_out(comparison, style)], style)


def _title(comparison: RunComparison, style: Style) -> list[Text]:
    before, after = comparison.before, comparison.after
    specs = list(dict.fromkeys(one_line(side.run.meta.spec) for side in (before, after)))
    lines = wrapped(Text(style.foreign(specs[-1]), style="bold").append(style.own(f"  {before.label} → {after.label}")), style)
    if before.run is after.run:
        return lines + wrapped(Text(style.foreign(_made(before))), style, indent="  ", first=Text("  "))
    for side in (before, after):
        told = Text(style.foreign(_made(side)))
        lines += wrapped(told, style, indent=" " * 10, first=Text(f"  {side.label:<6}  ", style="dim"))
    return lines


def _made(side: Side) -> str:
    """`2026-07-01 10:00 UTC, k=3, engine …, judge …, <file>`."""
    meta = side.run.meta
    when = one_line(meta.timestamp)[:16].replace("T", " ")
    facts = [f"{when} UTC", f"k={meta.k}", f"engine {engine_text(side.run)}", judge_text(side.run)]
    if side.run.saved is not None:
        facts.append(one_line(PurePath(side.run.saved).name))
    return ", ".join(facts)


def _notices(comparison: RunComparison, style: Style) -> list[Text]:
    return [
        line
        for difference in comparison.differences
        for line in wrapped(
            Text(style.foreign(style.own(difference.text)), style="yellow"), style, indent="  ", first=Text("! ", style="yellow")
        )
    ]


def _group(task: ComparedTask, comparison: RunComparison, style: Style, verbosity: int) -> Group:
    word = task.change.word if task.change else None
    row: Row = [
        _strips(task, style),
        Text(style.own(f"{numbers.rate(task.before_rate):>6} → {numbers.rate(task.after_rate):>6}"), style="bold"),
        delta_text(task.delta, style),
        Text(word or "", style=WORD_STYLES.get(word or "", "")),
    ]
    notes = list(_notes(task, comparison, style))
    if verbosity >= 1:
        notes += _details(task, comparison, style)
    return Group(name=Text().append(style.foreign(one_line(task.name)), style="bold"), rows=[row], notes=notes)


def _strips(task: ComparedTask, style: Style) -> Text:
    if max(len(marks_of(task.before)), len(marks_of(task.after))) > _STRIP:
        counts = [f"{result.successes}/{result.usable}" for result in (task.before, task.after)]
        return Text(style.own(" → ".join(counts)))
    return strip_text(task.before, style).append(style.own(" → "), style="dim").append_text(strip_text(task.after, style))


def _notes(task: ComparedTask, comparison: RunComparison, style: Style) -> Iterator[Text]:
    if task.changed:
        yield Text(f"not comparable: {' and '.join(task.changed)} changed", style="yellow")
    for side, result in ((comparison.before, task.before), (comparison.after, task.after)):
        lost = planned(result) - result.usable
        limits = bounds(result.successes, result.usable, lost)
        if lost and limits is not None:
            could = f": between {numbers.rate(limits.low)} and {numbers.rate(limits.high)} with them" if result.usable else ""
            yield Text(style.own(f"{side.label}: {lost} of {planned(result)} lost{could}"), style="yellow")


def _details(task: ComparedTask, comparison: RunComparison, style: Style) -> Iterator[Text]:
    for side, result in ((comparison.before, task.before), (comparison.after, task.after)):
        cost = spend(result.attempts)
        limits = numbers.interval(wilson(result.successes, result.usable))
        each = f"{numbers.tokens(_each(cost.total_tokens, cost.attempts))} tokens, {numbers.duration(cost.wall_per_attempt_s)}"
        yield Text(style.own(f"{side.label}: {limits}, {each} per attempt"), style="dim")
    if task.change is not None:
        yield Text(f"{numbers.p_value(task.change.p)}, corrected for the number of tasks", style="dim")


def _table(groups: list[Group], comparison: RunComparison, style: Style) -> list[Text]:
    if len(groups) > 1 and comparison.comparison is not None:
        groups.append(_total(comparison, style))
    columns = [*_COLUMNS]
    columns[_DELTA] = Column(header=style.own("Δ pts"), align="right")
    return rendered(Table(columns=columns, groups=groups, strip=0, names_beside=True), style)


def _total(comparison: RunComparison, style: Style) -> Group:
    before, after, found = comparison.before.compared, comparison.after.compared, comparison.comparison
    covered = found.tasks if found else 0
    title = "All tasks" if covered == len(comparison.tasks) else f"The {covered} measured on both sides"
    name = Text().append(title, style="bold")
    row: Row = [
        Text(style.own(f"{before.successes}/{before.usable} → {after.successes}/{after.usable}")),
        Text(style.own(f"{_rate(before):>6} → {_rate(after):>6}"), style="bold"),
        delta_text(found.delta if found else None, style),
        Text(),
    ]
    return Group(name=name, rows=[row], ruled=True)


def _rate(figures: ArmFigures) -> str:
    return numbers.rate(figures.suite.rate if figures.suite else None)


def _legend(comparison: RunComparison, style: Style) -> list[Text]:
    return legend_of([result for task in comparison.tasks for result in (task.before, task.after)], style)


def _verdict(comparison: RunComparison, style: Style) -> list[Text]:
    found = comparison.comparison
    if found is None:
        return _fact("Verdict", Text(style.own("Δ — no task is comparable and was measured on both sides")), style)
    told = difference_text(found, _WORDS, tasks=len(comparison.tasks), where="both", style=style)
    lines = _fact("Verdict", told, style)
    if comparison.delta_bounds is not None:
        limits = numbers.signed_interval((comparison.delta_bounds.low, comparison.delta_bounds.high))
        lines += _fact("Worst case", Text(style.own(f"Δ within {limits} pts, whatever the lost attempts would have done")), style)
    return lines


def _facts(comparison: RunComparison, style: Style) -> Iterator[Text]:
    sides = (comparison.before, comparison.after)
    for side in sides:
        suite = side.compared.suite
        if suite is not None:
            rate = f"{numbers.rate(suite.rate)} {numbers.interval((suite.low, suite.high))}"
            worst = worst_case_fact(side.compared)
            told = f"{rate} · {attempts_fact(side.compared)}" + (f"; {worst}" if worst else "")
            yield from _fact(side.label.capitalize(), Text(style.own(told)), style)
    before, after = (side.figures.spend for side in sides)
    each = [_each(cost.total_tokens, cost.attempts) for cost in (before, after)]
    walls = [cost.wall_per_attempt_s for cost in (before, after)]
    tokens = _changed(before.total_tokens, after.total_tokens, numbers.tokens)
    tokens += f"; per attempt {_changed(each[0], each[1], numbers.tokens)}" if None not in each else ""
    wall = _changed(before.wall_s, after.wall_s, numbers.duration)
    wall += f"; per attempt {_changed(walls[0], walls[1], numbers.duration)}" if None not in walls else ""
    yield from _fact("Tokens", Text(style.own(tokens)), style)
    yield from _fact("Wall", Text(style.own(wall)), style)


def _each(total: int | None, attempts: int) -> int | None:
    return None if total is None or not attempts else round(total / attempts)


def _changed(before: N | None, after: N | None, tell: Callable[[N | None], str]) -> str:
    """`636K → 583K (-8%)`."""
    text = f"{tell(before)} → {tell(after)}"
    if not before or after is None:
        return text
    percent = round(100 * (after - before) / before)
    return f"{text} ({percent:+d}%)" if percent else f"{text} (as before)"


def _left_out(comparison: RunComparison, style: Style) -> Iterator[Text]:
    before, after = comparison.before.label, comparison.after.label
    reference = [task.name for task in comparison.regressions]
    kinds: tuple[tuple[str, Sequence[str]], ...] = (
        ("Lower rates", reference),
        ("Not comparable", [task.name for task in comparison.not_comparable]),
        ("Unmeasured", [task.name for task in comparison.unmeasured]),
        (f"Only {before}", _names(comparison.unmatched_before)),
        (f"Only {after}", _names(comparison.unmatched_after)),
    )
    for key, names in kinds:
        if names:
            yield from _fact(key, Text(style.foreign("; ".join(map(one_line, names)))), style)


def _names(results: Sequence[TaskResult]) -> list[str]:
    return [result.task_name for result in results]


def _fact(key: str, text: Text, style: Style) -> list[Text]:
    head = Text(f"{key:<{_KEY}}", style="dim")
    return wrapped(text, style, indent=" " * head.cell_len, first=head)
