"""The line between the xdist controller and a worker: what cannot wait until the worker asks for its next item.

A channel of execnet, so that it reaches workers on other machines too. The controller says `STOP`, or a verb and node ids: which
attempts are not to be run any more. A worker says one thing: which tests in Python it collected.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import Any

import pytest

INPUT, LEFT_OUT = "caliper_line", "caliper_left_out"
"""Where a worker finds its end, and what was said before it was there, in `config.workerinput`."""
STOP = "stop"
NEVER, NOT_ALONE, AFTER_ALL = "never", "not alone", "after all"
"""Verbs: do not begin these; do not begin these unless their pair has begun; begin these though the second was said."""


class Listener:
    """The worker's end. What was said can be asked from any thread."""

    def __init__(self, channel: Any, said: Iterable[tuple[str, list[str]]]) -> None:
        self._stop = threading.Event()
        self._never: set[str] = set()
        self._not_alone: set[str] = set()
        self._begun: set[Hashable] = set()
        for verb, nodeids in said:
            self._heed(verb, nodeids)
        self._channel = channel
        if channel is not None:
            channel.setcallback(self._hear, endmarker=STOP)  # the end of the line is the end of the controller

    @classmethod
    def of(cls, config: pytest.Config) -> Listener:
        """The end of this process; where there is no controller nothing is ever heard."""
        given = getattr(config, "workerinput", None) or {}
        return cls(given.get(INPUT), given.get(LEFT_OUT, ()))

    @property
    def stops(self) -> bool:
        """Whether the session stops: attempts under way are to be cancelled."""
        return self._stop.is_set()

    def leaves_out(self, nodeid: str, pair: Hashable) -> bool:
        """Whether the item is not to be run, though the worker holds it. Ask at its turn: after a no its pair has begun.

        What this worker has begun the controller may not have heard when it spoke, so the worker finishes its pairs by itself.
        """
        left_out = nodeid in self._never or (nodeid in self._not_alone and pair not in self._begun)
        if not left_out:
            self._begun.add(pair)
        return left_out

    def say(self, text: str) -> None:
        """Tell the controller something; nothing when there is none, or none any more."""
        if self._channel is not None:
            with suppress(OSError):
                self._channel.send(text)

    def _hear(self, said: object) -> None:
        if isinstance(said, tuple):
            self._heed(*said)
        else:
            self._stop.set()

    def _heed(self, verb: str, nodeids: Iterable[str]) -> None:
        if verb == AFTER_ALL:
            self._not_alone.difference_update(nodeids)
        else:
            (self._never if verb == NEVER else self._not_alone).update(nodeids)
