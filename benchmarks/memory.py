"""Peak memory of the pytest process against the number of attempts: `python benchmarks/memory.py [attempts …]`.

An agent that does nothing, one assert that passes, 32 workers. Printed: the high-water mark of the resident set, and what each
attempt adds to that of the smallest run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import workload

K = 10


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [100, 1_000, 10_000]
    first: tuple[int, float] | None = None
    print(f"{'attempts':>8} {'peak MB':>8} {'kB per further attempt':>23} {'wall s':>8}")
    for attempts in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch).resolve() / "project"
            workload.project(place, [0.0] * (attempts // K))
            measured = workload.ours(place, K, 32)
            if measured.status:
                raise SystemExit(f"ended with {measured.status}:\n{workload.said(place)}")
        further = "-" if first is None else f"{1000 * (measured.peak_mb - first[1]) / (attempts - first[0]):.1f}"
        first = first or (attempts, measured.peak_mb)
        print(f"{attempts:>8,} {measured.peak_mb:>8.1f} {further:>23} {measured.wall_s:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
