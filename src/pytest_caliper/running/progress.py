"""How far a session is: what runs, what is left, and about how long that takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_caliper.running.estimate import PAST, Cell, Past, groups_of, workers_of
from pytest_caliper.running.makespan import Job, about, makespan
from pytest_caliper.runs.records import AttemptKey

if TYPE_CHECKING:
    from pytest_caliper.state import State


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """An item that runs now."""

    nodeid: str
    seconds: float
    """Since it began."""
    key: AttemptKey | None
    """None when it is no attempt."""


class Progress:
    """Asked by any thread, at any time; changes nothing."""

    def __init__(self, state: State, running: Callable[[], list[Running]]) -> None:
        self._state, self.running = state, running
        self._groups: Mapping[tuple[str, str], Hashable] | None = None

    def rest(self) -> str:
        """`9 of 18 left, about 4 min`; without a time while nothing tells one, empty when no attempts are counted."""
        session = self._state.session
        if session is None or not session.expected:
            return ""
        left, ended = session.left_and_ended()
        line = f"{len(left):,} of {session.expected:,} left"
        usual = expected(ended, self._state.config.stash.get(PAST, Past()), left)
        if usual is None or not left:
            return line
        if self._groups is None:
            self._groups = groups_of(list(self._state.specs.values()))
        seconds = time_left(left, usual, self.running(), workers_of(self._state.config, self._state), self._groups)
        return f"{line}, {about(seconds)}"


def expected(ended: Iterable[tuple[AttemptKey, float]], past: Past, left: Collection[AttemptKey]) -> Mapping[Cell, float] | None:
    """Seconds that an attempt is expected to take, for each cell of those left; None where nothing tells.

    By the attempts of the same task and arm that ended in this session, else by the runs before, else by all that ended here.
    """
    here: dict[Cell, list[float]] = {}
    for key, seconds in ended:
        here.setdefault(Cell.of(key), []).append(seconds)
    known = dict(past.seconds) | {cell: sum(each) / len(each) for cell, each in here.items()}
    if not known:
        return None
    every = [seconds for each in here.values() for seconds in each] or list(known.values())
    usual = sum(every) / len(every)
    return {cell: known.get(cell, usual) for cell in {Cell.of(key) for key in left}}


def time_left(
    left: Collection[AttemptKey],
    usual: Mapping[Cell, float],
    running: Sequence[Running],
    workers: int,
    groups: Mapping[tuple[str, str], Hashable],
) -> float:
    """Seconds until all that is left has ended."""
    under_way = {item.key: item.seconds for item in running if item.key is not None and item.key in left}
    waiting = sorted((key for key in left if key not in under_way), key=lambda key: (key.attempt, -usual[Cell.of(key)]))
    return makespan(
        [Job(usual[Cell.of(key)], groups.get((key.spec, key.task_id))) for key in waiting],
        workers,
        [Job(max(0.0, usual[Cell.of(key)] - so_far), groups.get((key.spec, key.task_id))) for key, so_far in under_way.items()],
    )
