"""What a page shows, whatever it is made from: one run, or two side by side. Texts are raw; numbers are written already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pytest_caliper.runs.records import Arm, Run, TaskResult

Tone = Literal["good", "bad", "unsure", "plain"]
"""The colour of a verdict; its words say the same."""
TONES: Mapping[str, Tone] = {"better": "good", "worse": "bad", "no evidence": "unsure"}
"""Of the words of a comparison."""

Fact = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A remark below a task."""

    text: str
    tone: Tone = "unsure"


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A headline number: the rate of an arm or a run."""

    title: str
    rate: float | None
    interval: tuple[float, float] | None
    facts: Sequence[Fact]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the comparison of two cards comes to."""

    delta: str
    word: str
    tone: Tone
    sentence: str
    """All of it, as on the terminal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The attempts of one task in one arm of one run."""

    label: str
    """Empty where there is only one line per task."""
    result: TaskResult
    prefix: str = ""
    """Of its attempts' keys."""
    judged: bool = True
    """False for a baseline: its failures are no failures of the skill."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One task."""

    task_id: str
    name: str
    lines: Sequence[Line]
    delta: str = ""
    """In points; empty where nothing is compared."""
    delta_at: int = 0
    """The line that it stands on."""
    word: str = ""
    """The verdict on this task alone, where there is one."""
    notes: Sequence[Note] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A run file whose attempts can be opened on the page."""

    path: Path
    run: Run
    prefix: str = ""
    arms: Sequence[Arm] = ("skill", "baseline")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A whole page."""

    title: str
    kind: str
    """What the page is, above its title."""
    facts: Sequence[Fact]
    notices: Sequence[str]
    cards: Sequence[Card]
    verdict: Verdict | None
    rows: Sequence[Row]
    sources: Sequence[Source]
    differences: Sequence[str] = field(default=())
    """What differs between two runs besides their attempts."""
