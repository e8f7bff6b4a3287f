"""Gemini CLI: how it is found, run in isolation, and read. Behaviour recorded from 0.61.0."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_caliper.backends import gemini_home, gemini_reading
from pytest_caliper.backends.customizations import Customization
from pytest_caliper.backends.environment import base_environment, host_home
from pytest_caliper.backends.finding import Wanted, find_cli
from pytest_caliper.backends.install import install_skill
from pytest_caliper.backends.mcp import ResolvedServer, resolve_server
from pytest_caliper.backends.private_files import write_bytes
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
    title="Gemini CLI",
    program="gemini",
    variable="GEMINI_CLI_PATH",
    oldest=(0, 26, 0),  # the first with skills on by default, by its changelog
    install="npm install -g @google/gemini-cli",
    environment={"GEMINI_TELEMETRY_ENABLED": "false", "NO_BROWSER": "true"},
)
_NOT_FOR_SERVERS = frozenset(
    {
        *(
            "NODE_OPTIONS",
            "NODE_CLI_FLAGS",
            "_FORCE_NODE_OPTIONS",
            "NODE_PATH",
            "ELECTRON_RUN_AS_NODE",
            "PYTHONPATH",
            "PYTHONSTARTUP",
        ),
        *("RUBYOPT", "RUBYLIB", "PERL5OPT", "PERL5LIB", "PERL5DB", "LD_PRELOAD", "LD_AUDIT", "LD_DEBUG", "LD_PROFILE"),
        *("LD_LIBRARY_PATH", "BASH_ENV", "ENV", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "DOTNET_STARTUP_HOOKS"),
        *("DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
    }
)
"""Variables that the CLI silently leaves out of an MCP server's `env` (0.61's own list)."""
_NO_SERVER = "none-declared"
"""Allowed in place of a name where no server is declared: an empty list would allow all."""
_DOLLAR = "${CALIPER_DOLLAR:-$}"
"""A dollar sign in settings.json, where the CLI replaces `$NAME` and `${NAME:-default}` in every string."""


class Gemini:
    """The backend `gemini`."""

    name = "gemini"
    aliases: tuple[str, ...] = ()

    def find(self, env: Mapping[str, str]) -> CliInfo:
        """The `gemini` of GEMINI_CLI_PATH, else of PATH. Raises EngineError: not there, does not start, or too old."""
        return find_cli(WANTED, env)

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:  # noqa: ARG002
        """Raises EngineError when no key, login or provider is found, or the login has expired."""
        if problem := gemini_home.read_login(env, now=time.time()).problem:
            raise EngineError(problem)

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:
        """Commands, and variables of MCP servers that the CLI drops without a word."""
        for skill in skills:
            if skill.kind == "command":
                return f"{skill.name!r} is a command, which only claude-code has: make it a skill, or run it on claude-code"
        for server in mcp:
            if dropped := sorted(name for name in server.env if name.upper() in _NOT_FOR_SERVERS):
                names = ", ".join(dropped)
                return f"mcp server {server.name!r}: Gemini CLI drops {names} from env: set it in a script that starts it"
        return None

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        """Install skills, login and MCP servers below `workspace.home`; the prompt goes in on stdin.

        Raises EngineError when a skill cannot be installed, a login file is damaged, or a `${VAR}` is unset.
        """
        login = gemini_home.read_login(plan.env, now=time.time())
        servers = [resolve_server(server, plan.env, plan.spec_dir) for server in plan.mcp]
        settings = {
            "skills": {"disabled": gemini_home.builtin_skills({skill.name for skill in plan.skills})},
            "mcpServers": {server.name: _server(server) for server in servers},
        }
        gemini_home.write_home(login, workspace.home, settings)
        for skill in plan.skills:
            install_skill(skill, workspace.home / ".gemini" / "skills" / skill.name)
        argv = [
            str(cli.path),
            "--output-format",
            "stream-json",
            "--approval-mode",
            "yolo",
            "-m",
            plan.engine.model or login.model,
        ]
        for name in [server.name for server in servers] or [_NO_SERVER]:
            argv += ["--allowed-mcp-server-names", name]
        environment = base_environment(plan.env, workspace, extra_path=plan.sandbox.extra_path)
        environment |= _gemini_environment(login)
        return Command(argv=tuple(argv), cwd=workspace.work, env=environment, stdin=plan.task.prompt.encode("utf-8", "replace"))

    def customizations(self, env: Mapping[str, str]) -> tuple[Customization, ...]:
        """Where Gemini CLI's users keep skills, memories, rules and extensions. Not settings.json, which holds MCP servers."""
        directory = gemini_home.config_directory(env)
        names = ("skills", "commands", "agents", "policies", "extensions", "GEMINI.md")
        return (
            *(Customization(source=directory / name, target=f".gemini/{name}") for name in names),
            Customization(source=host_home(env) / ".agents" / "skills", target=".agents/skills"),
        )

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:  # noqa: ARG002
        """What the stream says; see `gemini_reading`."""
        return gemini_reading.read_agent(raw, plan)

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        """One question without tools, skills or memory; the prompt goes in on stdin."""
        login = gemini_home.read_login(env, now=time.time())
        place = Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True)
        # Without agents: `@name` of one in the question would be taken for a wish to call it, and the text changed (recorded).
        nothing = {"tools": {"core": ["none"]}, "skills": {"enabled": False}, "experimental": {"enableAgents": False}}
        gemini_home.write_home(login, place.home, nothing)
        system = place.home / "system.md"
        write_bytes(system, request.system.encode("utf-8", "replace"))
        argv = (
            *(str(cli.path), "--output-format", "stream-json", "--approval-mode", "default"),
            *("-m", engine.model or login.model, "--allowed-mcp-server-names", _NO_SERVER),
        )
        environment = base_environment(env, place) | _gemini_environment(login) | {"GEMINI_SYSTEM_MD": str(system)}
        return Command(argv=argv, cwd=place.work, env=environment, stdin=request.prompt.encode("utf-8", "replace"))

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """What the stream says; see `gemini_reading`."""
        return gemini_reading.read_judge(raw)


def _gemini_environment(login: gemini_home.GeminiLogin) -> dict[str, str]:
    """The login's variables, and what makes the CLI behave the same everywhere."""
    return {
        **login.environment,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",  # an untrusted directory ends the run with exit code 55
        "GEMINI_TELEMETRY_ENABLED": "false",
        "NO_BROWSER": "true",
    }


def _server(server: ResolvedServer) -> dict[str, Any]:
    """An entry of `mcpServers` in the CLI's own format. The values of `env` and `headers` are expanded a second time."""
    if server.transport == "stdio":
        return {
            "command": _literal(server.command or ""),
            "args": [_literal(argument) for argument in server.args],
            "env": {name: _literal(_unexpanded(value)) for name, value in server.env.items()},
            "trust": True,
        }
    return {
        "type": server.transport,
        "url": _literal(server.url or ""),
        "headers": {name: _literal(_unexpanded(value)) for name, value in server.headers.items()},
        "trust": True,
    }


def _literal(text: str) -> str:
    """`text` so that it is itself after the CLI has replaced variables in settings.json."""
    return text.replace("$", _DOLLAR)


def _unexpanded(text: str) -> str:
    """`text` so that it is itself after dotenv's expansion."""
    return text.replace("$", "\\$")
