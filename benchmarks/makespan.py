"""How close a run comes to the shortest time that its attempts allow: `python benchmarks/makespan.py [workers …]`.

Attempts sleep for heavy-tailed times (log-normal, sigma 1.3, mean 3 s, at most 30 s), three per task, so many that the bound
max(longest, sum / workers) is about a minute. Printed per number of workers: the bound, and wall time / bound of whole
processes, start-up included, for the pool and for `-n` (each without history, then with the durations of that run), and for
caliper-eval 0.21 with the same files. One call measures all of them; compare within one call only.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import workload

K = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workers", nargs="*", type=int, default=[4, 16, 32])
    parser.add_argument("--attempts-per-worker", type=int, default=21)
    parser.add_argument("--mean", type=float, default=3.0, help="seconds")
    parser.add_argument("--only", choices=["pool", "xdist", "reference"], action="append")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores; wall time / bound, start-up included; load {os.getloadavg()[0]:.1f} at the start")
    print(f"{'workers':>7} {'attempts':>8} {'bound s':>8}  {'what':<24} {'first run':>9} {'with history':>12}")
    for workers in arguments.workers:
        tasks = max(1, arguments.attempts_per_worker * workers // K)
        seconds = workload.heavy_tailed(tasks, arguments.mean, arguments.mean * 10)
        bound = max(*seconds, sum(seconds) * K / workers)
        ways: dict[str, Callable[[Path], workload.Measured]] = {
            "pool": lambda place, n=workers: workload.ours(place, K, n),  # type: ignore[misc]
            "xdist": lambda place, n=workers: workload.ours(place, K, n, f"-n{n}"),  # type: ignore[misc]
            "reference": lambda place, n=workers: workload.reference(place, K, n),  # type: ignore[misc]
        }
        for name, way in ways.items():
            if arguments.only and name not in arguments.only:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                place = Path(scratch).resolve() / "project"
                workload.project(place, seconds)
                ratios = []
                for _ in range(1 if name == "reference" else 2):
                    measured = way(place)
                    if measured.status:
                        raise SystemExit(f"{name} ended with {measured.status}:\n{workload.said(place)}")
                    ratios.append(f"{measured.wall_s / bound:.3f}")
            label = {"pool": "pool", "xdist": f"-n {workers}", "reference": "caliper-eval 0.21"}[name]
            print(
                f"{workers:>7} {tasks * K:>8} {bound:>8.1f}  {label:<24} {ratios[0]:>9} {(ratios[1:] or ['-'])[0]:>12}",
                flush=True,
            )


if __name__ == "__main__":
    main()
