"""The line between the xdist controller and a worker: what cannot wait until the worker asks for its next item.

A channel of execnet, so that it reaches workers on other machines too. The controller says two things on it: `STOP`, and a list
of node ids that are not to be run any more. A worker says one: which tests in Python it collected.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest

INPUT, LEFT_OUT = "caliper_line", "caliper_left_out"
"""Where a worker finds its end, and what was said before it was there, in `config.workerinput`."""
STOP = "stop"


class Listener:
    """The worker's end. What was said can be asked from any thread."""

    def __init__(self, channel: Any, left_out: Iterable[str]) -> None:
        self._stop = threading.Event()
        self._left_out = set(left_out)
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

    def leaves_out(self, nodeid: str) -> bool:
        """Whether the item is not to be run, though the worker holds it."""
        return nodeid in self._left_out

    def say(self, text: str) -> None:
        """Tell the controller something; nothing when there is none, or none any more."""
        if self._channel is not None:
            with suppress(OSError):
                self._channel.send(text)

    def _hear(self, said: object) -> None:
        if isinstance(said, list):
            self._left_out.update(said)
        else:
            self._stop.set()
