"""The item that xdist workers are given after every attempt, so that they never wait for the next one with one in hand.

A worker of xdist asks which item comes next before it runs the one it has: two are always committed to it, and whatever is
committed cannot go to a worker that is free.
"""

from __future__ import annotations

from pathlib import Path

import pytest


class IdleItem(pytest.Item):
    """Nothing to run and never reported. What stood below the session was torn down when it was seen to come next."""

    def runtest(self) -> None:
        raise AssertionError("an idle item is never run")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def append_idle(session: pytest.Session) -> None:
    """Add it behind everything that was collected: its index is the number of ids that the controller got to know."""
    session.items.append(IdleItem.from_parent(session, name="caliper-idle"))
