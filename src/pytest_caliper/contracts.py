"""What passes between the rooms: the plan of an attempt, its workspace, what the agent did and what the checks said.

Plain data and Protocols. These are the public seams: a conftest may override the fixtures that carry them, and a plugin may
contribute backends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pytest_caliper.runs.records import Arm, AttemptKey, ChangedFile, SkillSnapshot, Turn, Usage
from pytest_caliper.spec.model import McpServer, Sandbox, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """A backend with the model it is asked for; `model` None is that CLI's own default."""

    backend: str
    model: str | None = None

    def __str__(self) -> str:
        return self.backend if self.model is None else f"{self.backend}:{self.model}"


class EngineError(Exception):
    """An engine cannot be used as it stands. The text is one line for the user and names the remedy."""


class Cancelled(Exception):
    """The session stops: the attempt was cut short and makes no record."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Skill:
    """A skill ready to be installed."""

    name: str
    """The directory's (or command's) name after installation: the frontmatter's `name:`."""
    root: Path
    """Absolute directory that holds the files."""
    kind: Literal["directory", "command"]
    files: tuple[str, ...]
    """Paths below `root` to install, sorted, forward slashes; for a command the one `.md`."""
    snapshot: SkillSnapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class CliInfo:
    """An agent CLI found on this machine."""

    path: Path
    version: str
    """As the CLI prints it, without its name: `2.1.332`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptPlan:
    """What is needed to run one attempt: plain data."""

    key: AttemptKey
    task: Task
    spec_path: Path
    engine: Engine
    judge: Engine
    skills: tuple[Skill, ...]
    """What is installed in this arm: the skills under test, or nothing in the baseline."""
    absent_skills: tuple[str, ...]
    """Names that must not be visible in this arm."""
    sandbox: Sandbox
    mcp: tuple[McpServer, ...]
    env: Mapping[str, str]
    """The host's environment, taken at a moment when no test had changed it."""
    protected: tuple[Path, ...]
    """Absolute files and directories that the agent must not read: the spec, saved results, cassettes."""
    timeout_s: float
    """Bounds the agent's own time."""
    root: Path
    """Where the attempt's workspace will be."""
    tag: str
    """`<session>/<attempt>`: carried in the environment of every process of the attempt."""
    transcript_path: Path
    """Side file that the attempt writes its redacted transcript to."""
    transcript_spare: Path | None = None
    """Written instead where the disk of `transcript_path` does not take it."""
    project: Path | None = None
    """The directory that the spec's project is known by; None where nobody said."""
    user_customizations: bool = False
    """True when the user's own skills, memories and settings are loaded on purpose, in both arms."""
    judge_votes: int = 1
    """How often the autorater is asked, odd; the majority decides."""
    assert_code: bytes | None = None
    """`judging.assertion.compile_assertion` of the task's assertion."""

    @property
    def arm(self) -> Arm:
        return self.key.arm

    @property
    def spec_dir(self) -> Path:
        return self.spec_path.parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Workspace:
    """The private directories of one attempt."""

    root: Path
    home: Path
    """HOME of everything that runs in the attempt."""
    work: Path
    """Working directory of setup, agent, asserts and cleanup."""

    @property
    def tmp(self) -> Path:
        """TMPDIR of everything that runs in the attempt."""
        return self.root / "tmp"

    @classmethod
    def at(cls, root: Path) -> Workspace:
        """The usual layout below `root`; creates nothing."""
        return cls(root=root, home=root / "home", work=root / "work")


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One process to run."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class RawOutput:
    """What one CLI invocation left behind, before anybody read it."""

    argv: tuple[str, ...]
    stdout: Path
    """File with the (bounded) standard output, as bytes."""
    stderr: str
    """The (bounded) end of standard error, decoded with replacement."""
    exit_code: int
    cause: Literal["exit", "timeout", "cancelled", "output"]
    """Why the process ended: by itself, at its time limit, because the session stops, or because it printed too much."""
    duration_s: float
    cli_version: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HarnessResult:
    """What the agent did, read from its CLI's own output."""

    answer: str
    """The final answer; empty when there is none."""
    finished: bool
    """True when the CLI's positive end marker was seen: only then is `answer` an answer."""
    transcript: tuple[Turn, ...] = ()
    usage: Usage | None = None
    model: str | None = None
    error: str | None = None
    """One line: why the harness failed, by the CLI's structured error fields or its exit code; None when it did not."""
    fatal: str | None = None
    """The remedy when the error would meet every later attempt too (login, billing, unknown model)."""
    transient: bool = False
    """True when the error may pass by itself (throttled, overloaded, connection lost), so that another try makes sense."""
    timed_out: bool = False
    duration_s: float = 0.0
    cli_version: str | None = None
    skills_reported: tuple[str, ...] | None = None
    """Skills that the CLI itself listed; None when it lists nothing."""
    skills_used: tuple[str, ...] = ()
    mcp_reported: tuple[str, ...] | None = None
    retries: int = 0
    transcript_truncated: bool = False
    changed_files: tuple[ChangedFile, ...] = ()
    """Filled by the attempt's lifecycle before the checks run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the checks said. None for a check that the task does not have or that was not reached."""

    assert_passed: bool | None = None
    assert_evidence: str | None = None
    autorater_passed: bool | None = None
    autorater_reasoning: str | None = None
    error: str | None = None
    """One line: a check produced no verdict."""
    fatal: str | None = None
    judge_votes: tuple[bool | None, ...] = ()
    """What each vote said, None for one that gave no verdict; empty where the autorater was asked once."""
    judge_model: str | None = None
    judge_cli_version: str | None = None
    judge_usage: Usage | None = None
    """Tokens of all calls to the autorater together, as far as they were reported; None when none was."""
    assert_s: float | None = None
    judge_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeRequest:
    """One question to the autorater's CLI."""

    system: str
    prompt: str
    schema: Mapping[str, Any]
    """JSON Schema of the verdict, for CLIs with structured output."""
    number: int = 1
    """Counts the calls for one attempt, from 1: the question, a re-ask, further votes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeReply:
    """What the judge's CLI answered."""

    text: str
    structured: Any | None = None
    """Parsed structured output, where the CLI has it."""
    model: str | None = None
    error: str | None = None
    """One line when the CLI gave no answer."""
    fatal: str | None = None
    transient: bool = False
    """As in HarnessResult."""
    cli_version: str | None = None
    duration_s: float = 0.0
    usage: Usage | None = None
    """Tokens of this call; None when the CLI did not report them."""


class Harness(Protocol):
    """The fixture `caliper_harness`: runs the agent once. Raises Cancelled when the session stops."""

    def __call__(self, plan: AttemptPlan, workspace: Workspace) -> HarnessResult: ...


class Judge(Protocol):
    """The fixture `caliper_judge`: decides whether the task's checks hold. Raises Cancelled when the session stops."""

    def __call__(self, plan: AttemptPlan, result: HarnessResult, workspace: Workspace) -> Verdict: ...


@runtime_checkable
class Backend(Protocol):
    """The adapter for one agent CLI.

    What only some backends have is asked for by name and may be missing: `max_prompt_bytes: int | None` (a longer prompt is
    refused before anything is paid for, and questions to such a judge are shorter), `lacks(cli, env, *, mcp) -> str | None` (as
    `refuses`, of the copy that was found), `takes_command_line: bool` (the model of a target may hold blanks),
    `customizations(env) -> tuple[Customization, ...]` (where the CLI's users keep their own setup).
    """

    name: str
    aliases: tuple[str, ...]

    def find(self, env: Mapping[str, str]) -> CliInfo:
        """The CLI on this machine. Raises EngineError naming how to install it, or which version is needed."""
        ...

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:
        """Raises EngineError when the user is visibly not logged in; says the CLI's own login command."""
        ...

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:
        """One line why this backend cannot honour what a spec asks for, with the remedy; None when it can."""
        ...

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        """Prepare the isolated configuration below `workspace.home` (skills, credentials) and say what to run."""
        ...

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:
        """Read what the CLI printed. Never raises for what an agent or a CLI may print."""
        ...

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        """Prepare an isolated, empty home below `home` (tools and skills off) and say what to run."""
        ...

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """Read the judge's reply. Never raises for what a CLI may print."""
        ...


class Invoker(Protocol):
    """Runs a backend's CLI: for real, from a cassette, or for real onto a cassette."""

    def agent(self, backend: Backend, plan: AttemptPlan, workspace: Workspace) -> RawOutput: ...

    def judge(self, backend: Backend, plan: AttemptPlan, workspace: Workspace, request: JudgeRequest) -> RawOutput: ...
