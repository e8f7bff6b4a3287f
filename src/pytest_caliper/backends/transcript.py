"""Collects the turns of an attempt, bounded, whatever an agent printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_caliper.runs.records import Turn

_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
"""Control and operating-system sequences of ECMA-48."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """How many characters of a transcript are kept."""

    text: int = 256_000
    """Of one text or one string of a tool's input."""
    total: int = 8_000_000
    """Of the whole; what comes later is kept too, but `late` characters of each text only."""
    late: int = 1_000


class Transcript:
    """The turns so far. A tool's result stands directly behind its call, so that parallel calls stay readable and paired."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._turns: list[Turn] = []
        self._results: dict[int, Turn] = {}
        self._calls: dict[str, int] = {}
        self._kept = 0
        self.truncated = False
        """Whether any text was cut."""

    def say(self, role: str, text: str) -> None:
        """Add a turn of the `assistant` or the `user`; blank ones are left out."""
        if text.strip():
            self._turns.append(Turn(role="assistant" if role == "assistant" else "user", content=self._keep(text)))

    def call(self, call_id: str | None, name: str, arguments: Any, note: str = "") -> None:
        """Add a tool call; `arguments` that are no object are kept as `{"input": ...}`."""
        given = arguments if isinstance(arguments, Mapping) else {"input": arguments}
        if call_id is not None:
            self._calls[call_id] = len(self._turns)
        self._turns.append(Turn(role="tool_use", content=note, tool_name=plain(name), tool_input=self._keep_all(given)))

    def result(self, call_id: str | None, output: str) -> None:
        """Add what a tool returned."""
        index = self._calls.get(call_id) if call_id is not None else None
        name = None if index is None else self._turns[index].tool_name
        turn = Turn(role="tool_result", tool_name=name, tool_output=self._keep(output))
        if index is None or index in self._results:
            self._turns.append(turn)
        else:
            self._results[index] = turn

    def turns(self) -> tuple[Turn, ...]:
        """All turns, in order."""
        out = []
        for index, turn in enumerate(self._turns):
            out.append(turn)
            if (result := self._results.get(index)) is not None:
                out.append(result)
        return tuple(out)

    def _keep(self, text: str) -> str:
        limit = self._bounds.text if self._kept < self._bounds.total else self._bounds.late
        text = plain(text)
        kept = cut(text, limit)
        self.truncated = self.truncated or len(text) > limit
        self._kept += len(kept)
        return kept

    def _keep_all(self, value: Any, depth: int = 0) -> Any:
        """`value` with each of its strings cut, and without what is nested beyond all reason."""
        if isinstance(value, str):
            return self._keep(value)
        if depth > 50:
            self.truncated = True
            return "[… nested too deeply …]"
        if isinstance(value, Mapping):
            return {self._keep(str(name)): self._keep_all(entry, depth + 1) for name, entry in value.items()}
        if isinstance(value, list):
            return [self._keep_all(entry, depth + 1) for entry in value]
        return value


def cut(text: str, limit: int) -> str:
    """`text`, its middle replaced by a mark that says how much was cut when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 4
    tail = limit - head
    return f"{text[:head]}\n[… {len(text) - limit} characters cut …]\n{text[len(text) - tail :]}"


def plain(text: str) -> str:
    """`text` without lone surrogates, which JSON may spell and UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def one_line(text: str, limit: int = 300) -> str:
    """`text` as a single printable line of at most `limit` characters, without terminal escapes."""
    bare = _ESCAPE.sub("", plain(text[: 4 * limit]))
    line = " ".join("".join(c if c.isprintable() else " " for c in bare).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
