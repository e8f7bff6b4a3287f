"""Drives a backend as the engine does and prints what came of it as JSON: `python drive.py CASE.json`.

CASE.json: `{"backend": name, "root": directory, "action": "agent" | "judge" | "check", "prompt": text, ...}`, where the backend is
Claude Code unless it is named. `waits_s` are the seconds before each further try of a throttled agent. Runs inside the namespace.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_caliper.backends.driver import RETRY_WAITS_S, ProcessInvoker, StandardHarness
from pytest_caliper.backends.registry import builtin_backends, by_name
from pytest_caliper.contracts import AttemptPlan, Engine, EngineError, JudgeRequest, Skill, Workspace
from pytest_caliper.process import Processes
from pytest_caliper.runs.records import AttemptKey, SkillSnapshot
from pytest_caliper.spec.model import McpServer, Sandbox, Task

SESSION = f"real-cli-{os.getpid()}"
"""Its own: another drive that ends kills what carries its tag."""


def main(case: dict[str, Any]) -> dict[str, Any]:
    env, root = dict(os.environ), Path(case["root"])
    backend = by_name(builtin_backends())[case.get("backend", "claude-code")]
    plan = plan_of(case, backend.name, env, root)
    if case["action"] == "check":
        try:
            backend.check(plan.engine, env)
        except EngineError as error:
            return {"refused": str(error)}
        return {"refused": None}
    place = Workspace.at(root / "attempt")
    for directory in (place.home, place.work, place.tmp):
        directory.mkdir(parents=True)
    with Processes(SESSION) as processes:
        invoker = ProcessInvoker(processes, {backend.name: backend.find(env)}, judge_timeout_s=60.0)
        if case["action"] == "judge":
            request = JudgeRequest(system="You judge.", prompt=case["prompt"], schema=case["schema"])
            return asdict(backend.read_judge(invoker.judge(backend, plan, place, request)))
        waits_s = case.get("waits_s", RETRY_WAITS_S)
        harness = StandardHarness(invoker=invoker, backends={backend.name: backend}, waits_s=waits_s)
        return asdict(harness(plan, place))


def plan_of(case: dict[str, Any], backend: str, env: dict[str, str], root: Path) -> AttemptPlan:
    spec = root / "case.eval.yaml"
    return AttemptPlan(
        key=AttemptKey(spec=str(spec), task_id="task-001", arm="skill", attempt=1),
        task=Task(task_id="task-001", name="One", prompt=case.get("prompt", ""), line=0),
        spec_path=spec,
        engine=Engine(backend=backend, model=case.get("model")),
        judge=Engine(backend=backend, model=case.get("model")),
        skills=tuple(map(skill_of, case.get("skills", []))),
        absent_skills=(),
        sandbox=Sandbox(),
        mcp=tuple(McpServer(line=1, **server) for server in case.get("mcp", [])),
        env=env,
        protected=(),
        timeout_s=case.get("timeout_s", 60.0),
        root=root / "attempt",
        tag=f"{SESSION}/attempt",
        transcript_path=root / "transcript.jsonl",
    )


def skill_of(data: dict[str, Any]) -> Skill:
    root = Path(data["root"])
    files = tuple(sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()))
    snapshot = SkillSnapshot(name=data["name"], path=data["name"], kind=data["kind"], files={})
    return Skill(name=data["name"], root=root, kind=data["kind"], files=files, snapshot=snapshot)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
