"""What a test's source tells before it runs: what it will ask, whether it names a skill, whether it asks the judge.

Only literals are told; what is computed is known when the attempt runs. Nothing is decided by what is not found here, except that
a judge nobody seems to need is not tried beforehand.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

FIXTURE = "caliper"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A test function as it is written."""

    text: str
    """Empty when Python cannot tell."""
    line: int
    """0-based line of its first line, decorators included."""
    prompt: str | None = None
    """The prompt, where it is one literal."""
    criteria: tuple[str, ...] = ()
    """What the judge is asked, where it is literal."""
    judges: bool = False
    """Whether a call of `caliper.judge` is to be seen."""
    names_skill: bool = False
    """Whether a call of `caliper.run` with `skill=` is to be seen."""
    skills: tuple[str, ...] = ()
    """The skills among them that are literals."""


def source_of(function: Callable[..., Any]) -> Source:
    """Read a function's source. Never raises: what cannot be read tells nothing."""
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(function))
        text = textwrap.dedent("".join(lines))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError):
        return Source(text="", line=max(0, getattr(getattr(function, "__code__", None), "co_firstlineno", 1) - 1))
    runs, judged = list(_calls(tree, "run")), list(_calls(tree, "judge"))
    prompts = [prompt for call in runs if (prompt := _text(_argument(call, 0, "prompt"))) is not None]
    skills = [keyword.value for call in runs for keyword in call.keywords if keyword.arg == "skill"]
    return Source(
        text=text,
        line=max(0, first - 1),
        prompt=prompts[0] if len(prompts) == 1 else None,
        criteria=tuple(said for call in judged if (said := _text(_argument(call, 1, "criterion"))) is not None),
        judges=bool(judged),
        names_skill=any(not (isinstance(value, ast.Constant) and value.value is None) for value in skills),
        skills=tuple(said for value in skills for said in _texts(value)),
    )


def _calls(tree: ast.AST, method: str) -> Iterator[ast.Call]:
    """Calls of a method of the fixture, in the order of the source."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == FIXTURE
        ):
            yield node


def _argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    if len(call.args) > place:
        return call.args[place]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _texts(node: ast.expr) -> list[str]:
    several = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return [text for one in several if (text := _text(one)) is not None]
