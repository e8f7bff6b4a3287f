"""What is known of attempts, tasks and runs afterwards: plain data and its JSON.

The JSON is a superset of caliper-eval 0.9's run file. Derived numbers are written for that reader by `store` and never read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pytest_caliper.scoring.bars import BarPolicy

Arm = Literal["skill", "baseline"]
Outcome = Literal["pass", "task_fail", "cheat", "timeout", "infra_error", "judge_error"]

USABLE: frozenset[str] = frozenset({"pass", "task_fail", "cheat"})
"""Outcomes of attempts that got a fair shot; the others leave the denominator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens in four disjoint fields; None means that the CLI did not report it, never zero."""

    input_tokens: int | None = None
    """Prompt tokens without any cache."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None

    @property
    def prompt_tokens(self) -> int:
        """Input and both cache fields: the `in` of the summary."""
        return (self.input_tokens or 0) + (self.cache_read_tokens or 0) + (self.cache_creation_tokens or 0)

    @property
    def total_tokens(self) -> int:
        """All four fields, unknown ones counted as nothing."""
        return self.prompt_tokens + (self.output_tokens or 0)

    @classmethod
    def sum(cls, usages: Iterable[Usage | None]) -> Usage | None:
        """Field by field what is known; a field that none reported stays unknown. None without any usage."""
        known = [usage for usage in usages if usage is not None]
        if not known:
            return None
        fields: dict[str, int | None] = {}
        for name in cls.__dataclass_fields__:
            counts = [count for usage in known if (count := getattr(usage, name)) is not None]
            fields[name] = sum(counts) if counts else None
        return cls(**fields)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One step of a transcript, in order."""

    role: Literal["assistant", "tool_use", "tool_result", "user"]
    content: str = ""
    tool_name: str | None = None
    tool_input: Mapping[str, Any] | None = None
    tool_output: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The turn without its empty tool fields."""
        out: dict[str, Any] = {"role": self.role, "content": self.content}
        for name in ("tool_name", "tool_input", "tool_output"):
            if (value := getattr(self, name)) is not None:
                out[name] = value
        return out


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFile:
    """A file below the attempt's `work/` that the agent added, modified or deleted."""

    path: str
    """Relative to `work/`, with forward slashes."""
    change: Literal["added", "modified", "deleted"]
    size: int
    """Bytes afterwards; 0 when deleted."""
    text: str | None = None
    """The beginning of a text file; None for binary and deleted files."""
    truncated: bool = False
    before: str | None = None
    """The whole text of a modified or deleted file as the agent found it; None when it was not kept (large, binary)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Durations:
    """Seconds spent in each phase; None for a phase that did not happen."""

    setup: float | None = None
    agent: float | None = None
    assert_: float | None = None
    judge: float | None = None
    cleanup: float | None = None

    def to_json(self) -> dict[str, float | None]:
        return {name.rstrip("_"): value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Durations:
        return cls(
            setup=data.get("setup"),
            agent=data.get("agent"),
            assert_=data.get("assert"),
            judge=data.get("judge"),
            cleanup=data.get("cleanup"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptKey:
    """What identifies an attempt within a session, in all its processes."""

    spec: str
    """Absolute path of the spec."""
    task_id: str
    arm: Arm
    attempt: int
    """From 1."""

    @property
    def pair(self) -> tuple[str, str, int]:
        """What it shares with the attempt of the same number in the other arm, and with no other."""
        return self.spec, self.task_id, self.attempt


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRecord:
    """All that is known of one attempt afterwards. Already redacted: nothing in it may hold a secret or a private path."""

    key: AttemptKey
    task_name: str
    outcome: Outcome
    reason: str | None
    """One line for every outcome but `pass`."""
    output: str
    """The agent's final answer, bounded."""
    duration_seconds: float
    """The agent's own time."""
    started: float
    """Seconds since the epoch at which the attempt began."""
    wall_seconds: float
    """The whole attempt, set-up to cleanup."""
    durations: Durations = field(default_factory=Durations)
    usage: Usage | None = None
    cheat_evidence: tuple[str, ...] = ()
    assert_passed: bool | None = None
    assert_evidence: str | None = None
    autorater_passed: bool | None = None
    autorater_reasoning: str | None = None
    judge_votes: tuple[bool | None, ...] = ()
    """What each vote of the autorater said; empty where it was asked once."""
    model: str | None = None
    judge_model: str | None = None
    judge_usage: Usage | None = None
    """What the autorater's calls for this attempt used, all together; None when its CLI did not say."""
    cli_version: str | None = None
    judge_cli_version: str | None = None
    retries: int = 0
    skills_reported: tuple[str, ...] | None = None
    skills_used: tuple[str, ...] = ()
    mcp_reported: tuple[str, ...] | None = None
    changed_files: tuple[ChangedFile, ...] = ()
    cleanup_error: str | None = None
    transcript_truncated: bool = False
    redactions: int = 0
    """How many secrets were replaced."""
    fatal: str | None = None
    """A remedy when no later attempt could work either (login, billing, model); stops the session."""
    transcript_path: str | None = None
    """Side file with one JSON turn per line; streamed into the run file and then gone. Never written to the run file."""
    foreign: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What another program's file tells of the attempt beyond this, under its own names; see `older`."""

    @property
    def usable(self) -> bool:
        return self.outcome in USABLE

    def to_json(self) -> dict[str, Any]:
        """One attempt of the run file (without its transcript), plus the private fields `key`, `started`, `transcript_path`."""
        # Field by field: `asdict` of the whole copies every text of every part.
        data: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["key"] = asdict(self.key)
        data["changed_files"] = [asdict(file) for file in self.changed_files]
        data["durations"] = self.durations.to_json()
        for name, usage in (("usage", self.usage), ("judge_usage", self.judge_usage)):
            data[name] = None if usage is None else {**asdict(usage), "total_tokens": usage.total_tokens}
        for name in ("cheat_evidence", "skills_used", "judge_votes"):
            data[name] = list(data[name])
        for name in ("skills_reported", "mcp_reported"):
            data[name] = None if data[name] is None else list(data[name])
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AttemptRecord:
        """The inverse of `to_json`. Unknown fields are ignored; KeyError or TypeError when a required one is missing."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["key"] = AttemptKey(**data["key"])
        known["durations"] = Durations.from_json(data.get("durations") or {})
        for name in ("usage", "judge_usage"):
            usage = data.get(name)
            known[name] = None if usage is None else Usage(**{n: usage.get(n) for n in Usage.__dataclass_fields__})
        known["changed_files"] = tuple(
            ChangedFile(**{name: entry[name] for name in ChangedFile.__dataclass_fields__ if name in entry})
            for entry in data.get("changed_files") or ()
        )
        for name in ("cheat_evidence", "skills_used", "judge_votes"):
            known[name] = tuple(data.get(name) or ())
        for name in ("skills_reported", "mcp_reported"):
            known[name] = None if data.get(name) is None else tuple(data[name])
        return cls(**known)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """The bar that a task was to reach. Whether it does follows from the attempts."""

    rate: Fraction
    """Above 0 and at most 1."""
    policy: BarPolicy
    min_coverage: Fraction
    """Share of the planned attempts that must be usable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UncheckedAttempt:
    """An attempt that only tells which skills were used, as caliper-eval 0.10 and later has them: no check was made of it.

    Neither usable nor unusable: nothing was asked, so nothing was lost.
    """

    key: AttemptKey
    outcome: str
    """As the file has it: `not_checked`, or what kept such an attempt from its end."""
    output: str
    duration_seconds: float
    usage: Usage | None = None
    skills_used: tuple[str, ...] = ()
    foreign: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """The attempts of one task in one arm, in the order of their numbers."""

    task_id: str
    task_name: str
    arm: Arm
    planned: int
    """Attempts that were asked for."""
    attempts: tuple[AttemptRecord, ...]
    prompt: str = ""
    expect: str | None = None
    assert_: str | None = None
    aborted: bool = False
    bar: Bar | None = None
    """None when every failing attempt fails the session."""
    not_checked: tuple[UncheckedAttempt, ...] = ()
    """Attempts beside `attempts` that no check was made of; only in files of caliper-eval."""
    foreign: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """As `AttemptRecord.foreign`."""

    @property
    def successes(self) -> int:
        return sum(record.outcome == "pass" for record in self.attempts)

    @property
    def usable(self) -> int:
        return sum(record.usable for record in self.attempts)

    @property
    def unusable(self) -> int:
        return len(self.attempts) - self.usable


@dataclass(frozen=True, kw_only=True, slots=True)
class SkillSnapshot:
    """What was installed, as it was."""

    name: str
    path: str
    """Relative to the project; never a path outside it."""
    kind: Literal["directory", "command"]
    files: Mapping[str, Mapping[str, str]]
    """Relative path -> {"content": text, "hash": "sha256:…"}."""
    git_repo: str | None = None
    git_sha: str | None = None

    @property
    def digest_source(self) -> str:
        """What the skill's hash is taken over: names and file hashes, in order."""
        return "\n".join([self.name, self.kind, *(f"{p} {f['hash']}" for p, f in sorted(self.files.items()))])


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineSource:
    """The run in which a baseline was measured that another run took over."""

    id: str
    timestamp: str
    """ISO 8601, UTC."""
    file: str
    """Relative to the project; only its name when it lies elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMeta:
    """What ran: `run` of the run file."""

    id: str
    spec: str
    """The spec's path relative to its project."""
    timestamp: str
    """ISO 8601, UTC."""
    k: int
    backend: str
    model: str | None
    judge_backend: str | None
    judge_model: str | None
    """None when no judge ran; the concrete model otherwise."""
    pytest_caliper: str
    workers: int | None
    baseline: bool
    interrupted: bool
    selected_tasks: tuple[str, ...] | None
    """Task names when whole tasks were left out; None when all ran."""
    partial: bool
    """True when attempts of a task were left out."""
    user_customizations: bool = False
    """True when agents saw the user's own skills, memories and settings."""
    replay: bool = False
    """True when cassettes spoke instead of an agent and a judge."""
    cli_version: str | None = None
    judge_cli_version: str | None = None
    judge_prompt_hash: str | None = None
    baseline_from: BaselineSource | None = None
    """Where the baseline was measured, when not in this run. The file's `baseline` is then the id of that run."""
    contract: Mapping[str, Any] = field(default_factory=dict)
    """Hashes of spec, each task, skill, engine and judge."""
    foreign: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What another program's file tells of the run beyond this, under its own names, and `written_by`; see `older`."""
    shard: Mapping[str, Any] | None = None
    """`index` of `of` when a shard of the tasks ran; `plan`, the hash of how all tasks of all specs were dealt out; and `tasks`,
    task id -> shard of every task of this spec. None for a run that is no shard."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """All attempts of one spec in one session: what reports are made from."""

    meta: RunMeta
    results: tuple[TaskResult, ...]
    """The skill arm, in the order of the spec."""
    baseline_results: tuple[TaskResult, ...] | None
    """The baseline arm, or None when there was none."""
    skills: tuple[SkillSnapshot, ...]
    saved: str | None = None
    """Where the run file is, for people; None when it could not be saved."""
