"""How often words are wrong and intervals miss: `python benchmarks/simulations.py [--replicates N] [--seed N]`.

A/A: both arms have the same rates, so that every "better", "worse" and flag is a false alarm. Where outcomes are few, every one
is counted ("exact"); else the totals of the tasks are drawn and every split of them between the arms is counted ("N totals");
else attempts are drawn ("N drawn"). Exact rows say where, of the designs and rates named, the share is worst: "5 x k=3" is five
tasks of three attempts. Ends with status 1 when a limit is passed by more than three standard errors.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from random import Random

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS / "scoring"), str(TESTS / "reporting")]

import simulated_bars as bars  # noqa: E402
import simulated_intervals as intervals  # noqa: E402
import simulated_power as power  # noqa: E402
import simulated_words as words  # noqa: E402
from simulated_row import HEAD, Row  # noqa: E402

from pytest_caliper.scoring import comparison  # noqa: E402

JOBS: list[Callable[[int, Random], list[Row]]] = [
    intervals.task_coverage,
    intervals.suite_coverage,
    intervals.delta_coverage,
    intervals.lost_coverage,
    words.one_task,
    words.two_equal_tasks,
    words.few_equal_tasks,
    words.unequal_tasks,
    words.run_against_run,
    words.drawn_totals,
    words.drawn_attempts,
    words.drawn_flags,
    bars.bars,
    power.one_task_power,
    power.suite_power,
]


def remember_boschloo() -> None:
    """The same tables come again and again."""
    comparison.boschloo = cache(comparison.boschloo)


def do(job: int, replicates: int, seed: int) -> list[Row]:
    """The rows of a job, the same in whatever process it runs."""
    return JOBS[job](replicates, Random(f"{seed} {JOBS[job].__name__}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=20_000, help="draws per row where attempts are drawn (20000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.replicates < 100:
        parser.error("--replicates must be >= 100")
    started = time.monotonic()
    # Backwards, since the longest job is the last: no process is to end up alone with it.
    with ProcessPoolExecutor(os.cpu_count(), initializer=remember_boschloo) as pool:
        waiting = {job: pool.submit(do, job, arguments.replicates, arguments.seed) for job in reversed(range(len(JOBS)))}
        rows = [row for job in range(len(JOBS)) for row in waiting[job].result()]
    print(HEAD)
    for about in dict.fromkeys(row.about for row in rows):
        print(f"\n{about}")
        for row in rows:
            if row.about == about:
                print(row)
    faults = [row for row in rows if row.fault]
    print(f"\n{len(rows)} rows, {len(faults)} beyond their limit; {arguments.replicates:,} replicates, seed {arguments.seed}")
    print(f"{time.monotonic() - started:.0f} s on {os.cpu_count()} cores", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
