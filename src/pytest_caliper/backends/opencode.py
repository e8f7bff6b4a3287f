"""opencode: how it is found, run in isolation, and read. Behaviour recorded from 1.18.33.

It tries a request that fails up to 6 times, over a minute, and cannot be told otherwise; what answers with a web page makes it
loop for ever (recorded). The attempt's time limit bounds both.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_caliper.backends import opencode_home, opencode_reading
from pytest_caliper.backends.customizations import Customization
from pytest_caliper.backends.environment import base_environment, host_home
from pytest_caliper.backends.finding import Wanted, find_cli
from pytest_caliper.backends.install import install_skill
from pytest_caliper.backends.mcp import ResolvedServer, resolve_server
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

_QUIET = {
    f"OPENCODE_DISABLE_{name}": "1"
    for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE", "CLAUDE_CODE_SKILLS", "TERMINAL_TITLE")
}
WANTED = Wanted(
    title="opencode",
    program="opencode",
    variable="OPENCODE_CLI_PATH",
    oldest=(1, 18, 0),
    install="npm install -g opencode-ai",
    environment=_QUIET,
)
_JUDGE = "judge"
_NO_RIPGREP = (
    "opencode reads skills with ripgrep, and there is no `rg` on PATH: install it (apt install ripgrep, brew install ripgrep, "
    "https://github.com/BurntSushi/ripgrep)"
)


class OpenCode:
    """The backend `opencode`."""

    name = "opencode"
    aliases: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._skills_wanted = False

    def find(self, env: Mapping[str, str]) -> CliInfo:
        """The `opencode` of OPENCODE_CLI_PATH, else of PATH. Raises EngineError: not there, does not start, or too old."""
        return find_cli(WANTED, env)

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:
        """Raises EngineError when no model is named, its provider has no key or login, or ripgrep is missing for a skill."""
        if problem := opencode_home.read_setup(env, engine.model, now=time.time()).problem:
            raise EngineError(problem)
        if self._skills_wanted and shutil.which("rg", path=env.get("PATH") or os.defpath) is None:
            raise EngineError(_NO_RIPGREP)

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:  # noqa: ARG002
        """Commands. A skill is remembered for `check`, which knows PATH: a judge needs no ripgrep."""
        self._skills_wanted = self._skills_wanted or bool(skills)
        for skill in skills:
            if skill.kind == "command":
                return f"{skill.name!r} is a command, which only claude-code has: make it a skill, or run it on claude-code"
        return None

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        """Install skills, login and MCP servers below `workspace.home`; the prompt goes in on stdin.

        Raises EngineError when a skill cannot be installed or read, a file of the user's is damaged, no model is named, or a
        `${VAR}` is unset.
        """
        setup = opencode_home.read_setup(plan.env, plan.engine.model, now=time.time())
        environment = base_environment(plan.env, workspace, extra_path=plan.sandbox.extra_path)
        if plan.skills and shutil.which("rg", path=environment["PATH"]) is None:
            raise EngineError(_NO_RIPGREP)
        servers = [resolve_server(server, plan.env, plan.spec_dir) for server in plan.mcp]
        opencode_home.write_home(setup, workspace.home, {"mcp": {server.name: _server(server) for server in servers}})
        for skill in plan.skills:
            install_skill(skill, workspace.home / ".config" / "opencode" / "skills" / skill.name)
        environment |= _opencode_environment(setup, plan.env, plugins=plan.user_customizations)
        argv = (*_run(cli, setup), "--auto")
        return Command(argv=argv, cwd=workspace.work, env=environment, stdin=plan.task.prompt.encode("utf-8", "replace"))

    def customizations(self, env: Mapping[str, str]) -> tuple[Customization, ...]:
        """Where opencode's users keep skills, agents, commands, plugins and rules. Not opencode.json, which holds MCP servers."""
        directory = opencode_home.config_directory(env)
        names = ("skill", "skills", "agent", "agents", "command", "commands", "plugin", "plugins", "AGENTS.md")
        return (
            *(Customization(source=directory / name, target=f".config/opencode/{name}") for name in names),
            Customization(source=host_home(env) / ".agents" / "skills", target=".agents/skills"),
        )

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:  # noqa: ARG002
        """What the stream says; see `opencode_reading`."""
        return opencode_reading.read_agent(raw, plan)

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        """One question to an agent without tools, and so without skills; the prompt goes in on stdin."""
        setup = opencode_home.read_setup(env, engine.model, now=time.time())
        place = Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True)
        judge = {"mode": "primary", "prompt": request.system, "tools": {"*": False}}
        opencode_home.write_home(setup, place.home, {"agent": {_JUDGE: judge}})
        environment = base_environment(env, place) | _opencode_environment(setup, env)
        argv = (*_run(cli, setup), "--agent", _JUDGE)
        return Command(argv=argv, cwd=place.work, env=environment, stdin=request.prompt.encode("utf-8", "replace"))

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """What the stream says; see `opencode_reading`."""
        return opencode_reading.read_judge(raw)


def _run(cli: CliInfo, setup: opencode_home.OpenCodeSetup) -> tuple[str, ...]:
    """The beginning of the command. With a title, the CLI asks no second model for one; its log tells what the events leave out.

    Raises EngineError when there is no model to name: without one the CLI takes any, or hangs (recorded).
    """
    if setup.model is None:
        raise EngineError(setup.problem or "opencode has no model")
    log = ("--print-logs", "--log-level", "WARN")
    return (str(cli.path), "run", "--format", "json", "--model", setup.model, "--title", "caliper", *log)


def _opencode_environment(setup: opencode_home.OpenCodeSetup, env: Mapping[str, str], *, plugins: bool = False) -> dict[str, str]:
    """The provider's variables, and what makes the CLI behave the same everywhere. `plugins`: the user's own may run."""
    out = {**setup.environment, **_QUIET}
    if not setup.needs_plugins:
        out["OPENCODE_DISABLE_DEFAULT_PLUGINS"] = "1"
    if not plugins:
        out["OPENCODE_PURE"] = "1"
    if (models := opencode_home.models_file(env)) is not None:
        out["OPENCODE_MODELS_PATH"] = str(models)
    return out


def _server(server: ResolvedServer) -> dict[str, Any]:
    """An entry of `mcp` in the CLI's own format, which has one kind for both transports over HTTP."""
    if server.transport == "stdio":
        return {"type": "local", "command": [server.command, *server.args], "environment": dict(server.env), "enabled": True}
    return {"type": "remote", "url": server.url, "headers": dict(server.headers), "oauth": False, "enabled": True}
