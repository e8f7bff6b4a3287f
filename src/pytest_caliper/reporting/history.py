"""How a spec's rate went over its runs, task by task, with what changed between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.comparison_json import verdict_json
from pytest_caliper.reporting.listing import Grid, RunEntry, prose, render_grid, run_json, shared_engine, trend_line, when
from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.text import one_line
from pytest_caliper.reporting.trends import Point, Step, sparkline, steps, task_lines

_NAME = 40
_BESIDE = 12
"""Columns of a task's line beside its name and its bars."""


def render_history(name: str, points: Sequence[Point], *, of: int, style: Style) -> str:
    """The text for runs in order of time, each line ended by a newline. `of` is the number of runs saved."""
    made = steps(points)
    engine = shared_engine(points)
    parts = [prose(one_line(name) + (f", engine {engine}" if engine else ""), style, indent="  ")]
    if len(points) > 1:
        parts.append(trend_line(points, style))
        parts.append(_tasks(points, style, min(_NAME, style.width // 2)))
    parts.append("\n".join(_runs(points, made, style)) + "\n")
    if of > len(points):
        parts.append(f"{len(points)} of {numbers.plural(of, 'run')}: --last 0 shows all\n")
    parts.append(prose(_remark(made), style))
    return "\n".join(parts)


def history_json(name: str, points: Sequence[Point], *, of: int) -> dict[str, Any]:
    """Runs in order of time, each with what changed since the one before it, and each task's rates in that order."""
    made: list[Step | None] = [None, *steps(points)]
    return {
        "name": name,
        "saved": of,
        "runs": [
            {
                **run_json(RunEntry(path=str(one.counts.path), point=one)),
                "changes": [difference.text for difference in step.differences] if step else [],
                "since_before": verdict_json(step.comparison) if step and step.comparison else None,
                "word": step.word if step else None,
            }
            for one, step in zip(points, made[: len(points)], strict=True)
        ],
        "tasks": [{"task_name": task, "rates": rates} for task, rates in task_lines(points).items()],
    }


def history_grid(points: Sequence[Point]) -> Grid:
    """A row per run, the oldest first: when, rate, interval, counts, difference to the run before, word, what changed."""
    rows = []
    for one, step in zip(points, [None, *steps(points)], strict=True):
        changed = "; ".join(difference.text for difference in step.differences) if step else ""
        rows.append((*_cells(one, step), changed))
    return Grid(headers=(*_HEADERS, "Changed"), rows=rows, right=frozenset({1, 2, 3, 4}))


_HEADERS = ("When (UTC)", "Rate", "95% interval", "Passed", "Δ pts", "")


def _runs(points: Sequence[Point], made: Sequence[Step], style: Style) -> Iterator[str]:
    """The rows, with a line before a run for each thing that changed since the one above."""
    rows = [_cells(one, step) for one, step in zip(points, [None, *made], strict=True)]
    lines = render_grid(Grid(headers=_HEADERS, rows=rows, right=frozenset({1, 2, 3, 4})), style).splitlines()
    if len(lines) != len(rows) + 1:  # folded: a row's lines are told from each other by their blanks
        starts = [i for i, line in enumerate(lines) if not line.startswith(" ")]
        lines = ["\n".join(lines[i:j]) for i, j in zip(starts, [*starts[1:], len(lines)], strict=True)]
    yield lines[0]
    for line, step in zip(lines[1:], [None, *made], strict=True):
        for difference in step.differences if step else ():
            yield prose(difference.text, style, first=style.own("  ─ "), indent="    ").rstrip("\n")
        yield line


def _cells(one: Point, step: Step | None) -> tuple[str, ...]:
    found = step.comparison if step else None
    word = step.word if step and step.word != "no evidence" else ""
    suite = one.suite
    return (
        when(one),
        numbers.rate(suite.rate if suite else None),
        numbers.interval((suite.low, suite.high)) if suite else "",
        f"{one.successes}/{one.usable}" + (f" of {one.planned}" if one.usable < one.planned else ""),
        numbers.signed(found.delta) if found else "",
        word,
    )


def _tasks(points: Sequence[Point], style: Style, width: int) -> str:
    """A line per task: name, rates, the latest one."""
    rates_of = task_lines(points)
    names = [_cut(name, width, style) for name in rates_of]
    longest = max(map(len, names), default=0)
    lines = []
    for name, rates in zip(names, rates_of.values(), strict=True):
        line = sparkline(rates, style, width=style.width - longest - _BESIDE)
        lines.append(f"  {name:<{longest}}  {line}  {style.own(numbers.rate(rates[-1])):>6}\n")
    return "".join(lines)


def _cut(name: str, width: int, style: Style) -> str:
    """The name in at most `width` columns, with a mark where it was cut."""
    whole = style.foreign(one_line(name))
    mark = style.own("…")
    return whole if len(whole) <= width else whole[: width - len(mark)] + mark


def _remark(made: Sequence[Step]) -> str:
    told = [step for step in made if step.word != "no evidence"]
    if not made:
        return "one run: there is nothing to tell a trend from yet"
    if not told:
        return "no evidence of a difference between any run and the one before it"
    several = f", corrected for the {len(made)} steps looked at" if len(made) > 1 else ""
    return f"better and worse are said against the run before, by the exact test{several}"
