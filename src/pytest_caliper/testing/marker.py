"""What `@pytest.mark.caliper(…)` says of a test."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.options import MOST
from pytest_caliper.spec.rates import parse_rate

NAME = "caliper"
KNOWN = ("k", "bar", "baseline", "skill")


class MarkError(ValueError):
    """A mark says what nobody can do; the text is one line and names the remedy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """The marks of a test, of its class and of its module together; None for what none of them says."""

    k: int | None = None
    """Attempts per arm."""
    bar: Fraction | None = None
    """The rate that the attempts with the skill are to reach."""
    baseline: bool | None = None
    skills: tuple[str, ...] = ()
    """As written: paths, relative to the test's file."""


def marked(node: pytest.Item | pytest.Collector) -> Marked:
    """The marks of a node; the nearest goes before. Raises MarkError."""
    said: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers(NAME))):
        if mark.args:
            raise MarkError(f"@pytest.mark.caliper takes names only, such as k=5, not {mark.args[0]!r}")
        said.update(mark.kwargs)
    if unknown := [name for name in said if name not in KNOWN]:
        near = difflib.get_close_matches(unknown[0], KNOWN, 1)
        hint = f"did you mean {near[0]}?" if near else f"it knows {', '.join(KNOWN)}"
        raise MarkError(f"@pytest.mark.caliper does not know {unknown[0]}: {hint}")
    return Marked(k=_k(said), bar=_bar(said), baseline=_baseline(said), skills=skill_names(said.get("skill")))


def _k(said: Mapping[str, Any]) -> int | None:
    k = said.get("k")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST):
        raise MarkError(f"@pytest.mark.caliper: k must be a whole number from 1 to {MOST:,}, got {k!r}")
    return k


def _bar(said: Mapping[str, Any]) -> Fraction | None:
    bar = said.get("bar")
    if bar is None:
        return None
    try:
        if isinstance(bar, bool) or not isinstance(bar, (int, float, str, Fraction)):
            raise ValueError("above 0 and at most 1, such as 0.8, '80%' or '4/5'")
        return parse_rate(str(bar))
    except ValueError as error:
        raise MarkError(f"@pytest.mark.caliper: bar must be {error}, got {bar!r}") from None


def _baseline(said: Mapping[str, Any]) -> bool | None:
    baseline = said.get("baseline")
    if baseline is not None and not isinstance(baseline, bool):
        raise MarkError(f"@pytest.mark.caliper: baseline must be True or False, got {baseline!r}")
    return baseline


def skill_names(said: object) -> tuple[str, ...]:
    """One path or several, as text. Raises MarkError for anything else."""
    if said is None:
        return ()
    several = [said] if isinstance(said, (str, os.PathLike)) else said
    if not isinstance(several, Iterable) or not all(isinstance(one, (str, os.PathLike)) for one in several):
        raise MarkError(f"skill must be the path of a SKILL.md or its directory, or several of them, got {said!r}")
    names = tuple(os.fspath(one) for one in several)
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise MarkError(f"skill must be the path of a SKILL.md or its directory, got {said!r}")
    return tuple(str(Path(name)) for name in names)
