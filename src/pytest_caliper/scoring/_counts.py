"""The one guard for counts, so that every function refuses the same mistakes in the same words."""

from __future__ import annotations

from collections.abc import Iterable

Table = tuple[int, int, int, int]
"""One task in two arms: `(c_base, n_base, c_skill, n_skill)`, successes and usable attempts."""


def check_count(name: str, value: object, least: int = 0) -> None:
    """Raises ValueError unless `value` is a whole number, `least` or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}")


def check_pair(c: int, n: int, c_name: str = "successes", n_name: str = "usable") -> None:
    """Raises ValueError unless 0 <= c <= n, both whole numbers."""
    check_count(n_name, n)
    check_count(c_name, c)
    if c > n:
        raise ValueError(f"{c_name} must be <= {n_name} ({n}), got {c}")


def check_table(c_base: int, n_base: int, c_skill: int, n_skill: int) -> None:
    """Raises ValueError unless the four counts make two arms of a task."""
    check_pair(c_base, n_base, "c_base", "n_base")
    check_pair(c_skill, n_skill, "c_skill", "n_skill")


def check_share(name: str, value: float) -> None:
    """Raises ValueError unless 0 < value < 1; NaN is refused too."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")


def informative(tables: Iterable[Table]) -> list[Table]:
    """The tables that can tell two arms apart: those of tasks in which some attempt passed and some did not."""
    return [table for table in tables if 0 < table[0] + table[2] < table[1] + table[3]]


def matched(tables: Iterable[Table]) -> list[Table]:
    """The tables of tasks that were measured in both arms. Raises ValueError for impossible counts."""
    kept = []
    for table in tables:
        check_table(*table)
        if table[1] and table[3]:
            kept.append(table)
    return kept
