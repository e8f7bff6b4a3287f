"""CLIs as real processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from backend_cases import SESSION, make_plan, make_workspace

from pytest_caliper.backends.driver import STDERR_BYTES, PatientInvoker, ProcessInvoker, StandardHarness
from pytest_caliper.contracts import (
    AttemptPlan,
    Cancelled,
    CliInfo,
    Command,
    EngineError,
    HarnessResult,
    JudgeReply,
    JudgeRequest,
    RawOutput,
    Workspace,
)
from pytest_caliper.process import Processes
from pytest_caliper.runs.records import Turn


class ShellBackend:
    """A backend whose CLI is `sh`: the agent runs the prompt, the judge the question."""

    name = "claude-code"
    aliases = ()

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        return Command(argv=(str(cli.path), "-c", plan.task.prompt), cwd=workspace.work, env=dict(plan.env), stdin=b"from stdin")

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:
        return HarnessResult(answer=raw.stdout.read_text(), finished=raw.exit_code == 0, timed_out=raw.cause == "timeout")

    def judge_command(self, request: JudgeRequest, engine: Any, env: Any, home: Path, cli: CliInfo) -> Command:
        home.mkdir()
        return Command(argv=(str(cli.path), "-c", request.prompt), cwd=home, env=dict(env))


@pytest.fixture
def processes() -> Iterator[Processes]:
    with Processes(SESSION) as running:
        yield running


def invoker(processes: Processes, path: str = "/bin/sh", **options: Any) -> ProcessInvoker:
    return ProcessInvoker(processes, {"claude-code": CliInfo(path=Path(path), version="9.9")}, **options)


def backend() -> Any:
    return cast("Any", ShellBackend())


def test_an_agent_is_run_in_its_workspace(processes: Processes, tmp_path: Path) -> None:
    place = make_workspace(tmp_path)

    raw = invoker(processes).agent(backend(), make_plan(tmp_path, prompt="cat; pwd; echo oops >&2; exit 3"), place)

    assert raw.stdout == place.root / "agent.out"
    assert raw.stdout.read_text() == f"from stdin{place.work.resolve()}\n"
    assert (raw.stderr, raw.exit_code, raw.cause, raw.cli_version) == ("oops\n", 3, "exit", "9.9")
    assert raw.duration_s > 0
    assert list(place.work.iterdir()) == []


def test_the_plans_time_bounds_the_agent(processes: Processes, tmp_path: Path) -> None:
    raw = invoker(processes).agent(backend(), make_plan(tmp_path, prompt="sleep 60", timeout_s=0.2), make_workspace(tmp_path))

    assert raw.cause == "timeout"


def test_a_judge_has_its_own_time_and_place(processes: Processes, tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    asked = JudgeRequest(system="", prompt="pwd; sleep 60", schema={}, number=2)

    raw = invoker(processes, judge_timeout_s=0.5).judge(backend(), make_plan(tmp_path, timeout_s=60.0), place, asked)

    assert raw.cause == "timeout"
    assert raw.stdout == place.root / "judge-2.out"
    assert raw.stdout.read_text().strip() == str((place.root / "judge-2").resolve())


def test_only_the_end_of_standard_error_is_kept(processes: Processes, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, prompt=r"head -c 300000 /dev/zero >&2; printf '\377end' >&2")

    raw = invoker(processes).agent(backend(), plan, make_workspace(tmp_path))

    assert len(raw.stderr) == STDERR_BYTES
    assert raw.stderr.endswith("\0\ufffdend")


def test_a_cli_that_does_not_start_is_an_engine_error(processes: Processes, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"^/missing/claude cannot be started: No such file or directory$"):
        invoker(processes, "/missing/claude").agent(backend(), make_plan(tmp_path), make_workspace(tmp_path))


def test_a_cli_that_was_never_found_is_an_engine_error(processes: Processes, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="was not looked for"):
        ProcessInvoker(processes, {}).agent(backend(), make_plan(tmp_path), make_workspace(tmp_path))


def test_a_cancelled_attempt_makes_no_output(processes: Processes, tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    ended: list[BaseException] = []

    def attempt() -> None:
        try:
            invoker(processes).agent(backend(), make_plan(tmp_path, prompt="touch started; sleep 60"), place)
        except Cancelled as error:
            ended.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    while not (place.work / "started").exists() and thread.is_alive():
        thread.join(0.02)
    processes.cancel_all()
    thread.join(30)

    assert len(ended) == 1


def test_the_harness_runs_the_plans_backend_and_adds_what_it_measured(processes: Processes, tmp_path: Path) -> None:
    harness = StandardHarness(invoker=invoker(processes), backends={"claude-code": backend()})

    result = harness(make_plan(tmp_path, prompt="echo hi"), make_workspace(tmp_path))

    assert (result.answer, result.finished, result.cli_version) == ("hi\n", True, "9.9")
    assert result.duration_s > 0


class Throttled:
    """An invoker and backend in one, whose first `times` invocations are throttled."""

    name = "claude-code"

    def __init__(self, times: int, **fields: Any) -> None:
        self.times, self.fields, self.asked = times, fields, 0

    def agent(self, *_: object) -> RawOutput:
        self.asked += 1
        return RawOutput(argv=(), stdout=Path("x"), stderr="", exit_code=1, cause="exit", duration_s=1.0)

    def judge(self, *_: object) -> RawOutput:
        return self.agent()

    def read_agent(self, *_: object) -> HarnessResult:
        if self.asked > self.times:
            return HarnessResult(answer="done", finished=True)
        return HarnessResult(**{"answer": "", "finished": False, "error": "429", "transient": True, **self.fields})

    def read_judge(self, *_: object) -> JudgeReply:
        if self.asked > self.times:
            return JudgeReply(text="yes")
        return JudgeReply(**{"text": "", "error": "429", "transient": True, **self.fields})


TOOL = (Turn(role="tool_use", tool_name="Bash"),)


@pytest.mark.parametrize(
    ("times", "fields", "retries", "waited", "finished"),
    [
        (0, {}, 0, [], True),
        (1, {}, 1, [5.0], True),
        (2, {}, 2, [5.0, 20.0], True),
        (9, {}, 2, [5.0, 20.0], False),
        (9, {"transient": False}, 0, [], False),
        (1, {"transcript": TOOL}, 1, [5.0], True),
        (9, {"fatal": "log in"}, 0, [], False),
        (9, {"timed_out": True}, 0, [], False),
    ],
)
def test_an_agent_that_was_throttled_is_tried_again(
    tmp_path: Path, times: int, fields: Any, retries: int, waited: list[float], finished: bool
) -> None:
    throttled, pauses = cast("Any", Throttled(times, **fields)), []
    harness = StandardHarness(invoker=throttled, backends={"claude-code": throttled}, pause=pauses.append)

    result = harness(make_plan(tmp_path), make_workspace(tmp_path))

    assert (result.retries, pauses, result.finished) == (retries, waited, finished)
    assert result.duration_s == 1.0


@pytest.mark.parametrize(
    ("times", "fields", "waited"),
    [(0, {}, []), (1, {}, [1.0]), (9, {}, [1.0, 2.0]), (9, {"transient": False}, [])],
)
def test_a_judge_that_was_throttled_is_asked_again(tmp_path: Path, times: int, fields: Any, waited: list[float]) -> None:
    throttled, pauses = cast("Any", Throttled(times, **fields)), []
    patient = PatientInvoker(throttled, waits_s=(1.0, 2.0), pause=pauses.append)

    patient.judge(throttled, make_plan(tmp_path), make_workspace(tmp_path), JudgeRequest(system="", prompt="", schema={}))

    assert pauses == waited
    assert throttled.asked == len(waited) + 1


class HalfWay(Throttled):
    """Changes the workspace before it is throttled, and says what it finds."""

    def __init__(self, times: int, place: Workspace) -> None:
        super().__init__(times, transcript=TOOL)
        self.place, self.found = place, []

    def agent(self, *_: object) -> RawOutput:
        names = sorted(path.relative_to(self.place.root).as_posix() for path in self.place.work.rglob("*"))
        self.found.append((names, (self.place.work / "given").read_text()))
        (self.place.work / "given").write_text("changed")
        (self.place.work / "made" / "deep").mkdir(parents=True)
        (self.place.work / "made" / "deep" / "file").write_text("x")
        (self.place.work / "made").chmod(0o500)
        return super().agent()


def test_what_a_throttled_agent_did_is_undone_before_it_is_tried_again(tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    (place.work / "given").write_text("given")
    (place.work / "link").symlink_to("given")
    agent = cast("Any", HalfWay(2, place))

    result = StandardHarness(invoker=agent, backends={"claude-code": agent}, pause=lambda _: None)(make_plan(tmp_path), place)

    assert (result.retries, result.finished) == (2, True)
    assert agent.found == [(["work/given", "work/link"], "given")] * 3
    assert (place.work / "link").is_symlink()


@pytest.mark.parametrize("what", ["many files", "a pipe", "a linked work"])
def test_what_cannot_be_undone_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    place = make_workspace(tmp_path)
    agent = cast("Any", Throttled(9, transcript=TOOL))
    if what == "many files":
        monkeypatch.setattr("pytest_caliper.backends.pristine.MAX_FILES", 3)
        for number in range(4):
            (place.work / str(number)).write_text("x")
    elif what == "a pipe":
        os.mkfifo(place.work / "pipe")
    else:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "kept").write_text("x")

        def replaced(*_: object) -> RawOutput:
            place.work.rmdir()
            place.work.symlink_to(tmp_path / "elsewhere")
            return Throttled.agent(agent)

        agent.agent = replaced

    result = StandardHarness(invoker=agent, backends={"claude-code": agent}, pause=lambda _: None)(make_plan(tmp_path), place)

    assert (result.retries, result.finished) == (0, False)
    assert what != "a linked work" or (tmp_path / "elsewhere" / "kept").exists()
