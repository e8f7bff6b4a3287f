"""Takes secrets and private paths out of all that is written or shown: the one place through which an attempt's texts pass."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_caliper.attempt.places import Places
from pytest_caliper.attempt.secrets import scrubbed, secret_values, spellings
from pytest_caliper.attempt.tokens import replace_shapes
from pytest_caliper.contracts import Workspace
from pytest_caliper.runs.records import AttemptRecord, ChangedFile, Turn

MAX_DEPTH = 200
"""JSON nested deeper becomes a text that says so: neither its readers nor ours could walk it."""


_JSON_BEGINS = re.compile(r"^[ \t\r]*[\[{\"]", re.MULTILINE)


_PLACEHOLDER = r"\[redacted:[^\]\s]{1,120}\]"


LEAST_PART, LEAST_AT_END = 4, 8
"""Characters by which a part of a secret is known: beside a mark of omission, and at the end of a text that has none."""
_CUT = re.compile(r"\.\.\.| ?… ?|\n?\[… [^\]\n]{1,60} …\]\n?|\n?\[\.\.\. [^\]\n]{1,60} \.\.\.\]\n?")


def _beginning_before(text: str, place: int, value: str) -> int:
    """How much of the beginning of `value`, not all of it, ends at `place`."""
    most = min(len(value) - 1, place)
    return next((length for length in range(most, 0, -1) if text.startswith(value[:length], place - length)), 0)


def _end_after(text: str, place: int, value: str) -> int:
    """How much of the end of `value`, not all of it, begins at `place`."""
    most = min(len(value) - 1, len(text) - place)
    return next((length for length in range(most, 0, -1) if text.startswith(value[-length:], place)), 0)


@dataclass(frozen=True, slots=True)
class _Secrets:
    """What all attempts with the same environment share."""

    names: Mapping[str, str]
    """Spelling -> the name it is told by, the longest first."""
    values: tuple[tuple[str, str], ...]
    """The secrets themselves, long enough to be known by a part, with their names."""

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, values: tuple[tuple[str, str], ...]) -> _Secrets:
        """For pairs of value and name. Remembered, since all attempts of a session have the same."""
        names: dict[str, str] = {}
        for value, name in values:
            for spelling in spellings(value):
                names.setdefault(spelling, name)
        whole = tuple((value, name) for value, name in values if len(value) >= 2 * LEAST_AT_END)
        return cls(dict(sorted(names.items(), key=lambda item: -len(item[0]))), whole)

    def replaced(self, text: str) -> tuple[str, int]:
        """-> (`text` without secrets, how many there were); at each place the longest one counts."""
        found = 0

        def told(match: re.Match[str]) -> str:
            nonlocal found
            name = self.names.get(match[0])
            if name is None:  # a placeholder, which stays
                return match[0]
            found += 1
            return f"[redacted:{name}]"

        if present := [spelling for spelling in self.names if spelling in text]:
            text = re.sub("|".join([_PLACEHOLDER, *map(re.escape, present)]), told, text)
        text, shaped = replace_shapes(text)
        text, parts = self._parts_replaced(text)
        return text, found + shaped + parts

    def _parts_replaced(self, text: str) -> tuple[str, int]:
        """`text` without what a cut has left of a secret: its beginning before a mark of omission or the end, its end after one.

        pytest shortens long values with `...`, and much of what agents print is cut to a bound before it comes here.
        """
        marks = [(mark.start(), mark.end()) for mark in _CUT.finditer(text)]
        spans: list[tuple[int, int, str]] = []
        for value, name in self.values:
            for begin, end in marks:
                if (length := _beginning_before(text, begin, value)) >= LEAST_PART:
                    spans.append((begin - length, begin, name))
                if (length := _end_after(text, end, value)) >= LEAST_PART:
                    spans.append((end, end + length, name))
            if (length := _beginning_before(text, len(text), value)) >= LEAST_AT_END:
                spans.append((len(text) - length, len(text), name))
        last = len(text) + 1
        for begin, end, name in sorted(spans, reverse=True):
            if end <= last:
                text, last = f"{text[:begin]}[redacted:{name}]{text[end:]}", begin
        return text, len(spans)


@lru_cache(maxsize=8)
def _secrets_in(env: tuple[tuple[str, str], ...], referenced: tuple[str, ...]) -> _Secrets:
    """Remembered as well: to look at every variable's name costs more than an attempt's record."""
    return _Secrets.of(tuple(secret_values(dict(env), referenced).items()))


class Redactor:
    """Replaces secrets by `[redacted:NAME]` and private directories by `$WORK`, `$HOME`, `$ROOT` and the like.

    Idempotent. One instance for each attempt: `count` says how many secrets it has replaced. Not thread-safe.
    """

    def __init__(self, secrets: _Secrets, paths: Mapping[Path, str]) -> None:
        self._secrets = secrets
        self._paths = dict(paths)
        self._places: Places | None = None
        self._count = 0

    @classmethod
    def from_environment(
        cls, env: Mapping[str, str], referenced: Iterable[str], paths: Mapping[Path, str] | None = None
    ) -> Redactor:
        """A redactor for the secrets in `env`: the variables `referenced` by the spec, and all that are named like keys.

        `paths` are directories with what stands for them. The user's home, by `env`, is `~` unless it is among them.
        """
        home = env.get("HOME", "")
        known = {Path(home): "~"} if home.startswith("/") else {}
        return cls(_secrets_in(tuple(env.items()), tuple(referenced)), known | dict(paths or {}))

    def for_workspace(self, workspace: Workspace) -> Redactor:
        """A fresh redactor for one attempt, which also knows its directories. Cheap: the secrets are shared."""
        own = {workspace.work: "$WORK", workspace.home: "$HOME", workspace.root: "$ROOT"}
        return Redactor(self._secrets, self._paths | own)

    @property
    def count(self) -> int:
        """How many secrets were replaced so far; paths do not count."""
        return self._count

    def redact(self, text: str) -> str:
        """`text` without secrets, private paths and lone surrogates. A JSON text, or lines of JSON, stays valid JSON."""
        clean = scrubbed(text)
        out, found = self._replaced(clean)
        if out != clean and _JSON_BEGINS.search(clean) is not None:
            out, found = self._as_json(clean, out, found)
        self._count += found
        return out

    def redact_json(self, value: Any) -> Any:
        """`value`, built of dicts, lists and plain values, with every text in it redacted, keys included; what JSON cannot say
        (NaN, other types) as text."""
        return self._walk(value, 0)

    def _walk(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return self._number(value)
        if depth >= MAX_DEPTH:
            return "[nested too deep to be kept]"
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, (list, tuple)):
            return [self._walk(entry, depth + 1) for entry in value]
        return self.redact(str(value))

    def _number(self, value: float) -> Any:
        text = str(value)
        clean = self.redact(text)
        return clean if clean != text or not math.isfinite(value) else value

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, entry in value.items():
            name = clean = self.redact(str(key))
            number = 2
            while name in out:  # two keys that differed by their secrets only
                name, number = f"{clean} ({number})", number + 1
            out[name] = self._walk(entry, depth + 1)
        return out

    def _as_json(self, text: str, out: str, found: int) -> tuple[str, int]:
        """`out` where it is as good JSON as `text`; else the values are redacted one by one.

        Text can be taken for JSON's own marks where a secret holds quotes, is a number, or begins like the end of an escape.
        """
        if (value := _loaded(text)) is not _NOT_JSON:
            return (out, found) if _loaded(out) is not _NOT_JSON else self._rebuilt(value)
        if "\n" not in text:
            return out, found
        lines = [self._line(line) for line in text.split("\n")]
        if all(valid for _, _, valid in lines):
            return out, found
        return "\n".join(line for line, _, _ in lines), sum(number for _, number, _ in lines)

    def _line(self, line: str) -> tuple[str, int, bool]:
        """-> (the redacted line, replacements, whether plain replacement kept it as it was: JSON or not)."""
        out, found = self._replaced(line)
        if out == line or _JSON_BEGINS.match(line) is None or (value := _loaded(line)) is _NOT_JSON:
            return out, found, True
        if _loaded(out) is not _NOT_JSON:
            return out, found, True
        return (*self._rebuilt(value), False)

    def _rebuilt(self, value: Any) -> tuple[str, int]:
        inner = Redactor(self._secrets, self._paths)
        inner._places = self._places
        return json.dumps(inner.redact_json(value), ensure_ascii=False), inner.count

    def _replaced(self, text: str) -> tuple[str, int]:
        out, found = self._secrets.replaced(text)
        if self._places is None:  # the one that attempts' own are made from never replaces anything
            self._places = Places.of(self._paths)
        return self._places.replaced(out), found


_NOT_JSON = object()


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOT_JSON


def redact_turn(turn: Turn, redactor: Redactor) -> Turn:
    """The turn as it may be written."""
    return replace(
        turn,
        content=redactor.redact(turn.content),
        tool_name=_optional(turn.tool_name, redactor),
        tool_input=None if turn.tool_input is None else redactor.redact_json(turn.tool_input),
        tool_output=_optional(turn.tool_output, redactor),
    )


_TEXTS = ("output",)
_OPTIONAL_TEXTS = (
    *("reason", "assert_evidence", "autorater_reasoning", "model", "judge_model", "cli_version", "judge_cli_version"),
    *("cleanup_error", "fatal"),
)
_LISTS = ("cheat_evidence", "skills_used")
_OPTIONAL_LISTS = ("skills_reported", "mcp_reported")


def redact_record(record: AttemptRecord, redactor: Redactor) -> AttemptRecord:
    """The record as it may be written, with the number of secrets that `redactor` has replaced so far, transcript included.

    `key`, `task_name` and `transcript_path` stay: the first two are the spec's own words and find the attempt again, the third is
    never written to the run file.
    """
    clean: dict[str, Any] = {name: redactor.redact(getattr(record, name)) for name in _TEXTS}
    clean |= {name: _optional(getattr(record, name), redactor) for name in _OPTIONAL_TEXTS}
    clean |= {name: tuple(map(redactor.redact, getattr(record, name))) for name in _LISTS}
    for name in _OPTIONAL_LISTS:
        values = getattr(record, name)
        clean[name] = None if values is None else tuple(map(redactor.redact, values))
    clean["changed_files"] = tuple(_changed_file(file, redactor) for file in record.changed_files)
    return replace(record, **clean, redactions=max(record.redactions, redactor.count))


def _changed_file(file: ChangedFile, redactor: Redactor) -> ChangedFile:
    return replace(
        file, path=redactor.redact(file.path), text=_optional(file.text, redactor), before=_optional(file.before, redactor)
    )


def _optional(text: str | None, redactor: Redactor) -> str | None:
    return None if text is None else redactor.redact(text)
