"""Any program as an agent or a judge: the prompt on its standard input, an answer or JSON lines on its standard output.

The target holds the command line, `command:my-agent --flag`. What passes between the two is told in docs/command-backend.md.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from pytest_caliper.backends import command_reading
from pytest_caliper.backends.customizations import Customization
from pytest_caliper.backends.environment import base_environment, host_home
from pytest_caliper.backends.install import install_skill
from pytest_caliper.backends.mcp import ResolvedServer, resolve_server
from pytest_caliper.backends.private_files import write_object
from pytest_caliper.contracts import (
    AttemptPlan,
    CliInfo,
    Command,
    Engine,
    EngineError,
    HarnessResult,
    JudgeReply,
    JudgeRequest,
    RawOutput,
    Skill,
    Workspace,
)
from pytest_caliper.spec.model import McpServer

PASS_VARIABLE = "CALIPER_PASS_ENV"
SKILLS_VARIABLE = "CALIPER_SKILLS"
MCP_VARIABLE = "CALIPER_MCP_CONFIG"
ROLE_VARIABLE = "CALIPER_ROLE"

_EXAMPLE = 'write it after the colon, such as "command:my-agent --flag"'


class CommandBackend:
    """The backend `command`."""

    name = "command"
    aliases: tuple[str, ...] = ()
    takes_command_line = True
    """The model of a target is a command line: it may hold blanks (see `registry.resolve_target`)."""

    def __init__(self, directory: Path | None = None) -> None:
        """Words of a command line that begin with `./` or `../` are paths from `directory`, by default the current one."""
        self._directory = Path.cwd() if directory is None else directory

    def find(self, env: Mapping[str, str]) -> CliInfo:  # noqa: ARG002
        """Nothing to look for: each target names its own program, which `check` looks for. The version is unknown."""
        return CliInfo(path=Path("/usr/bin/env"), version="unknown")

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:
        """Raises EngineError when the target holds no command line, or one whose program is not there."""
        program = self._words(engine)[0]
        if shutil.which(program, path=env.get("PATH") or os.defpath) is None:
            where = "is no executable file" if "/" in program else "is not on PATH"
            raise EngineError(f"command: {program} {where}: correct the target, or install the program")

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:  # noqa: ARG002
        """One line for a lone command file: only Claude Code knows what that is."""
        commands = [skill.name for skill in skills if skill.kind == "command"]
        if commands:
            return f"{commands[0]} is a lone command file, which `command` does not know: make it a SKILL.md, or use claude-code"
        return None

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:  # noqa: ARG002
        """Install the skills, write the MCP servers, and run the program in `work/` with the prompt on stdin.

        Raises EngineError when a skill cannot be installed, a `${VAR}` is unset, or the target holds no command line.
        """
        places = [workspace.home / ".agents" / "skills" / skill.name for skill in plan.skills]
        for skill, place in zip(plan.skills, places, strict=True):
            install_skill(skill, place)
        told = {ROLE_VARIABLE: "agent", SKILLS_VARIABLE: os.pathsep.join(map(str, places))}
        if plan.mcp:
            path = workspace.home / ".caliper-mcp.json"
            servers = [resolve_server(server, plan.env, plan.spec_dir) for server in plan.mcp]
            write_object(path, {"mcpServers": {server.name: _server(server) for server in servers}})
            told[MCP_VARIABLE] = str(path)
        environment = base_environment(plan.env, workspace, extra_path=plan.sandbox.extra_path, passed=_passed(plan.env))
        return Command(
            argv=self._words(plan.engine),
            cwd=workspace.work,
            env=environment | told,
            stdin=plan.task.prompt.encode("utf-8", "replace"),
        )

    def customizations(self, env: Mapping[str, str]) -> tuple[Customization, ...]:
        """The user's skills; what else the program reads nobody knows."""
        return (Customization(source=host_home(env) / ".agents" / "skills", target=".agents/skills"),)

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:  # noqa: ARG002
        """What the program printed; see `command_reading`."""
        return command_reading.read_agent(raw, plan)

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:  # noqa: ARG002
        """The whole question on stdin, in an empty home. What tools the program has is its own affair."""
        place = Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True)
        environment = base_environment(env, place, passed=_passed(env)) | {ROLE_VARIABLE: "judge", SKILLS_VARIABLE: ""}
        question = f"{request.system}\n\n{request.prompt}\n"
        return Command(argv=self._words(engine), cwd=place.work, env=environment, stdin=question.encode("utf-8", "replace"))

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """What the program printed; see `command_reading`."""
        return command_reading.read_judge(raw)

    def _words(self, engine: Engine) -> tuple[str, ...]:
        """The command line's words, its paths absolute. Raises EngineError."""
        try:
            words = shlex.split(engine.model or "")
        except ValueError as error:
            raise EngineError(f"command: {engine.model!r} is no command line ({error}): {_EXAMPLE}") from error
        if not words or not words[0]:
            raise EngineError(f"command: which program? {_EXAMPLE}")
        program = words[0]
        if "/" in program and not program.startswith("/"):
            program = f"./{program}"
        return tuple(self._path(word) for word in (program, *words[1:]))

    def _path(self, word: str) -> str:
        return os.path.normpath(self._directory / word) if word.startswith(("./", "../")) else word


def _passed(env: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that the user names in CALIPER_PASS_ENV, separated by commas, `*` as a wildcard."""
    return tuple(name.strip() for name in env.get(PASS_VARIABLE, "").split(",") if name.strip())


def _server(server: ResolvedServer) -> dict[str, object]:
    """An entry of `mcpServers`, in the form that most MCP clients read."""
    if server.transport == "stdio":
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
    return {"type": server.transport, "url": server.url, "headers": dict(server.headers)}
