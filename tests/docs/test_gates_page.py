"""The numbers on the page on gates are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_caliper.reporting.bars import share
from pytest_caliper.scoring import flawless_needed
from pytest_caliper.spec.rates import parse_rate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gates.md"


def test_the_attempts_that_clear_a_lower_bound():
    rows = re.findall(r"^\| (\d+%|\d/\d) \| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) == 9
    for bar, attempts in rows:
        assert share(parse_rate(bar)) == bar
        assert flawless_needed(parse_rate(bar)) == int(attempts)


def test_how_often_five_tasks_are_green_without_a_bar():
    assert "five tasks of three attempts are all green once in five runs" in " ".join(PAGE.read_text(encoding="utf-8").split())
    assert round(1 / 0.9**15) == 5
