"""What all backends say of an invocation that failed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One line on what failed."""

    error: str
    fatal: str | None = None
    """The remedy, when every later attempt would fail the same way."""
    transient: bool = False
    """True for what may pass by itself: throttling, overload, a lost connection."""
