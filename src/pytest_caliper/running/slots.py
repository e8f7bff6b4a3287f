"""Places shared by processes: at most N holders of a name, whoever they are.

Used under xdist, where no pool spans the workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pytest_caliper.contracts import Cancelled

POLL_S = 0.1


@contextmanager
def held(directory: Path, name: str, places: int, cancelled: Callable[[], bool]) -> Iterator[None]:
    """Hold one of `places` places called `name`; waits for a free one. Raises Cancelled when the session stops meanwhile.

    A place is an advisory lock on a file, so a killed holder gives it back.
    """
    import fcntl

    if cancelled():
        raise Cancelled
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as opened:
        files = [opened.enter_context(open(directory / f"{name}-{n}", "ab")) for n in range(places)]
        while True:
            for file in files:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
            if cancelled():
                raise Cancelled
            time.sleep(POLL_S)
