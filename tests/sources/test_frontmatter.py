from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_caliper.sources.frontmatter import skill_name


@pytest.mark.parametrize(
    "data",
    [
        b"---\nname: pdf-tools\n---\nbody\n",
        b"\xef\xbb\xbf---\nname: pdf-tools\n---\n",
        b"---\r\nname: pdf-tools\r\ndescription: x\r\n---\r\nbody\r\n",
        b"---  \nname: 'pdf-tools'\n--- \n",
        b"---\nname: pdf-tools\n---",
        b"---\nname: pdf-tools\nmetadata:\n  name: other\n---\nname: third\n---\n",
    ],
)
def test_name(data: bytes) -> None:
    assert skill_name(data) == "pdf-tools"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"# Title\n",
        b"---\n---\n",
        b"---\ndescription: x\n---\n",
        b"---\nname:\n---\n",
        b"---\nname: '  '\n---\n",
        b"----\nname: x\n",
    ],
)
def test_no_name(data: bytes) -> None:
    assert skill_name(data) is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"---\nname: x\n", "closing --- line is missing"),
        (b"---\nname: x\ndescription: Use when: asked\n---\n", "broken frontmatter in line 3"),
        (b"---\n- name\n---\n", "`key: value` pairs"),
        (b"---\nname: [\n---\n", "broken frontmatter"),
        (b"---\ndate: 2024-99-99\n---\n", "broken frontmatter"),
        (b"---\nname: a\x07b\n---\n", "broken frontmatter"),
        (b"---\nname: !!python/object:os.system x\n---\n", "broken frontmatter"),
        (b"---\nx: " + b"[" * 1500 + b"\n---\n", "broken frontmatter"),
        (b"---\nname: 404\n---\n", "no text (404); quote it"),
        (b"---\nname: yes\n---\n", "no text (True); quote it"),
        (b"\xff\xfe-\x00", "not UTF-8"),
        (b"---\nname: PDF Tools\n---\n", "no Agent Skill name"),
        (b"---\nname: ../up\n---\n", "no Agent Skill name"),
        (b"---\nname: -a\n---\n", "no Agent Skill name"),
        (b"---\nname: a--b\n---\n", "no Agent Skill name"),
        (b"---\nname: " + b"a" * 65 + b"\n---\n", "64 characters at most"),
        ("---\nname: größe\n---\n".encode(), "no Agent Skill name"),
        (b'---\nname: "a\\n"\n---\n', "no Agent Skill name"),
    ],
)
def test_refused_in_one_line(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=r"^(has|is)") as caught:
        skill_name(data)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sixty_four_characters_fit() -> None:
    assert skill_name(b"---\nname: " + b"a" * 64 + b"\n---\n") == "a" * 64


@given(st.binary(max_size=80))
def test_any_bytes_give_a_name_or_a_reason(data: bytes) -> None:
    said = ""
    try:
        name = skill_name(b"---\n" + data + b"\n---\n")
    except ValueError as error:
        name, said = None, str(error)
    assert name is None or name.isascii()
    assert "\n" not in said
