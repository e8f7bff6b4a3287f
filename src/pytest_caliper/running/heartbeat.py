"""Says what runs when nothing was reported for a while, so that a CI log does not look dead."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

INTERVAL_S = 30.0


class Heartbeat:
    """A daemon thread that writes one line per silent interval to a copy of standard error.

    The copy is made when the heartbeat is made: pytest's capture, which comes later, does not get the line.
    """

    def __init__(self, running: Callable[[], list[tuple[str, float]]], interval_s: float | None = None) -> None:
        self._running, self._interval = running, INTERVAL_S if interval_s is None else interval_s
        self._last = time.monotonic()
        self._over = threading.Event()
        self._out = os.dup(2)
        self._thread = threading.Thread(target=self._beat, name="caliper-heartbeat", daemon=True)
        self._thread.start()

    def reported(self) -> None:
        """Something was shown just now."""
        self._last = time.monotonic()

    def close(self) -> None:
        """Say nothing more."""
        self._over.set()
        self._thread.join(1.0)
        os.close(self._out)

    def _beat(self) -> None:
        while not self._over.wait(self._interval / 10):
            if time.monotonic() - self._last >= self._interval and (running := self._running()):
                self._last = time.monotonic()
                os.write(self._out, line(running).encode("ascii", "backslashreplace"))


def line(running: list[tuple[str, float]]) -> str:
    """`running` are (name, seconds so far), oldest first."""
    name, longest = max(running, key=lambda pair: pair[1])
    plural = "" if len(running) == 1 else "s"
    return f"\n[caliper] {len(running)} attempt{plural} running, longest {longest:.0f} s: {name}\n"
