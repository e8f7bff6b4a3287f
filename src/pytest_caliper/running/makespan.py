"""How long jobs take together on a number of workers: by simulation, since a sum over workers flatters the last of them."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """Something that takes so many seconds; jobs of one group run one at a time."""

    seconds: float
    group: Hashable | None = None


def makespan(jobs: Sequence[Job], workers: int, running: Iterable[Job] = ()) -> float:
    """Seconds until all have ended, when each begins in its order as soon as a worker and its group are free.

    `running` began before; their `seconds` are what they have left.
    """
    active = [(job.seconds, -1 - number, job.group) for number, job in enumerate(running)]
    heapq.heapify(active)
    taken = {group for _, _, group in active if group is not None}
    ready: list[int] = []
    waiting: dict[Hashable, deque[int]] = {}
    for number, job in enumerate(jobs):
        if job.group is not None and job.group in taken:
            waiting.setdefault(job.group, deque()).append(number)
        else:
            ready.append(number)  # in order, so it is a heap
            taken.add(job.group)
    now = 0.0
    while ready or active:
        while ready and len(active) < max(1, workers):
            number = heapq.heappop(ready)
            heapq.heappush(active, (now + jobs[number].seconds, number, jobs[number].group))
        now, _, group = heapq.heappop(active)
        if group is not None and (queue := waiting.get(group)):
            heapq.heappush(ready, queue.popleft())
    return now


def about(seconds: float) -> str:
    """A time that is only roughly known, in words: `under 10 s`, `about 40 s`, `about 12 min`, `about 2 h 30 min`."""
    if seconds < 10:
        return "under 10 s"
    if seconds < 55:
        return f"about {round(seconds / 5) * 5} s"
    minutes = max(1, round(seconds / 60))
    if minutes < 100:
        return f"about {minutes} min"
    hours, rest = divmod(round(minutes / 10) * 10, 60)
    return f"about {hours} h {rest:02} min" if rest else f"about {hours} h"
