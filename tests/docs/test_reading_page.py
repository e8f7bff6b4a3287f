"""Every number of the page on reading the numbers is what the code computes."""

from __future__ import annotations

import re
from fractions import Fraction
from inspect import signature
from pathlib import Path

import pytest

from pytest_caliper.options import OPTIONS
from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.totals import difference_text, worst_case_fact
from pytest_caliper.scoring import ALPHA, bounds, compare_arms, compare_tasks, holm, pass_at_k, pass_hat_k, success_rate, wilson
from pytest_caliper.scoring.power import attempts_to_tell

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reading-the-numbers.md"
TEXT = PAGE.read_text(encoding="utf-8")


def tables() -> list[list[list[str]]]:
    """The page's tables, each a list of rows, the head first."""
    found = re.findall(r"^\|.*\n\|[-|]+\|\n(?:\|.*\n)+", TEXT, re.M)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if not re.fullmatch(r"[|-]+", line)]
        for table in found
    ]


def table(*head: str) -> list[list[str]]:
    """The rows of the one table whose head begins so."""
    (rows,) = (rows for rows in tables() if rows[0][: len(head)] == list(head))
    return rows[1:]


def counts(text: str) -> tuple[int, int]:
    passed, usable = text.split("/")
    return int(passed), int(usable)


def share(text: str) -> float:
    return int(text.rstrip("%")) / 100


def test_rates_and_their_intervals():
    rows = table("Passed")
    assert len(rows) > 8
    for passed, rate, interval in rows:
        c, n = counts(passed)
        assert [rate, interval] == [numbers.rate(success_rate(c, n)), numbers.interval(wilson(c, n))]


def test_how_often_every_attempt_passes():
    head, *rows = next(rows for rows in tables() if rows[0][:2] == ["It works", "3/3"])
    for works, *cells in rows:
        assert cells == [numbers.rate(share(works) ** counts(all_of)[1]) for all_of in head[1:]]


def test_pass_at_k_of_a_known_rate():
    head, *rows = next(rows for rows in tables() if rows[0][:2] == ["It works", "pass@1"])
    for works, *cells in rows:
        assert cells == [numbers.rate(1 - (1 - share(works)) ** int(k.removeprefix("pass@"))) for k in head[1:]]
    assert numbers.rate(pass_at_k(1, 10)) == "65.1%"
    assert numbers.rate(pass_hat_k(4, 5)) == "32.8%"


class Lost:
    """An arm in which six of ten attempts were usable and passed."""

    lost = 4
    worst, best = bounds(6, 6, 4) or (None, None)


def test_what_lost_attempts_could_have_changed():
    rows = dict(table("", ""))
    assert rows == {
        "Rate": f"{numbers.rate(success_rate(6, 6))} {numbers.interval(wilson(6, 6))}",
        "Coverage": "6/10",
        "Worst case": worst_case_fact(Lost()),  # type: ignore[arg-type]
    }
    coverage = next(option.default for option in OPTIONS if option.name == "min-coverage")
    assert coverage == 0.5


def test_the_words_of_some_runs():
    rows = table("With the skill")
    assert len(rows) == 7
    for skill, base, tasks, delta, interval, word, p, more in rows:
        compared = compare_arms([(*counts(base), *counts(skill))] * int(tasks))
        assert compared is not None
        assert delta == numbers.signed(compared.delta)
        assert interval == numbers.signed_interval((compared.low, compared.high))
        assert word == compared.word
        assert p == numbers.p_value(compared.p).removeprefix("p = ")
        assert more == ("" if compared.more is None else str(compared.more))


def test_the_line_that_is_read_is_what_the_code_prints(style):
    compared = compare_arms([(0, 3, 2, 3), (1, 3, 3, 3), (3, 3, 3, 3)])
    assert compared is not None
    words = {"better": "better with the skill", "worse": "", "no evidence": ""}
    line = difference_text(compared, words, tasks=3, where="both arms", style=style).plain
    assert f"```text\nSkill       {line}\n```" in TEXT


@pytest.fixture
def style():
    from pytest_caliper.reporting.style import Style

    return Style(width=100, color=False, unicode=True)


def test_how_many_attempts_tell_a_difference():
    head, *rows = next(rows for rows in tables() if rows[0][0] == "Without → with")
    assert len(rows) > 5
    for rates, *cells in rows:
        base, skill = (int(rate.rstrip("%")) for rate in rates.split(" → "))
        for tasks, cell in zip(head[1:], cells, strict=True):
            assert cell == str(attempts_to_tell([(base, 100, skill, 100)] * int(tasks.split()[0]))), (rates, tasks)


def test_how_many_attempts_tell_a_rate():
    """In steps of ten, so that each rate can be had."""
    head, *rows = next(rows for rows in tables() if rows[0][0] == "Rate" and "±" in rows[0][1])
    for rate, *cells in rows:
        for within, cell in zip(head[1:], cells, strict=True):
            half = int(within.split()[1])
            widths = ((n, wilson(int(share(rate) * n + 0.5), n)) for n in range(10, 1000, 10))
            assert cell == str(next(n for n, w in widths if w is not None and w.high - w.low <= 2 * half / 100))


def test_numbers_in_the_sentences():
    flat = " ".join(TEXT.split())
    assert Fraction(1, 20) == ALPHA
    assert "At most 0.05 makes a word." in flat
    low, high = wilson(3, 3) or (0, 0)
    assert f"“100% (3/3, 95% interval {100 * low:.0f} to {100 * high:.0f})”" in flat
    assert low < 0.5, "3/3 fits a skill that works every second time"
    assert (wilson(2, 3) or (0, 1))[1] < 1, "one failure in three rules out that it always works"
    assert numbers.rate(1 - 0.9**10) == "65.1%"
    assert "has a pass@10 of 65.1%" in flat
    assert "Whoever asks once gets 10.0%." in flat
    assert f"80.0% of the time has a pass^5 of {numbers.rate(0.8**5)}" in flat
    compared = compare_arms([(0, 3, 2, 3), (1, 3, 3, 3), (3, 3, 3, 3)])
    assert compared is not None
    assert f"From {numbers.signed(compared.low)} to {numbers.signed(compared.high)} is wide" in flat
    assert f"A mean of {numbers.rate(2 / 3)} may be" in flat
    assert 20 * float(ALPHA) == 1, "of twenty tasks that did not change, one"
    assert list(holm([0.04] * 3)) != [0.04] * 3
    (single,) = compare_tasks([(3, 3, 2, 3)])
    assert single is not None
    assert single.word is None
    assert signature(attempts_to_tell).parameters["power"].default == 0.8
    assert "has a chance of 80% to give a word" in flat
    assert str(attempts_to_tell([(50, 100, 55, 100)])) == "over 200"
    assert "“a difference this small takes over 200 attempts”" in flat


def test_no_number_of_a_sentence_is_left_unchecked():
    """What stands in no table and in no sentence above is a k, a count of the reader's, or the name of a thing."""
    known = [
        r"^```.*?^```$",
        r"^\|.*$",
        r"“100% \(3/3, 95% interval 44 to 100\)”|“about 4 more attempts|chance\s+of 80%|over 200 attempts",
        r"3/3|3 of 3|2/3|k = 3|pass@10|pass\^5|pass@k|p = 0\.05|\+1\.0|\+71\.6|0\.05|65\.1%|10\.0%|80\.0%|32\.8%|66\.7%|66\.7",
        r"--caliper-k=\d+|--caliper-judge-votes=3|^\d\. |one ✗ in three",
    ]
    rest = TEXT
    for pattern in known:
        rest = re.sub(pattern, "", rest, flags=re.M | re.S if pattern.startswith("^```") else re.M)
    assert re.findall(r".*\d.*", rest) == []
