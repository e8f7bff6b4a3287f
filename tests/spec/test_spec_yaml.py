"""YAML itself: encodings, anchors, merge keys, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from pytest_caliper.spec import tree
from pytest_caliper.spec.model import Spec

Load = Callable[[str | bytes], Spec]
Mistakes = Callable[[str | bytes], list[str]]

TASK = "tasks:\n  - name: a\n    prompt: b\n    expect: c\n"


@pytest.fixture(autouse=True, params=["libyaml", "pure"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both implementations of PyYAML."""
    if request.param == "pure":
        monkeypatch.setattr(tree, "_LOADER", yaml.SafeLoader)
    elif not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")


@pytest.mark.parametrize(
    "data",
    [
        TASK.encode(),
        b"\xef\xbb\xbf" + TASK.encode(),
        TASK.replace("\n", "\r\n").encode(),
        TASK.replace("\n", "\r").encode(),
        b"---\n" + TASK.encode() + b"...\n",
        b"%YAML 1.1\n---\n" + TASK.encode(),
        b"# comment\n\n" + TASK.encode(),
    ],
)
def test_accepted_encodings(load: Load, data: bytes) -> None:
    [task] = load(data).tasks
    assert (task.name, task.prompt, task.expect) == ("a", "b", "c")


def test_anchors_and_merge_keys(load: Load) -> None:
    spec = load(
        """\
        tasks:
          - &first
            name: one
            prompt: &prompt Do it
            expect: done
            setup: touch a
          - <<: *first
            name: two
            expect: really done
          - <<: [*first, {setup: ignored, cleanup: rm a}]
            name: three
            prompt: *prompt
        """
    )
    one, two, three = spec.tasks
    assert (one.name, two.name, three.name) == ("one", "two", "three")
    assert (two.prompt, two.expect, two.setup) == ("Do it", "really done", "touch a")
    assert (three.prompt, three.setup, three.cleanup) == ("Do it", "touch a", "rm a")
    assert (two.line, three.line) == (6, 9)


def test_a_quoted_merge_key_is_a_key(mistakes: Mistakes) -> None:
    [found] = mistakes(TASK + '"<<": {}\n')
    assert "unknown key `<<`" in found


def test_a_mistake_in_what_is_merged_is_told_where_it_stands(mistakes: Mistakes) -> None:
    found = mistakes("tasks:\n  - &a\n    name: x\n    prompt: p\n    expect: yes\n  - <<: *a\n    name: y\n")
    assert found == ['5: `expect` is text, and YAML reads yes as the boolean true: quote it, as "yes"']


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"", 1, "the spec is empty: add at least one task"),
        (b"# only a comment\n", 1, "the spec is empty"),
        (b"\xef\xbb\xbf", 1, "the spec is empty"),
        (b"- a\n- b\n", 1, "the spec is a list, not a mapping: start it with `skill:` and `tasks:`"),
        (b"\n\nhello\n", 3, "the spec is text, not a mapping"),
        (b"404\n", 1, "the spec is a number, not a mapping"),
        (b"null\n", 1, "the spec is blank, not a mapping"),
        (TASK.encode() + b"---\n" + TASK.encode(), 5, "a second YAML document starts here"),
        (b"tasks:\n\t- name: a\n", 2, "a tab is used for indentation, which YAML does not allow: use spaces"),
        (b"tasks:\n  - name: a\n    prompt: x: y\n", 3, "put quotes around a text that holds `: `"),
        (b"tasks:\n  - name: @a\n", 2, "put quotes around a text that starts with this character"),
        (b"tasks:\n  - name: 'a\n    prompt: b\n", 4, "begun on line 2"),
        (b"tasks:\n  - name: *a\n", 2, "undefined alias"),
        (b'tasks:\n  - name: "\\d"\n', 2, "double the backslash"),
        (b"tasks: [a\nb: c\n", 2, "not valid YAML"),
        (b"tasks:\n  - name: a\n   prompt: b\n", 3, "fix the indentation"),
        (b"%YAML 2.0\n---\na: b\n", 1, "not valid YAML"),
        (b"a: b\r\nc: \xff\r\n", 2, "the file is not UTF-8 (byte 0xff at offset 9): save it as UTF-8"),
        ("tasks: []\n".encode("utf-16"), 1, "the file is UTF-16 (byte 0xff at offset 0): save it as UTF-8"),
        (b"a: b\nc: d\0\n", 2, "control character U+0000 in the file: delete it"),
        (b"a: b\nc: \x1b[31m\n", 2, "control character U+001B"),
        (b"a: b\nc: \xc2\x85d\n", 2, "control character U+0085"),
        (b"a: " + b"[" * 100_000, 1, "nest less deeply"),
        (b"a: " + b"- " * 100_000, 1, "not valid YAML"),
        (b"a:\n  " + b"- " * 100_000, 2, "nest less deeply"),
        (b"{" * 100_000, 1, "nest less deeply"),
        (b"a: &a [*a]\n", 1, "an anchor is used inside itself: write the value out"),
        (b"a: &a\n  b: *a\n", 2, "an anchor is used inside itself"),
        (b"a: &a\n  <<: *a\n", 2, "an anchor is used inside itself"),
        (b"x" * 4_000_001, 1, "the spec is larger than 4 MB"),
    ],
)
def test_what_is_no_yaml_mapping_is_told_alone(mistakes: Mistakes, data: bytes, line: int, words: str) -> None:
    [found] = mistakes(data)
    assert found.startswith(f"{line}: ")
    assert words in found


def nested_aliases(open_: str, close: str, entry: str) -> str:
    """Nine levels, each of which holds the one before nine times."""
    levels = [f"a0: &a0 {open_}{close}"]
    for level in range(1, 10):
        inner = ", ".join(entry.format(number=n, name=f"*a{level - 1}") for n in range(9))
        levels.append(f"a{level}: &a{level} {open_}{inner}{close}")
    return "\n".join(levels)


@pytest.mark.parametrize(
    "text",
    [
        nested_aliases("[", "]", "{name}"),
        nested_aliases("{", "}", "k{number}: {name}"),
        "\n".join(["a0: &a0 {x: y}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 10)]),
    ],
)
def test_nested_aliases_are_bounded(mistakes: Mistakes, text: str) -> None:
    [found] = mistakes(text)
    assert "aliases expand to more than 200,000 values" in found


def test_a_chain_of_aliases_is_bounded(mistakes: Mistakes) -> None:
    text = "a0: &a0 []\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 2000))
    [found] = mistakes(text)
    assert "nest less deeply" in found


@pytest.mark.parametrize(
    ("merge", "words"),
    [
        ("<<: 3", "`<<` merges mappings, not text"),
        ("<<: [[a]]", "`<<` merges mappings, not a list"),
        ("<<: {}\n    <<: {}", "`<<` stands on line 5 already: write `<<: [*one, *other]`"),
    ],
)
def test_merge_keys_merge_mappings(mistakes: Mistakes, merge: str, words: str) -> None:
    [found] = mistakes(TASK + f"    {merge}\n")
    assert words in found


def test_line_separators_do_not_move_the_lines(mistakes: Mistakes) -> None:
    [found] = mistakes('tasks:\n  - name: "a\u2028b\u2029c"\n    prompt: b\n    expect: yes\n')
    assert found.startswith("4: `expect`")


def test_text_is_kept_as_it_is(load: Load) -> None:
    [task] = load('tasks:\n  - name: "\U0001f600 \\e[31m"\n    prompt: "a\u2028b"\n    expect: |+\n      x\n\n').tasks
    assert (task.name, task.prompt, task.expect) == ("\U0001f600 \x1b[31m", "a\u2028b", "x\n\n")
