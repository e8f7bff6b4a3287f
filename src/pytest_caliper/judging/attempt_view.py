"""The `attempt` that an `assert:` check can look at.

It crosses a process border: `view_data` makes plain JSON data of it here, `view_from` makes the object in the assert's process.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_caliper.runs.records import Turn, Usage

if TYPE_CHECKING:
    from pytest_caliper.contracts import HarnessResult, Workspace

_SHELL_TOOLS = frozenset(
    {
        "bash",
        "command_execution",
        "exec",
        "exec_command",
        "local_shell",
        "powershell",
        "run_shell_command",
        "shell",
        "terminal",
    }
)
"""What the agent CLIs call their shell, in lower case."""

_LOGIN_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh -lc ")
"""How codex wraps each command."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One use of a tool."""

    name: str
    input: Mapping[str, Any]
    output: str | None
    """None when the transcript holds no result."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class AttemptView:
    """What the agent did, as an assert sees it."""

    answer: str
    """The final answer."""
    tool_calls: list[ToolCall]
    """In the order of the calls."""
    commands: list[str]
    """The shell commands among them, as the agent wrote them."""
    files: list[str]
    """Files that were added, modified or deleted: relative to `workdir`, forward slashes."""
    skills: list[str]
    """Names of the skills that the agent used."""
    usage: Usage | None
    """Tokens; None when the CLI reported none."""
    workdir: Path
    """Where the agent worked, and where the assert runs."""

    def __repr__(self) -> str:
        """As the assert names it. All fields would be long, and pytest would cut paths in them so that nobody recognises them."""
        return "attempt"


def view_data(result: HarnessResult, workspace: Workspace) -> dict[str, Any]:
    """`AttemptView` as plain data for JSON."""
    calls = _tool_calls(result.transcript)
    return {
        "answer": result.answer,
        "tool_calls": calls,
        "commands": [command for call in calls if (command := _command(call["name"], call["input"])) is not None],
        "files": [file.path for file in result.changed_files],
        "skills": list(result.skills_used),
        "usage": None if result.usage is None else asdict(result.usage),
        "workdir": str(workspace.work),
    }


def view_from(data: Mapping[str, Any]) -> AttemptView:
    """The inverse of `view_data`. Raises KeyError or TypeError for anything else."""
    return AttemptView(
        answer=data["answer"],
        tool_calls=[ToolCall(**call) for call in data["tool_calls"]],
        commands=list(data["commands"]),
        files=list(data["files"]),
        skills=list(data["skills"]),
        usage=None if data["usage"] is None else Usage(**data["usage"]),
        workdir=Path(data["workdir"]),
    )


def _tool_calls(transcript: Sequence[Turn]) -> list[dict[str, Any]]:
    """Calls with their results: one belongs to the call right before it, else to the oldest of its tool that has none."""
    calls: list[dict[str, Any]] = []
    before: Turn | None = None
    for turn in transcript:
        if turn.role == "tool_use":
            calls.append({"name": turn.tool_name or "", "input": dict(turn.tool_input or {}), "output": turn.tool_output})
        elif turn.role == "tool_result":
            behind_call = before is not None and before.role == "tool_use"
            candidates = [*(calls[-1:] if behind_call else ()), *calls]
            for call in candidates:
                if call["output"] is None and turn.tool_name in (None, call["name"]):
                    call["output"] = turn.content if turn.tool_output is None else turn.tool_output
                    break
        before = turn
    return calls


def _command(tool: str, given: Mapping[str, Any]) -> str | None:
    """The shell command of a tool call; None when the tool is no shell."""
    if tool.lower() not in _SHELL_TOOLS:
        return None
    command = given.get("command", given.get("cmd"))
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = shlex.join(command)
    if not isinstance(command, str):
        return None
    if _LOGIN_SHELL.match(command):
        try:
            words = shlex.split(command)
        except ValueError:  # quotes that do not close: shown as they are
            return command
        return words[2] if len(words) == 3 else command
    return command
