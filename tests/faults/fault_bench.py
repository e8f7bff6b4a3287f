"""A project whose attempts go wrong, sessions of pytest in it, and what they leave: processes, files, exit status, memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fault_clis import SECRET, SKILL

BOUND_S = 150.0
"""Far above what anything here takes, far below what is left running sleeps."""

WAYS: dict[str, tuple[str, ...]] = {"pool": ("--caliper-workers=4",), "n2": ("-n2",)}

INI = """[pytest]
addopts = -p no:cacheprovider -p no:hypothesispytest -p no:anyio -p no:pytest-teamcity
caliper_results = results
"""

CONFTEST = '''
import json, os, resource, sys
from pathlib import Path

PLACE = Path(__file__).parent
sys.path.insert(0, {support!r})
WHO = os.environ.get("PYTEST_XDIST_WORKER", "main")

# Limits that nobody can change, shorter than a test wants to wait.
from pytest_caliper.attempt import hooks
from pytest_caliper.backends import driver, mcp_probe
from pytest_caliper.judging import judge
from pytest_caliper.running import runtime
hooks.run_hook.__kwdefaults__["timeout_s"] = 1.5
judge.ASSERT_TIMEOUT_S = 1.5
driver.ProcessInvoker.__init__.__kwdefaults__["judge_timeout_s"] = {judge_s!r}
mcp_probe.probe_server.__kwdefaults__["timeout_s"] = 3.0
runtime.RETRY_WAITS_S = (0.1,)


def pytest_configure(config):
    (PLACE / "pids" / f"{{WHO}}.{{os.getpid()}}").touch()


def pytest_caliper_record(config, record):
    """What of the attempt lives although it has ended."""
    from fault_bench import processes
    own = f"-{{record.key.task_id}}-{{record.key.arm}}-{{record.key.attempt}}"
    place = os.fsencode(PLACE)
    left = [
        pid
        for pid, environment in processes()
        for name, value in environment
        if name == b"CALIPER_TAG" and any(part.endswith(own.encode()) for part in value.split(b"/"))
        and any(place in value for _, value in environment)
    ]
    with open(PLACE / "outlived", "a") as out:
        out.write(json.dumps([record.task_name, left]) + "\\n")


def pytest_unconfigure(config):
    (PLACE / "memory" / WHO).write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
'''


def processes() -> Iterable[tuple[int, list[tuple[bytes, bytes]]]]:
    """(pid, environment) of every process that lives and may be looked at, this one left out."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if state not in (b"Z", b"X"):
                pairs = [pair.partition(b"=") for pair in environment.split(b"\0")]
                yield int(entry.name), [(name, value) for name, _, value in pairs]


class Pollable(Protocol):
    def poll(self) -> int | None: ...


@dataclass(kw_only=True)
class Bench:
    """A project directory. A session in it has a TMPDIR and a HOME of its own."""

    path: Path
    backend: str
    way: str
    env: Mapping[str, str]
    """What its pytest needs besides: where the CLI is."""
    judge_limit_s: float = 2.0
    out: Path = field(init=False)

    def __post_init__(self) -> None:
        for name in ("tmp", "user", "pids", "memory", "skill"):
            (self.path / name).mkdir(parents=True)
        self.out = self.path / "out.txt"
        self.ledger.touch()
        self.write("pytest.ini", INI)
        self.write("conftest.py", CONFTEST.format(support=str(Path(__file__).parent), judge_s=self.judge_limit_s))
        self.write("skill/SKILL.md", f"---\nname: {SKILL}\ndescription: How files are named here.\n---\nEnd in .txt.\n")

    @property
    def ledger(self) -> Path:
        """Each invocation of the CLI, and whatever scripts append."""
        return self.path / "ledger"

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def spec(self, tasks: Iterable[Mapping[str, Any]], **more: Any) -> None:
        """Write `demo.eval.yaml`; JSON is YAML."""
        self.write("demo.eval.yaml", json.dumps({"skill": {"path": "./skill"}, **more, "tasks": list(tasks)}, indent=1))

    def command(self, *arguments: str) -> list[str]:
        options = [f"--caliper-model={self.backend}", f"--caliper-judge-model={self.backend}", *WAYS[self.way], *arguments]
        if not any(option.startswith("--caliper-k=") for option in arguments):
            options.append("--caliper-k=1")
        return [sys.executable, "-m", "pytest", "demo.eval.yaml", *options]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "HOME": str(self.path / "user"),
            "TMPDIR": str(self.path / "tmp"),
            "FAULT_MARK": str(self.path),
            **self.env,
        }

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A session in a session of its own, as in a terminal; what it prints goes to `out`."""
        with open(self.out, "wb") as out:
            return subprocess.Popen(
                self.command(*arguments),
                cwd=self.path,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, *arguments: str) -> int:
        """A whole session. -> its exit status."""
        return self.end_of(self.start(*arguments))

    def end_of(self, session: subprocess.Popen[bytes]) -> int:
        """The exit status of a session that must end by itself."""
        try:
            return session.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            os.killpg(session.pid, signal.SIGKILL)
            session.wait()
            raise AssertionError(f"the session hangs:\n{self.printed}") from None

    @property
    def printed(self) -> str:
        return self.out.read_bytes().decode("utf-8", "replace")

    def noted(self, word: str) -> int:
        """How many different lines of the ledger hold the word: invocations, or attempts of which each has a tag of its own."""
        return sum(word in line for line in set(self.ledger.read_text().splitlines()))

    def pids(self, who: str) -> list[int]:
        """Of pytest's processes: `main`, `gw0`, …; `gw` is all workers."""
        return [int(path.suffix[1:]) for path in (self.path / "pids").iterdir() if path.name.startswith(who)]

    def watchdogs(self) -> list[int]:
        """Of pytest and of each worker."""
        place = os.fsencode(self.path)
        return [
            pid
            for pid, environment in processes()
            if any(place in value for _, value in environment) and b"watchdog.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]

    @property
    def journals(self) -> list[Path]:
        return [path for path in (self.path / "results").rglob("*.jsonl") if path.parent.suffix != ".parts"]

    @property
    def journalled(self) -> list[str]:
        """The outcomes in the journals."""
        lines = [json.loads(line) for journal in self.journals for line in journal.read_bytes().split(b"\n")[1:-1]]
        return sorted(line["outcome"] for line in lines if "outcome" in line)

    @property
    def run_files(self) -> list[Path]:
        return list((self.path / "results").rglob("*.json"))

    def attempts(self) -> dict[str, dict[str, Any]]:
        """Task -> its attempt in the one run file."""
        (file,) = self.run_files
        document = json.loads(file.read_text(encoding="utf-8"))
        found = [(task["task_name"], attempt) for task in document["task_results"] for attempt in task["attempts"]]
        assert len(found) == len(dict(found)), "an attempt was counted twice"
        return dict(found)

    def outcomes(self) -> dict[str, str]:
        return {name: attempt["outcome"] for name, attempt in self.attempts().items()}

    @property
    def temporary(self) -> list[str]:
        """What is in TMPDIR, but for the directory that pytest makes for its own `tmp_path`."""
        return sorted(path.name for path in (self.path / "tmp").iterdir() if not path.name.startswith("pytest-of-"))

    def outlived(self, task: str) -> list[int]:
        """Processes of a task's attempt that lived when it was reported."""
        lines = map(json.loads, (self.path / "outlived").read_text().splitlines())
        (found,) = [pids for name, pids in lines if name == task]
        return list(found)

    def memory_mb(self) -> int:
        """The highest peak among pytest's processes."""
        return max(int(path.read_text()) for path in (self.path / "memory").iterdir()) // 1024

    def survivors(self) -> list[int]:
        """Processes that carry a tag that an invocation of the CLI carried, or that have this directory in their environment."""
        tags = {line.split("/")[0].encode() for line in self.ledger.read_text().splitlines() if "/" in line}
        place = os.fsencode(self.path)
        return [
            pid
            for pid, environment in processes()
            if any(place in value or (name == b"CALIPER_TAG" and value.split(b"/")[0] in tags) for name, value in environment)
        ]

    def nothing_lives(self) -> None:
        """Now, or soon: where pytest was killed, its watchdog needs its moment."""
        self.wait_for(lambda: not self.survivors(), "processes live on")

    def nothing_is_left(self, *, resumable: bool = False, saved: bool = True) -> None:
        """No temporary directory, no copy of the login; beside the run file a journal and its transcripts only if `resumable`."""
        assert self.temporary == []
        self.no_login_is_left()
        results = self.path / "results"
        assert (len(self.journals) == 1) is resumable, [str(path.relative_to(results)) for path in results.rglob("*")]
        assert bool(list(results.rglob("*.parts"))) <= resumable
        assert len(self.run_files) == saved

    def no_login_is_left(self) -> None:
        """The secret of the login stands in the user's home alone."""
        home = self.path / "user"
        holders = [
            path
            for path in self.path.rglob("*")
            if path.is_file() and not path.is_relative_to(home) and SECRET.encode() in path.read_bytes()
        ]
        assert holders == []

    def wait_for(self, condition: Callable[[], object], what: str, session: Pollable | None = None) -> None:
        """Wait for a condition; fail when it does not come, or when the session ends before it."""
        end = time.monotonic() + BOUND_S
        while not condition():
            ended = session is not None and session.poll() is not None and not condition()
            if ended or time.monotonic() > end:
                raise AssertionError(f"{what}:\n{self.printed if self.out.exists() else ''}")
            time.sleep(0.05)

    def clear(self) -> None:
        """End what a failing test has left."""
        for pid in self.survivors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
