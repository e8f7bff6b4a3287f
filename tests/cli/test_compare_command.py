"""`caliper compare`: which runs, which exit status, which formats. What a comparison says is in tests/reporting."""

from __future__ import annotations

import json

import pytest
from builders import task


@pytest.fixture
def two(saved):
    saved.run("commit", task("P" * 9), day=1)
    saved.run("commit", task("F" * 9), day=2)
    return saved


def test_one_name_compares_the_latest_run_with_the_one_before(two, caliper) -> None:
    told = caliper("compare", "commit")
    assert told.status == 0
    assert "9/9 → 0/9" in told.out or "✓✓✓✓✓✓✓✓✓ → ✗✗✗✗✗✗✗✗✗" in told.out
    assert "day-1.json" in told.out.split("day-2.json")[0]
    assert "worse (p" in told.out


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("commit",), 0),
        (("commit", "--fail-on", "worse"), 1),
        (("day-2", "day-1", "--fail-on", "worse"), 0),
        (("commit", "commit", "--fail-on", "worse"), 0),
        (("commit", "nothing"), 2),
        (("nothing", "commit"), 2),
        (("nothing", "commit", "--fail-on", "worse"), 2),
    ],
)
def test_exit_status(two, caliper, words, status) -> None:
    assert caliper("compare", *words).status == status


def test_a_lower_rate_alone_fails_nothing(saved, caliper) -> None:
    saved.run("commit", task("PPP"), day=1)
    saved.run("commit", task("PPF"), day=2)
    told = caliper("compare", "commit", "--fail-on", "worse", "--format", "json")
    assert told.status == 0
    assert json.loads(told.out)["has_regression"] is True
    assert json.loads(told.out)["verdict"] == "no evidence"


def test_nothing_comparable_fails_nothing_and_says_so(saved, caliper) -> None:
    saved.run("commit", task("PPP"), day=1)
    saved.run("commit", task("FFF", prompt="something else"), day=2)
    told = caliper("compare", "commit", "--fail-on", "worse")
    assert told.status == 0
    assert "not comparable: prompt changed" in told.out
    assert "no task is comparable" in told.out


def test_a_single_run_has_nothing_before_it(saved, caliper) -> None:
    saved.run("commit", task("PPP"))
    told = caliper("compare", "commit")
    assert told.status == 2
    assert "there is no run before it; name the run to compare with as well" in told.err


def test_two_specs_may_be_compared(saved, caliper) -> None:
    saved.run("short", task("PPP"), day=1)
    saved.run("full", task("PPP"), day=2)
    told = caliper("compare", "short", "full")
    assert "the specs differ: short.eval.yaml → full.eval.yaml" in told.out


def test_formats(two, caliper) -> None:
    found = json.loads(caliper("compare", "commit", "--format", "json").out)
    assert (found["a"]["id"], found["b"]["id"], found["verdict"]) == ("day-1", "day-2", "worse")
    assert found["a_file"] == ".caliper/results/commit/2026-07-01T10-00-00Z-day-1.json"
    assert "**worse**" in caliper("compare", "commit", "--format", "md").out
    assert caliper("compare", "commit", "--format", "html").out.rstrip().endswith("</html>")
    assert caliper("compare", "commit", "--format", "json", "--output", "c.json").out == ""
    assert json.loads((two.root / "c.json").read_text()) == found
    assert caliper("compare", "commit", "--fail-on", "worse", "--output", "c.txt").status == 1


def test_verbose_adds_intervals_and_p_values(two, caliper) -> None:
    assert "corrected for the number of tasks" not in caliper("compare", "commit").out
    assert "corrected for the number of tasks" in caliper("compare", "commit", "-v").out


@pytest.mark.parametrize("words", [(), ("a", "b", "c"), ("a", "--fail-on", "better"), ("a", "--format", "junit")])
def test_bad_usage(saved, caliper, words, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        caliper("compare", *words)
    assert stopped.value.code == 2
    assert "usage: caliper compare" in capsys.readouterr().err
