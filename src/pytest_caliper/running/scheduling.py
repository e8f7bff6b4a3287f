"""xdist's `--dist load` for suites with attempts: one at a time, longest expected first.

xdist's own policies commit two items or more to a worker, which costs about half of the shortest possible time when items take
minutes and differ a lot. Here every batch ends with an idle item (`idle`), so that a worker never holds an attempt that another
could run. Other tests come first, in chunks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScheduling  # type: ignore[import-untyped]

from pytest_caliper.options import spec_part
from pytest_caliper.running.distribution import Distribution
from pytest_caliper.state import SETTINGS


class AttemptScheduling(LoadScheduling):  # type: ignore[misc]
    """Follows xdist's protocol for schedulers. Without attempts among the collected items it is its base class and no more."""

    def __init__(self, config: pytest.Config, log: Any, distribution: Distribution) -> None:
        super().__init__(config, log)
        settings = config.stash[SETTINGS]
        self._distribution = distribution
        self._most = settings.workers if settings.workers_said else None
        self._others_first = bool(config.getoption("maxfail"))
        self._idle: int | None = None
        """The index of the idle item; None while this is xdist's own scheduler."""
        self._groups: dict[int, Hashable | None] = {}
        """Index of an attempt -> what it must not meet; None where it may meet everything."""
        self._others = 0
        """How many of `pending` are no attempts; they stand in front."""
        self._withdrawn: set[str] = set()
        distribution.scheduler = self

    @property
    def tests_finished(self) -> bool:
        """Whether nothing waits and nothing runs."""
        if self._idle is None:
            return bool(super().tests_finished)
        return not self.pending and not any(self.node2pending.values())

    def schedule(self) -> None:
        """All workers have collected, or a new one has."""
        if self.collection is None and self._has_attempts():
            if not self._check_nodes_have_same_collection():
                return
            self._take_over(next(iter(self.node2collection.values())))
        if self._idle is None:
            super().schedule()
        else:
            self._feed()

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        """Give a worker that has nothing what comes next, or let it go."""
        if self._idle is None:
            super().check_schedule(node, duration)
            return
        if node.shutting_down or self.node2pending[node]:
            return
        if not self.pending or node not in self.node2collection:  # a late worker that collected something else gets nothing
            node.shutdown()
            return
        if batch := self._next():
            self.node2pending[node].extend(batch)
            node.send_runtest_some([*batch, self._idle])
        elif not self.pending:  # what was left has been refused
            node.shutdown()

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """A worker has ended an item."""
        if self._idle is None:
            super().mark_test_complete(node, item_index, duration)
        elif item_index != self._idle:
            self.node2pending[node].remove(item_index)
            self._feed()

    def mark_test_pending(self, item: str) -> None:
        """Run an item once more; an attempt that runs, waits or has its record is left alone."""
        if self._idle is None:
            super().mark_test_pending(item)
            return
        index = (self.collection or []).index(item)
        if index in self.pending or any(index in held for held in self.node2pending.values()):
            return
        if index not in self._groups:
            self.pending.insert(0, index)
            self._others += 1
        elif not self._distribution.has_record(item):
            self.pending.insert(self._others, index)
        self._feed()

    def remove_node(self, node: Any) -> str | None:
        """A worker is gone. -> the id of the item that it ran, if any; what it had not begun goes to others."""
        if self._idle is None:
            gone: str | None = super().remove_node(node)
            return gone
        held = self.node2pending.pop(node)
        if not held:
            return None
        crashed, *rest = held
        self.pending[:0] = rest  # no attempts: those come one at a time
        self._others += len(rest)
        self._feed()
        return str((self.collection or [])[crashed])

    def withdraw(self, nodeids: Iterable[str]) -> list[str]:
        """Take attempts out that no worker has been given yet. -> those that will not run.

        Before the workers have collected that is all of them. Call it in the main thread. The session ends when nothing is left.
        """
        wanted = set(nodeids)
        if self.collection is None:
            self._withdrawn |= wanted
            return sorted(wanted)
        ids = self.collection
        taken = [index for index in self.pending if index in self._groups and ids[index] in wanted]
        gone = set(taken)
        self.pending[:] = [index for index in self.pending if index not in gone]
        if taken:
            self._feed()  # whoever has nothing to wait for any more can go
        return [ids[index] for index in taken]

    def _has_attempts(self) -> bool:
        return any(map(self._is_ours, next(iter(self.node2collection.values()))))

    def _is_ours(self, nodeid: str) -> bool:
        return spec_part(nodeid) is not None or self._distribution.knows(nodeid)

    def _take_over(self, ids: Sequence[str]) -> None:
        self.collection, self._idle = list(ids), len(ids)
        index = {nodeid: n for n, nodeid in enumerate(ids)}
        others = [n for n, nodeid in enumerate(ids) if not self._is_ours(nodeid)]
        attempts = self._distribution.in_order([nodeid for nodeid in index if self._is_ours(nodeid)])
        self._groups = {index[nodeid]: self._distribution.group(nodeid) for nodeid in attempts}
        self._others = len(others)
        self.pending[:] = others + [index[nodeid] for nodeid in attempts if nodeid not in self._withdrawn]

    def _feed(self) -> None:
        for node in self.nodes:
            self.check_schedule(node)

    def _next(self) -> list[int]:
        """What a free worker gets now; nothing when all that is left must wait for what runs."""
        if self._others:
            share = max(1, self._others // (2 * len(self.node2pending)))
            count = min(share, max(1, self.maxschedchunk or share))
            self._others -= count
            return self._cut(0, count)
        held = [index for indices in self.node2pending.values() for index in indices]
        if self._others_first and any(index not in self._groups for index in held):
            return []  # one of them may fail and end the session
        if self._most is not None and sum(index in self._groups for index in held) >= self._most:
            return []
        meets = {self._groups.get(index) for index in held} - {None}
        while (place := next((n for n, i in enumerate(self.pending) if self._groups[i] not in meets), None)) is not None:
            (index,) = self._cut(place, 1)
            if self._distribution.may_begin((self.collection or [])[index]):
                return [index]
        return []

    def _cut(self, place: int, count: int) -> list[int]:
        batch: list[int] = self.pending[place : place + count]
        del self.pending[place : place + count]
        return batch
