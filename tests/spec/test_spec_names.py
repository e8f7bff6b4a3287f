"""Node names."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_caliper.spec.names import MAX_CHARS, node_name


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("Writes a commit message", "Writes a commit message"),
        ("a[1]", "a(1)"),
        ("a/b\\c", "a-b-c"),
        ("a::b:::c:d", "a:b:c:d"),
        (" : a: ", "a"),
        ("a \t\n\r\x0b\x85\u2028\u2029 b", "a b"),
        ("a\u202eb\u200e\x1b[31m\0", "ab(31m"),
        ("a:\u200e:b", "a:b"),
        ("user@host", "user@host"),
        ("..", ".."),
        ("Grüße 你好 \U0001f600", "Grüße 你好 \U0001f600"),
        ("e\u0301", "é"),
        ("$HOME `x` \"y\" 'z'", "$HOME `x` \"y\" 'z'"),
        ("", "task-001"),
        ("::", "task-001"),
        ("\u200e\n", "task-001"),
        ("x" * 300, "x" * MAX_CHARS),
        ("x" * (MAX_CHARS - 1) + " :y", "x" * (MAX_CHARS - 1)),
    ],
)
def test_node_names(raw: str, name: str) -> None:
    assert node_name(raw, "task-001") == name


@settings(deadline=None)
@given(st.text())
def test_any_text_makes_a_good_node_name(raw: str) -> None:
    name = node_name(raw, "task-001")
    assert name
    assert name.isprintable()
    assert len(name.splitlines()) == 1
    assert not set(name) & set("[]/\\")
    assert "::" not in name
    assert name == name.strip(" :")
    assert len(name) <= MAX_CHARS
    assert node_name(name, "task-001") == name
