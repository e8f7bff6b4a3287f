"""What the harness itself costs per attempt: `python benchmarks/overhead.py [--rounds N]`.

An agent that does nothing, one assert that passes. The slope of CPU time (all processes, the agent's included) and of wall time
between 60 and 300 attempts, for pytest-caliper and for caliper-eval 0.21 on the same files, alternating; medians of the rounds,
and their ratio. Then the peak memory of both at 32 workers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

import workload

FEW, MANY = 20, 100
"""Tasks, three attempts each."""
K = 3


def once(way: str, tasks: int, workers: int) -> workload.Measured:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch).resolve() / "project"
        workload.project(place, [0.0] * tasks)
        measured = workload.ours(place, K, workers) if way == "ours" else workload.reference(place, K, workers)
        if measured.status:
            raise SystemExit(f"{way} ended with {measured.status}:\n{workload.said(place)}")
        return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()
    slopes: dict[str, list[tuple[float, float]]] = {"ours": [], "reference": []}
    once("reference", 1, 1)  # installs it, and warms what both read
    for _ in range(arguments.rounds):
        for way, found in slopes.items():
            few, many = once(way, FEW, arguments.workers), once(way, MANY, arguments.workers)
            attempts = (MANY - FEW) * K
            found.append((1000 * (many.cpu_s - few.cpu_s) / attempts, 1000 * (many.wall_s - few.wall_s) / attempts))
    print(
        f"{os.cpu_count()} cores, {arguments.workers} workers, {arguments.rounds} rounds; "
        f"load {os.getloadavg()[0]:.1f} at the end"
    )
    print(f"{'per attempt':<20} {'CPU ms':>8} {'(rounds)':>24} {'wall ms':>8}")
    medians = {}
    for way, found in slopes.items():
        cpu, wall = (statistics.median(values) for values in zip(*found, strict=True))
        medians[way] = cpu
        label = "pytest-caliper" if way == "ours" else "caliper-eval 0.21"
        print(f"{label:<20} {cpu:>8.1f} {' '.join(f'{c:.0f}' for c, _ in found):>24} {wall:>8.1f}")
    print(f"CPU, ours / reference: {medians['ours'] / medians['reference']:.2f}")
    peaks = {way: once(way, MANY, 32).peak_mb for way in slopes}
    print(
        f"peak memory at 32 workers, {MANY * K} attempts: {peaks['ours']:.0f} MB, caliper-eval 0.21 {peaks['reference']:.0f} MB"
    )


if __name__ == "__main__":
    main()
