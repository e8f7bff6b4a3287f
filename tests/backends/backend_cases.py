"""What the backends' tests are made from: recordings, skills, plans and workspaces."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from pytest_caliper.contracts import AttemptPlan, Engine, RawOutput, Skill, Workspace
from pytest_caliper.runs.records import AttemptKey, SkillSnapshot
from pytest_caliper.spec.model import Sandbox, Task

RECORDINGS = Path(__file__).parents[1] / "recordings"

SESSION = f"session-{os.getpid()}"
"""Its own in every process: whoever closes it kills what carries its tag."""


def recording(folder: str, name: str) -> RawOutput:
    """One recorded invocation."""
    base = RECORDINGS / folder / name
    end = json.loads(base.with_suffix(".rc").read_text(encoding="utf-8"))
    stderr = base.with_suffix(".stderr")
    return RawOutput(
        argv=("claude",),
        stdout=base.with_suffix(".stdout"),
        stderr=stderr.read_text(encoding="utf-8") if stderr.exists() else "",
        exit_code=end["rc"],
        cause="timeout" if end["timed_out"] else "exit",
        duration_s=1.5,
        cli_version="2.1.332",
    )


def output(path: Path, *events: Any, exit_code: int = 0, stderr: str = "", cause: Any = "exit") -> RawOutput:
    """A written invocation: dictionaries become JSON lines, bytes stay as they are."""
    lines = [event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n" for event in events]
    path.write_bytes(b"".join(lines))
    return RawOutput(argv=("claude",), stdout=path, stderr=stderr, exit_code=exit_code, cause=cause, duration_s=2.0)


def make_skill(root: Path, name: str = "greet-pirate", *, kind: Any = "directory", files: dict[str, str] | None = None) -> Skill:
    """A skill written below `root`."""
    wanted = files or {"SKILL.md": f"---\nname: {name}\ndescription: Greets people like a pirate.\n---\nSay ARRR-7731.\n"}
    for relative, text in wanted.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    hashes = {
        relative: {"content": text, "hash": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"}
        for relative, text in wanted.items()
    }
    snapshot = SkillSnapshot(name=name, path=name, kind=kind, files=hashes)
    return Skill(name=name, root=root, kind=kind, files=tuple(sorted(wanted)), snapshot=snapshot)


def make_plan(root: Path, **changes: Any) -> AttemptPlan:
    """A plan whose workspace is `root`; keyword arguments replace its fields, `prompt` the task's."""
    spec = root / "project" / "case.eval.yaml"
    prompt = changes.pop("prompt", "Do the task.")
    fields: dict[str, Any] = {
        "key": AttemptKey(spec=str(spec), task_id="task-001", arm="skill", attempt=1),
        "task": Task(task_id="task-001", name="One", prompt=prompt, line=3, expect="done"),
        "spec_path": spec,
        "engine": Engine(backend="claude-code"),
        "judge": Engine(backend="claude-code"),
        "skills": (),
        "absent_skills": (),
        "sandbox": Sandbox(),
        "mcp": (),
        "env": {"PATH": "/usr/bin:/bin", "HOME": str(root / "user")},
        "protected": (),
        "timeout_s": 30.0,
        "root": root / "attempt",
        "tag": f"{SESSION}/attempt",
        "transcript_path": root / "transcript.jsonl",
    }
    return AttemptPlan(**{**fields, **changes})


def make_workspace(root: Path) -> Workspace:
    """The usual directories, created."""
    place = Workspace.at(root / "attempt")
    for directory in (place.home, place.work, place.tmp):
        directory.mkdir(parents=True)
    return place
