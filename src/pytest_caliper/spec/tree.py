"""A spec's YAML as plain data that still knows where each value stands.

Composed with libyaml where PyYAML has it: 6 ms instead of 249 ms for 200 tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from pytest_caliper.spec.findings import Findings, in_line, shown
from pytest_caliper.spec.source import Source

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 64
"""Levels of nesting; the format itself has five."""
MAX_VALUES = 200_000
"""Values after aliases and merges are expanded: what stops a few lines of nested aliases from filling the memory."""

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({_TAG + "str", _TAG + "value", _TAG + "merge"})
_KINDS = {"bool": "boolean", "int": "number", "float": "number", "timestamp": "date"}

_HINTS = (
    ("mapping values are not allowed", "put quotes around a text that holds `: `, or fix the indentation"),
    ("cannot start any token", "put quotes around a text that starts with this character"),
    ("undefined alias", "define it with `&name` before it is used, or put quotes around a text that starts with `*`"),
    ("unexpected end of stream", "close the quote"),
    ("expected ',' or", "close the bracket, or put quotes around a text that holds brackets"),
    ("block mapping", "fix the indentation: keys of one mapping start in one column"),
    ("block collection", "fix the indentation: items of one list start in one column"),
    ("simple key", "write `key: value`, with a blank after the colon"),
    ("unknown escape", "double the backslash, or use single quotes"),
    ("escape", "double the backslash, or use single quotes"),
    ("nesting depth", "nest less deeply"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NotText:
    """A scalar that YAML does not read as text, such as `404`, `yes` or `2024-01-01`."""

    written: str
    kind: str
    """`boolean`, `number` or `date`."""
    read: str
    """The value as YAML reads it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One value and where it stands."""

    line: int
    """1-based line to report: that of its key, or its own."""
    start: int
    """0-based line where the value itself begins."""
    data: Any
    """Plain data: dict, list, str, None or NotText."""
    scalar: yaml.ScalarNode | None = None
    children: Mapping[str | int, Node] = field(default_factory=dict)

    def get(self, key: str | int) -> Node | None:
        """The child at `key` of a mapping or list; None when there is none, or when this is neither."""
        return self.children.get(key)

    def items(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping in their order; nothing for a list or a scalar."""
        if isinstance(self.data, dict):
            for key, child in self.children.items():
                yield str(key), child

    def elements(self) -> list[Node]:
        """The elements of a list in their order; nothing for a mapping or a scalar."""
        return list(self.children.values()) if isinstance(self.data, list) else []

    def text(self, key: str | int) -> str | None:
        """The child at `key` when it is text that is not blank."""
        child = self.children.get(key)
        return child.data if child is not None and isinstance(child.data, str) and child.data.strip() else None


def compose(source: Source, findings: Findings) -> Node:
    """The spec's top-level mapping. Notes repeated keys and odd tags; raises SpecError for what is not one YAML mapping."""
    try:
        _check_events(source, findings)
        root = yaml.compose(source.text, Loader=_LOADER)
    except yaml.YAMLError as error:
        findings.fail(*_syntax_error(source, error))
    if root is None:
        findings.fail(1, "the spec is empty: add at least one task under `tasks:`")
    node = _Reader(source, findings).read(root, line=None)
    if not isinstance(node.data, dict):
        findings.fail(node.line, f"the spec is {kind_of(node.data)}, not a mapping: start it with `skill:` and `tasks:`")
    return node


def kind_of(data: Any) -> str:
    """What a value is, with its article, in words for a message."""
    if isinstance(data, NotText):
        return f"a {data.kind}"
    if data is None:
        return "blank"
    return "a mapping" if isinstance(data, dict) else "a list" if isinstance(data, list) else "text"


def _check_events(source: Source, findings: Findings) -> None:
    """Refuse what composing could not survive (it recurses) or would report less clearly."""
    depth = documents = 0
    for event in yaml.parse(source.text, Loader=_LOADER):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if depth > MAX_DEPTH or documents > 1:
            line = source.line_at(event.start_mark.index) + 1 if event.start_mark else 1
            if documents > 1:
                findings.fail(line, "a second YAML document starts here: keep one spec per file, delete this `---`")
            findings.fail(line, f"nested more than {MAX_DEPTH} levels deep: nest less deeply")


def _syntax_error(source: Source, error: yaml.YAMLError) -> tuple[int, str]:
    if not isinstance(error, yaml.MarkedYAMLError):
        return 1, f"not valid YAML ({in_line(' '.join(str(error).split()))}): fix it"
    mark = error.problem_mark or error.context_mark
    index = mark.index if mark else 0
    line = min(source.line_at(index), len(source.lines) - 1)
    before = source.text[source.text.rfind("\n", 0, index) + 1 : index + 1]
    what = ", ".join(part for part in (error.context, error.problem) if part)
    if before.endswith("\t") and not before.strip():
        return line + 1, "a tab is used for indentation, which YAML does not allow: use spaces"
    hint = next((hint for words, hint in _HINTS if words in what), "fix it")
    if error.context_mark and (begun := source.line_at(error.context_mark.index)) != line:
        what += f", begun on line {begun + 1}"
    return line + 1, f"not valid YAML ({what}): {hint}"


class _Reader:
    """Turns composed nodes into `Node`s, expanding aliases and merges within bounds."""

    def __init__(self, source: Source, findings: Findings) -> None:
        self._source = source
        self._findings = findings
        self._open: set[int] = set()
        """Ids of the collections being read: one that is met again holds itself."""
        self._left = MAX_VALUES

    def read(self, node: yaml.Node, *, line: int | None) -> Node:
        start = self._source.line_at(node.start_mark.index)
        line = start + 1 if line is None else line
        self._spend(line)
        if isinstance(node, yaml.ScalarNode):
            return Node(line=line, start=start, data=self._scalar(node, line), scalar=node)
        kind = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != _TAG + kind:
            self._findings.error(line, f"the tag `{in_line(node.tag)}` has no meaning here: delete it")
        self._enter(node, line)
        children: dict[str | int, Node] = {}
        if isinstance(node, yaml.MappingNode):
            for key, (at, value) in self._entries(node).items():
                children[key] = self.read(value, line=at)
        else:
            children.update(enumerate(self.read(item, line=None) for item in node.value))
        self._open.discard(id(node))
        data: Any = {key: child.data for key, child in children.items()}
        return Node(line=line, start=start, data=data if kind == "map" else list(data.values()), children=children)

    def _entries(self, node: yaml.MappingNode) -> dict[str, tuple[int, yaml.Node]]:
        """Key -> (1-based line of the key, value), with merge keys (https://yaml.org/type/merge.html) resolved."""
        own: dict[str, tuple[int, yaml.Node]] = {}
        merged: dict[str, tuple[int, yaml.Node]] = {}
        merge_line: int | None = None
        for key_node, value in node.value:
            line = self._source.line_at(key_node.start_mark.index) + 1
            self._spend(line)
            if not isinstance(key_node, yaml.ScalarNode):
                self._findings.error(line, f"a key must be text, not {_node_kind(key_node)}: put quotes around it")
            elif key_node.tag == _TAG + "merge":
                if merge_line is not None:
                    self._findings.error(line, f"`<<` stands on line {merge_line} already: write `<<: [*one, *other]`")
                merge_line = line
                for name, entry in self._merged(value, line).items():
                    merged.setdefault(name, entry)
            elif (key := self._plain(key_node.value, line)) in own:
                self._findings.error(line, f"`{in_line(key)}` stands on line {own[key][0]} already: delete one of the two")
            else:
                own[key] = (line, value)
        return {**merged, **own}

    def _merged(self, value: yaml.Node, line: int) -> dict[str, tuple[int, yaml.Node]]:
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        merged: dict[str, tuple[int, yaml.Node]] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                self._findings.error(line, f"`<<` merges mappings, not {_node_kind(source)}: give it `*name` of a mapping")
                continue
            self._enter(source, line)
            for key, entry in self._entries(source).items():
                merged.setdefault(key, entry)
            self._open.discard(id(source))
        return merged

    def _scalar(self, node: yaml.ScalarNode, line: int) -> str | NotText | None:
        kind = node.tag.removeprefix(_TAG)
        if node.tag in _TEXT_TAGS:
            return self._plain(node.value, line)
        if kind == "null":
            return None
        if kind not in _KINDS:
            self._findings.error(line, f"the tag `{in_line(node.tag)}` has no meaning here: delete it")
            return self._plain(node.value, line)
        return NotText(written=node.value, kind=_KINDS[kind], read=_as_read(node, kind))

    def _plain(self, text: str, line: int) -> str:
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            self._findings.error(line, f"{shown(text)} holds a null byte or half a character: delete the escape")
            return "".join(char for char in text if char != "\0" and not "\ud800" <= char <= "\udfff")
        return text

    def _enter(self, node: yaml.Node, line: int) -> None:
        if id(node) in self._open:
            self._findings.fail(line, "an anchor is used inside itself: write the value out")
        self._open.add(id(node))
        if len(self._open) > MAX_DEPTH:
            self._findings.fail(line, f"aliases nest more than {MAX_DEPTH} levels deep: nest less deeply")

    def _spend(self, line: int) -> None:
        self._left -= 1
        if self._left < 0:
            self._findings.fail(line, f"aliases expand to more than {MAX_VALUES:,} values: write fewer of them")


def _node_kind(node: yaml.Node) -> str:
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list" if isinstance(node, yaml.SequenceNode) else "text"


def _as_read(node: yaml.ScalarNode, kind: str) -> str:
    """What YAML 1.1 makes of a scalar, for people: `true` for `on`, `90` for `1:30`."""
    constructor = yaml.constructor.SafeConstructor()
    try:
        value = getattr(constructor, f"construct_yaml_{kind}")(node)
        return str(value).lower() if kind == "bool" else in_line(str(value))
    except (ValueError, KeyError, IndexError, OverflowError, AttributeError, yaml.YAMLError):
        return in_line(node.value)  # such as `2024-99-99`, or a tag that does not fit its text
