from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_caliper.reporting.text import ascii_only, clip, one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, naïve, 日本語, 👩‍💻", "plain, naïve, 日本語, 👩‍💻"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "\\x1b]8;;http://x\\x07link\\x1b]8;;\\x07"),
        ("a\rb\x00\x7f\x9b2J", "a\\x0db\\x00\\x7f\\x9b2J"),
        ("\u202eevil\u2066\u200f", "\\u202eevil\\u2066\\u200f"),
        ("a\u2028b\u2029c\ufeff\u200b", "a\\u2028b\\u2029c\\ufeff\\u200b"),
        ("\ud800", "\\ud800"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("narrow\u00a0and wide\u3000blanks", "narrow\u00a0and wide\u3000blanks"),
        ("", ""),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_nothing_is_dropped_and_nothing_can_act(text: str) -> None:
    shown = printable(text)

    assert len(shown) >= len(text)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in shown)
    assert not set(shown) & set("\x7f\x1b\u202e\u2028")
    shown.encode()
    ascii_only(shown).encode("ascii")
    assert printable(shown) == shown


def test_one_line() -> None:
    assert one_line("  a\n\tb\r\nc \x1b d  ") == "a b c \\x1b d"
    assert one_line("a\x1cb\u2028c") == "a\\x1cb\\u2028c"


def test_clip_keeps_within_both_limits_and_counts_the_rest() -> None:
    assert clip("abc\n\n", chars=10, lines=5) == ("abc", 0)
    assert clip("abcdef", chars=4, lines=5) == ("abcd", 2)
    assert clip("a\nb\nc", chars=10, lines=2) == ("a\nb", 2)
    assert clip("", chars=10, lines=2) == ("", 0)
    assert clip("日本語", chars=2, lines=1) == ("日本", 1)
