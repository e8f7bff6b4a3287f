"""`setup:` and `cleanup:` run in the attempt's world and say in one line what went wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_caliper.attempt.hooks import MAX_ARGUMENT, HookOutcome, Kind, run_hook
from pytest_caliper.contracts import AttemptPlan, Cancelled, Command, Engine, Workspace
from pytest_caliper.process import Ended, Processes
from pytest_caliper.runs.records import AttemptKey
from pytest_caliper.spec.model import Sandbox, Task


@pytest.fixture
def processes() -> Iterator[Processes]:
    with Processes(f"hooks-test-{os.getpid()}") as processes:
        yield processes


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace.at(tmp_path / "root")
    for directory in (workspace.home, workspace.work, workspace.tmp):
        directory.mkdir(parents=True)
    return workspace


def plan(tmp_path: Path, env: dict[str, str] | None = None, extra_path: tuple[Path, ...] = ()) -> AttemptPlan:
    spec = tmp_path / "project" / "x.eval.yaml"
    return AttemptPlan(
        key=AttemptKey(spec=str(spec), task_id="task-001", arm="skill", attempt=1),
        task=Task(task_id="task-001", name="T", prompt="p", line=0),
        spec_path=spec,
        engine=Engine(backend="x"),
        judge=Engine(backend="x"),
        skills=(),
        absent_skills=(),
        sandbox=Sandbox(extra_path=extra_path),
        mcp=(),
        env={"PATH": os.environ["PATH"], "HOME": "/nobody", "FROM_HOST": "yes"} if env is None else env,
        protected=(),
        timeout_s=1.0,
        root=tmp_path / "root",
        tag=f"hooks-test-{os.getpid()}/a1",
        transcript_path=tmp_path / "t.jsonl",
    )


@pytest.fixture
def run(tmp_path: Path, workspace: Workspace, processes: Processes) -> Any:
    def run(script: str, kind: Kind = "setup", timeout_s: float = 60.0, **planned: Any) -> HookOutcome:
        return run_hook(
            kind, script, plan=plan(tmp_path, **planned), workspace=workspace, processes=processes, timeout_s=timeout_s
        )

    return run


@pytest.mark.parametrize("kind", ["setup", "cleanup"])
def test_a_hook_runs_in_the_attempts_world(run: Any, workspace: Workspace, tmp_path: Path, kind: Kind) -> None:
    names = "FROM_HOST HOME TMPDIR PWD CALIPER_WORKDIR CALIPER_SPEC_DIR"
    outcome = run(f'for n in {names}; do eval echo "$n=\\$$n"; done > env.txt; pwd -P >> env.txt; cat >> env.txt', kind)
    assert outcome.error is None
    assert outcome.duration_s > 0
    assert (workspace.work / "env.txt").read_text().splitlines() == [
        "FROM_HOST=yes",
        f"HOME={workspace.home}",
        f"TMPDIR={workspace.tmp}",
        f"PWD={workspace.work}",
        f"CALIPER_WORKDIR={workspace.work}",
        f"CALIPER_SPEC_DIR={tmp_path / 'project'}",
        os.path.realpath(workspace.work),
    ]


def test_extra_path_comes_first(run: Any, tmp_path: Path, workspace: Workspace) -> None:
    for name in ("one", "two"):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "ls").write_text(f"#!/bin/sh\necho from {name}\n")
        (directory / "ls").chmod(0o755)
    assert run("ls > out", extra_path=(tmp_path / "one", tmp_path / "two")).error is None
    assert (workspace.work / "out").read_text() == "from one\n"


@pytest.mark.parametrize("env", [{}, {"PATH": ""}])
def test_a_host_without_a_path_still_finds_the_usual_commands(run: Any, workspace: Workspace, env: dict[str, str]) -> None:
    assert run("ls > out", env=env).error is None


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("exit 3", "setup failed with exit status 3"),
        ("echo one >&2; echo 'two  words' >&2; exit 4", "setup failed with exit status 4: two words"),
        ("echo said; exit 1", "setup failed with exit status 1: said"),
        ("echo said; echo wrong >&2; exit 1", "setup failed with exit status 1: wrong"),
        ("printf 'last\\n\\n  \\n' >&2; exit 1", "setup failed with exit status 1: last"),
        ("printf '\\033[31mred\\033[0m\\007 \\342\\200\\250x' >&2; exit 1", "setup failed with exit status 1: red x"),
        ("printf 'a\\377b' >&2; exit 1", "setup failed with exit status 1: a\ufffdb"),
        ("printf 'old\\rnew\\n' >&2; exit 1", "setup failed with exit status 1: old new"),
        ("kill -TERM $$", "setup was killed by SIGTERM"),
        ("false\ntrue", None),
        ("true # fine", None),
    ],
)
def test_the_error_is_one_line(run: Any, script: str, error: str | None) -> None:
    assert run(script).error == error


def test_a_syntax_error_is_the_shells_own_word(run: Any) -> None:
    error = run("if then", "cleanup").error
    assert error.startswith("cleanup failed with exit status 2: ")
    assert "\n" not in error


def test_a_long_last_line_is_cut(run: Any) -> None:
    error = run("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1").error
    assert error.endswith("…")
    assert len(error) < 400


def test_the_limit_is_named(run: Any) -> None:
    outcome = run("echo waiting >&2; while :; do sleep 1; done", timeout_s=0.5)
    assert outcome.error == "setup did not end within 0.5 s: waiting"


def test_a_script_too_long_for_an_argument(run: Any, workspace: Workspace) -> None:
    filler = "# filler\n" * (MAX_ARGUMENT // 9 + 100)
    assert run(f"{filler}echo 'é' > out").error is None
    assert (workspace.work / "out").read_text(encoding="utf-8") == "é\n"
    assert list(workspace.work.iterdir()) == [workspace.work / "out"]


@pytest.mark.parametrize("script", ["echo a\0b", "echo \ud800"])
def test_a_script_that_no_shell_takes(run: Any, script: str) -> None:
    outcome = run(script)
    assert outcome.error is not None
    assert outcome.error.startswith("setup could not be started: ")


def test_a_work_directory_that_is_gone(run: Any, workspace: Workspace) -> None:
    workspace.work.rmdir()
    assert run("true", "cleanup").error.startswith("cleanup could not be started: ")


def background(workspace: Workspace) -> psutil.Process:
    return psutil.Process(int((workspace.work / "pid").read_text()))


@pytest.mark.parametrize("start", ["sleep 300 & echo $! > pid", "nohup sleep 300 >/dev/null 2>&1 & echo $! > pid"])
def test_what_setup_starts_lives_until_the_attempt_is_reaped(
    run: Any, workspace: Workspace, processes: Processes, tmp_path: Path, start: str
) -> None:
    assert run(start).error is None
    server = background(workspace)
    assert server.is_running()
    other = Command(argv=("/bin/sh", "-c", "true"), cwd=workspace.work, env={"PATH": os.defpath})
    agent_tag = f"{plan(tmp_path).tag}/agent"
    processes.run(other, stdout=tmp_path / "o", stderr=tmp_path / "e", timeout_s=60, tag=agent_tag)
    assert run("true", "cleanup").error is None
    assert server.is_running()
    processes.reap(plan(tmp_path).tag)
    assert not psutil.pid_exists(server.pid) or server.status() == psutil.STATUS_ZOMBIE


def test_what_cleanup_starts_does_not_outlive_it(run: Any, workspace: Workspace) -> None:
    assert run("sleep 300 & echo $! > pid", "cleanup").error is None
    pid = int((workspace.work / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_cancelled_session_ends_a_hook(tmp_path: Path, workspace: Workspace, processes: Processes) -> None:
    processes.cancel_all()
    with pytest.raises(Cancelled):
        run_hook("setup", "touch ran", plan=plan(tmp_path), workspace=workspace, processes=processes)
    assert list(workspace.work.iterdir()) == []


class Recorded:
    """Stands for Processes and says how it was called."""

    def __init__(self, **ended: Any) -> None:
        self.ended = Ended(**{"returncode": 0, "cause": "exit", "duration_s": 1.5, "cpu_s": 0.0, "strays": 0, **ended})
        self.calls: list[tuple[Command, dict[str, Any]]] = []

    def run(self, command: Command, **given: Any) -> Ended:
        self.calls.append((command, given))
        return self.ended


@pytest.mark.parametrize(("kind", "keeps"), [("setup", True), ("cleanup", False)])
def test_how_a_hook_is_run(tmp_path: Path, workspace: Workspace, kind: Kind, keeps: bool) -> None:
    recorded = Recorded()
    outcome = run_hook(kind, "true", plan=plan(tmp_path), workspace=workspace, processes=recorded, timeout_s=7)
    assert outcome == HookOutcome(error=None, duration_s=1.5)
    ((command, given),) = recorded.calls
    assert command.argv == ("/bin/sh", "-c", "true")
    assert command.stdin == b""
    assert (given["tag"], given["keep_children"], given["timeout_s"]) == (f"{plan(tmp_path).tag}/{kind}", keeps, 7)
    assert {given["stdout"].parent, given["stderr"].parent} == {workspace.root}


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        ({"cause": "output"}, "setup printed more than 8 MiB"),
        ({"cause": "timeout", "returncode": -signal.SIGKILL}, "setup did not end within 60 s"),
        ({"returncode": -signal.SIGSEGV}, "setup was killed by SIGSEGV"),
        ({"returncode": -200}, "setup was killed by signal 200"),
    ],
)
def test_other_ends(tmp_path: Path, workspace: Workspace, ended: dict[str, Any], error: str) -> None:
    outcome = run_hook("setup", "true", plan=plan(tmp_path), workspace=workspace, processes=Recorded(**ended))
    assert outcome.error == error
