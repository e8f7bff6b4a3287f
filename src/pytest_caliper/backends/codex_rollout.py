"""What Codex wrote down of its threads, `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, beside what it printed.

Only there are the model (its stream never names it), the skills that it was told of, the tokens of a run that was stopped, and
those of sub-agents, which have threads of their own (recorded from 0.130.0 and 0.171.0). Nothing is there in a replay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends.codex_usage import Tokens, add_tokens, read_tokens
from pytest_caliper.backends.jsonl import LineFaults, json_objects

_FILES = 200
_SKILL_LIST = re.compile(
    r"^<skills_instructions>$.*?^### Available skills$\n(.*?)^(?:#|</skills_instructions>)", re.DOTALL | re.MULTILINE
)
_SKILL = re.compile(r"^- (.+?)(?:: .*)? \(file: .*SKILL\.md\)$", re.MULTILINE)


@dataclass(kw_only=True, slots=True)
class Thread:
    """One thread of a run."""

    name: str
    """The file's, without its ending: it ends with the thread's id."""
    model: str | None = None
    """The one of the last turn."""
    skills: list[str] = field(default_factory=list)
    """Names in the list of skills that the model was given; there is no list where there is no skill."""
    total: dict[str, int] | None = None
    """Tokens of the whole thread, by its last `token_count`."""
    responses: dict[str, dict[str, int]] = field(default_factory=dict)
    """Tokens of each response of the model, by its id; a forked thread repeats its parent's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollouts:
    """All threads of a run."""

    main: Thread | None = None
    others: tuple[Thread, ...] = ()

    @property
    def model(self) -> str | None:
        """The model that the main thread asked last."""
        return None if self.main is None else self.main.model

    @property
    def skills(self) -> tuple[str, ...] | None:
        """The skills that the main thread's model was told of; None without a list."""
        return tuple(self.main.skills) if self.main is not None and self.main.skills else None

    def tokens(self, reported: Tokens | None) -> Tokens | None:
        """Tokens of the whole run: of the main thread, as `reported` on the stream or else as written down, and of sub-agents."""
        own = reported if reported is not None or self.main is None else self.main.total
        known = set(() if self.main is None else self.main.responses)
        for thread in self.others:
            for response, tokens in thread.responses.items():
                if response not in known:
                    known.add(response)
                    own = tokens if own is None else add_tokens(own, tokens)
        return own


def read_rollouts(codex_home: Path, thread: str | None) -> Rollouts:
    """The threads below `codex_home`; `thread` is the main one's id, and the only one there is where it is None."""
    threads = [_read(path) for path in sorted((codex_home / "sessions").glob("*/*/*/rollout-*.jsonl"))[:_FILES] if path.is_file()]
    alone = threads[0] if thread is None and len(threads) == 1 else None
    main = alone or next((one for one in threads if thread is not None and one.name.endswith(thread)), None)
    return Rollouts(main=main, others=tuple(one for one in threads if one is not main))


def _read(path: Path) -> Thread:
    thread = Thread(name=path.stem)
    for line in json_objects(path, LineFaults()):
        kind, payload = line.get("type"), _mapping(line.get("payload"))
        if kind == "turn_context" and isinstance(model := payload.get("model"), str):
            thread.model = model or thread.model
        elif kind == "response_item" and payload.get("role") == "developer":
            thread.skills += [name for name in _listed(payload.get("content")) if name not in thread.skills]
        elif kind == "event_msg" and payload.get("type") == "token_count":
            thread.total = read_tokens(_mapping(payload.get("info")).get("total_token_usage")) or thread.total
        elif kind == "token_usage_record" and (tokens := read_tokens(payload.get("usage"))) is not None:
            thread.responses[str(payload.get("response_id"))] = tokens
    return thread


def _listed(content: Any) -> list[str]:
    """Names of the skills in a developer message's blocks."""
    texts = [
        text for block in (content if isinstance(content, list) else []) if isinstance(text := _mapping(block).get("text"), str)
    ]
    return [name for text in texts for part in _SKILL_LIST.findall(text) for name in _SKILL.findall(part)]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
