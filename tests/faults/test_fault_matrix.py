"""Whatever goes wrong, and however it is run: the outcome is right, the run file whole, and nothing is left behind.

Most rows run with CLIs that answer what the real ones were recorded to say (`fault_clis`), because these can be made to show any
fault; rows marked `real_cli` drive the real ones with a scripted model. Faults of single attempts share a session (`fault_rows`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fault_bench import Bench
from fault_real import RealBench, RealSession, asked, turn
from fault_rows import FINE, ROWS

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds survivors in /proc")

BACKENDS = ("claude-code", "codex")
MATRIX = [pytest.param(backend, way, id=f"{way}-{backend}") for backend in BACKENDS for way in ("pool", "n2")]
matrix = pytest.mark.parametrize(("backend", "way"), MATRIX)

Make = Callable[[str, str], Bench]
MakeReal = Callable[[str, str], RealBench]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A session that is over."""

    bench: Bench
    status: int
    left: list[int]
    """Processes that lived when it had ended."""


@pytest.fixture(scope="module")
def all_rows(recorded: Make) -> Callable[[str, str], Ended]:
    """One session with all of `ROWS`, k=1, for each backend and way."""
    known: dict[tuple[str, str], Ended] = {}

    def session_of(backend: str, way: str) -> Ended:
        if (backend, way) not in known:
            bench = recorded(backend, way)
            bench.spec(row.task(name) for name, row in ROWS.items())
            status = bench.run("--caliper-timeout=3", *(["--caliper-workers=12"] if way == "pool" else []))
            known[backend, way] = Ended(bench=bench, status=status, left=bench.survivors())
        return known[backend, way]

    return session_of


SESSION = "the session with all of them"
"""Stands beside the faults of a session that they share, so that xdist keeps it with them: each worker would need a session."""


def shared(rows: Iterable[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrise by backend and way first, then by fault."""
    return lambda test: pytest.mark.parametrize("fault", [SESSION, *rows])(matrix(test))


@shared(ROWS)
def test_fault_of_an_attempt(all_rows: Callable[[str, str], Ended], fault: str, backend: str, way: str) -> None:
    ended = all_rows(backend, way)
    if fault == SESSION:
        left_nothing(ended)
        return
    row, attempt = ROWS[fault], ended.bench.attempts()[fault]
    assert (attempt["outcome"], row.reason in (attempt["reason"] or "")) == (row.outcome, True), attempt["reason"]
    assert row.more(attempt)
    assert ended.bench.outlived(fault) == []


def left_nothing(ended: Ended) -> None:
    assert ended.status == pytest.ExitCode.TESTS_FAILED, ended.bench.printed
    assert ended.left == []
    ended.bench.nothing_is_left()
    assert ended.bench.run_files[0].stat().st_size < 4_000_000
    printed = ended.bench.out.read_bytes()
    assert b"INTERNALERROR" not in printed
    assert [text for text in ("\x1b", "\0", "\x07", "\u2028", "\u0085") if text.encode() in printed] == []


def tasks(**prompts: str) -> list[Mapping[str, Any]]:
    return [{"name": name, "prompt": prompt, "assert": "assert attempt.answer == 'done'"} for name, prompt in prompts.items()]


SERVER = Path(__file__).with_name("flaky_server.py")


def called(text: str) -> Mapping[str, Any]:
    """A call of the MCP server's tool, by either CLI's name of it."""
    return {name: {"text": text} for name in ("mcp__flaky__echo", "mcp_flaky_echo", "flaky_echo")}


REAL_ROWS = {
    "model hangs": "timeout",
    "tool hangs": "timeout",
    "grandchild holds the pipe": "pass",
    "tool prints 20 MB": "pass",
    "tool prints odd bytes": "pass",
    "provider throttles, then answers": "pass",
    "provider fails for ever": "infra_error",
    "MCP server dies in a call": "pass",
    "MCP server hangs in a call": "timeout",
    "MCP server does not start": "infra_error",
}
"""Task -> its outcome."""
REAL_LIMIT_S = 10


def real_turns(bench: RealBench) -> list[Mapping[str, Any]]:
    first = {
        "tool hangs": bench.shell("setsid sleep 331 & nohup sleep 331 & sleep 331"),
        "grandchild holds the pipe": bench.shell("setsid sleep 331 & (trap '' INT TERM HUP; sleep 331) & echo started"),
        "tool prints 20 MB": bench.shell(r"head -c 20000000 /dev/zero | tr '\0' x"),
        "tool prints odd bytes": bench.shell(r"printf '\377\376\033[31m\342\200\250\000\r'"),
        "MCP server dies in a call": called("die"),
        "MCP server hangs in a call": called("hang"),
    }
    refused = {"kind": "status", "status": 429, "message": "slow down"}
    throttled = turn("provider throttles, then answers", fault=refused)
    throttled["when"]["max_uses"] = 1
    return [
        turn("model hangs", fault={"kind": "hang"}),
        throttled,
        turn("provider fails for ever", fault={"kind": "status", "status": 500, "message": "out of order"}),
        *(turn(name, results=0, tool=tool) for name, tool in first.items()),
        turn("tool hangs", fault={"kind": "hang"}),  # Codex lets a command go on after 10 s and asks what next
        {"text": "done"},
    ]


@pytest.fixture(scope="module")
def all_real_rows(real: MakeReal) -> Callable[[str, str], Ended]:
    """One session with all of `REAL_ROWS` for each backend and way."""
    known: dict[tuple[str, str], Ended] = {}

    def session_of(backend: str, way: str) -> Ended:
        if (backend, way) not in known:
            bench = real(backend, way)
            bench.turns += real_turns(bench)
            setups = {"MCP server does not start": {"setup": "touch broken"}}
            server = {
                "command": sys.executable,
                "args": [str(SERVER)],
                "env": {"PYTHONPATH": str(SERVER.parents[1] / "real_cli")},
            }
            bench.spec(
                ({**task, **setups.get(task["name"], {})} for task in tasks(**{name: asked(name) for name in REAL_ROWS})),
                mcp={"flaky": server},
            )
            status = bench.run(f"--caliper-timeout={REAL_LIMIT_S}", *(["--caliper-workers=6"] if way == "pool" else []))
            known[backend, way] = Ended(bench=bench, status=status, left=bench.survivors())
        return known[backend, way]

    return session_of


@pytest.mark.real_cli
@shared(REAL_ROWS)
def test_fault_of_an_attempt_of_a_real_cli(
    all_real_rows: Callable[[str, str], Ended], fault: str, backend: str, way: str
) -> None:
    ended = all_real_rows(backend, way)
    if fault == SESSION:
        left_nothing(ended)
        return
    attempt = ended.bench.attempts()[fault]
    assert attempt["outcome"] == REAL_ROWS[fault], attempt["reason"]
    assert ended.bench.outlived(fault) == []


NOTE = 'echo "$CALIPER_TAG forever" >> "$LEDGER"'
FOREVER = f"begin; {NOTE}; setsid sleep 331 & sleep 331"
ASKED = """trap 'echo "$CALIPER_TAG asked" >> "$LEDGER"' INT; trap '' TERM; """
STUBBORN = f"{ASKED}begin; {NOTE}; setsid sleep 331 & while :; do sleep 0.1; done"
GATED = f'{NOTE}; until test -e "$LEDGER.gate"; do sleep 0.05; done; {FINE}'
OTHERS_RUN = 'until grep -q forever "$LEDGER"; do sleep 0.05; done; '


def under_way(bench: Bench, *arguments: str, prompt: str = FOREVER) -> subprocess.Popen[bytes]:
    """A session of which one attempt has ended and two run."""
    bench.spec(tasks(Quick=FINE, One=prompt, Two=prompt))
    session = bench.start("--caliper-timeout=900", *arguments)
    bench.wait_for(lambda: bench.noted("forever") == 2 and bench.journalled == ["pass"], "nothing is under way", session)
    return session


def stopped(bench: Bench, status: int, *, by: tuple[int, ...] = (pytest.ExitCode.INTERRUPTED,)) -> None:
    """What had ended is in a file and can be gone on with; nothing else is left."""
    assert status in by, bench.printed
    assert "INTERNALERROR" not in bench.printed
    bench.nothing_lives()
    bench.nothing_is_left(resumable=True)
    assert bench.run_files[0].parent.name == "partial"


SIGNALS = {"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM}


@matrix
@pytest.mark.parametrize("how", SIGNALS)
def test_a_signal(recorded: Make, how: str, backend: str, way: str) -> None:
    bench = recorded(backend, way)
    session = under_way(bench)
    if how == "Ctrl-C":
        os.killpg(session.pid, signal.SIGINT)  # as a terminal sends it: to the workers as well
    else:
        session.send_signal(SIGNALS[how])
    stopped(bench, bench.end_of(session))
    assert bench.outcomes() == {"Quick": "pass"}


@matrix
def test_ctrl_c_twice(recorded: Make, backend: str, way: str) -> None:
    bench = recorded(backend, way)
    session = under_way(bench, prompt=STUBBORN)
    os.killpg(session.pid, signal.SIGINT)
    bench.wait_for(lambda: bench.noted("asked"), "the agents were not asked to end", session)
    os.killpg(session.pid, signal.SIGINT)
    # Where the second one meets pytest in the middle of its answer to the first, Python ends by the signal.
    stopped(bench, bench.end_of(session), by=(pytest.ExitCode.INTERRUPTED, -signal.SIGINT))
    assert bench.outcomes() == {"Quick": "pass"}


@matrix
def test_first_failure_with_others_under_way(recorded: Make, backend: str, way: str) -> None:
    bench = recorded(backend, way)
    bench.spec(tasks(Fails=f"{OTHERS_RUN}begin; answer wrong", One=FOREVER, Two=FOREVER))
    # pytest's own session ends with 1 after -x, xdist's with 2
    by = pytest.ExitCode.TESTS_FAILED if way == "pool" else pytest.ExitCode.INTERRUPTED
    stopped(bench, bench.run("-x", "--caliper-timeout=900"), by=(by,))
    assert bench.outcomes() == {"Fails": "task_fail"}


@matrix
def test_a_lost_login(recorded: Make, backend: str, way: str) -> None:
    bench = recorded(backend, way)
    bench.spec(tasks(Lost=f"{OTHERS_RUN}refused", One=FOREVER, Two=FOREVER))
    stopped(bench, bench.run("--caliper-timeout=900"))
    assert bench.outcomes() == {"Lost": "infra_error"}
    assert {"claude-code": "/login", "codex": "codex login"}[backend] in bench.printed


@matrix
def test_sigkill_of_pytest(recorded: Make, backend: str, way: str) -> None:
    bench = recorded(backend, way)
    session = under_way(bench)
    session.kill()
    assert bench.end_of(session) == -signal.SIGKILL
    bench.nothing_lives()
    bench.nothing_is_left(resumable=True, saved=False)
    assert bench.journalled == ["pass"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_sigkill_of_an_xdist_worker(recorded: Make, backend: str) -> None:
    bench = recorded(backend, "n2")
    session = under_way(bench, prompt=GATED)
    (worker,) = bench.pids("gw0")
    os.kill(worker, signal.SIGKILL)
    bench.wait_for(lambda: bench.noted("forever") == 3, "the attempt did not begin again", session)
    (bench.path / "ledger.gate").touch()
    status = bench.end_of(session)
    assert bench.outcomes() == {"Quick": "pass", "One": "pass", "Two": "pass"}
    assert sorted(attempt["retries"] for attempt in bench.attempts().values()) == [0, 0, 1]
    assert status == pytest.ExitCode.OK, bench.printed
    bench.nothing_lives()
    bench.nothing_is_left()


@matrix
def test_sigkill_of_pytest_and_its_watchdogs(recorded: Make, backend: str, way: str) -> None:
    """Nobody is left who could clear up: the next session does."""
    bench = recorded(backend, way)
    session = under_way(bench)
    dogs = bench.watchdogs()
    assert dogs
    for pid in [*dogs, session.pid, *bench.pids("gw")]:
        os.kill(pid, signal.SIGKILL)
    bench.end_of(session)
    assert bench.temporary
    assert bench.survivors()
    bench.spec(tasks(Quick=FINE))
    assert bench.run() == pytest.ExitCode.OK
    bench.nothing_lives()
    assert bench.temporary == []
    bench.no_login_is_left()


@matrix
def test_results_vanish(recorded: Make, backend: str, way: str) -> None:
    bench = recorded(backend, way)
    bench.spec(tasks(One=f"rm -rf '{bench.path}/results'; {FINE}", Two=FINE))
    assert bench.run("--caliper-k=3") == pytest.ExitCode.TESTS_FAILED, bench.printed
    assert "results/demo was removed while the session ran" in bench.printed
    (file,) = bench.run_files
    assert file.read_text().count('"outcome": "pass"') == 6
    bench.nothing_lives()
    bench.nothing_is_left()


@matrix
def test_results_are_on_a_full_disk(recorded: Make, backend: str, way: str, request: pytest.FixtureRequest) -> None:
    bench = recorded(backend, way)
    results = bench.path / "results"
    results.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(results)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small file system here")
    request.addfinalizer(lambda: subprocess.run(["umount", "-l", str(results)], check=False))
    bench.spec(tasks(One=r"begin; answer done$(head -c 30000 /dev/zero | tr '\0' x)", Two=FINE))
    assert bench.run("--caliper-k=3") == pytest.ExitCode.TESTS_FAILED
    assert "No space left" in bench.printed
    assert bench.run_files == []
    (saved,) = (bench.path / "tmp").glob("caliper-unsaved-*/*.json")
    assert saved.read_text().count('"outcome": "pass"') == 3
    assert saved.read_text().count('"outcome": "task_fail"') == 3
    assert bench.temporary == [saved.parent.name]
    bench.nothing_lives()
    bench.no_login_is_left()


@matrix
@pytest.mark.parametrize("fault", ["dies", "hangs"])
def test_an_mcp_server_that_does_not_even_start(recorded: Make, fault: str, backend: str, way: str) -> None:
    bench = recorded(backend, way)
    script = {"dies": "echo no database >&2; exit 1", "hangs": "setsid sleep 331 & sleep 331"}[fault]
    bench.spec(tasks(One=FINE), mcp={"db": {"command": "sh", "args": ["-c", script]}})
    assert bench.run() == pytest.ExitCode.USAGE_ERROR, bench.printed
    assert "mcp server 'db'" in bench.printed
    bench.nothing_lives()
    assert bench.noted("agent") == 0
    assert bench.temporary == []
    assert bench.run_files == bench.journals == []


FLOODS = {
    "one line": r"begin; head -c 100000000 /dev/zero | tr '\0' x; answer done",
    "lines": "begin; yes 'a line that nobody can read' | head -c 100000000; answer done",
    "events": """begin; yes "$(message "$(head -c 9000 /dev/zero | tr '\\0' x)")" | head -c 100000000; answer done""",
}


@matrix
def test_an_agent_prints_100_mb(recorded: Make, quiet: Callable[[str, str], Bench], backend: str, way: str) -> None:
    bench = recorded(backend, way)
    bench.spec(tasks(**FLOODS))
    status = bench.run("--caliper-timeout=100", *(["--caliper-workers=1"] if way == "pool" else []))
    assert bench.outcomes() == dict.fromkeys(FLOODS, "infra_error")
    assert ["printed too much" in attempt["reason"] for attempt in bench.attempts().values()] == [True] * len(FLOODS)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert bench.run_files[0].stat().st_size < 20_000_000
    assert bench.memory_mb() - quiet(backend, way).memory_mb() < 64
    bench.nothing_lives()
    bench.nothing_is_left()


@pytest.fixture(scope="module")
def quiet(recorded: Make) -> Callable[[str, str], Bench]:
    """A session of attempts that print little."""
    known: dict[tuple[str, str], Bench] = {}

    def of(backend: str, way: str) -> Bench:
        if (backend, way) not in known:
            bench = known[backend, way] = recorded(backend, way)
            bench.spec(tasks(**dict.fromkeys(FLOODS, FINE)))
            assert bench.run() == pytest.ExitCode.OK
            bench.nothing_is_left()
        return known[backend, way]

    return of


def real_under_way(bench: RealBench, *arguments: str) -> RealSession:
    """A session of which one attempt has ended and two run commands with children of their own."""
    forever = bench.shell("setsid sleep 331 & sleep 331")
    bench.turns += [turn("Quick", text="done"), turn("Forever", tool=forever), {"text": "?"}]
    bench.spec(tasks(Quick=asked("Quick"), One=asked("Forever 1"), Two=asked("Forever 2")))
    session = bench.begin("--caliper-timeout=900", *arguments)
    bench.wait_for(lambda: bench.noted("forever") == 2 and bench.journalled == ["pass"], "nothing is under way", session)
    return session


@pytest.mark.real_cli
@matrix
def test_ctrl_c_with_real_clis(real: MakeReal, backend: str, way: str) -> None:
    bench = real(backend, way)
    session = real_under_way(bench)
    session.interrupt()
    stopped(bench, session.end())
    assert bench.outcomes() == {"Quick": "pass"}


@pytest.mark.real_cli
@matrix
def test_sigkill_of_pytest_with_real_clis(real: MakeReal, backend: str, way: str) -> None:
    bench = real(backend, way)
    session = real_under_way(bench)
    session.kill()
    session.end()
    bench.nothing_lives()
    bench.nothing_is_left(resumable=True, saved=False)
    assert bench.journalled == ["pass"]


@pytest.mark.real_cli
@matrix
def test_first_failure_with_real_clis(real: MakeReal, backend: str, way: str) -> None:
    bench = real(backend, way)
    waits = bench.subject.shell(f"until grep -q forever {bench.ledger}; do sleep 0.05; done")
    bench.turns += [
        turn("Fails", results=0, tool=waits),
        turn("Fails", text="wrong"),
        turn("Forever", tool=bench.shell("setsid sleep 331 & sleep 331")),
    ]
    bench.spec(tasks(Fails=asked("Fails"), One=asked("Forever 1"), Two=asked("Forever 2")))
    by = pytest.ExitCode.TESTS_FAILED if way == "pool" else pytest.ExitCode.INTERRUPTED
    stopped(bench, bench.run("-x", "--caliper-timeout=900"), by=(by,))
    assert bench.outcomes() == {"Fails": "task_fail"}
