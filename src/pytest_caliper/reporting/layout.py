"""Rows of cells on a terminal of any width: aligned where they fit, else folded, and never a number cut short.

Works on rich `Text` whose content is already harmless. Only names are ever shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Literal

from rich.console import Console
from rich.text import Text

from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.text import inert_in_logs

Row = Sequence[Text]

GAP = "  "
NAME_MIN = 32
"""Names that need more than this get a line of their own where their column would be narrower."""
STRIP_WIDTHS = (60, 40, 20, 10, 5)
"""Attempts per line of a strip: the widest that fits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    header: str
    align: Literal["left", "right"] = "left"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A name, the rows that belong to it, and remarks below them."""

    name: Text
    rows: Sequence[Row]
    """Each has a cell per column."""
    notes: Sequence[Text] = ()
    ruled: bool = False
    """True to draw a line above it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    columns: Sequence[Column]
    groups: Sequence[Group]
    strip: int
    """Index of the column with the strips of attempts: the only cells that may be broken over lines."""
    names_beside: bool
    """False when names always stand above their rows."""


def console(style: Style, file: StringIO | None = None) -> Console:
    """A console that takes everything from `style` and nothing from the environment."""
    return Console(
        file=StringIO() if file is None else file,
        force_terminal=style.color,
        no_color=not style.color,
        color_system="standard" if style.color else None,
        width=style.width,
        legacy_windows=False,
        emoji=False,
        markup=False,
        highlight=False,
        _environ={},
    )


def to_string(lines: Iterable[Text], style: Style) -> str:
    """The lines, coloured where the style has colours; each ends with a newline and none with a blank."""
    file = StringIO()
    out = console(style, file)
    for line in lines:
        line.rstrip()
        out.print(line, soft_wrap=True)
    return file.getvalue()


def wrapped(text: Text, style: Style, *, indent: str = "", first: Text | None = None) -> list[Text]:
    """The text over as many lines as it needs: `first` before the first, `indent` (at least as wide) before the others."""
    spare = len(inert_in_logs("::x")) - len("::x") if "::" in text.plain else 0
    lines = text.wrap(console(style), max(8, style.width - len(indent) - spare), overflow="fold", tab_size=4)
    for i, line in enumerate(lines):
        line.rstrip()
        if line.plain != (inert := inert_in_logs(line.plain)):  # it stood inside a line, and now begins one
            lines[i] = Text(inert, style=line.style)
    heads = (Text(indent) if i or first is None else Text().append_text(first) for i in range(len(lines)))  # a style is its own
    return [head.append_text(line) for head, line in zip(heads, lines, strict=True)]


def rendered(table: Table, style: Style) -> list[Text]:
    """The table in the first shape that fits: names in a column, names above their rows, rows folded."""
    longest = max(group.name.cell_len for group in table.groups)
    for room in STRIP_WIDTHS:
        broken = replace(table, groups=[_broken(group, table.strip, room) for group in table.groups])
        widths = _widths(broken)
        spare = style.width - sum(widths) - len(GAP) * len(widths)
        if table.names_beside and spare >= min(longest, NAME_MIN):
            return _beside(broken, widths, min(longest, spare), style)
        if spare >= 0:
            return _below(broken, [list(range(len(widths)))], widths, style)
    return _below(broken, _bands(widths, style.width), widths, style)


def _broken(group: Group, strip: int, room: int) -> Group:
    """The group with strips longer than `room` continued on rows that are otherwise empty."""
    rows: list[Row] = []
    for row in group.rows:
        cell = row[strip]
        pieces = cell.divide(range(room, len(cell), room)) if len(cell) > room else [cell]
        for i, piece in enumerate(pieces):
            rows.append([piece if c == strip else (other if i == 0 else Text()) for c, other in enumerate(row)])
    return replace(group, rows=rows)


def _widths(table: Table) -> list[int]:
    rows = [row for group in table.groups for row in group.rows]
    return [max(len(column.header), *(row[c].cell_len for row in rows)) for c, column in enumerate(table.columns)]


def _bands(widths: Sequence[int], room: int) -> list[list[int]]:
    """The columns in as many lines as they need; the second line and later are indented by one gap more."""
    bands: list[list[int]] = [[]]
    for c, width in enumerate(widths):
        used = sum(widths[b] + len(GAP) for b in bands[-1]) + (len(GAP) if len(bands) > 1 else 0)
        if bands[-1] and used + len(GAP) + width > room:
            bands.append([])
        bands[-1].append(c)
    return bands


def _beside(table: Table, widths: Sequence[int], name_width: int, style: Style) -> list[Text]:
    every = range(len(widths))

    def line(name: Text, row: Row) -> Text:
        return name.append(" " * (name_width - name.cell_len)).append_text(_aligned(row, table, widths, every))

    lines = [line(Text(), _headers(table))]
    for group in table.groups:
        lines += _rule(group, name_width + sum(widths) + len(GAP) * len(widths), style)
        for i, row in enumerate(group.rows):
            lines.append(line(Text() if i else _shortened(group.name, name_width, style), row))
        lines += _notes(group, style)
    return lines


def _below(table: Table, bands: Sequence[Sequence[int]], widths: Sequence[int], style: Style) -> list[Text]:
    def lines_of(row: Row) -> list[Text]:
        shown = [(i, band) for i, band in enumerate(bands) if any(row[c] for c in band)]
        return [Text(GAP if i else "").append_text(_aligned(row, table, widths, band)) for i, band in shown]

    lines = lines_of(_headers(table))
    for group in table.groups:
        lines += _rule(group, min(style.width, sum(widths) + len(GAP) * len(widths)), style)
        lines.append(_shortened(group.name, style.width, style))
        lines += [line for row in group.rows for line in lines_of(row)]
        lines += _notes(group, style)
    return lines


def _aligned(row: Row, table: Table, widths: Sequence[int], columns: Iterable[int]) -> Text:
    """These columns of the row, each after a gap and padded to its width."""
    line = Text()
    for c in columns:
        cell, blank = row[c], " " * (widths[c] - row[c].cell_len)
        line.append(GAP)
        if table.columns[c].align == "right":
            line.append(blank).append_text(cell)
        else:
            line.append_text(cell).append(blank)
    return line


def _headers(table: Table) -> list[Text]:
    return [Text(column.header, style="dim") for column in table.columns]


def _shortened(name: Text, width: int, style: Style) -> Text:
    """The name, cut to `width` where it is longer, with a mark."""
    short = name.copy()
    if name.cell_len > width:
        mark = style.own("…")
        short.truncate(max(1, width - len(mark)), overflow="crop")
        short.append(mark)
    return short


def _rule(group: Group, width: int, style: Style) -> list[Text]:
    return [Text(style.own("─") * width, style="dim")] if group.ruled else []


def _notes(group: Group, style: Style) -> list[Text]:
    return [line for note in group.notes for line in wrapped(note, style, indent=GAP * 2, first=Text(GAP))]
