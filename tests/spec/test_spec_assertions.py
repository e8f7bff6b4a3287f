"""Where the lines of an assert stand, and what is said of its Python."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_caliper.spec.model import Assertion, Spec

Load = Callable[[str | bytes], Spec]


def only(spec: Spec) -> Assertion:
    [task] = spec.tasks
    assert task.assertion is not None
    return task.assertion


HEAD = "tasks:\n  - name: a\n    prompt: b\n"
"""Three lines."""


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "    assert: |\n      assert here == 1\n",
        HEAD + "    assert: |-\n      x = 1\n      assert here == 1\n",
        HEAD + "    assert: |+\n      x = 1\n\n      assert here == 1\n\n\n",
        HEAD + "    assert: |  # a comment\n\n\n            x = 'é'\n            assert here == 1\n",
        HEAD + "    assert: |2\n        x = 1\n        assert here == 1\n",
        HEAD + "    assert: |4-\n        if x:\n          assert here == 1\n",
        HEAD + "    assert: &a |\n      assert here == 1\n",
        HEAD + "    assert: &a\n      |\n      assert here == 1\n",
        HEAD + "    assert: !!str &a # why\n      # because\n      |\n      assert here == 1\n",
        HEAD
        + "    # a comment\n    assert:\n      |\n      x = '''\n      text\n\n        more\n      '''\n      assert here == 1\n",
        HEAD + "    assert: assert here == 1\n",
        HEAD + "    assert: &a assert here == 1\n",
        HEAD + "    assert:\n      assert here == 1\n",
        HEAD + "    assert: 'assert here == 1'\n",
        HEAD + '    assert: "assert here == 1"\n',
        HEAD + '    assert: !!str "  assert here == 1"\n',
        "tasks: [{name: 'é\U0001f600', prompt: \"x\u2028y\", assert: assert here == 1}]\n",
        'tasks:\n  - name: "a\u2028b"\n    prompt: |\n      x\n    assert: |\n      assert here == 1\n',
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_and_columns_are_those_of_the_file(load: Load, text: str, line_end: str) -> None:
    assertion = only(load(text.replace("\n", line_end).encode()))
    assert not assertion.is_script
    [found] = [node for node in ast.walk(ast.parse(assertion.source)) if isinstance(node, ast.Name) and node.id == "here"]
    line = text.split("\n")[found.lineno - 1 + assertion.line].encode()
    assert line[found.col_offset + assertion.column :].startswith(b"here == 1")


def test_a_folded_block_stands_where_it_starts(load: Load) -> None:
    assertion = only(load(HEAD + "    assert: >\n      assert 1 ==\n      x\n"))
    assert (assertion.source, assertion.line, assertion.column) == ("assert 1 == x\n", 3, 0)


def test_quoted_lines_stand_where_the_text_starts(load: Load) -> None:
    assertion = only(load(HEAD + '    assert: "import os\\nassert os.x"\n'))
    assert (assertion.source, assertion.line, assertion.column) == ("import os\nassert os.x", 3, 0)


def test_an_alias_stands_where_its_anchor_does(load: Load) -> None:
    spec = load(
        """\
        tasks:
          - name: a
            prompt: b
            assert: &check |
              assert x
          - name: b
            prompt: b
            assert: *check
        """
    )
    assert [task.assertion and task.assertion.line for task in spec.tasks] == [4, 4]


@pytest.mark.parametrize(
    ("value", "is_script"),
    [
        ("check.py", True),
        ("./check.py", True),
        ("'  ./bin/../check.py '", True),
        ("|\n      ./check.py", True),
        ("|\n      import x\n      x.py", False),
        ("assert x == 'check.py'", False),
    ],
)
def test_a_script_is_one_line_that_ends_in_py(load: Load, project: Path, value: str, is_script: bool) -> None:
    assertion = only(load(HEAD + f"    assert: {value}\n"))
    assert assertion.is_script is is_script
    assert (assertion.path == project / "check.py") is is_script


def test_a_script_is_decoded_as_python_does(load: Load, project: Path) -> None:
    (project / "check.py").write_bytes(b"# coding: latin-1\r\nassert '\xe9' == x\r\n")
    assert only(load(HEAD + "    assert: check.py\n")).source == "# coding: latin-1\nassert 'é' == x\n"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("assert True", [5]),
        ("# why\nassert 1 == 1, 'x'", [6]),
        ("import os\n'''docs'''\nassert not 0\nassert 'x'", [7, 8]),
        ("assert 1 < 2 <= 2 and (3 in [3]) or False", [5]),
        ("assert 'a' is not None", [5]),
        ("x = 1\nassert (x == 2, 'message')", [6]),
        ("def f():\n  assert (x, y)\nf()", [6]),
        ("assert ('a', 'b')", [5]),
        ("assert x", []),
        ("assert True\nassert x", []),
        ("assert False", []),
        ("assert 1 == 2", []),
        ("assert ()", []),
        ("assert 1 < 'a'", []),
        ("assert 9**9**9**9", []),
        ("assert {[]: 1}", []),
        ("assert 'a\\d' == x", []),
        ("if x:\n  pass\nelse:\n  assert True", []),
        ("raise AssertionError", []),
    ],
)
def test_an_assert_that_always_holds_is_a_warning(load: Load, source: str, lines: list[int]) -> None:
    block = "".join(f"      {line}\n" for line in source.split("\n"))
    spec = load(HEAD + "    assert: |\n" + block)
    assert [one.line for one in spec.warnings] == lines
    assert all("this assert always holds" in one.message for one in spec.warnings)


def test_a_warning_about_a_script_names_the_script(load: Load, project: Path) -> None:
    (project / "check.py").write_text("\nassert True\n")
    [warning] = load(HEAD + "    assert: check.py\n").warnings
    assert (warning.path, warning.line) == (project / "check.py", 2)
