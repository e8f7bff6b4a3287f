"""What it takes to read saved runs: `python benchmarks/reading.py [ROUNDS]`.

1,000 runs of about 110 kB and 20 of about 20 MB (nearly all of it transcripts), and two runs of 50 tasks. Whole processes,
interpreter start included; medians of wall and CPU time. Beside them the CPU time of caliper-eval 0.21 on the same files, where
it can be installed, as a ratio.
"""

from __future__ import annotations

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import workload

from pytest_caliper.runs.records import AttemptKey, AttemptRecord, Run, RunMeta, TaskResult, Usage
from pytest_caliper.runs.store import save_run

OURS = "import sys; from pytest_caliper.cli import main; sys.exit(main())"
THEIRS = "from caliper.main import app; app()"
COMMANDS = (
    ("list",),
    ("list", "small"),
    ("list", "large"),
    ("report", "small"),
    ("report", "large"),
    ("report", "large", "--format", "json"),
    ("history", "small"),
    ("compare", "before", "after"),
    ("compare", "before", "after", "--format", "json"),
)
SHARED = {
    ("list",),
    ("list", "small"),
    ("list", "large"),
    ("report", "small"),
    ("report", "large"),
    ("compare", "before", "after"),
}
"""Commands that caliper-eval has too."""


def attempt(task: int, number: int, outcome: str, turns: Path) -> AttemptRecord:
    return AttemptRecord(
        key=AttemptKey(spec="x.eval.yaml", task_id=f"task-{task:03}", arm="skill", attempt=number),
        task_name=f"Task {task}",
        outcome="pass" if outcome == "P" else "task_fail",
        reason=None if outcome == "P" else "the judge said no",
        output="Done.",
        duration_seconds=20.0,
        started=0.0,
        wall_seconds=22.0,
        usage=Usage(input_tokens=1_000, output_tokens=2_000, cache_read_tokens=40_000, cache_creation_tokens=10_000),
        autorater_passed=outcome == "P",
        autorater_reasoning="It does what was asked." if outcome == "P" else "It does not.",
        transcript_path=str(turns),
    )


def save(place: Path, spec: str, count: int, tasks: int, turns: Path, rng: random.Random) -> int:
    """Save `count` runs of three attempts a task, an hour apart. -> bytes of the last."""
    path = place
    for number in range(count):
        moment = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(hours=number)
        results = tuple(
            TaskResult(
                task_id=f"task-{task:03}",
                task_name=f"Task {task}",
                arm="skill",
                planned=3,
                attempts=tuple(attempt(task, i, rng.choice("PPPF"), turns) for i in (1, 2, 3)),
                prompt="Do it.",
                expect="It is done.",
            )
            for task in range(1, tasks + 1)
        )
        meta = RunMeta(
            id=f"{number:08x}",
            spec=f"{spec}.eval.yaml",
            timestamp=moment.isoformat(),
            k=3,
            backend="claude-code",
            model="a-model",
            judge_backend="claude-code",
            judge_model="a-judge",
            pytest_caliper="0.1.0",
            workers=4,
            baseline=False,
            interrupted=False,
            selected_tasks=None,
            partial=False,
            contract={"spec": "sha256:1", "skill": "sha256:1", "tasks": {result.task_id: "sha256:1" for result in results}},
        )
        run = Run(meta=meta, results=results, baseline_results=None, skills=())
        path = save_run(run, place / ".caliper" / "results" / spec)
    return path.stat().st_size


def measured(command: Sequence[str], place: Path) -> tuple[float, float]:
    """-> (wall, CPU) seconds of one process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, check=False, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": "100"}
    )
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr.decode(errors='replace')}")
    return wall, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def reference() -> str | None:
    """The interpreter that has caliper-eval; None where it cannot be installed."""
    import foreign

    try:
        return str(foreign.python_of(workload.REFERENCE))
    except foreign.NoIndex:
        return None


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    theirs, rng = reference(), random.Random(7)
    with tempfile.TemporaryDirectory() as scratch:
        place, few, many = Path(scratch), Path(scratch, "few.jsonl"), Path(scratch, "many.jsonl")
        turn = json.dumps({"role": "assistant", "content": "x" * 300}) + "\n"
        few.write_text(turn * 8)
        many.write_text(turn * 480)
        sizes = [save(place, "small", 1000, 10, few, rng), save(place, "large", 20, 40, many, rng)]
        for spec in ("before", "after"):
            save(place, spec, 1, 50, few, rng)
        print(f"1,000 runs of {sizes[0] / 1e3:.0f} kB, 20 of {sizes[1] / 1e6:.0f} MB; medians of {rounds}")
        idle = statistics.median(measured([sys.executable, "-c", "pass"], place)[0] for _ in range(rounds))
        print(f"{'an interpreter that does nothing':<46}{1000 * idle:7.0f} ms wall")
        for words in COMMANDS:
            ours = [measured([sys.executable, "-c", OURS, *words], place) for _ in range(rounds)]
            wall, cpu = (1000 * statistics.median(values) for values in zip(*ours, strict=True))
            line = f"{'caliper ' + ' '.join(words):<46}{wall:7.0f} ms wall, {cpu:6.0f} ms CPU"
            if theirs is not None and words in SHARED:
                other = 1000 * statistics.median(measured([theirs, "-c", THEIRS, *words], place)[1] for _ in range(rounds))
                line += f"; {cpu / other:.2f} of caliper-eval's {other:.0f}"
            print(line)


if __name__ == "__main__":
    main()
