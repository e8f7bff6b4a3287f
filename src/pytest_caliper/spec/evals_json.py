"""Reads `evals/evals.json` of the skill-creator skill: what each eval says, and what of it a spec has no word for.

The vocabulary: https://github.com/anthropics/skills, skills/skill-creator/references/schemas.md. Files in the wild also have
`name`, `assertions` (texts, or objects with a `text`), and trigger evals (`query`, `should_trigger`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_caliper.spec.names import node_name

_MAX_BYTES = 20_000_000
_NAME_CHARS = 60
_MOST_NAME = 150
_EXPECTATIONS = ("expectations", "assertions", "expected_behavior")
_TEXTS = ("text", "assertion", "expectation", "description", "name", "check")
"""Where an expectation that is an object has its words, the best first."""
_READ = frozenset({"id", "name", "eval_name", "title", "prompt", "query", "expected_output", "files", *_EXPECTATIONS})
_READ_AT_TOP = frozenset({"skill_name", "evals"})


class EvalsError(ValueError):
    """The file is no evals.json. One line."""


@dataclass(frozen=True, kw_only=True)
class Eval:
    """One eval, as the file has it."""

    label: str
    """How it is called in messages: `eval 3`, `eval "csv"`."""
    name: str
    """Its name, its id, or how its prompt begins; one line, and no two share a pytest node."""
    prompt: str
    expected_output: str | None
    expectations: tuple[str, ...]
    files: tuple[str, ...]
    """Paths as written."""


@dataclass(frozen=True, kw_only=True)
class Evals:
    """The file."""

    skill_name: str | None
    evals: tuple[Eval, ...]
    triggers: int
    """Entries that only say whether a query should reach for the skill."""
    left_out: tuple[str, ...]
    """What was not understood or has no place in a spec, one line each; the trigger evals are not among it."""


def read_evals(path: Path) -> Evals:
    """The evals in a file. Raises EvalsError, and OSError when it cannot be read."""
    with open(path, "rb") as source:
        text = source.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise EvalsError(f"is larger than {_MAX_BYTES // 1_000_000} MB")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvalsError(f"is not JSON: {error}") from error
    entries = data.get("evals") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        raise EvalsError('holds no evals: expected {"skill_name": …, "evals": [{"prompt": …, "expectations": […]}]}')
    return _Reader().read(data if isinstance(data, dict) else {}, entries)


class _Reader:
    def __init__(self) -> None:
        self._evals: list[Eval] = []
        self._triggers = 0
        self._left: list[str] = []
        self._names: set[str] = set()

    def read(self, top: Mapping[str, Any], entries: list[Any]) -> Evals:
        self._leave("the file", top, _READ_AT_TOP)
        for number, entry in enumerate(entries, 1):
            self._entry(number, entry)
        return Evals(
            skill_name=_text(top.get("skill_name")),
            evals=tuple(self._evals),
            triggers=self._triggers,
            left_out=tuple(self._left),
        )

    def _entry(self, number: int, entry: Any) -> None:
        if not isinstance(entry, dict):
            self._left.append(f"entry {number}: is {type(entry).__name__}, not an object")
            return
        label = _label(entry, number)
        prompt = _text(entry.get("prompt")) or _text(entry.get("query"))
        expected = _text(entry.get("expected_output"))
        expectations = self._expectations(label, entry)
        if isinstance(entry.get("should_trigger"), bool) and not (expected or expectations):
            self._triggers += 1
            return
        if prompt is None:
            self._left.append(f"{label}: has no prompt")
            return
        self._leave(label, entry, _READ)
        self._evals.append(
            Eval(
                label=label,
                name=self._name(entry, number, prompt),
                prompt=prompt,
                expected_output=expected,
                expectations=expectations,
                files=self._files(label, entry.get("files")),
            )
        )

    def _expectations(self, label: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for name in _EXPECTATIONS:
            value = entry.get(name)
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                words = _text(one)
                if isinstance(one, dict):
                    words = next((text for key in _TEXTS if (text := _text(one.get(key)))), None)
                    more = sorted(key for key in one if key not in {*_TEXTS, "id", "passed", "evidence"})
                    if words and more:
                        self._left.append(f"{label}: {', '.join(more)} of an expectation, which is judged by its text alone")
                if words is None:
                    self._left.append(f"{label}: an entry of {name} has no text")
                else:
                    found[words] = None
        return tuple(found)

    def _files(self, label: str, value: Any) -> tuple[str, ...]:
        found = []
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            path = _text(one) or (_text(one.get("path")) if isinstance(one, dict) and "content" not in one else None)
            if path is None or "\0" in path or "\n" in path:
                self._left.append(f"{label}: an entry of files is no path; create the file in setup:")
            else:
                found.append(path)
        return tuple(dict.fromkeys(found))

    def _name(self, entry: Mapping[str, Any], number: int, prompt: str) -> str:
        given = next((text for key in ("name", "eval_name", "title") if (text := _text(entry.get(key)))), None)
        identity = entry.get("id", number)
        if given is None and isinstance(identity, str) and not identity.strip().isdigit():
            given = _text(identity)
        name = " ".join((given or f"Eval {identity}: {_first_words(prompt)}").split())
        unique, count = name, 1
        while (node := node_name(unique, f"Eval {number}").casefold()) in self._names:
            count += 1
            unique = f"{name[:_MOST_NAME]} ({count})"
        self._names.add(node)
        return unique

    def _leave(self, label: str, entry: Mapping[str, Any], read: frozenset[str]) -> None:
        others = sorted(key for key, value in entry.items() if key not in read and value not in (None, "", [], {}))
        if others:
            self._left.append(f"{label}: {', '.join(others)}")


def _label(entry: Mapping[str, Any], number: int) -> str:
    identity = entry.get("id")
    if isinstance(identity, int):
        return f"eval {identity}"
    words = _text(identity) or _text(entry.get("name"))
    return f'eval "{words}"' if words else f"entry {number}"


def _text(value: Any) -> str | None:
    """Text that is not blank. U+FFFD stands for what no spec can hold: half a character, a null byte."""
    if not isinstance(value, str):
        return None
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    return whole if whole.strip() else None


def _first_words(prompt: str) -> str:
    line = re.sub(r"\s+", " ", prompt).strip()
    if len(line) <= _NAME_CHARS:
        return line
    return line[:_NAME_CHARS].rsplit(" ", 1)[0] + "…"
