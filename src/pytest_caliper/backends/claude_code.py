"""Claude Code: how it is found, run in isolation, and read. Behaviour recorded from 2.1.197 and 2.1.332."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from pytest_caliper.backends import claude_home, claude_reading
from pytest_caliper.backends.claude_home import (
    PASSED,
    CachedKeychain,
    ClaudeLogin,
    Keychain,
    config_directory,
    read_login,
    write_home,
)
from pytest_caliper.backends.customizations import Customization
from pytest_caliper.backends.environment import base_environment, host_home
from pytest_caliper.backends.finding import Wanted, find_cli
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

WANTED = Wanted(
    title="Claude Code",
    program="claude",
    variable="CLAUDE_CLI_PATH",
    oldest=(2, 1, 0),  # 2.1.197, which npm gives to users of Node 20, is the oldest that was tried
    install="npm install -g @anthropic-ai/claude-code",
    update="claude update",
    environment={"DISABLE_AUTOUPDATER": "1"},
)
"""Older versions lack `--no-session-persistence`, `--json-schema` or the discovery of skills."""
_MAX_RETRIES = 2
"""The CLI's own 10 tries take 3 minutes when a rate limit persists (measured); the harness tries again by itself."""


class ClaudeCode:
    """The backend `claude-code`."""

    name = "claude-code"
    aliases: tuple[str, ...] = ("claude",)

    def __init__(self, *, keychain: Keychain | None = None) -> None:
        """`keychain` answers on macOS, where the CLI keeps its login there; by default the system's own does."""
        ask = keychain or (claude_home.run_security if sys.platform == "darwin" else None)
        self._keychain = None if ask is None else CachedKeychain(ask)

    def find(self, env: Mapping[str, str]) -> CliInfo:
        """The `claude` of CLAUDE_CLI_PATH, else of PATH. Raises EngineError: not there, does not start, or too old."""
        return find_cli(WANTED, env)

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:  # noqa: ARG002
        """Raises EngineError when no key, login or provider is found, or the login has expired."""
        if problem := self._login(env).problem(time.time()):
            raise EngineError(problem)

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:  # noqa: ARG002
        """Always None: skills, commands and all kinds of MCP servers are supported."""
        return None

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        """Install skills, login and MCP servers below `workspace.home`; the prompt goes in on stdin.

        Raises EngineError when a skill cannot be installed, a login file is damaged, or a `${VAR}` is unset.
        """
        login = self._login(plan.env)
        write_home(login, workspace.home)
        for skill in plan.skills:
            install_skill(skill, _skill_place(skill, workspace.home))
        argv = [
            *(str(cli.path), "-p", "--output-format", "stream-json", "--verbose"),
            *("--dangerously-skip-permissions", "--no-session-persistence", "--strict-mcp-config"),
        ]
        if plan.mcp:
            path = workspace.home / "mcp.json"
            servers = [resolve_server(server, plan.env, plan.spec_dir) for server in plan.mcp]
            write_object(path, {"mcpServers": {server.name: _server(server) for server in servers}})
            argv += ["--mcp-config", str(path)]
        if plan.engine.model is not None:
            argv += ["--model", plan.engine.model]
        environment = base_environment(plan.env, workspace, extra_path=plan.sandbox.extra_path, passed=PASSED)
        environment |= _claude_environment(login, plan.env)
        return Command(argv=tuple(argv), cwd=workspace.work, env=environment, stdin=plan.task.prompt.encode("utf-8", "replace"))

    def customizations(self, env: Mapping[str, str]) -> tuple[Customization, ...]:
        """Where Claude Code's users keep skills, memories, rules, hooks and settings."""
        directory = config_directory(env)
        names = ("skills", "commands", "agents", "plugins", "output-styles", "rules", "hooks", "CLAUDE.md")
        return (
            *(Customization(source=directory / name, target=f".claude/{name}") for name in names),
            Customization(source=directory / "settings.json", target=".claude/settings.json", replaces=True),
            Customization(source=host_home(env) / ".agents" / "skills", target=".agents/skills"),
        )

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:  # noqa: ARG002
        """What the stream says; see `claude_reading`."""
        return claude_reading.read_agent(raw, plan)

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        """One question without tools, skills, memory or settings; the prompt goes in on stdin."""
        login = self._login(env)
        place = Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True)
        write_home(login, place.home)
        argv = [
            *(str(cli.path), "-p", "--output-format", "json", "--no-session-persistence", "--strict-mcp-config"),
            *("--tools", "", "--disable-slash-commands", "--setting-sources", ""),
            *("--system-prompt", request.system, "--json-schema", json.dumps(request.schema)),
        ]
        if login.settings is not None:  # `--setting-sources ""` leaves the user's settings out, and the key helper with them
            argv += ["--settings", str(place.home / ".claude" / "settings.json")]
        if model := engine.model or login.model:
            argv += ["--model", model]
        environment = base_environment(env, place, passed=PASSED) | _claude_environment(login, env)
        return Command(argv=tuple(argv), cwd=place.work, env=environment, stdin=request.prompt.encode("utf-8", "replace"))

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """What the result object says; see `claude_reading`."""
        return claude_reading.read_judge(raw)

    def _login(self, env: Mapping[str, str]) -> ClaudeLogin:
        return read_login(env, keychain=self._keychain)


def _claude_environment(login: ClaudeLogin, env: Mapping[str, str]) -> dict[str, str]:
    """The login's variables, and what makes the CLI behave the same everywhere."""
    out = {
        **login.environment,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(_retries(env.get("CLAUDE_CODE_MAX_RETRIES"))),
        "DISABLE_AUTOUPDATER": "1",
    }
    if os.geteuid() == 0:  # without it the CLI refuses --dangerously-skip-permissions to root, which is what containers run as
        out["IS_SANDBOX"] = "1"
    return out


def _retries(wish: str | None) -> int:
    """The user's own limit when it is the smaller one."""
    return min(int(wish), _MAX_RETRIES) if wish and wish.isascii() and wish.isdigit() else _MAX_RETRIES


def _skill_place(skill: Skill, home: Path) -> Path:
    claude = home / ".claude"
    return claude / "commands" / f"{skill.name}.md" if skill.kind == "command" else claude / "skills" / skill.name


def _server(server: ResolvedServer) -> dict[str, object]:
    """An entry of `mcpServers` in the CLI's own format."""
    if server.transport == "stdio":
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
    return {"type": server.transport, "url": server.url, "headers": dict(server.headers)}
