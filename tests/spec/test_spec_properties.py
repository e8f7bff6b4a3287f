"""Whatever a file holds, it is a spec or a SpecError with lines that exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_caliper.spec import tree
from pytest_caliper.spec.env_refs import references
from pytest_caliper.spec.files import files_named
from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import Diagnostic, SpecError
from pytest_caliper.spec.paths import absolute_paths
from pytest_caliper.spec.schema import keys_at

KEYS = st.sampled_from(
    [
        *(key for loc in ((), ("skill",), ("sandbox",), ("tasks", 0), ("mcp", "a")) for key in keys_at(loc)),
        "activates",
        "history",
        "<<",
    ]
)
TEXTS = st.one_of(
    st.text(),
    st.sampled_from(
        ["", "a", "yes", "404", "./x.py", "assert x", "assert (", "pass", "${A}", "${", "(", ".", "http", "~", "x\0y", "\ud800"]
    ),
)
SCALARS = st.one_of(TEXTS, st.none(), st.booleans(), st.integers(), st.floats(), st.dates())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, TEXTS), inner, max_size=5)),
    max_leaves=30,
)
TASKS = st.fixed_dictionaries({"name": SCALARS, "prompt": TEXTS}, optional={"expect": VALUES, "assert": VALUES, "setup": VALUES})
SERVERS = st.dictionaries(
    TEXTS,
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("command", "type", "url"), VALUES) | {"env": st.dictionaries(TEXTS, SCALARS, max_size=3)}
    ),
    max_size=2,
)
SPECS = st.one_of(
    VALUES,
    st.fixed_dictionaries({"tasks": st.lists(TASKS, max_size=3)}, optional={"mcp": SERVERS, "skill": VALUES, "sandbox": VALUES}),
)

YAMLISH = st.lists(
    st.sampled_from(
        [
            *[
                "tasks:",
                "\n",
                "  ",
                "- ",
                "name: ",
                "a",
                "prompt: ",
                "assert: ",
                "|",
                ">",
                "|2",
                "&a ",
                "*a",
                "<<: ",
                "{",
                "}",
                "[",
                "]",
                ",",
                "'",
            ],
            *'"\\#\t%\u2028\ufeff\ré',
            *["!!str ", "!x ", "---", "...", "? ", ": ", "assert x", "mcp:"],
        ]
    ),
    max_size=40,
).map("".join)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any") / "any.eval.yaml"


def load_or_complain(path: Path, data: bytes) -> None:
    """Load the spec, check what can be checked of any, and use everything that reads specs."""
    path.write_bytes(data)
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
    try:
        spec = load_spec(path)
    except SpecError as error:
        check(error.diagnostics, path, lines)
        return
    assert spec.tasks
    assert all(task.name.strip() and task.prompt.strip() and (task.expect or task.assertion) for task in spec.tasks)
    assert files_named(spec)
    assert all(ref.name for ref in references(spec))
    assert all(path.startswith("/") for task in spec.tasks for path in absolute_paths(task))


def check(diagnostics: tuple[Diagnostic, ...], path: Path, lines: int) -> None:
    """Each mistake is one line of bounded length, names a line of the file, and they are in order."""
    assert diagnostics
    assert list(diagnostics) == sorted(diagnostics, key=lambda one: one.line)
    for one in diagnostics:
        assert 1 <= one.line <= lines
        assert str(one).removeprefix(str(path)).isprintable()
        assert len(one.message) < 1000


@settings(deadline=None)
@given(st.binary())
def test_any_bytes(path: Path, data: bytes) -> None:
    load_or_complain(path, data)


@settings(deadline=None)
@given(st.text())
def test_any_text(path: Path, text: str) -> None:
    load_or_complain(path, text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("loader", [tree._LOADER, yaml.SafeLoader])
@settings(max_examples=300, deadline=None)
@given(text=YAMLISH)
def test_anything_like_yaml(path: Path, loader: Any, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "_LOADER", loader)
        load_or_complain(path, text.encode())


@pytest.mark.parametrize("loader", [tree._LOADER, yaml.SafeLoader])
@settings(max_examples=300, deadline=None)
@given(data=SPECS)
def test_anything_like_a_spec(path: Path, loader: Any, data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "_LOADER", loader)
        load_or_complain(path, yaml.safe_dump(data, allow_unicode=True).encode("utf-8", "surrogatepass"))
