"""What Markdown reports share: parts that are shown whole or left out whole, rows of tables, strips of attempts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import Spend, planned
from pytest_caliper.reporting.markup import size
from pytest_caliper.reporting.style import MARKS, NOT_RUN, Style
from pytest_caliper.runs.records import TaskResult

LIMIT = 60_000
"""GitHub refuses comments of more than 65,536 characters; the rest is room for what others put around it."""
LEAST = 16_000
"""No limit may be smaller: the parts that are never left out need this in the worst case."""

STYLE = Style(width=1_000, color=False, unicode=True)
SPARE = 1_000
"""Kept free for the sentences on what is left out."""
NOTICES = 8
_STRIP = 20
"""Marks in one piece; more are parted by blanks, at which a cell may break."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Something that is shown whole or left out whole."""

    text: str
    rank: tuple[int, ...]
    """The smallest is the most important."""
    place: tuple[int, ...]
    """Where it stands among its like."""


def fitting(parts: Iterable[Part], room: int) -> tuple[list[Part], list[Part]]:
    """The parts that are shown, in their places, and those that are left out: the more important ones get the room first."""
    kept: list[Part] = []
    lost: list[Part] = []
    for part in sorted(parts, key=lambda part: part.rank):
        needed = cost([part])
        if needed <= room:
            room -= needed
            kept.append(part)
        else:
            lost.append(part)
    return sorted(kept, key=lambda part: part.place), lost


def cost(parts: Iterable[Part]) -> int:
    """What the parts take, with the line ends around them."""
    return sum(size(part.text) + 2 for part in parts)


def left_out(lost: Sequence[Part], kept: Sequence[Part], noun: str) -> str:
    """The sentence that says how much is missing; empty when nothing is."""
    if not lost:
        return ""
    return f"_{len(lost):,} of {numbers.plural(len(lost) + len(kept), noun)} left out here for want of room._"


def row(cells: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def spend_cells(spent: Spend) -> list[str]:
    """Tokens and wall time; `159K+` where not every attempt told its usage."""
    at_least = "" if spent.complete or spent.total_tokens is None else "+"
    return [f"{numbers.tokens(spent.total_tokens)}{at_least}", numbers.duration(spent.wall_s)]


def strip(result: TaskResult) -> str:
    """A mark per planned attempt."""
    marks = "".join(MARKS[record.outcome] for record in result.attempts) + NOT_RUN * (planned(result) - len(result.attempts))
    return " ".join(marks[i : i + _STRIP] for i in range(0, len(marks), _STRIP)) or numbers.UNKNOWN
