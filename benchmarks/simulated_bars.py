"""How often bars say the wrong word, counted."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from random import Random

import chances as ch
from simulated_row import Row, percent, worst

from pytest_caliper.scoring import BarPolicy, judge_bar

BAR_RATES = [Fraction(text) for text in ("1/2", "3/5", "2/3", "7/10", "3/4", "4/5", "17/20", "9/10", "19/20")]


def bar_chance(word: str, bar: Fraction, policy: BarPolicy, k: int, rate: float) -> float:
    return sum(p for c, p in enumerate(ch.binomial(k, rate)) if judge_bar(c, k, k, bar, policy).word == word)


def bars(_: int, __: Random) -> list[Row]:
    about = "bars: share of wrong words (lower: k = 1..80)"
    rows = []

    def row(what: str, found: Iterable[tuple[float, str]], most: float | None = None) -> None:
        chance, where = worst(found)
        rows.append(Row(about=about, what=f"{what}; most at {where}", how="exact", chance=chance, most=most))

    for bar in BAR_RATES:
        most = 0.05 if bar > Fraction(1, 2) else None
        met = ((bar_chance("met", bar, "lower", k, float(bar)), f"k={k}") for k in range(1, 81))
        row(f"lower, bar {percent(float(bar))}: met, the rate just below it", met, most)
    for bar in BAR_RATES[::4]:
        missed = ((bar_chance("missed", bar, "lower", k, float(bar)), f"k={k}") for k in range(1, 81))
        row(f"lower, bar {percent(float(bar))}: missed, the rate at it (not met is red too)", missed)
    for k, rate in product((5, 20), (0.8, 0.7)):
        chance = ch.Chance(bar_chance("met", Fraction(4, 5), "point", k, rate))
        below = "just below it" if rate == 0.8 else percent(rate)
        rows.append(Row(about=about, what=f"point, bar 80%: met, the rate {below}, k={k}", how="exact", chance=chance))
    return rows
