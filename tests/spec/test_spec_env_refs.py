"""`${VAR}` in mcp servers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_caliper.spec.env_refs import malformed, references
from pytest_caliper.spec.model import Spec


def test_references_name_variable_server_and_key(load: Callable[[str | bytes], Spec]) -> None:
    spec = load(
        """\
        mcp:
          a:
            command: x
            env: {A: "${ONE}-${TWO}-${ONE}", B: "$THREE", C: "${ONE}"}
          b:
            type: sse
            url: ${BASE}/x
            headers: {Authorization: "Bearer ${TOKEN}"}
        tasks: [{name: a, prompt: "${NOT_HERE}", expect: c, setup: 'echo ${NOR_HERE:-}'}]
        """
    )
    assert [(ref.name, ref.server, ref.key, ref.line) for ref in references(spec)] == [
        ("ONE", "a", "env.A", 2),
        ("TWO", "a", "env.A", 2),
        ("ONE", "a", "env.C", 2),
        ("TOKEN", "b", "headers.Authorization", 5),
        ("BASE", "b", "url", 5),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("$A {A} ${A} ${_a1}", None),
        ("${A}${", "${"),
        ("x ${1A} y", "${1A}"),
        ("${A-B}", "${A-B}"),
        ("${ A}", "${ A}"),
        ("${${A}}", "${${A}}"),
    ],
)
def test_malformed_references(text: str, found: str | None) -> None:
    assert malformed(text) == found
