"""Compiling asserts: positions, and what happens where pytest's private parts are missing."""

from __future__ import annotations

import marshal
import sys
import traceback
from pathlib import Path
from types import CodeType

import pytest

from pytest_caliper.judging.assertion import compile_assertion
from pytest_caliper.spec.model import Assertion


def assertion(source: str, *, line: int = 10, column: int = 6) -> Assertion:
    return Assertion(source=source, path=Path("/specs/case.eval.yaml"), line=line, column=column, is_script=False)


def load(source: str, **where: int) -> CodeType:
    code = marshal.loads(compile_assertion(assertion(source, **where)))
    assert isinstance(code, CodeType)
    return code


def failure(code: CodeType) -> AssertionError:
    with pytest.raises(AssertionError) as caught:
        exec(code, {})
    return caught.value


def test_lines_are_those_of_the_file() -> None:
    code = load("x = 1\n\nassert x == 2, 'no'")
    assert code.co_filename == "/specs/case.eval.yaml"
    frame = traceback.extract_tb(failure(code).__traceback__)[-1]
    assert (frame.filename, frame.lineno) == ("/specs/case.eval.yaml", 13)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 keeps no columns")
def test_columns_are_those_of_the_file() -> None:
    code = load("value = 1\nvalue.missing")
    with pytest.raises(AttributeError) as caught:
        exec(code, {})
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (frame.lineno, frame.end_lineno, frame.colno) == (12, 12, 6)


def test_values_are_explained() -> None:
    assert str(failure(load("x = [3000]\nassert x[0] == 8080"))) == "assert 3000 == 8080"


def test_without_pytests_rewriting_the_verdict_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_pytest.assertion.rewrite", None)
    code = load("x = 1\nassert x == 2, 'plain'")
    monkeypatch.undo()
    assert str(failure(code)) == "plain"
    exec(load("assert 1"), {})


def test_a_rewriter_that_breaks_half_way_leaves_a_plain_assert(monkeypatch: pytest.MonkeyPatch) -> None:
    from _pytest.assertion import rewrite

    def breaks(tree: object, *_: object) -> None:
        tree.body.clear()  # type: ignore[attr-defined]
        raise TypeError("another signature")

    monkeypatch.setattr(rewrite, "rewrite_asserts", breaks)
    assert str(failure(load("assert 1 == 2, 'plain'"))) == "plain"


def test_docstring_future_import_and_walrus() -> None:
    code = load('"""doc"""\nfrom __future__ import annotations\nassert (n := 3) == 4')
    assert "assert 3 == 4" in str(failure(code))


@pytest.mark.parametrize("source", ["assert (1 == 2, 'always true')", r"assert '\d'", "assert 1 is 1"])
def test_warnings_of_the_compiler_do_not_end_the_collection(source: str) -> None:
    load(source)


def test_no_names_of_this_project_leak_into_the_code() -> None:
    names: dict[str, object] = {}
    exec(load("y = 1"), names)
    assert {name for name in names if not name.startswith(("__", "@"))} == {"y"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\nassert x ==", "/specs/case.eval.yaml:12: the assert is not valid Python"),
        ("return 3", "/specs/case.eval.yaml:11: the assert is not valid Python"),
        ("a\0b", "/specs/case.eval.yaml:11: the assert"),
        ("assert '\udc80'", "/specs/case.eval.yaml:11: the assert"),
        ("x = " + "(" * 5000 + ")" * 5000, "/specs/case.eval.yaml:11: the assert"),
        ("x = " + "-" * 50_000 + "1", "/specs/case.eval.yaml:11: the assert"),
    ],
)
def test_what_does_not_compile_is_one_line(source: str, said: str) -> None:
    with pytest.raises(ValueError, match="the assert") as caught:
        compile_assertion(assertion(source))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
