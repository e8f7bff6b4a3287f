"""How a report may look: what the terminal can show, and the marks that both kinds of terminal get."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_caliper.reporting.text import ascii_only


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """What the terminal can show."""

    width: int
    """Columns; no line of a summary is longer."""
    color: bool
    unicode: bool
    """False when the output's encoding has no ✓: then everything is ASCII, agents' texts escaped."""

    def own(self, text: str) -> str:
        """A text of ours; its marks become letters where the terminal has none."""
        return text if self.unicode else text.replace(" · ", ", ").translate(_ASCII)

    def foreign(self, text: str) -> str:
        """A text of others that is already printable; what ASCII lacks becomes `\\u2713` where the terminal has no more."""
        return text if self.unicode else ascii_only(text)


MARKS = {"pass": "✓", "task_fail": "✗", "cheat": "✂", "timeout": "⊘", "infra_error": "⊘", "judge_error": "⊘"}
"""One character per outcome, for strips of attempts."""
NOT_RUN = "·"
MARK_STYLES = {"✓": "green", "✗": "red", "✂": "magenta", "⊘": "yellow", NOT_RUN: "dim"}
WORD_STYLES = {"better": "green", "worse": "red", "no evidence": "yellow"}
"""Rich styles of the words of a comparison."""
MEANINGS = {"✓": "pass", "✗": "fail", "⊘": "unusable", "✂": "cheat", NOT_RUN: "not run"}

_ASCII = str.maketrans(
    {"✓": "P", "✗": "F", "⊘": "U", "✂": "C", "·": ".", "—": "-", "…": "...", "Δ": "Diff", "│": "|", "─": "-", "≥": ">="}
    | {"→": "->"}
)
