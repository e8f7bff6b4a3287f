"""What the benchmarks measure, and how it is run: a claude that only sleeps, pytest-caliper, and caliper-eval 0.21.

Everything runs on this machine; no request leaves it.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "interop"))

REFERENCE = "0.21.0"
SAID = (
    '{"type":"system","subtype":"init","session_id":"s","model":"claude-bench-1","tools":["Bash"],"skills":[],"mcp_servers":[],'
    '"claude_code_version":"2.1.332"}\n'
    '{"type":"assistant","session_id":"s","message":{"id":"m","role":"assistant","model":"claude-bench-1","content":'
    '[{"type":"text","text":"done"}],"usage":{"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":0,'
    '"cache_creation_input_tokens":0}}}\n'
    '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"duration_ms":1,"session_id":"s","result":"done",'
    '"stop_reason":"end_turn","total_cost_usd":0,"usage":{"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":0,'
    '"cache_creation_input_tokens":0},"modelUsage":{"claude-bench-1":{"inputTokens":10,"outputTokens":2}}}\n'
)
CLAUDE = """#!/bin/sh
case "$*" in *--version*) echo "2.1.332 (Claude Code)"; exit 0;; esac
{sleep}
exec cat {said}
"""
SLEEP = """text="$*$(cat)"
case "$text" in *SLEEP=*) rest=${text#*SLEEP=}; sleep "${rest%%;*}";; esac"""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One process with all its children."""

    wall_s: float
    cpu_s: float
    """User and system time, of the children that were waited for too."""
    peak_mb: float
    """Largest resident set of the process itself, from its own /proc, in 10^6 bytes."""
    status: int


def heavy_tailed(tasks: int, mean_s: float, most_s: float, seed: int = 7) -> list[float]:
    """Log-normal (sigma 1.3) seconds per task, as attempts of agents are spread; every attempt of a task takes the same."""
    rng = random.Random(seed)
    raw = [rng.lognormvariate(0.0, 1.3) for _ in range(tasks)]
    mean = sum(raw) / tasks
    return [min(most_s, mean_s * value / mean) for value in raw]


def project(directory: Path, seconds: Sequence[float]) -> None:
    """A spec with one task per number, and the claude that sleeps so long. Both harnesses take the same files."""
    (directory / "bin").mkdir(parents=True)
    (directory / "home" / ".claude").mkdir(parents=True)
    claude = directory / "bin" / "claude"
    (directory / "said.jsonl").write_text(SAID)
    claude.write_text(CLAUDE.format(said=directory / "said.jsonl", sleep=SLEEP if any(seconds) else ""))
    claude.chmod(0o755)
    tasks = [
        {"name": f"Task {n}", "prompt": f"SLEEP={value:.3f};" if value else "Nothing.", "assert": "assert 1 + 1 == 2"}
        for n, value in enumerate(seconds)
    ]
    (directory / "load.eval.yaml").write_text(json.dumps({"tasks": tasks}))  # YAML is a superset of JSON
    (directory / "pytest.ini").write_text("[pytest]\n")


def ours(directory: Path, k: int, workers: int, *options: str) -> Measured:
    """A whole pytest process, start-up included."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "load.eval.yaml", f"--caliper-k={k}"]
    return run([*command, f"--caliper-workers={workers}", *options], directory)


def reference(directory: Path, k: int, workers: int) -> Measured:
    """The same by caliper-eval 0.21, from a virtual environment of its own. Raises foreign.NoIndex."""
    import foreign

    words = ["run", "load.eval.yaml", "--k", str(k), "--workers", str(workers), "--no-user-customizations"]
    return run([str(foreign.python_of(REFERENCE)), "-c", "from caliper.main import app; app()", *words], directory)


def run(command: Sequence[str], directory: Path) -> Measured:
    """Run a command with the sleeping claude on PATH and measure it."""
    environment = {
        "PATH": f"{directory / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(directory / "home"),
        "ANTHROPIC_API_KEY": "dummy",
        "COLUMNS": "100",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    with open(directory / "out.txt", "wb") as out:
        process = subprocess.Popen(
            list(command), cwd=directory, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, _high_water(process.pid))
            time.sleep(0.05)
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return Measured(wall_s=wall, cpu_s=cpu, peak_mb=peak, status=process.returncode)


def said(directory: Path) -> str:
    """What the last command printed."""
    return (directory / "out.txt").read_text(errors="replace")


def _high_water(pid: int) -> float:
    """VmHWM, in MB; 0 where there is no /proc."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return 0.0
