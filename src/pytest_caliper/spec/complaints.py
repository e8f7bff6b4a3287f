"""Mistakes in the shape of a spec, in words: what is wrong, and what to do.

`_TABLE` translates pydantic's kinds of error; a kind that is not in it keeps pydantic's own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

from pytest_caliper.spec import schema
from pytest_caliper.spec.findings import Findings, in_line, shown
from pytest_caliper.spec.tree import Node, NotText, kind_of

Loc = tuple[str | int, ...]

_OPTIONS = {
    "k": "--caliper-k",
    "timeout": "--caliper-timeout",
    "workers": "--caliper-workers",
    "baseline": "--caliper-baseline",
    "backend": "--caliper-model",
    "model": "--caliper-model",
    "engine": "--caliper-model",
    "judge_model": "--caliper-judge-model",
}
"""What people look for in a spec, and where it is."""


def note_shape_errors(root: Node, findings: Findings) -> None:
    """Note everything that pydantic finds wrong with the tree, each at its line."""
    for error in schema.shape_errors(root.data):
        loc = tuple(part for part in error["loc"] if part not in (*schema.BRANCHES, "[key]"))
        if error["type"].startswith("union_tag"):
            loc = (*loc, "type")
        if error["type"] == "missing" and _hidden_by_a_typo(root, loc):
            continue
        translate = _TABLE.get(error["type"], _other)
        findings.error(find(root, loc).line, translate(loc, error))


def find(root: Node, loc: Iterable[str | int]) -> Node:
    """The node at `loc`, or the nearest one above it."""
    node = root
    for part in loc:
        child = node.get(part)
        if child is None:
            break
        node = child
    return node


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one is nearest to; None when none is near."""
    near = get_close_matches(word.lower().replace("-", "_"), list(known), n=1, cutoff=0.6)
    return near[0] if near else None


def misspelt(node: Node, loc: Loc, key: str) -> bool:
    """True when the mapping at `loc` has an unknown key that looks like `key`: then only the spelling is wrong."""
    known = schema.keys_at(loc)
    return any(name not in known and did_you_mean(name, known) == key for name, _ in node.items())


def _hidden_by_a_typo(root: Node, loc: Loc) -> bool:
    *above, key = loc
    node = find(root, above)
    if loc[0] == "mcp" and key == "command" and node.get("url") is not None:
        return True  # told at `url`: the `type:` is missing
    return misspelt(node, tuple(above), str(key))


def _label(loc: Loc) -> str:
    """`loc` for people: "`expect`", "`mcp.weather.env.PORT`", "`sandbox.extra_path` item 2", "task 1"."""
    if loc[0] == "tasks" and len(loc) == 2:
        return f"task {int(loc[1]) + 1}"
    parts = loc[2:] if loc[0] == "tasks" and len(loc) > 2 else loc
    keys = ".".join(in_line(part) for part in parts if isinstance(part, str))
    items = "".join(f" item {part + 1}" for part in parts if isinstance(part, int))
    return f"`{keys}`{items}"


def _missing(loc: Loc, _: ErrorDetails) -> str:
    key = str(loc[-1])
    if loc == ("tasks",):
        return "there are no tasks: add at least one under `tasks:`"
    if key == "command":
        return f"{_label(loc[:-1])} has no `command`: add it, or `type: http` and `url:` for a remote server"
    return f"{_label(loc[:-1])} has no `{key}`: add `{key}:`"


def _unknown_key(loc: Loc, _: ErrorDetails) -> str:
    key, above = str(loc[-1]), loc[:-1]
    label = f"`{in_line(key)}`"
    if key in schema.NOT_YET:
        return f"{label} is not supported yet: delete it, and check the result with `expect:` or `assert:`"
    known = schema.keys_at(above)
    if above[:1] == ("mcp",) and key in known:
        if key in ("url", "headers"):
            return (
                f"{label} belongs to a remote server: add `type: http` or `type: sse` and give no `command`, or delete `{key}:`"
            )
        return f"{label} belongs to a local (stdio) server: delete it, or delete `type:` and `url:`"
    if near := did_you_mean(key, known):
        return f"unknown key {label}: did you mean `{near}`?"
    if key in _OPTIONS and above[:1] in ((), ("tasks",)):
        return f"unknown key {label}: a spec does not say how it is run, delete it and pass `{_OPTIONS[key]}`"
    return f"unknown key {label}: delete it, or use one of {', '.join(known)}"


def _not_text(loc: Loc, error: ErrorDetails) -> str:
    value, label = error["input"], _label(loc)
    if value is None:
        return _blank(loc, error)
    if isinstance(value, NotText):
        return f'{label} is text, and YAML reads {_written(value)}: quote it, as "{in_line(value.written)}"'
    if isinstance(value, dict):
        return f"{label} is text, not a mapping: quote it if braces or a colon are part of the text"
    return f"{label} is text, not {kind_of(value)}: quote it if the brackets or dashes are part of the text"


def _blank(loc: Loc, _: ErrorDetails) -> str:
    needed = loc[-1] in ("name", "prompt", "command", "url")
    return f"{_label(loc)} is blank: write its text" + (
        "" if needed else f", or delete the {'item' if isinstance(loc[-1], int) else 'key'}"
    )


def _written(value: NotText) -> str:
    if value.read == in_line(value.written):
        return f"{in_line(value.written)} as a {value.kind}"
    return f"{in_line(value.written)} as the {value.kind} {value.read}"


def _not_mapping(loc: Loc, error: ErrorDetails) -> str:
    label, kind = _label(loc), kind_of(error["input"])
    if loc == ("skill",):
        return f"{label} is one skill, not {kind}: write `skills:` for several"
    if loc == ("judge",):
        return f"{label} is {kind}, not a mapping: delete it and pass `--caliper-judge-model`"
    if loc[0] == "mcp" and len(loc) == 2:
        return f"{label} is {kind}, not a mapping: give the server a `command:`, or `type: http` and `url:`"
    return f"{label} is {kind}, not a mapping: write `key: value` lines below it"


def _not_list(loc: Loc, error: ErrorDetails) -> str:
    if loc == ("tasks",) and error["input"] is None:
        return _missing(loc, error)
    return f"{_label(loc)} is {kind_of(error['input'])}, not a list: write its items below it, each after `- `"


def _unknown_transport(loc: Loc, error: ErrorDetails) -> str:
    given: Any = error["input"].get("type")
    text = given if isinstance(given, str) else getattr(given, "written", "")
    near = did_you_mean(text, schema.TRANSPORTS)
    hint = f"did you mean `{near}`?" if near else "use stdio (or leave it out), http or sse"
    return f"{_label(loc)} is {shown(text) if text else kind_of(given)}, which is no transport: {hint}"


def _house(loc: Loc, error: ErrorDetails) -> str:
    return f"{_label(loc)} {error['ctx']['message']}"


def _other(loc: Loc, error: ErrorDetails) -> str:
    return f"{_label(loc) if loc else 'the spec'}: {in_line(error['msg'])}: fix it"


_TABLE: dict[str, Callable[[Loc, ErrorDetails], str]] = {
    "missing": _missing,
    "too_short": _missing,
    "extra_forbidden": _unknown_key,
    "string_type": _not_text,
    "model_type": _not_mapping,
    "dict_type": _not_mapping,
    "list_type": _not_list,
    "union_tag_invalid": _unknown_transport,
    "union_tag_not_found": _unknown_transport,
    "blank": _blank,
    "caliper": _house,
}
