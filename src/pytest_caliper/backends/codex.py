"""Codex: how it is found, run in isolation, and read. Behaviour recorded from 0.171.0."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_caliper.backends import codex_reading
from pytest_caliper.backends.codex_config import agent_config, judge_config, server_refusal
from pytest_caliper.backends.codex_errors import INSTALL
from pytest_caliper.backends.codex_home import CodexLogin, codex_home, read_login, user_directory, write_home
from pytest_caliper.backends.codex_reading import SCHEMA_NAME
from pytest_caliper.backends.customizations import Customization
from pytest_caliper.backends.environment import base_environment, host_home
from pytest_caliper.backends.finding import Wanted, find_cli
from pytest_caliper.backends.install import install_skill
from pytest_caliper.backends.mcp import resolve_server
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
    title="Codex",
    program="codex",
    variable="CODEX_CLI_PATH",
    oldest=(0, 130, 0),  # the oldest that was tried and does as it is told: 0.100 has bundled skills and login shells only
    install=INSTALL,
)
_BUNDLED = "Contents/Resources/codex"
_APP, _CHATGPT_APP = "Codex.app", "ChatGPT.app"
_RUN = ("exec", "--json", "--skip-git-repo-check", "--color", "never")


class Codex:
    """The backend `codex`."""

    name = "codex"
    aliases: tuple[str, ...] = ()

    def __init__(self, *, applications: Sequence[Path] | None = None) -> None:
        """`applications` are the directories of desktop apps; by default macOS' own and the user's, and none elsewhere."""
        self._applications = applications

    def find(self, env: Mapping[str, str]) -> CliInfo:
        """The `codex` of CODEX_CLI_PATH, else of the Codex desktop app, else of PATH, else of the ChatGPT app.

        Raises EngineError: not there, does not start, or too old.
        """
        path = None if env.get(WANTED.variable) else self._bundled(env)
        return find_cli(WANTED, env if path is None else {**env, WANTED.variable: str(path)})

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:  # noqa: ARG002
        """Raises EngineError when no key, login or provider is found, or the login has expired."""
        if problem := read_login(env).problem(time.time()):
            raise EngineError(problem)

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:
        """Commands, and MCP servers whose name Codex does not take."""
        for skill in skills:
            if skill.kind == "command":
                return f"{skill.name!r} is a command, which is Claude Code's own kind: make it a skill, or use claude-code"
        return server_refusal(mcp)

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        """Install skills, login and MCP servers below `workspace.home`; the prompt goes in on stdin.

        Raises EngineError when a skill cannot be installed, a file of the user's is damaged, or a `${VAR}` is unset.
        """
        login = read_login(plan.env)
        servers = [resolve_server(server, plan.env, plan.spec_dir) for server in plan.mcp]
        write_home(login, agent_config(login.settings, servers), workspace)
        for skill in plan.skills:
            install_skill(skill, codex_home(workspace) / "skills" / skill.name)
        argv = [str(cli.path), *_RUN, "--dangerously-bypass-approvals-and-sandbox", *_model(plan.engine), "-"]
        environment = base_environment(plan.env, workspace, extra_path=plan.sandbox.extra_path)
        environment |= _environment(login, workspace)
        return Command(argv=tuple(argv), cwd=workspace.work, env=environment, stdin=plan.task.prompt.encode("utf-8", "replace"))

    def customizations(self, env: Mapping[str, str]) -> tuple[Customization, ...]:
        """Where Codex's users keep skills, memories, rules and prompts. config.toml stays theirs: it holds MCP servers too."""
        directory = user_directory(env)
        names = ("skills", "agents", "memories", "prompts", "rules", "AGENTS.md", "AGENTS.override.md")
        return (
            *(Customization(source=directory / name, target=f".codex/{name}") for name in names),
            Customization(source=host_home(env) / ".agents" / "skills", target=".agents/skills"),
        )

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:
        """What stream and rollout say; see `codex_reading`."""
        return codex_reading.read_agent(raw, plan, workspace)

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        """One question without skills, servers or user instructions, in a read-only sandbox; the prompt goes in on stdin."""
        place = Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True)
        login = read_login(env)
        write_home(login, judge_config(login.settings, request.system, version=cli.version), place)
        schema = codex_home(place) / SCHEMA_NAME
        write_object(schema, request.schema)
        argv = [str(cli.path), *_RUN, "--sandbox", "read-only", "--output-schema", str(schema), *_model(engine), "-"]
        environment = base_environment(env, place) | _environment(login, place)
        return Command(argv=tuple(argv), cwd=place.work, env=environment, stdin=request.prompt.encode("utf-8", "replace"))

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """What the stream says; see `codex_reading`."""
        return codex_reading.read_judge(raw)

    def _bundled(self, env: Mapping[str, str]) -> Path | None:
        """The desktop app's own binary where it goes before the one on PATH."""
        places = self._applications
        if places is None:
            places = (Path("/Applications"), host_home(env) / "Applications") if sys.platform == "darwin" else ()
        on_path = shutil.which(WANTED.program, path=env.get("PATH") or os.defpath) is not None
        # People who have the ChatGPT app need not use its Codex: theirs may be the one on PATH.
        apps = (_APP,) if on_path else (_APP, _CHATGPT_APP)
        candidates = [place / app / _BUNDLED for app in apps for place in places]
        return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def _model(engine: Engine) -> tuple[str, ...]:
    return () if engine.model is None else ("--model", engine.model)


def _environment(login: CodexLogin, workspace: Workspace) -> dict[str, str]:
    return {**login.environment, "CODEX_HOME": str(codex_home(workspace))}
