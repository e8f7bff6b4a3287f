"""Writes a spec as YAML with comments. PyYAML quotes; texts of several lines become blocks where that keeps every character."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

_WIDTH = 110
_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]")
"""Line breaks to YAML alone, and a byte-order mark: kept only as escapes."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One task of the file to be."""

    values: Mapping[str, str]
    """Its keys in their order."""
    remarks: Sequence[str] = field(default=())
    """Comments above it, one line each."""
    inert: bool = False
    """Written as a comment: it lacks something that only a human can add."""


def spec_text(*, head: Sequence[str], skill: str | None, tasks: Sequence[Part]) -> str:
    """The text of a spec: comments, the path of its skill (none: the bare agent), its tasks."""
    out = [f"# {_comment(line)}".rstrip() for line in head]
    if skill is not None:
        out += ["", _dump({"skill": {"path": skill}}).rstrip("\n")]
    out += ["", "tasks:"]
    for number, task in enumerate(tasks):
        lines = [f"# {_comment(remark)}" for remark in task.remarks]
        body = _dump([dict(task.values)]).rstrip("\n").split("\n")
        lines += [f"# {line}".rstrip() for line in body] if task.inert else body
        out += [""] if number else []
        out += [f"  {line}".rstrip() if not line.strip() else f"  {line}" for line in lines]
    return "\n".join(out) + "\n"


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _BREAKS.search(text) or "\r" in text:
        style = '"'
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _dump(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH, default_flow_style=False)
    return text
