"""Two sides as a comment on a pull request: the word first, then the tasks before and after."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.comparing import ComparedTask, RunComparison, Side
from pytest_caliper.reporting.figures import ArmFigures
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
from pytest_caliper.reporting.markup import cell, code, marker, size
from pytest_caliper.reporting.summary import engine_text
from pytest_caliper.reporting.totals import attempts_fact, difference_text, worst_case_fact
from pytest_caliper.runs.records import TaskResult

_WORDS = {"better": "**better**", "worse": "**worse**", "no evidence": "**no evidence of a difference**"}
_TABLE_SHARE = 0.8


def render_markdown_comparison(comparison: RunComparison, *, limit: int = LIMIT) -> str:
    """The report, at most `limit` characters (as GitHub counts) long, ended by a newline. Raises ValueError below `LEAST`.

    Its first line is `markup.marker` of the second side's spec and of "compare": another comment than the run's own.
    """
    if limit < LEAST:
        raise ValueError(f"limit must be at least {LEAST:,}, got {limit:,}")
    before, after = comparison.before, comparison.after
    head = [marker(f"{after.run.meta.spec}#compare"), *_answer(comparison), _differences(comparison)]
    header = f"{row(['Task', before.label, after.label, 'Δ pts', ''])}\n{row([':--', ':--', ':--', '--:', ':--'])}"
    foot = _foot(comparison)
    room = limit - SPARE - sum(size(text) + 2 for text in (*head, header, foot))
    rows, lost_rows = fitting(_rows(comparison), int(room * _TABLE_SHARE))
    others, lost_others = fitting(_unmatched(comparison), room - cost(rows))
    texts = [
        *head,
        "\n".join([header, *(part.text for part in rows)]) if rows else "",
        left_out(lost_rows, rows, "task"),
        "\n".join(part.text for part in others),
        left_out(lost_others, others, "task of one side"),
        foot,
    ]
    return "\n\n".join(text for text in texts if text) + "\n"


def _answer(comparison: RunComparison) -> Iterator[str]:
    before, after, found = comparison.before, comparison.after, comparison.comparison
    spec = code(after.run.meta.spec)
    if found is None:
        yield f"### {spec}: nothing can be compared"
        yield "No task asks for the same and was measured on both sides."
        return
    yield f"### {spec}: {found.word if found.word != 'no evidence' else 'no evidence of a difference'}"
    verdict = difference_text(found, _WORDS, tasks=len(comparison.tasks), where="both", style=STYLE).plain
    lines = [f"{verdict}", *(_side(side) for side in (before, after))]
    if comparison.delta_bounds is not None:
        limits = numbers.signed_interval((comparison.delta_bounds.low, comparison.delta_bounds.high))
        lines.append(f"**worst case** with every lost attempt one way or the other: Δ within {limits} pts")
    yield "  \n".join(lines)


def _side(side: Side) -> str:
    """The side's numbers over the tasks that are compared."""
    worst = worst_case_fact(side.compared)
    return f"{side.label}: {_rate(side.compared)} · {attempts_fact(side.compared)}" + (f" · worst case {worst}" if worst else "")


def _rate(figures: ArmFigures) -> str:
    suite = figures.suite
    return f"**{numbers.rate(suite.rate)}** {numbers.interval((suite.low, suite.high))}" if suite else numbers.UNKNOWN


def _differences(comparison: RunComparison) -> str:
    told = [f"- ⚠ {code(difference.text, chars=300)}" for difference in comparison.differences[:NOTICES]]
    if len(comparison.differences) > NOTICES:
        told.append(f"- and {len(comparison.differences) - NOTICES} more")
    return "\n".join(told)


def _rows(comparison: RunComparison) -> Iterator[Part]:
    for place, task in enumerate(comparison.tasks):
        delta = "" if task.delta is None else numbers.signed(task.delta)
        text = row([cell(task.name), _attempts(task.before), _attempts(task.after), delta, _remark(task)])
        yield Part(text=text, rank=(_rank(task), place), place=(place,))


def _attempts(result: TaskResult) -> str:
    rate = numbers.rate(result.successes / result.usable if result.usable else None)
    return f"{strip(result)} {rate}"


def _remark(task: ComparedTask) -> str:
    if task.changed:
        return f"not comparable: {' and '.join(task.changed)} changed"
    if not task.measured:
        return "not measured on both sides"
    return task.change.word or "" if task.change else ""


def _rank(task: ComparedTask) -> int:
    """What is worse comes first, what is as it was comes last."""
    if task.change is not None and task.change.word:
        return 0
    return 1 if task.regression else 2 if task.delta is None else 3 if task.delta else 4


def _unmatched(comparison: RunComparison) -> Iterator[Part]:
    sides = ((comparison.before, comparison.unmatched_before), (comparison.after, comparison.unmatched_after))
    for number, (side, results) in enumerate(sides):
        for place, result in enumerate(results):
            yield Part(
                text=f"- only {side.label}: {code(result.task_name)} {_attempts(result)}",
                rank=(place, number),
                place=(number, place),
            )


def _foot(comparison: RunComparison) -> str:
    """What either side cost and was measured with; tokens and times are no verdict."""
    lines = []
    for side in (comparison.before, comparison.after):
        meta = side.run.meta
        tokens, wall = spend_cells(side.figures.spend)
        lines.append(
            f"{side.label}: run {code(meta.id, chars=40)} of {code(meta.timestamp, chars=40)} · k={meta.k} · "
            f"engine {code(engine_text(side.run))} · {tokens} tokens · {wall}"
        )
    return f"<sub>{'<br>'.join(lines)}</sub>"
