"""What belongs to one process that was started, and how all of it is killed.

A process belongs when it is in the leader's group or session, carries the tag, writes to the output files, was seen as a
descendant before the leader was signalled, or descends from one that belongs. Not found is a process with an emptied environment
that has left group and session, whose parent has ended by itself, and whose output goes elsewhere: only a cgroup would know it.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field

from pytest_caliper.process.table import Entry, FileId, Table, last_pid

ROUNDS, PAUSE_S = 200, 0.005
PIDS_IN_ORDER_S = 10.0
"""For so long pids are taken not to have gone all the way round (32768 at the least), so descendants have higher ones."""


@dataclass(kw_only=True)
class Family:
    """A process and all that it started; with `leader` None, all that carries the tag."""

    table: Table
    tag: str
    leader: int | None = None
    born: float | None = None
    """When the leader started; None when unknown."""
    files: frozenset[FileId] = frozenset()
    lowest: int | None = None
    """Without a leader: the first process that was given the tag, at `started_s`; the others have higher pids."""
    started_s: float = field(default_factory=time.monotonic)
    known: dict[int, Entry] = field(default_factory=dict)
    """Members seen so far that may by now have lost what they are known by."""
    unsure: bool = False
    """True when the last look met a process that could have been a member just starting another program."""

    def leader_ended(self) -> bool:
        """True when the leader is a zombie or gone."""
        entry = self.table.entry(self.leader) if self.leader is not None else None
        return entry is None or entry.ended or self._reused(entry)

    def note(self, spare: frozenset[int]) -> None:
        """Remember who descends from whom now: signals may orphan them."""
        self.known.update(self.find(spare))

    def find(self, spare: frozenset[int]) -> dict[int, Entry]:
        """Every living member but those in `spare`, by pid, the leader included."""
        entries = self.table.entries(self._since())
        children: dict[int, list[Entry]] = {}
        for entry in entries.values():
            children.setdefault(entry.parent, []).append(entry)
        leader = entries.get(self.leader) if self.leader is not None else None
        ours = None if leader is not None and self._reused(leader) else self.leader
        self.unsure = False
        found = [entry for entry in entries.values() if self._belongs(entry, ours)]
        members: dict[int, Entry] = {}
        while found:
            entry = found.pop()
            if entry.pid not in members and entry.pid not in spare:
                members[entry.pid] = entry
                found += children.get(entry.pid, ())
        return {pid: entry for pid, entry in members.items() if not entry.ended}

    def signal_leaders_group(self, number: int) -> None:
        """Signal the leader's group, if the number is still its own; the leader alone when it leads no group (yet)."""
        if self.leader is None:
            return
        entry = self.table.entry(self.leader)
        if entry is not None and self._reused(entry):
            return
        try:
            os.killpg(self.leader, number)
        except ProcessLookupError:
            if entry is not None:
                self.table.send(entry, number)
        except PermissionError:  # macOS: only zombies are left in the group
            return

    def kill(self, spare: frozenset[int], *, looks: int = 1) -> int:
        """SIGKILL every member until `looks` looks in a row find nobody; how many were killed, the leader not counted."""
        killed: set[tuple[int, float]] = set()
        beyond: set[tuple[int, float]] = set()
        clean = 0
        for _ in range(ROUNDS):
            found = {pid: entry for pid, entry in self.find(spare).items() if (pid, entry.born) not in beyond}
            if not found:
                clean += 1
                if clean >= looks + (self.unsure or any(pid != self.leader for pid, _ in killed)):
                    break
            else:
                clean = 0
                for entry in self._frozen(found, spare).values():
                    target = killed if self.table.send(entry, signal.SIGKILL) else beyond
                    target.add((entry.pid, entry.born))
            time.sleep(PAUSE_S)
        self.signal_leaders_group(signal.SIGKILL)
        return sum(pid != self.leader for pid, _ in killed)

    def _frozen(self, found: dict[int, Entry], spare: frozenset[int]) -> dict[int, Entry]:
        """`found` and what it has started in the meantime, all stopped: nobody can fork while the others are killed."""
        frozen: dict[int, Entry] = {}
        while found:
            for entry in found.values():
                self.table.send(entry, signal.SIGSTOP)
            frozen.update(found)
            self.known.update(found)
            found = {pid: entry for pid, entry in self.find(spare).items() if pid not in frozen}
        return frozen

    def _belongs(self, entry: Entry, leader: int | None) -> bool:
        if leader is not None and leader in (entry.pid, entry.group, entry.session):
            return True
        known = self.known.get(entry.pid)
        if known is not None and known.born == entry.born:
            return True
        if self.table.ordered and self.born is not None and entry.born < self.born:
            return False
        if self.files and self.table.writes(entry.pid, self.files):
            return True
        carries = self.table.carries(entry.pid, self.tag)
        self.unsure |= carries is None and not entry.ended
        return carries is True

    def _reused(self, entry: Entry) -> bool:
        return self.born is not None and entry.born != self.born

    def _since(self) -> int:
        """The lowest pid to look at: the first process's own where later ones are sure to have higher ones, else 0."""
        first = self.lowest if self.leader is None else self.leader
        if first is None or time.monotonic() - self.started_s > PIDS_IN_ORDER_S:
            return 0
        last = last_pid()
        return first if last is not None and last >= first else 0
