"""How often the attempts that a comparison asks for find the difference that it saw, by design."""

from __future__ import annotations

from random import Random

import chances as ch
from simulated_row import Row, percent

from pytest_caliper.scoring import Table
from pytest_caliper.scoring.power import attempts_to_tell

ABOUT_POWER = "advice: share that finds the difference with as many attempts as advised"


def power_row(name: str, k: int, telling: int, how: str, chance: ch.Chance) -> Row:
    """From 80 attempts per arm in all on, the advice comes from the normal formula."""
    exact = k * telling <= 80
    what = f"{name}: {k} per task and arm" + ("" if exact else " (normal formula)")
    return Row(about=ABOUT_POWER, what=what, how=how, chance=chance, least=0.8 if exact else 0.78)


def one_task_power(_: int, __: Random) -> list[Row]:
    rows = []
    for b, s, n in ((3, 9, 10), (6, 9, 10), (11, 20, 20), (2, 11, 20), (7, 16, 20), (0, 2, 3), (8, 10, 10), (6, 8, 10)):
        k = attempts_to_tell([(b, n, s, n)])
        chance = ch.Chance(ch.one_task_power(b / n, s / n, k))
        rows.append(power_row(f"1 task, {percent(b / n)} → {percent(s / n)}", k, 1, "exact", chance))
    return rows


def suite_power(replicates: int, random: Random) -> list[Row]:
    rows = []
    mixed = [(5, 10, 8, 10), (8, 10, 9, 10), (9, 10, 10, 10), (2, 10, 4, 10), (7, 10, 7, 10), (10, 10, 10, 10)]
    designs: list[tuple[str, list[Table]]] = [("6 unlike tasks, one always passes", mixed)]
    for tasks, b, s, n in (
        (2, 1, 2, 3),
        (3, 1, 2, 3),
        (3, 6, 9, 10),
        (5, 3, 4, 5),
        (5, 6, 9, 10),
        (10, 6, 9, 10),
        (10, 7, 9, 10),
        (20, 6, 9, 10),
        (20, 6, 8, 10),
        (50, 6, 9, 10),
        (50, 8, 9, 10),
    ):
        designs.append((f"{tasks} tasks, {percent(b / n)} → {percent(s / n)}", [(b, n, s, n)] * tasks))
    for name, tables in designs:
        k = attempts_to_tell(tables)
        draws = replicates if k * len(tables) < 60 else replicates // 8
        base, skill = [b / n for b, n, _, _ in tables], [s / n for _, _, s, n in tables]
        chance = ch.power(base, skill, k, draws, random)
        rows.append(power_row(name, k, sum(b + s < 2 * n for b, n, s, _ in tables), f"{draws:,} drawn", chance))
    return rows
