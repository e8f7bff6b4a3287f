"""Lists of specs and of runs, for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.text import one_line
from pytest_caliper.reporting.trends import Point, sparkline
from pytest_caliper.runs.names import parse_timestamp

_TREND = 60
"""Runs that a sparkline shows at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecEntry:
    """What a list says of one spec."""

    name: str
    directory: Path
    runs: int
    """Complete ones."""
    unfinished: int
    """Interrupted, killed or partial ones."""
    latest: Point | None
    """None without a complete run that can be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEntry:
    """What a list says of one run."""

    path: str
    """As people type it."""
    point: Point

    @property
    def state(self) -> str:
        """`interrupted`, `partial`, `replayed` and so on; empty for a plain run."""
        meta = self.point.meta
        words = [word for word, true in (("interrupted", meta.interrupted), ("partial", meta.partial)) if true]
        words += ["replayed"] if meta.replay else []
        if meta.selected_tasks is not None:
            words.append(f"{numbers.plural(len(meta.selected_tasks), 'task')} of more")
        return ", ".join(words)


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Rows of plain, harmless texts under headers; `right` are the columns of numbers."""

    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    right: frozenset[int]


def spec_grid(entries: Sequence[SpecEntry]) -> Grid:
    """A row per spec: name, runs, latest rate with its interval, when, engine, unfinished runs."""
    rows = [
        (
            one_line(entry.name),
            str(entry.runs),
            *_rate_cells(entry.latest),
            "" if entry.latest is None else when(entry.latest),
            "" if entry.latest is None else one_line(entry.latest.engine),
            str(entry.unfinished or ""),
        )
        for entry in entries
    ]
    headers = ("Spec", "Runs", "Rate", "95% interval", "Latest (UTC)", "Engine", "Unfinished")
    return _without_empty(Grid(headers=headers, rows=rows, right=frozenset({1, 2, 3, 6})), keep=6)


def run_grid(entries: Sequence[RunEntry]) -> Grid:
    """A row per run: when, rate with its interval, passed, coverage, engine, the skill's difference, id, state."""
    rows = [
        (
            when(entry.point),
            *_rate_cells(entry.point),
            f"{entry.point.successes}/{entry.point.usable}",
            f"{entry.point.usable}/{entry.point.planned}",
            one_line(entry.point.engine),
            "" if entry.point.skill_delta is None else numbers.signed(entry.point.skill_delta.delta),
            one_line(entry.point.meta.id),
            entry.state,
        )
        for entry in entries
    ]
    headers = ("When (UTC)", "Rate", "95% interval", "Passed", "Coverage", "Engine", "Skill Δ pts", "Run", "")
    return _without_empty(Grid(headers=headers, rows=rows, right=frozenset({1, 2, 3, 4, 6})), keep=6)


def prose(text: str, style: Style, *, first: str = "", indent: str = "") -> str:
    """A harmless text over as many lines as it needs, each ended by a newline."""
    shown = style.foreign(style.own(text))
    lines = textwrap.wrap(
        shown, style.width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False, expand_tabs=False
    )
    return "".join(f"{line}\n" for line in lines)


def shared_engine(points: Iterable[Point]) -> str | None:
    """The engine of all of them; None where they differ."""
    engines = {one.engine for one in points}
    return one_line(engines.pop()) if len(engines) == 1 else None


def without(grid: Grid, header: str) -> Grid:
    """The grid without a column."""
    gone = grid.headers.index(header)
    return _picked(grid, [i for i in range(len(grid.headers)) if i != gone])


def render_grid(grid: Grid, style: Style) -> str:
    """The rows, each on a line of its own where the widest fits, else each folded below its first cell."""
    cells = [tuple(_shown(cell, style) for cell in row) for row in (grid.headers, *grid.rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    fits = sum(widths) + 2 * (len(widths) - 1) <= style.width
    head, *rows = (_aligned(row, widths, grid.right) if fits else _folded(row, style) for row in cells)
    return "\n".join([f"\x1b[2m{head}\x1b[0m" if style.color else head, *rows]) + "\n"


def markdown_grid(grid: Grid) -> str:
    """The rows as a table for GitHub."""
    from pytest_caliper.reporting.markup import cell

    rules = ["--:" if number in grid.right else ":--" for number in range(len(grid.headers))]
    lines = [grid.headers, rules, *([cell(text) if text else "" for text in row] for row in grid.rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def trend_line(points: Sequence[Point], style: Style, *, label: str = "Trend") -> str:
    """`Trend  ▂▅▇▇█  the last 60 of 214 runs, oldest first`."""
    shown = min(len(points), _TREND, style.width - len(label) - 2)
    line = sparkline((one.suite.rate if one.suite else None for one in points), style, width=shown)
    which = f"the last {shown} of {len(points):,} complete runs" if shown < len(points) else f"{shown} complete runs"
    remark = f"{which}, oldest first" + ("" if style.unicode else ", in tenths")
    beside = len(label) + shown + len(remark) + 4 <= style.width
    return f"{label}  {line}{'  ' if beside else chr(10) + '  '}{remark}\n"


def spec_json(entry: SpecEntry) -> dict[str, Any]:
    """One spec; `latest` as `run_json`, without a path of its own name."""
    latest = entry.latest
    return {
        "name": entry.name,
        "spec": None if latest is None else latest.meta.spec,
        "directory": str(entry.directory),
        "runs": entry.runs,
        "unfinished": entry.unfinished,
        "latest": None if latest is None else run_json(RunEntry(path=str(latest.counts.path), point=latest)),
    }


def run_json(entry: RunEntry) -> dict[str, Any]:
    """One run: rates 0 to 1, null where nothing was usable."""
    one, meta = entry.point, entry.point.meta
    return {
        "file": entry.path,
        "id": meta.id,
        "timestamp": meta.timestamp,
        "k": meta.k,
        "rate": one.suite.rate if one.suite else None,
        "interval": [one.suite.low, one.suite.high] if one.suite else None,
        "tasks": len(one.counts.results),
        "successes": one.successes,
        "usable": one.usable,
        "planned": one.planned,
        "engine": one.engine,
        "judge": meta.judge_backend if meta.judge_model is None else f"{meta.judge_backend}:{meta.judge_model}",
        "baseline": one.counts.baseline_results is not None,
        "skill_delta": None if one.skill_delta is None else one.skill_delta.delta,
        "skill_delta_interval": None if one.skill_delta is None else [one.skill_delta.low, one.skill_delta.high],
        "interrupted": meta.interrupted,
        "partial": meta.partial,
        "replay": meta.replay,
        "selected_tasks": None if meta.selected_tasks is None else list(meta.selected_tasks),
    }


def when(one: Point) -> str:
    """The run's time, to the minute, UTC."""
    return f"{parse_timestamp(one.meta.timestamp):%Y-%m-%d %H:%M}"


def _rate_cells(one: Point | None) -> tuple[str, str]:
    if one is None or one.suite is None:
        return numbers.UNKNOWN, ""
    return numbers.rate(one.suite.rate), numbers.interval((one.suite.low, one.suite.high))


def _without_empty(grid: Grid, *, keep: int) -> Grid:
    """Without the columns from `keep` on in which nothing stands."""
    kept = [i for i in range(len(grid.headers)) if i < keep or any(row[i] for row in grid.rows)]
    return _picked(grid, kept)


def _picked(grid: Grid, kept: Sequence[int]) -> Grid:
    headers, *rows = (tuple(row[i] for i in kept) for row in (grid.headers, *grid.rows))
    return Grid(headers=headers, rows=rows, right=frozenset(place for place, i in enumerate(kept) if i in grid.right))


def _shown(text: str, style: Style) -> str:
    return style.foreign(style.own(text))


def _width(text: str) -> int:
    """Columns on the terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) != 0 for char in text)


def _aligned(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = [
        " " * (width - _width(cell)) + cell if i in right else cell + " " * (width - _width(cell))
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _folded(row: Sequence[str], style: Style) -> str:
    """The first cell, then the others below it, as many per line as fit: nothing is cut."""
    lines, line = [row[0]], " "
    for cell in filter(None, row[1:]):
        if len(line) > 1 and _width(line) + 2 + _width(cell) > style.width:
            lines.append(line)
            line = " "
        line += f" {cell}" if len(line) == 1 else f"  {cell}"
    return "\n".join([*lines, line] if line.strip() else lines)
