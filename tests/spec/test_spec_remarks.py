"""What is said of checks that decide nothing, and what is not said of those that do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import Spec
from pytest_caliper.spec.paths import absolute_paths

Load = Callable[[str | bytes], Spec]
ROOT = Path(__file__).resolve().parents[2]
HEAD = "tasks:\n  - name: a\n    prompt: b\n"
"""Three lines; the fourth is `assert: |`, so that line 1 of a check is line 5."""


def remarks(load: Load, source: str) -> list[tuple[int, str]]:
    block = "".join(f"      {line}\n" for line in source.split("\n"))
    return [(one.line, one.message) for one in load(HEAD + "    assert: |\n" + block).warnings]


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("import json\njson.load(open('a'))['port']", 5, "has no `assert`"),
        ("from pathlib import Path\nPath('a').exists()", 5, "has no `assert`"),
        ("import subprocess\nsubprocess.run(['make'], check=True)", 5, "has no `assert`"),
        ("def test_port():\n  assert attempt.answer", 6, "nothing calls `test_port`"),
        ("def f():\n  assert attempt.answer\ndef g():\n  f()", 6, "nothing calls `f`"),
        ("def f():\n  f()\n  raise AssertionError", 7, "nothing calls `f`"),
        ("def main():\n  assert attempt.answer\nif __name__ == '__main__':\n  main()", 7, "not `__main__`"),
        ("if __name__ == '__main__':\n  assert attempt.answer", 5, "not `__main__`"),
        ("text = open('a').read()\n'x' in text", 6, "write `assert` before it"),
        ("text = open('a').read()\nif text:\n  not text == 'x'\nassert text", 7, "write `assert` before it"),
        ("def f():\n  return 1\n  assert attempt.answer\nassert f()", 7, "never reached, as it stands behind a `return`"),
        ("for x in attempt.files:\n  continue\n  assert x\nassert attempt.files", 7, "behind a `continue`"),
        ("text = open('a').read()\nassert 'x' in text or 'y'", 6, "`x in text or y in text`"),
        ("assert (x for x in attempt.files)", 5, "put `all(…)` or `any(…)` around it"),
        ("import nosuchmodule_of_anybody\nassert nosuchmodule_of_anybody.f()", 5, "`nosuchmodule_of_anybody` is not found"),
        ("from nosuchmodule_of_anybody.x import f\nassert f()", 5, "`nosuchmodule_of_anybody` is not found"),
    ],
)
def test_a_check_that_decides_nothing_is_told_once(load: Load, source: str, line: int, words: str) -> None:
    [(found, message)] = remarks(load, source)
    assert found == line
    assert words in message
    assert ": " in message, "the remedy stands behind a colon"


@pytest.mark.parametrize(
    "source",
    [
        "assert attempt.answer",
        "if not attempt.answer:\n  raise AssertionError('no answer')",
        "import pytest\npytest.fail('x') if not attempt.answer else None",
        "from unittest import TestCase\nTestCase().assertEqual(attempt.answer, 'x')",
        "exec(open('check.py').read())",
        "from check import *",
        "import check\ncheck.verify(attempt)",
        "def f():\n  assert attempt.answer\nf()",
        "def f():\n  assert attempt.answer\ng = f\ng()",
        "def f():\n  assert attempt.answer\nglobals()['f']()",
        "def f():\n  g()\ndef g():\n  assert attempt.answer\nif attempt.files:\n  f()",
        "class Check:\n  def run(self):\n    assert attempt.answer\nCheck().run()",
        "@print\ndef f():\n  assert attempt.answer",
        "async def f():\n  assert attempt.answer\nimport asyncio\nasyncio.run(f())",
        "def main():\n  assert attempt.answer\nmain()\nif __name__ == '__main__':\n  main()",
        "if __name__ != '__main__':\n  assert attempt.answer",
        "def f():\n  if attempt.answer:\n    return\n  assert attempt.files\nf()",
        "for x in attempt.files:\n  if x:\n    break\n  assert x",
        "def f():\n  return\n  yield\nassert list(f()) == attempt.files",
        "attempt.answer or exit\nassert attempt.answer",
        "assert attempt.answer or attempt.files",
        "assert attempt.answer and True",
        "assert all(x for x in attempt.files)",
        "try:\n  import nosuchmodule_of_anybody\nexcept ImportError:\n  nosuchmodule_of_anybody = None\nassert attempt.answer",
        "def f():\n  import nosuchmodule_of_anybody\nassert attempt.answer",
        "import sys\nsys.path.insert(0, '.')\nimport nosuchmodule_of_anybody\nassert attempt.answer",
        "import other\nassert attempt.answer",
        "import helper\nassert attempt.answer",
        "import inner_module\nassert attempt.answer",
        "import yaml, json\nimport importlib.metadata\nassert attempt.answer",
        "x: int = 1\nassert attempt.answer",
    ],
)
def test_a_check_that_decides_something_is_left_alone(load: Load, project: Path, source: str) -> None:
    (project / "helper.py").touch()
    (project / "python").mkdir()
    (project / "python" / "inner_module.py").touch()
    assert remarks(load, source) == []


def test_modules_of_a_script_lie_beside_it(load: Load, project: Path) -> None:
    (project / "checks").mkdir()
    (project / "checks" / "port.py").write_text("import near\nassert near.f()\n")
    spec = HEAD + "    assert: checks/port.py\n"
    [warning] = load(spec).warnings
    assert (warning.path, warning.line) == (project / "checks" / "port.py", 1)
    (project / "checks" / "near.py").touch()
    assert load(spec).warnings == ()


@pytest.mark.parametrize("text", ["TODO", "'...'", "works", "It works!", "ok.", "'???'", "Pass"])
def test_an_expectation_that_says_nothing_is_told(load: Load, text: str) -> None:
    [warning] = load(HEAD + f"    expect: {text}\n").warnings
    assert warning.line == 4
    assert "says nothing that can be judged" in warning.message


@pytest.mark.parametrize("text", ["'404'", "a greeting", "返回404", "The answer works.", "No secrets", "x"])
def test_a_short_expectation_is_one(load: Load, text: str) -> None:
    assert load(HEAD + f"    expect: {text}\n").warnings == ()


def test_a_solution_is_read_with_its_line(load: Load) -> None:
    spec = load(HEAD + "    setup: 'true'\n    solution: echo x > a\n    assert: assert attempt.files\n")
    [task] = spec.tasks
    assert (task.solution, task.lines["solution"], task.lines["setup"]) == ("echo x > a", 5, 4)
    assert spec.warnings == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("    solution: ''\n    assert: assert attempt.files\n", "`solution` is blank"),
        ("    solution: 3\n    assert: assert attempt.files\n", "`solution` is text"),
        ("    solution: [a]\n    assert: assert attempt.files\n", "`solution`"),
        ("    solutoin: a\n    assert: assert attempt.files\n", "did you mean `solution`"),
    ],
)
def test_a_wrong_solution_is_a_mistake_on_its_line(mistakes: Callable[[str | bytes], list[str]], text: str, words: str) -> None:
    [found] = mistakes(HEAD + text)
    assert found.startswith("4: ")
    assert words in found


def test_a_solution_without_an_assert_is_told(load: Load) -> None:
    [warning] = load(HEAD + "    expect: There is a greeting.\n    solution: echo hi\n").warnings
    assert warning.line == 5
    assert "only tried on `assert:`" in warning.message


def test_a_solution_makes_attempts_run_one_at_a_time_only_when_it_names_a_place(load: Load) -> None:
    check = "    assert: assert attempt.files\n"
    [here] = load(HEAD + check + '    solution: cp "$CALIPER_SPEC_DIR"/a/b . && echo x > sub/dir/c\n').tasks
    [there] = load(HEAD + check + "    solution: echo x > /tmp/caliper.txt\n").tasks
    assert absolute_paths(here) == ()
    assert absolute_paths(there) == ("/tmp/caliper.txt",)


@pytest.mark.parametrize("spec", sorted(ROOT.glob("examples/**/*.eval.yaml")), ids=lambda path: path.name)
def test_nothing_is_said_of_the_examples(spec: Path) -> None:
    assert load_spec(spec).warnings == ()
