"""What the installed plugin adds to a suite without specs: `python benchmarks/startup.py [ROUNDS]`.

`pytest` on one empty test, with the plugin and with `-p no:caliper`, in random order; CPU time of whole processes, medians.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from pathlib import Path

import workload


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    found: dict[str, list[float]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch).resolve() / "project"
        workload.project(place, [])
        (place / "load.eval.yaml").unlink()
        (place / "test_one.py").write_text("def test_one():\n    pass\n")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        for _ in range(rounds):
            for way in random.sample(list(found), 2):
                measured = workload.run([*command, *(["-p", "no:caliper"] if way == "without" else [])], place)
                if measured.status:
                    raise SystemExit(workload.said(place))
                found[way].append(1000 * measured.cpu_s)
    medians = {way: statistics.median(values) for way, values in found.items()}
    differences = [a - b for a, b in zip(found["with"], found["without"], strict=True)]
    print(f"CPU on one empty test, medians of {rounds}: {medians['with']:.1f} ms, without the plugin {medians['without']:.1f} ms")
    print(f"added: {statistics.median(differences):+.1f} ms (median of the paired differences)")


if __name__ == "__main__":
    main()
