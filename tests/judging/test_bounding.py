from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_caliper.judging.bounding import cut_middle, first_line


def test_short_text_is_left_alone() -> None:
    assert cut_middle("ä" * 50, 100) == "ä" * 50


def test_head_and_tail_stay_and_the_rest_is_counted() -> None:
    cut = cut_middle("HEAD" + "x" * 1000 + "TAIL", 100)
    assert cut.startswith("HEAD")
    assert cut.endswith("TAIL")
    kept = cut.count("x") + 8
    assert f"[… {1008 - kept} bytes cut …]" in cut


@given(st.text(st.characters(exclude_categories=()), max_size=400), st.integers(60, 200))
def test_the_bound_holds_and_the_count_is_true(text: str, limit: int) -> None:
    size = len(text.encode("utf-8", "backslashreplace"))
    cut = cut_middle(text, limit, "<{n} cut>")
    assert len(cut.encode()) <= limit
    if size > limit:
        marks = re.findall(r"\n<(\d+) cut>\n", cut)
        missing = int(marks[-1])
        assert missing == size - (len(cut.encode()) - len(f"\n<{missing} cut>\n"))


@pytest.mark.parametrize(
    ("text", "line"),
    [("", ""), ("\n \n a\u2028b\x1b[0m\r\nc", "a b [0m"), ("x\ty", "x y"), ("\udc80", "")],
)
def test_first_line(text: str, line: str) -> None:
    assert first_line(text) == line
