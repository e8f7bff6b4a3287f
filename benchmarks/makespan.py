"""How close a run comes to the shortest time that its attempts allow: `python benchmarks/makespan.py [workers …]`.

Attempts sleep for heavy-tailed times (log-normal, sigma 1.3, mean 0.6 s, at most 6 s), each with one assert. Printed per number
of workers: the bound max(longest, sum / workers), the wall time of the whole pytest process, and their ratio, without and with
the durations of an earlier run to order by. Both are measured in the same call; compare within one call only.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent.parent / "tests" / "support"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from shell_agent import ShellAgent

def pytest_caliper_backends(config):
    return [ShellAgent()]
"""
TASKS = 40
K = 3


def durations() -> list[float]:
    """Seconds per task; every attempt of a task takes the same."""
    rng = random.Random(7)
    raw = [rng.lognormvariate(0.0, 1.3) for _ in range(TASKS)]
    mean = sum(raw) / TASKS
    return [min(6.0, 0.6 * value / mean) for value in raw]


def spec(seconds: list[float]) -> str:
    tasks = [
        {"name": f"Task {n}", "prompt": f"sleep {value:.3f}; echo done", "assert": "assert attempt.answer == 'done'"}
        for n, value in enumerate(seconds)
    ]
    return json.dumps({"tasks": tasks})  # YAML is a superset of JSON


def run(directory: Path, workers: int) -> float:
    """Wall seconds of one pytest process, start-up included."""
    command = [sys.executable, "-m", "pytest", "-q", "load.eval.yaml", f"--caliper-k={K}", f"--caliper-workers={workers}"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    started = time.monotonic()
    subprocess.run(
        [*command, "--caliper-model=shell-agent", "-p", "no:cacheprovider"],
        cwd=directory,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.monotonic() - started


def main() -> None:
    seconds = durations()
    total, longest = sum(seconds) * K, max(seconds)
    print(f"{TASKS} tasks x {K} attempts, {total:.1f} s of sleep, longest {longest:.1f} s, {os.cpu_count()} cores")
    print(f"{'workers':>7}  {'bound s':>7}  {'unordered s':>11}  {'ratio':>5}  {'longest first s':>15}  {'ratio':>5}")
    for workers in [int(word) for word in sys.argv[1:]] or [4, 16, 32]:
        bound = max(longest, total / workers)
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            (directory / "conftest.py").write_text(CONFTEST)
            (directory / "load.eval.yaml").write_text(spec(seconds))
            first, second = run(directory, workers), run(directory, workers)
        print(f"{workers:>7}  {bound:>7.2f}  {first:>11.2f}  {first / bound:>5.3f}  {second:>15.2f}  {second / bound:>5.3f}")


if __name__ == "__main__":
    main()
