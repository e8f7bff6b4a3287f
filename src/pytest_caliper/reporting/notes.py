"""What stands below a task's rows: lost attempts, faults and, on demand, several attempts' chances and the judges' reasons."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.bars import BAR_STYLES, bar_line, bar_verdict, share, was_judged
from pytest_caliper.reporting.evidence import attempt_name, says
from pytest_caliper.reporting.figures import planned
from pytest_caliper.reporting.style import MARK_STYLES, MARKS, Style
from pytest_caliper.reporting.text import clip, one_line
from pytest_caliper.runs.records import AttemptRecord, Run, TaskResult
from pytest_caliper.scoring import bounds, pass_at, pass_at_k, pass_hat, pass_hat_k

_REASON_CHARS = 400
"""Kept of each attempt's reasons at verbosity 1."""
_ALL_CHARS = 20_000
"""Kept of them above."""
_LOSS_CHARS = 160
_SIZES = (2, 3, 4, 5, 10, 20, 50, 100)
"""Numbers of attempts j for which pass@j is told."""


def task_notes(run: Run, results: Sequence[TaskResult], style: Style, verbosity: int) -> list[Text]:
    """The notes of one task; `results` are its arms, one or two."""
    arms = [("" if len(results) == 1 else f"{_arm(result)}: ", result) for result in results]
    notes = [note for result in results for note in _bar(result, style)]
    notes += _selection(run, results)
    notes += [note for arm, result in arms for note in _losses(arm, result, style)]
    notes += [note for result in results for record in result.attempts for note in _cleanup(record, style)]
    if verbosity >= 1:
        notes += [note for arm, result in arms for note in _chances(arm, result)]
        notes += _reasons(results, style, chars=_REASON_CHARS if verbosity == 1 else _ALL_CHARS)
    return notes


def _arm(result: TaskResult) -> str:
    return "skill" if result.arm == "skill" else "no skill"


def _bar(result: TaskResult, style: Style) -> list[Text]:
    """The verdict on the task's bar, where it has one and something of it was to run."""
    verdict = bar_verdict(result)
    if verdict is None or not planned(result):
        return []
    if not was_judged(result):
        return [
            Text(style.own(f"bar {share(verdict.bar)}: not judged, since attempts are missing"), style=BAR_STYLES["inconclusive"])
        ]
    return [Text(style.own(bar_line(verdict)), style=BAR_STYLES["missed" if not verdict.covered else verdict.word])]


def _selection(run: Run, results: Sequence[TaskResult]) -> list[Text]:
    results = [result for result in results if result.arm == "skill" or run.meta.baseline_from is None]
    possible = run.meta.k * (2 if run.meta.baseline and run.meta.baseline_from is None else 1)
    selected = sum(map(planned, results))
    if not run.meta.partial or selected >= possible:
        return []
    return [Text(f"{selected} of {possible} attempts of this task selected", style="yellow")]


def _losses(arm: str, result: TaskResult, style: Style) -> list[Text]:
    """How many planned attempts do not count, what the rate could have been with them, and why they were lost."""
    lost = planned(result) - result.usable
    limits = bounds(result.successes, result.usable, lost)
    if not lost or limits is None:
        return []
    them = "it" if lost == 1 else "they"
    worst = (
        f": {numbers.rate(limits.low)} had {them} failed, {numbers.rate(limits.high)} had {them} passed" if result.usable else ""
    )
    return [Text(f"{arm}{lost} of {planned(result)} lost{worst} ({style.foreign(_why_lost(result))})", style="yellow")]


def _why_lost(result: TaskResult) -> str:
    lost = [record for record in result.attempts if not record.usable]
    reasons = dict.fromkeys(f"{r.outcome}: {one_line(r.reason)}" if r.reason else r.outcome for r in lost)
    told = [_cut(reason, _LOSS_CHARS) for reason in reasons]
    missing = planned(result) - len(result.attempts)
    return "; ".join([*told, f"{missing} not run"] if missing else told)


def _cut(text: str, chars: int) -> str:
    kept, cut = clip(text, chars=chars, lines=1)
    return f"{kept}…" if cut else kept


def _cleanup(record: AttemptRecord, style: Style) -> list[Text]:
    if record.cleanup_error is None:
        return []
    text = _cut(one_line(record.cleanup_error), _REASON_CHARS)
    return [Text(f"! cleanup failed in {attempt_name(record.key)}: {style.foreign(text)}", style="yellow")]


def _chances(arm: str, result: TaskResult) -> list[Text]:
    """pass@k and pass^k as caliper-eval has them, then the unbiased ones for fewer attempts than were usable."""
    c, n = result.successes, result.usable
    if not n:
        return []
    note = f"{arm}pass@{n} {numbers.rate(pass_at_k(c, n))}, pass^{n} {numbers.rate(pass_hat_k(c, n))} (plug-in)"
    for j in (j for j in _SIZES if j < n):
        note += f"; pass@{j} {numbers.rate(pass_at(j, c, n))}, pass^{j} {numbers.rate(pass_hat(j, c, n))}"
    return [Text(f"{note} (unbiased)" if n > _SIZES[0] else note, style="dim")]


def _reasons(results: Sequence[TaskResult], style: Style, *, chars: int) -> list[Text]:
    records = [record for result in results for record in result.attempts]
    width = max((len(attempt_name(record.key)) for record in records), default=0)
    return [_reason(record, width, style, chars) for record in records]


def _reason(record: AttemptRecord, width: int, style: Style, chars: int) -> Text:
    mark = MARKS[record.outcome]
    text, cut = clip("; ".join(one_line(part) for part in says(record)), chars=chars, lines=1)
    note = Text().append(style.own(mark), style=MARK_STYLES[mark]).append(f" {attempt_name(record.key):<{width}}  ")
    note.append(style.foreign(text))
    return note.append(style.own(f"… ({cut:,} more characters)"), style="dim") if cut else note
