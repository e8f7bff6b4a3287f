"""What a spec says, as plain data. Built by `loading.load_spec`; knows neither YAML nor engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnostic:
    """One mistake or warning, told in one line: where it stands, what it is, and what to do."""

    path: Path
    line: int
    """1-based line in `path`."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class SpecError(Exception):
    """A spec cannot be used. `diagnostics` holds every mistake of the file, in the order of their lines."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("\n".join(map(str, diagnostics)))
        self.diagnostics = diagnostics


@dataclass(frozen=True, kw_only=True, slots=True)
class Assertion:
    """Python source of an `assert:` check, with the place where its lines stand."""

    source: str
    path: Path
    """The file that holds the source: the spec itself, or the `.py` script it names."""
    line: int
    """0-based line in `path` of the first source line."""
    column: int
    """Columns by which the source is indented in `path`."""
    is_script: bool
    """True when the spec named a `.py` file."""
    in_lines: bool = True
    """False where the file does not have its lines one below the other (quoted, folded): all stand at `line`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One prompt with at least one check."""

    task_id: str
    """`task-001`, `task-002`, … in the order of the file."""
    name: str
    """As written; node names are made from it elsewhere."""
    prompt: str
    line: int
    """0-based line where the task begins in the spec."""
    expect: str | None = None
    assertion: Assertion | None = None
    setup: str | None = None
    cleanup: str | None = None
    solution: str | None = None
    """Shell that does the task; only the grader check runs it. An agent never sees it."""
    bar: Fraction | None = None
    """The rate that the task is to reach, above 0 and at most 1; goes before the spec's."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Key of the task, as it is written in the spec -> its 1-based line there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SkillRef:
    """A skill that the spec names: a `SKILL.md`, its directory, or a lone command `.md`. The path exists."""

    path: Path
    """Absolute."""
    line: int
    """1-based line in the spec."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """`sandbox:` of a spec."""

    extra_path: tuple[Path, ...] = ()
    """Absolute directories put before PATH, in order."""
    forbidden_files: tuple[str, ...] = ()
    """Regular expressions, each of which compiles."""


@dataclass(frozen=True, kw_only=True, slots=True)
class McpServer:
    """One entry of `mcp:`. `${VAR}` references are kept as written."""

    name: str
    transport: Literal["stdio", "http", "sse"]
    line: int
    """1-based line in the spec."""
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineDefault:
    """The engine that a caliper-eval 0.4 spec names; options override it."""

    backend: str | None
    model: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """One `.eval.yaml` file."""

    path: Path
    """Absolute."""
    skills: tuple[SkillRef, ...]
    """Empty for the bare agent."""
    tasks: tuple[Task, ...]
    sandbox: Sandbox
    mcp: tuple[McpServer, ...]
    engine_default: EngineDefault | None
    judge_default: EngineDefault | None
    warnings: tuple[Diagnostic, ...]
    digest: str
    """`sha256:` of the file's bytes."""
    bar: Fraction | None = None
    """The rate that every task is to reach."""

    @property
    def directory(self) -> Path:
        """Where the spec's relative paths start."""
        return self.path.parent
