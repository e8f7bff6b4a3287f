"""What tells whether two runs had the same skills, tasks and surroundings."""

from __future__ import annotations

import hashlib
import os

from pytest_caliper.runs.records import Run
from pytest_caliper.spec.model import Spec, Task


def task_hash(task: Task) -> str:
    """`sha256:` over everything that a task asks for and judges by. Not its bar: that decides what the numbers are good for."""
    source = task.assertion.source if task.assertion else None
    return _digest(repr((task.name, task.prompt, task.expect, source, task.setup, task.cleanup)))


def surroundings_hash(spec: Spec) -> str:
    """`sha256:` over what a spec says of every attempt in both arms: `sandbox:` and `mcp:`. Not over the files they name."""
    directories = [os.path.relpath(path, spec.directory) for path in spec.sandbox.extra_path]
    servers = [
        (
            *(server.name, server.transport, server.command, server.args, sorted(server.env.items())),
            *(server.url, sorted(server.headers.items())),
        )
        for server in sorted(spec.mcp, key=lambda server: server.name)
    ]
    return _digest(repr((directories, spec.sandbox.forbidden_files, servers)))


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def skills_digest(run: Run) -> str | None:
    """The hash of what was installed: the run's contract has it, else it is taken from the snapshots. None for the bare agent."""
    known = run.meta.contract.get("skill", ...)
    if known is None or isinstance(known, str):
        return known
    if not run.skills:
        return None
    return _digest("\n\n".join(skill.digest_source for skill in run.skills))
