"""Recorded attempts: the file format, and when a recording no longer fits. Runs nothing.

A cassette lies beside the spec as `<stem>.cassettes/<task-id>-<arm>-<n>.json`. Paths of the attempt's directories in it are
placeholders (`placeholders.portable`), and secrets were replaced before it was made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from pytest_caliper.runs.place import spec_stem
from pytest_caliper.runs.records import Arm, SkillSnapshot

CASSETTE_VERSION = 1
MAX_BYTES = 1_000_000

Cause = Literal["exit", "timeout", "cancelled", "output"]


class CassetteError(Exception):
    """A cassette cannot be written or read. The text is one line, names the file and says what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What an agent's recording was made for; the hashes are `text_hash` and `skills_hash`."""

    task_id: str
    arm: Arm
    attempt: int
    engine: str
    """`backend[:model]` as asked for."""
    prompt: str
    """Hash of the prompt."""
    skill: str
    """Hash of what is installed in this arm: of nothing in the baseline."""
    setup: str | None = None
    """Hash of whatever else the agent meets (setup, sandbox, MCP servers); not compared where either side has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeIdentity:
    """What the judge's replies were recorded for."""

    expect: str
    """Hash of the task's `expect:`."""
    engine: str
    prompt: str
    """Hash of the judge's own prompt, without the attempt's text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedFile:
    """What the agent did to one file, link or directory below `work/`."""

    path: str
    """Relative to `work/`, with forward slashes; never leads out of it."""
    change: Literal["added", "modified", "deleted"]
    mode: int | None = None
    """Permission bits afterwards; None when deleted and for a link."""
    content: str | bytes | None = None
    """Text as it is (with placeholders), bytes for what is no text; None for anything but a file that is there."""
    link: str | None = None
    """Where a symbolic link points (with placeholders); None for anything else."""
    directory: bool = False
    """Whether it is a directory now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """One invocation of a CLI."""

    stdout: str
    stderr: str
    exit_code: int
    cause: Cause
    duration_s: float
    argv: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRecording(Recording):
    """The agent's invocation and its file effects."""

    files: tuple[RecordedFile, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRecording:
    """The judge's replies of one attempt: the answer, and the re-ask's when there was one."""

    identity: JudgeIdentity
    replies: tuple[Recording, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cassette:
    """One recorded attempt."""

    identity: Identity
    agent: AgentRecording
    judge: JudgeRecording | None = None
    """None when no judge was asked."""
    cli_version: str | None = None
    judge_cli_version: str | None = None
    version: int = field(default=CASSETTE_VERSION)


def cassette_directory(spec: Path) -> Path:
    """Where the cassettes of a spec lie."""
    return spec.parent / f"{spec_stem(spec)}.cassettes"


def cassette_path(spec: Path, task_id: str, arm: Arm, attempt: int) -> Path:
    """The file of one attempt's cassette."""
    return cassette_directory(spec) / f"{task_id}-{arm}-{attempt}.json"


def text_hash(text: str) -> str:
    """`sha256:` of a text; lone surrogates count as themselves."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def skills_hash(skills: Iterable[SkillSnapshot]) -> str:
    """The hash of everything that is installed; that of nothing for the baseline."""
    return text_hash("\n\n".join(skill.digest_source for skill in skills))


def missing_reason(spec: Path, task_id: str, arm: Arm, attempt: int) -> str:
    """One line why there is no cassette for an attempt, with the remedy."""
    recorded = 0
    while cassette_path(spec, task_id, arm, recorded + 1).is_file():
        recorded += 1
    if 0 < recorded < attempt:
        plural = "" if recorded == 1 else "s"
        return (
            f"{recorded} attempt{plural} of {task_id} ({arm}) recorded, attempt {attempt} asked for; "
            f"use --caliper-k={recorded} or record again with --caliper-record"
        )
    name = cassette_path(spec, task_id, arm, attempt)
    return f"no cassette {name.parent.name}/{name.name}; record it with --caliper-record"


def stale_reason(cassette: Cassette, expected: Identity) -> str | None:
    """One line that names everything the agent was recorded for differently; None when the recording fits."""
    differences = []
    for entry in fields(Identity):
        was, now = getattr(cassette.identity, entry.name), getattr(expected, entry.name)
        if was == now or (entry.name == "setup" and None in (was, now)):
            continue
        shown = entry.name in {"task_id", "arm", "attempt", "engine"}
        name = {"task_id": "task", "setup": "setup, sandbox or MCP server"}.get(entry.name, entry.name)
        differences.append(f"{name} {was} (now {now})" if shown else f"another {name}")
    return _stale(differences)


def judge_stale_reason(judge: JudgeRecording, expected: JudgeIdentity) -> str | None:
    """One line for what else the judge's replies were recorded; None when they answer this question."""
    was = judge.identity
    differences = []
    if was.expect != expected.expect:
        differences.append("another expect:")
    if was.engine != expected.engine:
        differences.append(f"judge {was.engine} (now {expected.engine})")
    if was.prompt != expected.prompt:
        differences.append("another judge prompt")
    return _stale(differences)


def _stale(differences: list[str]) -> str | None:
    if not differences:
        return None
    return f"recorded for {', '.join(differences)}; record again with --caliper-record"
