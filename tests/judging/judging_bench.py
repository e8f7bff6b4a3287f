"""What the tests of the judging room share: specs on disk, plans for them, and a scripted judge."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_caliper.contracts import (
    AttemptPlan,
    CliInfo,
    Command,
    Engine,
    HarnessResult,
    JudgeReply,
    JudgeRequest,
    RawOutput,
    Workspace,
)
from pytest_caliper.judging.assert_client import AssertOutcome, AssertRunner
from pytest_caliper.judging.assertion import compile_assertion
from pytest_caliper.judging.attempt_view import view_data
from pytest_caliper.process import Processes
from pytest_caliper.runs.records import AttemptKey
from pytest_caliper.spec.loading import load_spec
from pytest_caliper.spec.model import Sandbox, Task

DONE = HarnessResult(answer="done", finished=True)


def make_plan(root: Path, *, tag: str, task: Task, spec_path: Path, name: str = "a", **changes: Any) -> AttemptPlan:
    fields: dict[str, Any] = {
        "key": AttemptKey(spec=str(spec_path), task_id=task.task_id, arm="skill", attempt=1),
        "task": task,
        "spec_path": spec_path,
        "engine": Engine(backend="claude-code"),
        "judge": Engine(backend="scripted"),
        "skills": (),
        "absent_skills": (),
        "sandbox": Sandbox(),
        "mcp": (),
        "env": {**os.environ, "HOST_SECRET": "host"},
        "protected": (),
        "timeout_s": 30.0,
        "root": root / name,
        "tag": tag,
        "transcript_path": root / "transcript.jsonl",
    }
    return AttemptPlan(**{**fields, **changes})


def make_workspace(root: Path) -> Workspace:
    workspace = Workspace.at(root)
    for directory in (workspace.home, workspace.work, workspace.tmp):
        directory.mkdir(parents=True, exist_ok=True)
    return workspace


@dataclass
class AssertBench:
    """Runs the assert of a spec for real."""

    dir: Path
    processes: Processes
    runner: AssertRunner

    @property
    def spec(self) -> Path:
        return self.dir / "project" / "case.eval.yaml"

    def write_spec(self, text: str) -> Path:
        self.spec.parent.mkdir(exist_ok=True)
        self.spec.write_bytes(text.encode())
        return self.spec

    def write_assert(self, code: str) -> Path:
        """A spec whose assert is `code`, which begins on its line 5."""
        body = "".join(f"      {line}\n" for line in code.split("\n"))
        return self.write_spec(f"tasks:\n  - name: One\n    prompt: Do it.\n    assert: |\n{body}")

    def plan(self, name: str = "a") -> AttemptPlan:
        spec = load_spec(self.spec)
        task = spec.tasks[0]
        tag = f"{self.processes.session_tag}/{name}"
        return make_plan(self.dir, tag=tag, task=task, spec_path=spec.path, name=name, sandbox=spec.sandbox)

    def run(
        self,
        code: str | None = None,
        *,
        timeout_s: float = 30.0,
        name: str = "a",
        result: HarnessResult = DONE,
        env: Mapping[str, str] | None = None,
    ) -> AssertOutcome:
        if code is not None:
            self.write_assert(code)
        plan = self.plan(name)
        if env is not None:
            plan = replace(plan, env=env)
        assert plan.task.assertion is not None
        workspace = make_workspace(plan.root)
        compiled = compile_assertion(plan.task.assertion)
        attempt = view_data(result, workspace)
        return self.runner.run(compiled, plan=plan, workspace=workspace, attempt=attempt, timeout_s=timeout_s)


@dataclass
class ScriptedJudge:
    """Backend and Invoker in one: replies in order, and keeps what it was asked. A reply that is an exception is raised."""

    replies: list[JudgeReply | Exception]
    dir: Path
    cause: Any = "exit"
    asked: list[JudgeRequest] = field(default_factory=list)
    name: str = "scripted"
    aliases: tuple[str, ...] = ()

    def find(self, env: Mapping[str, str]) -> CliInfo:
        raise NotImplementedError

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:
        raise NotImplementedError

    def refuses(self, **_: Any) -> str | None:
        raise NotImplementedError

    def agent_command(self, *_: Any) -> Command:
        raise NotImplementedError

    def read_agent(self, *_: Any) -> HarnessResult:
        raise NotImplementedError

    def agent(self, *_: Any) -> RawOutput:
        raise NotImplementedError

    def judge_command(self, request: JudgeRequest, _engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        assert home.is_dir()
        self.asked.append(request)
        return Command(argv=(str(cli.path),), cwd=home, env=env, stdin=request.prompt.encode())

    def judge(self, backend: Any, _plan: AttemptPlan, _workspace: Workspace, request: JudgeRequest) -> RawOutput:
        assert backend is self
        self.asked.append(request)
        return RawOutput(
            argv=("judge",),
            stdout=self.dir / "reply",
            stderr="",
            exit_code=0,
            cause=self.cause,
            duration_s=2.0,
            cli_version="1.0",
        )

    def read_judge(self, _raw: RawOutput) -> JudgeReply:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply
