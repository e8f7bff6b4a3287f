"""One line of the table of `simulations.py`, and what its parts have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import chances as ch


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    about: str
    what: str
    how: str
    chance: ch.Chance
    most: float | None = None
    least: float | None = None

    @property
    def fault(self) -> str:
        """`ABOVE` or `BELOW` when a limit is passed by more than simulation explains, else empty."""
        slack = 3 * self.chance.error + 1e-9
        if self.most is not None and self.chance.value > self.most + slack:
            return "ABOVE"
        return "BELOW" if self.least is not None and self.chance.value < self.least - slack else ""

    def __str__(self) -> str:
        error = f"{100 * self.chance.error:.2f}" if self.chance.error else ""
        limit = (
            f"<= {100 * self.most:g}" if self.most is not None else f">= {100 * self.least:g}" if self.least is not None else ""
        )
        verdict = self.fault or ("ok" if limit else "")
        return f"{100 * self.chance.value:6.2f} {error:>5} {limit:>7} {verdict:<5}  {self.how:<12} {self.what}"


HEAD = f"{'%':>6} {'±':>5} {'limit':>7} {'':<5}  {'how':<12} what"


def worst(found: Iterable[tuple[float, str]], *, low: bool = False) -> tuple[ch.Chance, str]:
    """The largest (or smallest) share, and where it was found."""
    value, where = (min if low else max)(found)
    return ch.Chance(value), where


def percent(rate: float) -> str:
    return f"{100 * rate:.3g}%"


def described(rates: list[float] | int) -> str:
    if isinstance(rates, int):
        return f"{rates} tasks drawn from Beta(2, 1)"
    return f"{len(rates)} tasks" + (f" at {percent(rates[0])}" if len(set(rates)) == 1 else " as Beta(2, 1)")
