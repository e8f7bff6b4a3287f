"""Says what runs when nothing was reported for a while, so that a CI log does not look dead."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

INTERVAL_S = 30.0


def _nothing() -> str:
    return ""


class Heartbeat:
    """A daemon thread that writes one line per silent interval to a copy of standard error.

    The copy is made when the heartbeat is made: pytest's capture, which comes later, does not get the line.
    """

    def __init__(
        self,
        running: Callable[[], Sequence[tuple[str, float]]],
        rest: Callable[[], str] = _nothing,
        interval_s: float | None = None,
    ) -> None:
        self._running, self._rest = running, rest
        self._interval = INTERVAL_S if interval_s is None else interval_s
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
                os.write(self._out, f"\n[caliper] {line(running, self._rest())}\n".encode("ascii", "backslashreplace"))


def line(running: Sequence[tuple[str, float]], rest: str = "") -> str:
    """`3 running (longest: NAME, 84 s), 9 of 18 left, about 4 min`; `running` are (name, seconds so far), and not empty."""
    name, longest = max(running, key=lambda pair: pair[1])
    return f"{len(running)} running (longest: {name}, {longest:.0f} s)" + (f", {rest}" if rest else "")


def short_line(running: Sequence[tuple[str, float]], rest: str = "") -> str:
    """The same with what may be long last: `3 running, 9 of 18 left, about 4 min; longest 84 s: NAME`. Empty for nothing."""
    if not running:
        return ""
    name, longest = max(running, key=lambda pair: pair[1])
    words = name.partition("::")[2].replace("::", " ") or name
    return f"caliper: {len(running)} running" + (f", {rest}" if rest else "") + f"; longest {longest:.0f} s: {words}"
