"""Tokens as Codex counts them, in the four disjoint fields.

Its `input_tokens` hold what was read from and written to the cache (recorded: 147 = 100 + 40 + 7), its `output_tokens` the
reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_caliper.runs.records import Usage

NAMES = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
Tokens = Mapping[str, int]
"""Codex's own numbers by NAMES; a name that is missing was not reported."""


def read_tokens(data: Any) -> dict[str, int] | None:
    """The numbers of a usage object; None when it has none, or only zeros: then the provider told Codex nothing."""
    if not isinstance(data, Mapping):
        return None
    tokens = {name: count for name in NAMES if (count := _count(data.get(name))) is not None}
    return tokens if any(tokens.values()) else None


def add_tokens(one: Tokens, other: Tokens) -> dict[str, int]:
    """The sum; a name that either lacks is summed from the other."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in NAMES if name in one or name in other}


def usage_of(tokens: Tokens | None) -> Usage | None:
    """Disjoint usage. Versions before the `cache_write` field leave those tokens in the input."""
    if tokens is None:
        return None
    given, cached, written = (tokens.get(name) for name in NAMES[:3])
    alone = None if given is None else given - (cached or 0) - (written or 0)
    return Usage(
        input_tokens=alone if alone is None or alone >= 0 else None,
        output_tokens=tokens.get("output_tokens"),
        cache_read_tokens=cached,
        cache_creation_tokens=written,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
