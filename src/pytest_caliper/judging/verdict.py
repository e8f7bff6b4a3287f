"""Reads the judge's verdict out of its reply, and combines what the checks said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pytest_caliper.contracts import Verdict

VERDICT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "passed": {"type": "boolean"}},
    "required": ["reasoning", "passed"],
    "additionalProperties": False,
}
"""JSON Schema of a verdict. Reasoning comes first, so that it is written before the decision."""

_OBJECT = re.compile(r'\{[ \t\r\n]*"')
"""Where a JSON object with a key can begin."""
_DECISION = re.compile(r'"passed"[ \t\r\n]*:[ \t\r\n]*(true|false)\b')
_MAX_BROKEN = 1000
"""Each failed parse costs the JSON module a count of the lines before it."""
_MAX_QUOTED = 8
"""Each candidate costs a search through the evidence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedVerdict:
    passed: bool
    reasoning: str


class NoVerdict(Exception):
    """The reply holds no verdict. The text says why, in words that the judge can be told."""


def combine(verdict: Verdict) -> Literal["pass", "task_fail", "judge_error"]:
    """What the checks give together: a failing check fails the task, otherwise a lost check (or none at all) is judge_error."""
    said = (verdict.assert_passed, verdict.autorater_passed)
    if False in said:
        return "task_fail"
    if verdict.error is not None or verdict.fatal is not None or True not in said:
        return "judge_error"
    return "pass"


def parse_verdict(text: str, structured: object | None, *, evidence: str = "") -> ParsedVerdict:
    """The verdict of a reply: the CLI's own structured output where there is one, else the last complete one in the text.

    Extraction is tolerant (prose, code fences, several objects, further keys), types are strict. A judge that quotes a verdict
    from the transcript must not be taken to say it: an object that stands word for word in `evidence`, the text the judge was
    shown, does not count; and a decision outside every complete object that contradicts the verdict makes the reply unreadable.
    Takes time linear in the texts. Raises NoVerdict, and nothing else.
    """
    if structured is not None:
        if not isinstance(structured, Mapping):
            raise NoVerdict("the structured output is not an object")
        return _checked(structured)
    if not text.strip():
        raise NoVerdict("the reply is empty")
    objects = list(_objects(text))
    found = _own(text, [one for one in objects if one.candidate is not None], evidence)
    if found.flaw is not None:
        raise NoVerdict(found.flaw)
    verdict = _checked(found.values)
    if any(decision is not verdict.passed for decision in _loose_decisions(text, objects)):
        raise NoVerdict("beside a verdict, the reply holds a contradicting one that is not valid JSON")
    return verdict


def _own(text: str, objects: Sequence[_Object], evidence: str) -> _Candidate:
    """The last candidate that is no quotation. Raises NoVerdict."""
    for one in reversed(objects[-_MAX_QUOTED:]):
        if one.candidate is not None and text[one.start : one.end] not in evidence:
            return one.candidate
    if objects:
        raise NoVerdict("the reply only quotes a verdict from the evidence")
    raise NoVerdict('the reply holds no complete JSON object with the key "passed"')


@dataclass(kw_only=True, slots=True)
class _Candidate:
    """An object that decides something, and why it cannot count."""

    values: dict[str, Any]
    flaw: str | None


class _Object(NamedTuple):
    """A complete JSON object within a reply."""

    start: int
    end: int
    candidate: _Candidate | None
    """The last one in it, itself included."""


@dataclass(slots=True)
class _Reader:
    """Hooks of one JSON parse: notes the last object that looks like a verdict. Objects come in the order of their ends."""

    candidate: _Candidate | None = None
    constants: list[str] = field(default_factory=list)

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        # A `passed` that is an object is the verdict's schema, not a verdict.
        if "passed" in values and not isinstance(values["passed"], (dict, list)):
            flaw = "the verdict repeats a key" if len(values) < len(pairs) else None
            self.candidate = _Candidate(values=values, flaw=flaw)
        return values

    def constant(self, name: str) -> None:
        self.constants.append(name)

    def found(self) -> _Candidate | None:
        if self.candidate is not None and self.constants:
            self.candidate.flaw = f"the verdict holds {self.constants[0]}, which is not JSON"
        return self.candidate


def _objects(text: str) -> Iterator[_Object]:
    """The complete JSON objects that lie in `text` one after another.

    After a parse that failed, only the last brace before the failure is tried again: every character is read a few times at most.
    Raises NoVerdict for what no judge writes: objects nested too deeply to read, or broken ones without end.
    """
    position, broken = 0, 0
    while begin := _OBJECT.search(text, position):
        start = begin.start()
        reader = _Reader()
        decoder = json.JSONDecoder(
            strict=False,  # judges write line breaks into strings
            object_pairs_hook=reader.object,
            parse_constant=reader.constant,
            parse_int=float,  # int() refuses thousands of digits
        )
        try:
            _, position = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            broken += 1
            if broken > _MAX_BROKEN:
                raise NoVerdict("the reply is full of broken JSON") from None
            brace = text.rfind("{", start + 1, error.pos)
            position = brace if brace >= 0 else max(error.pos, start + 1)
        except RecursionError:
            raise NoVerdict("the reply's JSON is nested too deeply") from None
        else:
            yield _Object(start, position, reader.found())


def _loose_decisions(text: str, objects: Sequence[_Object]) -> Iterator[bool]:
    """What `"passed": true|false` says wherever it stands outside the `objects`, which are in order."""
    spans = iter([(one.start, one.end) for one in objects])
    span = next(spans, None)
    for match in _DECISION.finditer(text):
        while span is not None and span[1] <= match.start():
            span = next(spans, None)
        if span is None or match.start() < span[0]:
            yield match.group(1) == "true"


def _checked(values: Mapping[str, Any]) -> ParsedVerdict:
    passed, reasoning = values.get("passed"), values.get("reasoning")
    if not isinstance(passed, bool):
        raise NoVerdict(f'"passed" must be true or false, not {_kind(passed)}')
    if not isinstance(reasoning, str):
        raise NoVerdict(f'"reasoning" must be a string, not {_kind(reasoning)}')
    return ParsedVerdict(passed=passed, reasoning=reasoning.encode("utf-8", "replace").decode())


def _kind(value: object) -> str:
    if value is None:
        return "missing or null"
    return {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}.get(type(value), "that")
