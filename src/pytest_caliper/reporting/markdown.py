"""One run as a comment on a pull request: the answer first, then the tasks, then why attempts failed, folded.

It always fits GitHub's limit: whole tasks and whole failures are left out, the least important first, and it says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.bars import bar_verdict, was_judged
from pytest_caliper.reporting.evidence import attempt_name
from pytest_caliper.reporting.failures import sections
from pytest_caliper.reporting.figures import (
    Arms,
    BaselineFigures,
    arms_of,
    baseline_figures,
    paired,
    planned,
    spend,
    status_word,
)
from pytest_caliper.reporting.markdown_comparison import render_markdown_comparison
from pytest_caliper.reporting.markdown_parts import (
    LEAST,
    LIMIT,
    NOTICES,
    SPARE,
    STYLE,
    Part,
    cost,
    fitting,
    left_out,
    row,
    spend_cells,
    strip,
)
from pytest_caliper.reporting.markup import block, cell, code, html_code, marker, size
from pytest_caliper.reporting.notes import task_notes
from pytest_caliper.reporting.style import MARKS
from pytest_caliper.reporting.summary import engine_text, judge_text, notices_of
from pytest_caliper.reporting.text import clip, one_line
from pytest_caliper.reporting.totals import attempts_fact, tokens_fact, verdict_text, wall_fact, worst_case_fact
from pytest_caliper.runs.records import AttemptRecord, Run, TaskResult
from pytest_caliper.scoring import success_rate, wilson

__all__ = ["LEAST", "LIMIT", "render_markdown", "render_markdown_comparison"]

_TABLE_SHARE, _NOTES_SHARE = 0.6, 0.3
"""Of the room that is left at their turn, at most, for the table and the notes: reasons want some of it."""
_TEXT = (2_000, 40)
"""Kept of each text of a failure: characters, lines."""
_RANKS = ("FAIL", "UNMEASURED", "ABORTED", "PARTIAL", "PASS")
"""Task statuses, the most important first."""


def render_markdown(run: Run, *, limit: int = LIMIT) -> str:
    """The report, at most `limit` characters (as GitHub counts) long, ended by a newline. Raises ValueError below `LEAST`.

    Its first line is `markup.marker` of the spec.
    """
    if limit < LEAST:
        raise ValueError(f"limit must be at least {LEAST:,}, got {limit:,}")
    arms, compared = arms_of(run), baseline_figures(run)
    head = [marker(run.meta.spec), *_answer(run, arms, compared)]
    header, totals, foot = _header(compared), _totals(arms, compared), _foot(run, arms)
    room = limit - SPARE - sum(size(text) + 2 for text in (*head, header, totals, foot))
    rows, lost_rows = fitting(_rows(run, compared), int(room * _TABLE_SHARE))
    room -= cost(rows)
    notes, lost_notes = fitting(_notes(run), int(room * _NOTES_SHARE))
    failures, lost_failures = fitting(_failures(run), room - cost(notes))
    table = "\n".join([header, *(part.text for part in rows), *([totals] if len(paired(run)) > 1 else [])])
    texts = [
        *head,
        table if rows else "",
        left_out(lost_rows, rows, "task"),
        "\n".join(note.text for note in notes),
        left_out(lost_notes, notes, "note"),
        *(failure.text for failure in failures),
        left_out(lost_failures, failures, "failing attempt"),
        foot,
    ]
    return "\n\n".join(text for text in texts if text) + "\n"


def _answer(run: Run, arms: Arms, compared: BaselineFigures | None) -> Iterator[str]:
    """Does it work, how sure is that, what was lost, what does the skill add."""
    spec, skill = code(run.meta.spec), arms[0][1]
    if skill.suite is None:
        yield f"### {spec}: nothing was measured"
    else:
        limits = numbers.interval((skill.suite.low, skill.suite.high))
        yield f"### {spec}: a single run passes {numbers.rate(skill.suite.rate)} of the time, 95% interval {limits}"
    lines = []
    if compared is not None:
        added = verdict_text(compared, tasks=len(paired(run)), style=STYLE).plain
        lines.append(f"**What the skill adds:** {added}")
    bars = [verdict for result in run.results if planned(result) and (verdict := bar_verdict(result)) is not None]
    judged = [verdict.reached for result in run.results if was_judged(result) and (verdict := bar_verdict(result)) is not None]
    if bars:
        reached = sum(judged)
        lines.append(f"**Bars:** {reached} of {numbers.plural(len(bars), 'task')} reached theirs")
    for name, arm in arms:
        worst = worst_case_fact(arm)
        lines.append(f"{name + ': ' if name else ''}{attempts_fact(arm)}" + (f" · **worst case** {worst}" if worst else ""))
    yield "  \n".join(lines)
    notices = notices_of(run, arms)
    told = [f"- ⚠ {code(notice)}" for notice in notices[:NOTICES]]
    if len(notices) > NOTICES:
        told.append(f"- and {len(notices) - NOTICES} more")
    yield "\n".join(told)


def _header(compared: BaselineFigures | None) -> str:
    names = ["Task", "Attempts", "Rate", "95% interval", "Status", "Tokens", "Wall"]
    rule = [":--", ":--", "--:", "--:", ":--", "--:", "--:"]
    if compared is not None:
        names, rule = ["Task", "", *names[1:], "Δ pts"], [":--", ":--", *rule[1:], "--:"]
    return f"{row(names)}\n{row(rule)}"


def _rows(run: Run, compared: BaselineFigures | None) -> Iterator[Part]:
    for place, pair in enumerate(paired(run)):
        first = next(result for result in pair if result is not None)
        yield Part(text=_task_rows(pair, cell(first.task_name), compared), rank=(_rank(first), place), place=(place,))


def _task_rows(pair: tuple[TaskResult | None, TaskResult | None], name: str, compared: BaselineFigures | None) -> str:
    if compared is None:
        return "\n".join(row([name, *_task_cells(result)]) for result in pair if result is not None)
    rows: list[str] = []
    for arm, result in zip(("skill", "no skill"), pair, strict=True):
        if result is None:
            continue
        change = compared.changes.get(result.task_id) if result.arm == "skill" else None
        delta = numbers.signed(change.delta) if change else ""
        word = f" {change.word}" if change and change.word else ""
        rows.append(row(["" if rows else name, arm, *_task_cells(result), delta + word]))
    return "\n".join(rows)


def _task_cells(result: TaskResult) -> list[str]:
    c, n = result.successes, result.usable
    status = status_word(result) if planned(result) else ""
    return [
        strip(result),
        f"**{numbers.rate(success_rate(c, n))}**",
        numbers.interval(wilson(c, n)),
        status,
        *_spent(result.attempts),
    ]


def _totals(arms: Arms, compared: BaselineFigures | None) -> str:
    rows: list[str] = []
    for name, arm in arms:
        suite = arm.suite
        rate = numbers.rate(suite.rate if suite else None)
        limits = numbers.interval((suite.low, suite.high) if suite else None)
        cells = [f"{arm.successes}/{arm.usable}", f"**{rate}**", limits, "", *spend_cells(arm.spend)]
        head = "" if rows else "**All tasks**"
        if compared is None:
            rows.append(row([head, *cells]))
        else:
            delta = numbers.signed(compared.comparison.delta) if compared.comparison and not rows else ""
            rows.append(row([head, name, *cells, delta]))
    return "\n".join(rows)


def _spent(records: Iterable[AttemptRecord]) -> list[str]:
    return spend_cells(spend(records))


def _rank(result: TaskResult) -> int:
    return _RANKS.index(status_word(result))


def _notes(run: Run) -> Iterator[Part]:
    """What was lost of each task and why, and what else is wrong with it."""
    for place, pair in enumerate(paired(run)):
        results = [result for result in pair if result is not None]
        for number, note in enumerate(task_notes(run, results, STYLE, 0)):
            text = f"- {code(results[0].task_name, chars=80)}: {code(note.plain, chars=400)}"
            yield Part(text=text, rank=(number, place), place=(place, number))


def _failures(run: Run) -> Iterator[Part]:
    """Every attempt with the skill that did not pass. The first of each task matters most, and lost ones least."""
    for place, result in enumerate(run.results):
        failed = [record for record in result.attempts if record.outcome != "pass"]
        for number, record in enumerate(failed):
            rank = (0 if record.usable else 1, number, _rank(result), place)
            yield Part(text=_failure(record, result), rank=rank, place=(place, record.key.attempt))


def _failure(record: AttemptRecord, result: TaskResult) -> str:
    reason = html_code(record.reason or record.outcome, chars=160)
    name = html_code(result.task_name, chars=80)
    lines = [f"<details><summary>{MARKS[record.outcome]} {name} {attempt_name(record.key)}: {reason}</summary>"]
    if record.reason is not None and size(record.reason) > 160:
        lines += ["**Why:**", block(clip(one_line(record.reason), chars=_TEXT[0], lines=1)[0])]
    for title, text in sections(record, result.expect, limit=_TEXT):
        lines += [f"**{title}**", block(text)]
    return "\n\n".join([*lines, "</details>"])


def _foot(run: Run, arms: Arms) -> str:
    """What it cost and what it was measured with."""
    meta = run.meta
    costs = [f"{name + ': ' if name else ''}{tokens_fact(arm)} tokens · {wall_fact(arm)}" for name, arm in arms]
    versions = [("pytest-caliper", meta.pytest_caliper), ("CLI", meta.cli_version), ("judge's CLI", meta.judge_cli_version)]
    facts = [f"k={meta.k}", f"engine {code(engine_text(run))}", code(judge_text(run))]
    facts += [f"{what} {code(version, chars=40)}" for what, version in versions if version]
    facts.append(f"run {code(meta.id, chars=40)} of {code(meta.timestamp, chars=40)}")
    return f"<sub>{'; '.join(costs)}<br>{' · '.join(facts)}</sub>"
