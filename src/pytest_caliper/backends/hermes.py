"""Hermes Agent: how it is found, run in isolation, and read. Behaviour recorded from 0.19.0."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from pytest_caliper.backends import hermes_reading
from pytest_caliper.backends.customizations import Customization
from pytest_caliper.backends.environment import base_environment
from pytest_caliper.backends.finding import Wanted, find_program
from pytest_caliper.backends.hermes_home import HermesLogin, customizations, model_arguments, read_login, write_home
from pytest_caliper.backends.install import install_skill
from pytest_caliper.backends.mcp import resolve_server
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

OLDEST = (0, 19, 0)
"""The oldest that was recorded. Without `--usage-file` a failed run cannot be told from an answer: it exits with 0."""
LAUNCHER = Path(__file__).with_name("hermes_launch.py")

_WANTED = Wanted(
    title="Hermes",
    program="hermes",
    variable="HERMES_CLI_PATH",
    oldest=OLDEST,
    install="curl -fsSL https://hermes-agent.nousresearch.com/install.sh | bash",
)
_INSTALL = f"install it with `{_WANTED.install}`, or name the binary in {_WANTED.variable}"
_NO_MCP = "this copy of Hermes has no support for MCP: install its extra with `pip install 'hermes-agent[mcp]'`"
_EXEC = re.compile(r"^\s*exec\s+\"?([^\s\"]+)", re.MULTILINE)


class Hermes:
    """The backend `hermes`."""

    name = "hermes"
    aliases: tuple[str, ...] = ()
    max_prompt_bytes: int | None = 120 * 1024
    """The prompt is an argument, and Linux takes 128 KiB for one."""

    def __init__(self) -> None:
        self._speaks_mcp: dict[Path, bool | None] = {}

    def find(self, env: Mapping[str, str]) -> CliInfo:
        """The `hermes` of HERMES_CLI_PATH, else of PATH. Raises EngineError: not there, does not start, or too old."""
        path = find_program(_WANTED, env)
        printed = _run_apart((str(path), "--version"), env)
        match = re.search(r"Hermes Agent v?(\d+)\.(\d+)\.(\d+)\S*", printed)
        if match is None:
            raise EngineError(f"{path} --version printed no version of Hermes Agent: is it another program? Otherwise {_INSTALL}")
        version = match[0].rpartition(" ")[2].removeprefix("v")
        if tuple(map(int, match.groups())) < OLDEST:
            floor = ".".join(map(str, OLDEST))
            raise EngineError(f"Hermes {version} ({path}) is too old, {floor} is needed: update it with `hermes update`")
        return CliInfo(path=path, version=version)

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:
        """Raises EngineError when no provider is configured or the login has expired."""
        if problem := _login(engine, env).problem(time.time()):
            raise EngineError(problem)

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:  # noqa: ARG002
        """One line for a command, which Hermes does not know. What a copy without MCP lacks is said by `lacks`."""
        commands = [skill.name for skill in skills if skill.kind == "command"]
        if commands:
            return f"{commands[0]} is a lone command file, which hermes does not know: make it a SKILL.md, or use claude-code"
        return None

    def lacks(self, cli: CliInfo, env: Mapping[str, str], *, mcp: tuple[McpServer, ...]) -> str | None:
        """One line why this copy of the CLI cannot do what a spec asks for, with the remedy; None when it can, or nobody knows.

        Hermes without its `mcp` extra goes on without the servers and says nothing.
        """
        if not mcp:
            return None
        if cli.path not in self._speaks_mcp:
            self._speaks_mcp[cli.path] = _speaks_mcp(cli.path, env)
        return _NO_MCP if self._speaks_mcp[cli.path] is False else None

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        """Write a neutral HERMES_HOME below `workspace.home`; the prompt goes to the launcher on stdin, and from there to Hermes.

        Raises EngineError when a skill cannot be installed, a login file is damaged, a `${VAR}` is unset, MCP is not supported,
        or the prompt cannot be an argument.
        """
        prompt = self._prompt(plan.task.prompt)
        if missing := self.lacks(cli, plan.env, mcp=plan.mcp):
            raise EngineError(missing)
        login, home = _login(plan.engine, plan.env), workspace.home / ".hermes"
        servers = tuple(resolve_server(server, plan.env, plan.spec_dir) for server in plan.mcp)
        write_home(login, home, servers, own=plan.user_customizations)
        for skill in plan.skills:
            install_skill(skill, home / "skills" / skill.name)
        environment = base_environment(plan.env, workspace, extra_path=plan.sandbox.extra_path)
        return Command(
            argv=(*_launcher("agent", home, cli), "--yolo", *model_arguments(plan.engine.model, login)),
            cwd=workspace.work,
            env=environment | _hermes_environment(login, home),
            stdin=prompt,
        )

    def customizations(self, env: Mapping[str, str]) -> tuple[Customization, ...]:
        """Where Hermes's users keep persona, memories, skills, plugins and hooks."""
        return customizations(env)

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:  # noqa: ARG002
        """What the launcher told; see `hermes_reading`."""
        return hermes_reading.read_agent(raw)

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        """One question with the list of to-dos as the only tool: Hermes refuses to run without any.

        Raises EngineError when the question is too long for an argument.
        """
        prompt = self._prompt(f"{request.system}\n\n{request.prompt}")
        login, place = _login(engine, env), Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True)
        write_home(login, place.home / ".hermes")
        return Command(
            argv=(*_launcher("judge", place.home / ".hermes", cli), "-t", "todo", *model_arguments(engine.model, login)),
            cwd=place.work,
            env=base_environment(env, place) | _hermes_environment(login, place.home / ".hermes"),
            stdin=prompt,
        )

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """What the launcher told; see `hermes_reading`."""
        return hermes_reading.read_judge(raw)

    def _prompt(self, text: str) -> bytes:
        data = text.encode("utf-8", "replace")
        if self.max_prompt_bytes is not None and len(data) > self.max_prompt_bytes:
            raise EngineError(f"a prompt of {len(data):,} bytes is too long for hermes, which takes {self.max_prompt_bytes:,}")
        if b"\0" in data:
            raise EngineError("the prompt holds a NUL character, which hermes cannot take: remove it")
        return data


def _login(engine: Engine, env: Mapping[str, str]) -> HermesLogin:
    head, slash, _ = (engine.model or "").partition("/")
    return read_login(env, head if slash else None)


def _launcher(mode: str, home: Path, cli: CliInfo) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(LAUNCHER), mode, str(home), str(cli.path))


def _hermes_environment(login: HermesLogin, home: Path) -> dict[str, str]:
    return {
        **login.environment,
        "HERMES_HOME": str(home),
        "HERMES_DISABLE_LAZY_INSTALLS": "1",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",  # its answer is to be UTF-8 whatever the locale
    }


def _speaks_mcp(path: Path, env: Mapping[str, str]) -> bool | None:
    """Whether the Python that runs Hermes has the package `mcp`; None when that cannot be seen."""
    python = _interpreter(path)
    if python is None:
        return None
    question = "import importlib.util as u; print(u.find_spec('mcp') is not None)"
    try:
        return {"True": True, "False": False}.get(_run_apart((python, "-I", "-c", question), env).strip())
    except EngineError:
        return None


def _interpreter(path: Path, depth: int = 0) -> str | None:
    """The Python in the first line of a script, or in that of the script that a shell wrapper executes."""
    try:
        head = path.read_bytes()[:4096].decode("utf-8", "replace")
    except OSError:
        return None
    words = head.split("\n", 1)[0].removeprefix("#!").split()
    if head.startswith("#!") and words and Path(words[0]).name.startswith("python"):
        return words[0]
    inner = _EXEC.search(head)
    if inner is None or depth >= 2 or not Path(inner[1]).is_absolute():
        return None
    return inner[1] if Path(inner[1]).name.startswith("python") else _interpreter(Path(inner[1]), depth + 1)


def _run_apart(command: tuple[str, ...], env: Mapping[str, str]) -> str:
    """What a command prints in a home of its own, so that nothing of the user's is read or written. Raises EngineError."""
    with tempfile.TemporaryDirectory(prefix="caliper-version-", ignore_cleanup_errors=True) as directory:
        place = Workspace.at(Path(directory))
        for needed in (place.home, place.work, place.tmp):
            needed.mkdir()
        environment = base_environment(env, place) | {"HERMES_HOME": str(place.home / ".hermes"), "NO_COLOR": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=place.work,
                env=environment,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(f"{command[0]} does not start ({error}): {_INSTALL}") from error
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").split("\n", 1)[0]
        raise EngineError(f"{command[0]} {command[1]} failed with exit code {done.returncode} ({words}): {_INSTALL}")
    return done.stdout.decode("utf-8", "replace")
