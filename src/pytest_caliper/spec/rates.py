"""A rate as people write it: `0.8`, `80%` or `4/5`. Kept exact, so that 4 of 5 reach it."""

from __future__ import annotations

import re
from fractions import Fraction

PATTERN = r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})%?|[0-9]{1,9}/[0-9]{1,9}"


def parse_rate(text: str, *, least: int | None = None) -> Fraction:
    """The exact value, above 0 and at most 1; with `least=0`, 0 is a rate too. Raises ValueError that says what is expected."""
    said = text.strip()
    if re.fullmatch(PATTERN, said):
        over, _, under = said.removesuffix("%").partition("/")
        divisor = int(under or 1) * (100 if said.endswith("%") else 1)
        if divisor and (0 < (value := Fraction(over) / divisor) <= 1 or value == least):
            return value
    limits = "above 0" if least is None else f"at least {least}"
    raise ValueError(f"{limits} and at most 1, such as 0.8, 80% or 4/5")
