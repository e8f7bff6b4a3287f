"""Kill a run of 60 attempts at random moments, go on with it, and look at what is left: `python tests/stress/sigkill.py [KILLS] [SEED]`.

Every attempt writes its beginning into a ledger outside. After each kill: no process of the run lives. After the run has been gone on
with to its end: its file has each attempt once, an attempt that was in the journal at a kill did not run again, nothing
temporary is left. Exit status 1 with the first fault.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent.parent / "support"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from shell_agent import ShellAgent

def pytest_caliper_backends(config):
    return [ShellAgent()]
"""
TASKS, K = 10, 3
ATTEMPTS = TASKS * K * 2


class Fault(Exception):
    """What must not happen."""


def project(directory: Path) -> None:
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "skill").mkdir()
    (directory / "skill" / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\nDo.\n")
    ledger = directory / "ledger"
    # Each agent leaves a child in a session of its own, which must be reaped as well.
    prompt = f"echo $TASK $ARM $ATTEMPT >> {ledger}; setsid sleep 97 & sleep 0.0$((RANDOM % 9)); echo done"
    tasks = [
        {"name": f"T{n}", "prompt": f"TASK=T{n}; {prompt}", "assert": "assert attempt.answer == 'done'"} for n in range(TASKS)
    ]
    (directory / "load.eval.yaml").write_text(json.dumps({"skill": {"path": "./skill"}, "tasks": tasks}))
    ledger.touch()


def start(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "load.eval.yaml",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--caliper-k={K}",
        "--caliper-baseline",
    ]
    options = ["--caliper-model=shell-agent", "--caliper-results=results", *arguments]
    return subprocess.Popen(
        [*command, *options],
        cwd=directory,
        env={**os.environ, "TMPDIR": str(temporary), "SIGKILL_STRESS": str(directory)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def survivors(directory: Path) -> list[int]:
    """Processes that carry our mark in their environment."""
    needle = f"SIGKILL_STRESS={directory}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environment, state = (entry / "environ").read_bytes(), (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if needle in environment and state not in "ZX":
                found.append(int(entry.name))
    tagged = subprocess.run(["pgrep", "-f", "^sleep 97$"], capture_output=True, text=True, check=False).stdout.split()
    return found + [int(pid) for pid in tagged if _belongs(int(pid), directory)]


def _belongs(pid: int, directory: Path) -> bool:
    try:
        return str(directory).encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def nothing_lives(directory: Path) -> None:
    deadline = time.monotonic() + 60
    while left := survivors(directory):
        if time.monotonic() > deadline:
            raise Fault(f"processes {left} live on")
        time.sleep(0.05)


def journalled(directory: Path) -> set[tuple[str, str, int]]:
    """The attempts whose lines in the journal are whole."""
    known = set()
    for file in (directory / "results" / "load").glob("*.json"):
        run = json.loads(file.read_text())
        tasks = [task for arm in ("task_results", "baseline_task_results") for task in run[arm]]
        known |= {(task["task_name"], a["arm"], a["attempt"]) for task in tasks for a in task["attempts"]}
    for journal in (directory / "results" / "load").glob("*.jsonl"):
        for line in journal.read_bytes().split(b"\n")[1:-1]:
            key = json.loads(line).get("key")
            if key is not None:
                known.add((f"T{int(key['task_id'][5:]) - 1}", key["arm"], key["attempt"]))
    return known


def begun(directory: Path) -> list[tuple[str, str, int]]:
    lines = (directory / "ledger").read_text().split("\n")[:-1]
    return [(task, arm, int(attempt)) for task, arm, attempt in map(str.split, lines)]


def check_whole(directory: Path, known: set[tuple[str, str, int]]) -> None:
    """The run that was gone on with is there once, whole, and no known attempt was paid for again."""
    place = directory / "results" / "load"
    whole = {path.stem for path in place.glob("*.json")}
    files = [path for path in place.rglob("*") if path.is_file() and not (path.suffix != ".json" and _stem(path) in whole)]
    if len(files) != 1:
        raise Fault(f"left in the results: {[str(path.relative_to(place)) for path in files]}")
    run = json.loads(files[0].read_text())
    found = [
        (task["task_name"], attempt["arm"], attempt["attempt"])
        for arm in ("task_results", "baseline_task_results")
        for task in run[arm]
        for attempt in task["attempts"]
    ]
    if len(found) != ATTEMPTS or len(set(found)) != ATTEMPTS:
        raise Fault(f"{len(found)} attempts, {len(set(found))} different ones")
    outcomes = {a["outcome"] for arm in ("task_results", "baseline_task_results") for t in run[arm] for a in t["attempts"]}
    if outcomes != {"pass"}:
        raise Fault(f"outcomes {outcomes}")
    if any(not a["transcript"] for arm in ("task_results", "baseline_task_results") for t in run[arm] for a in t["attempts"]):
        raise Fault("a transcript is lost")
    for attempt in known:
        if begun(directory).count(attempt) > 1 and attempt in known_at_first_kill_of(directory, attempt):
            raise Fault(f"{attempt} was known and ran again")


def _stem(path: Path) -> str:
    return (path if path.suffix == ".jsonl" and path.parent.suffix != ".parts" else path.parent).stem


def known_at_first_kill_of(directory: Path, attempt: tuple[str, str, int]) -> set[tuple[str, str, int]]:
    """Attempts that ran once more after they were known: found by the ledger's length at each kill."""
    marks = json.loads((directory / "marks").read_text())
    for mark in marks:
        if attempt in map(tuple, mark["known"]):
            later = begun(directory)[mark["begun"] :]
            return {attempt} if attempt in later else set()
    return set()


def rounds(kills: int, seed: int, *arguments: str) -> int:
    """Kill and go on until `kills` kills were made. -> how many runs that took. Raises Fault."""
    rng = random.Random(seed)
    made = runs = 0
    while made < kills:
        runs += 1
        with tempfile.TemporaryDirectory(prefix="caliper-stress-") as name:
            directory = Path(name).resolve()
            project(directory)
            marks: list[dict[str, object]] = []
            known: set[tuple[str, str, int]] = set()
            resume: list[str] = []
            while made < kills:
                session = start(directory, *resume, *arguments)
                try:
                    session.wait(rng.uniform(0.4, 6.0))
                    break  # it was faster than the kill
                except subprocess.TimeoutExpired:
                    os.kill(session.pid, signal.SIGKILL)
                    session.wait()
                made += 1
                nothing_lives(directory)
                now = journalled(directory)
                if known - now:
                    raise Fault(f"kill {made}: {known - now} were in the journal and are not any more")
                known = now
                marks.append({"known": sorted(now), "begun": len(begun(directory))})
                (directory / "marks").write_text(json.dumps(marks))
                if list((directory / "results" / "load").glob("*.json")):
                    break  # the run file was whole already; a new run would remove what is left beside it
                resume = ["--caliper-resume"] if list((directory / "results").rglob("*.jsonl")) else []
            else:
                session = start(directory, *resume, *arguments)
                session.wait(300)
            if session.returncode not in (0, -signal.SIGKILL):
                raise Fault(f"seed {seed}, after {made} kills: the last session ended with {session.returncode}")
            nothing_lives(directory)
            check_whole(directory, known)
            left = [path.name for path in (directory / "tmp").iterdir() if not path.name.startswith("pytest-of-")]  # xdist's own
            if left:
                raise Fault(f"left in the temporary directory: {left}")
    return runs


def main() -> None:
    kills, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else 7
    started = time.monotonic()
    runs = rounds(kills, seed, *sys.argv[3:])
    print(
        f"{kills} kills in {runs} runs of {ATTEMPTS} attempts: nothing lost, nothing twice, nothing left ({time.monotonic() - started:.0f} s)"
    )


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(f"fault: {fault}")
