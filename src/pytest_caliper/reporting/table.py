"""The table of tasks: a row per task and arm, then, for several, those of all tasks together.

Tokens and wall time count every attempt, since all were paid for; `159K+` means that not every attempt told its usage.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import (
    ArmFigures,
    Arms,
    BaselineFigures,
    Spend,
    paired,
    planned,
    spend,
    status_word,
)
from pytest_caliper.reporting.layout import Column, Group, Row, Table, rendered, wrapped
from pytest_caliper.reporting.notes import task_notes
from pytest_caliper.reporting.style import MARK_STYLES, MARKS, MEANINGS, NOT_RUN, WORD_STYLES, Style
from pytest_caliper.reporting.text import one_line
from pytest_caliper.runs.records import Run, TaskResult
from pytest_caliper.scoring import success_rate, wilson

_STATUS_STYLES = {"PASS": "green", "PARTIAL": "yellow", "FAIL": "red", "ABORTED": "magenta", "UNMEASURED": "magenta"}
_COLUMNS = (
    Column(header="Attempts"),
    Column(header="Rate", align="right"),
    Column(header="95% interval", align="right"),
    Column(header="Status"),
    Column(header="Tokens", align="right"),
    Column(header="Wall", align="right"),
)
_ARM_NAMES = ("skill", "no skill")


def table_lines(run: Run, arms: Arms, compared: BaselineFigures | None, style: Style, verbosity: int) -> list[Text]:
    """The lines of the table, for a run with at least one task."""
    groups = [_task_group(run, pair, compared, style, verbosity) for pair in paired(run)]
    if len(groups) > 1:
        groups.append(_total_group(arms, compared, style))
    if compared is None:
        return rendered(Table(columns=_COLUMNS, groups=groups, strip=0, names_beside=True), style)
    columns = (Column(header=""), *_COLUMNS, Column(header="Δ pts" if style.unicode else "Diff", align="right"))
    return rendered(Table(columns=columns, groups=groups, strip=1, names_beside=False), style)


def legend(run: Run, style: Style) -> list[Text]:
    """The meaning of the marks, where one occurs that does not speak for itself."""
    return legend_of([result for pair in paired(run) for result in pair if result is not None], style)


def legend_of(results: Iterable[TaskResult], style: Style) -> list[Text]:
    """The meaning of the marks of these tasks, where one occurs that does not speak for itself."""
    used = {mark for result in results for mark in marks_of(result)}
    if style.unicode and used <= {"✓", "✗"}:
        return []
    meanings = [f"{style.own(mark)} {meaning}" for mark, meaning in MEANINGS.items() if mark in used]
    return wrapped(Text("  ".join(meanings), style="dim"), style, indent="  ")


def _task_group(
    run: Run, pair: tuple[TaskResult | None, TaskResult | None], compared: BaselineFigures | None, style: Style, verbosity: int
) -> Group:
    known = [result for result in pair if result is not None]
    shown_id = "" if run.meta.spec.endswith(".py") else f"{known[0].task_id} "  # that of a test is its name once more
    name = Text(shown_id, style="dim").append(style.foreign(one_line(known[0].task_name)), style="not dim bold")
    notes = task_notes(run, known, style, verbosity)
    if compared is None:
        return Group(name=name, rows=[_task_cells(known[0], style)], notes=notes)
    change = compared.changes.get(known[0].task_id)
    word = change.word if change else None
    deltas = (delta_text(change.delta if change else None, style), Text(word or "", style=WORD_STYLES.get(word or "", "")))
    rows: list[Row] = [
        [Text(arm), *_task_cells(result, style), delta]
        for arm, result, delta in zip(_ARM_NAMES, pair, deltas, strict=True)
        if result is not None
    ]
    return Group(name=name, rows=rows, notes=notes)


def _task_cells(result: TaskResult, style: Style) -> Row:
    status = status_word(result) if planned(result) else ""
    return [
        strip_text(result, style),
        *_rate_cells(success_rate(result.successes, result.usable), wilson(result.successes, result.usable), style),
        Text(status, style=_STATUS_STYLES.get(status, "")),
        *_spend_cells(spend(result.attempts), style),
    ]


def _total_group(arms: Arms, compared: BaselineFigures | None, style: Style) -> Group:
    name = Text("All tasks", style="bold").append(" (mean of the tasks' rates)", style="not bold dim")
    if compared is None:
        return Group(name=name, rows=[_total_cells(arms[0][1], style)], ruled=True)
    comparison = compared.comparison
    delta = delta_text(comparison.delta if comparison else None, style)
    rows: list[Row] = [
        [Text(arm), *_total_cells(figures, style), cell] for (arm, figures), cell in zip(arms, (delta, Text()), strict=True)
    ]
    return Group(name=name, rows=rows, ruled=True)


def _total_cells(arm: ArmFigures, style: Style) -> Row:
    suite = arm.suite
    return [
        Text(f"{arm.successes}/{arm.usable}"),
        *_rate_cells(suite.rate if suite else None, (suite.low, suite.high) if suite else None, style),
        Text(),
        *_spend_cells(arm.spend, style),
    ]


def _rate_cells(rate: float | None, limits: tuple[float, float] | None, style: Style) -> Row:
    return [Text(style.own(numbers.rate(rate)), style="bold"), Text(style.own(numbers.interval(limits)))]


def _spend_cells(cost: Spend, style: Style) -> Row:
    known = numbers.tokens(cost.total_tokens)
    at_least = "" if cost.complete or cost.total_tokens is None else "+"
    return [Text(style.own(f"{known}{at_least}")), Text(style.own(numbers.duration(cost.wall_s)))]


def delta_text(value: float | None, style: Style) -> Text:
    """A difference of rates in points."""
    color = "" if not value else "green" if value > 0 else "red"
    return Text(style.own(numbers.signed(value)), style=color)


def strip_text(result: TaskResult, style: Style) -> Text:
    """The task's attempts, a mark each."""
    strip = Text()
    for mark in marks_of(result):
        strip.append(style.own(mark), style=MARK_STYLES[mark])
    return strip or Text(style.own(numbers.UNKNOWN), style="dim")


def marks_of(result: TaskResult) -> list[str]:
    """The marks of its attempts in order, then those of the planned ones that never ran."""
    return [MARKS[record.outcome] for record in result.attempts] + [NOT_RUN] * (planned(result) - len(result.attempts))
