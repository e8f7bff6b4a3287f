"""pi: how it is found, run in isolation, and read. Behaviour recorded from 1.6.0 and 0.74.2."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pytest_caliper.backends import pi_reading
from pytest_caliper.backends.customizations import Customization
from pytest_caliper.backends.environment import base_environment, host_home
from pytest_caliper.backends.finding import Wanted, find_cli
from pytest_caliper.backends.install import install_skill
from pytest_caliper.backends.mcp import resolve_server
from pytest_caliper.backends.pi_errors import INSTALL, NODE_REMEDY, needs_other_node
from pytest_caliper.backends.pi_home import PiLogin, agent_directory, read_login, write_home
from pytest_caliper.backends.pi_mcp import mcp_config, mcp_refusal
from pytest_caliper.backends.pi_reading import version_numbers
from pytest_caliper.backends.pi_values import CachedRun, Run
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

WANTED = Wanted(
    title="the coding agent pi",
    program="pi",
    variable="PI_CLI_PATH",
    oldest=(0, 74, 2),  # what npm gives a user of Node 20; older ones were not tried
    install=INSTALL,
    environment={"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
    explain=lambda stderr: NODE_REMEDY if needs_other_node(stderr) else None,
)
TEMPLATES = (0, 77, 0)
"""Since then `$NAME` is a variable in models.json and auth.json, and what is no reference is taken as it is."""
TRUST = (0, 79, 0)
"""Since then what a project brings (skills, settings) needs `--approve`; before, the option is unknown."""
MCP = (1, 0, 0)
NO_MCP = (1, 0, 4)
"""Since then `--no-mcp` exists."""

_RUN = ("--print", "--mode", "json", "--no-session")
_ALONE = ("--no-tools", "--no-skills", "--no-extensions", "--no-context-files", "--no-prompt-templates", "--no-themes")


class Pi:
    """The backend `pi`."""

    name = "pi"
    aliases: tuple[str, ...] = ()

    def __init__(self, *, run: Run | None = None) -> None:
        """`run` answers the `!command`s of the user's credentials; by default a shell does, once for all attempts."""
        self._run = run or CachedRun()

    def find(self, env: Mapping[str, str]) -> CliInfo:
        """The `pi` of PI_CLI_PATH, else of PATH. Raises EngineError: not there, does not start, or too old."""
        if not (package := env.get("PI_PACKAGE_DIR")):
            return find_cli(WANTED, env)
        return find_cli(replace(WANTED, environment={**WANTED.environment, "PI_PACKAGE_DIR": package}), env)

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:
        """Raises EngineError when no key, login or provider is found, or the login has expired."""
        if problem := read_login(env, engine.model).problem(env, time.time()):
            raise EngineError(problem)

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:
        """Commands, and MCP servers that pi cannot have. What an old pi cannot do, `lacks` says."""
        for skill in skills:
            if skill.kind == "command":
                return f"{skill.name!r} is a command, which is Claude Code's own kind: make it a skill, or use claude-code"
        return mcp_refusal(mcp)

    def lacks(self, cli: CliInfo, env: Mapping[str, str], *, mcp: tuple[McpServer, ...]) -> str | None:  # noqa: ARG002
        """One line why this version of pi cannot honour what a spec asks for, with the remedy; None when it can."""
        if not mcp or version_numbers(cli.version) >= MCP:
            return None
        return (
            f"pi {cli.version} ({cli.path}) has no MCP, which the spec's `mcp:` needs: "
            f"update it with `{INSTALL}` on Node 22.19 or newer, or use another engine"
        )

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        """Install skills, login and MCP servers below `workspace.home`; the prompt goes in on stdin.

        Raises EngineError when a skill cannot be installed, a file of the user's is damaged, a credential cannot be had, a
        `${VAR}` is unset, or pi is too old for MCP.
        """
        if missing := self.lacks(cli, plan.env, mcp=plan.mcp):
            raise EngineError(missing)
        directory = _agent_directory(workspace)
        login = self._login(plan.env, plan.engine.model, cli)
        write_home(login, directory)
        for skill in plan.skills:
            install_skill(skill, directory / "skills" / skill.name)
        version = version_numbers(cli.version)
        argv = [str(cli.path), *_RUN, *(("--approve",) if version >= TRUST else ())]
        if plan.mcp:
            servers = [resolve_server(server, plan.env, plan.spec_dir) for server in plan.mcp]
            write_object(directory / "mcp.json", mcp_config(servers))
        elif version >= NO_MCP:
            argv.append("--no-mcp")
        if plan.engine.model is not None:
            argv += ["--model", plan.engine.model]
        environment = base_environment(plan.env, workspace, extra_path=plan.sandbox.extra_path)
        environment |= _pi_environment(login, workspace)
        return Command(argv=tuple(argv), cwd=workspace.work, env=environment, stdin=plan.task.prompt.encode("utf-8", "replace"))

    def customizations(self, env: Mapping[str, str]) -> tuple[Customization, ...]:
        """Where pi's users keep skills, instructions, prompts and extensions. Not settings.json: our limits stand in it."""
        directory = agent_directory(env)
        names = (
            "skills",
            "prompts",
            "extensions",
            "AGENTS.md",
            "AGENTS.override.md",
            "CLAUDE.md",
            "SYSTEM.md",
            "APPEND_SYSTEM.md",
        )
        return (
            *(Customization(source=directory / name, target=f".pi/agent/{name}") for name in names),
            Customization(source=host_home(env) / ".agents" / "skills", target=".agents/skills"),
        )

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:
        """What the stream says; see `pi_reading`."""
        return pi_reading.read_agent(raw, plan, workspace)

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        """One question without tools, skills, context files or servers; the prompt goes in on stdin."""
        place = Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True)
        login = self._login(env, engine.model, cli)
        write_home(login, _agent_directory(place))
        version = version_numbers(cli.version)
        argv = [str(cli.path), *_RUN, *_ALONE]
        argv += ["--no-approve"] if version >= TRUST else []
        argv += ["--no-mcp"] if version >= NO_MCP else []
        argv += ["--system-prompt", request.system]
        argv += ["--model", engine.model] if engine.model is not None else []
        environment = base_environment(env, place) | _pi_environment(login, place)
        return Command(argv=tuple(argv), cwd=place.work, env=environment, stdin=request.prompt.encode("utf-8", "replace"))

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """What the stream says; see `pi_reading`."""
        return pi_reading.read_judge(raw)

    def _login(self, env: Mapping[str, str], model: str | None, cli: CliInfo) -> PiLogin:
        login = read_login(env, model)
        if problem := login.problem(env, time.time()):
            raise EngineError(problem)
        return login.resolved(env, templates=version_numbers(cli.version) >= TEMPLATES, run=self._run)


def _agent_directory(workspace: Workspace) -> Path:
    return workspace.home / ".pi" / "agent"


def _pi_environment(login: PiLogin, workspace: Workspace) -> dict[str, str]:
    """The login's variables, and what keeps pi from asking the network for anything but the model."""
    return {
        **login.environment,
        "PI_CODING_AGENT_DIR": str(_agent_directory(workspace)),
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
        "PI_TELEMETRY": "0",
    }
