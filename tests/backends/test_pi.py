"""How pi is found and what is run."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, make_workspace

from pytest_caliper.backends.customizations import carry_customizations
from pytest_caliper.backends.pi import Pi
from pytest_caliper.contracts import CliInfo, Command, Engine, EngineError, JudgeRequest
from pytest_caliper.spec.model import McpServer, Sandbox

NEW, OLD = CliInfo(path=Path("/opt/pi"), version="1.6.0"), CliInfo(path=Path("/opt/pi"), version="0.74.2")
RUN = ("/opt/pi", "--print", "--mode", "json", "--no-session")
Write = Callable[[dict[str, Any]], Path]


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def stdio(name: str = "echo", **fields: Any) -> McpServer:
    return McpServer(**{"name": name, "transport": "stdio", "line": 1, "command": "./serve", **fields})


def agent(tmp_path: Path, cli: CliInfo = NEW, **plan: Any) -> tuple[Command, Path]:
    """The command of an attempt, and its agent directory."""
    place = make_workspace(tmp_path)
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path / "user"), "ANTHROPIC_API_KEY": "a"}
    command = Pi().agent_command(make_plan(tmp_path, **{"env": env, **plan}), place, cli)
    return command, place.home / ".pi" / "agent"


@pytest.mark.parametrize("script", ["echo 1.6.0", "echo 0.74.2 >&2", "echo 2.0.0-beta.1"])
def test_the_cli_is_found_on_path(script: str, tmp_path: Path) -> None:
    path = program(tmp_path / "bin/pi", script)

    found = Pi().find({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})

    assert found == CliInfo(path=path, version=script.split()[1])


def test_a_forced_binary_wins(tmp_path: Path) -> None:
    program(tmp_path / "bin/pi", "echo 1.5.0")
    forced = program(tmp_path / "other/my pi", "echo 1.6.0")

    assert Pi().find({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "PI_CLI_PATH": str(forced)}).path == forced


NODE_20 = "echo \"SyntaxError: 'node:module' does not provide an export named 'enableCompileCache'\" >&2; exit 1"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            "echo 0.73.1",
            r"0\.73\.1 .* too old, 0\.74\.2 is needed: update it with `npm install -g @earendil-works/pi-coding-agent`",
        ),
        ("echo hello", "printed no version"),
        ("echo broken >&2; exit 3", r"failed with exit code 3 \(broken\): install it with `npm install -g @earendil"),
        (NODE_20, "needs Node 22.19 or newer first on PATH"),
    ],
)
def test_a_cli_that_will_not_do(script: str, says: str, tmp_path: Path) -> None:
    program(tmp_path / "pi", script)

    with pytest.raises(EngineError, match=says):
        Pi().find({"PATH": f"{tmp_path}:/usr/bin:/bin"})


def test_a_missing_cli_is_told_how_to_be_installed(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"not installed: there is no `pi` on PATH: .*PI_CLI_PATH"):
        Pi().find({"PATH": str(tmp_path)})


def test_check_passes_with_a_key_and_fails_without(tmp_path: Path) -> None:
    Pi().check(Engine(backend="pi"), {"HOME": str(tmp_path), "OPENAI_API_KEY": "k"})
    with pytest.raises(EngineError, match="pi is not logged in: log in with `pi` and then /login"):
        Pi().check(Engine(backend="pi"), {"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("1.6.0", ("--approve", "--no-mcp")),
        ("1.0.4", ("--approve", "--no-mcp")),
        ("1.0.3", ("--approve",)),
        ("0.79.0", ("--approve",)),
        ("0.78.1", ()),
        ("0.74.2", ()),
    ],
)
def test_the_agents_command(version: str, options: tuple[str, ...], tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "a", "OTHER_SECRET": "s", "PI_SESSION_ID": "outer"}
    cli = CliInfo(path=Path("/opt/pi"), version=version)

    command, directory = agent(tmp_path, cli, env=env, prompt="Say “hi”\n", sandbox=Sandbox(extra_path=(tmp_path / "tools",)))

    attempt = tmp_path / "attempt"
    assert command.argv == (*RUN, *options)
    assert command.stdin == "Say “hi”\n".encode()
    assert command.cwd == attempt / "work"
    assert {name: value for name, value in command.env.items() if name != "PATH"} == {
        "HOME": str(attempt / "home"),
        "TMPDIR": str(attempt / "tmp"),
        "CALIPER_WORKDIR": str(attempt / "work"),
        "ANTHROPIC_API_KEY": "a",
        "PI_CODING_AGENT_DIR": str(directory),
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
        "PI_TELEMETRY": "0",
    }
    assert command.env["PATH"] == f"{tmp_path / 'tools'}:/usr/bin"


def test_the_model_is_passed_on(tmp_path: Path) -> None:
    command, _ = agent(tmp_path, engine=Engine(backend="pi", model="anthropic/claude-x:high"))

    assert command.argv[-2:] == ("--model", "anthropic/claude-x:high")


def test_a_skill_is_installed_where_pi_looks(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "src", files={"SKILL.md": "---\nname: greet-pirate\n---\n", "scripts/run.sh": "true\n"})

    _, directory = agent(tmp_path, skills=(skill,))

    files = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    assert files == {"auth.json", "settings.json", "skills/greet-pirate/SKILL.md", "skills/greet-pirate/scripts/run.sh"}


def test_servers_are_declared_to_the_model(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "a", "TOKEN": "!t$1"}
    servers = (
        stdio(args=("./a", "b"), env={"T": "${TOKEN}", "U": "x"}),
        McpServer(name="web", transport="http", line=2, url="https://x/${TOKEN}", headers={"Authorization": "Bearer ${TOKEN}"}),
    )

    command, directory = agent(tmp_path, env=env, mcp=servers)

    path = directory / "mcp.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {
        "mcpServers": {
            "echo": {
                "type": "stdio",
                "command": str(tmp_path / "project/serve"),
                "args": [str(tmp_path / "project/a"), "b"],
                "env": {"T": "$!t$$1", "U": "x"},
                "exposure": "direct",
            },
            "web": {
                "type": "http",
                "url": "https://x/!t$1",
                "headers": {"Authorization": "Bearer !t$$1"},
                "exposure": "direct",
            },
        }
    }
    assert "--no-mcp" not in command.argv
    assert "!t$1" not in "".join(command.argv)


def test_servers_need_pi_1(tmp_path: Path) -> None:
    says = r"pi 0\.74\.2 \(/opt/pi\) has no MCP, .*update it with `npm install -g @earendil-works/pi-coding-agent` on Node 22"

    with pytest.raises(EngineError, match=says):
        agent(tmp_path, OLD, mcp=(stdio(),))
    assert Pi().lacks(NEW, {}, mcp=(stdio(),)) is None
    assert Pi().lacks(OLD, {}, mcp=()) is None


def test_what_pi_cannot_have(tmp_path: Path) -> None:
    command = make_skill(tmp_path, "deploy", kind="command", files={"deploy.md": "x"})
    sse = McpServer(name="s", transport="sse", line=1, url="https://x")

    def refused(*servers: McpServer) -> str | None:
        return Pi().refuses(skills=(), mcp=servers)

    assert "use claude-code" in str(Pi().refuses(skills=(command,), mcp=()))
    assert "use `type: http`" in str(refused(sse))
    assert "rename it" in str(refused(stdio("a.b")))
    assert "'a-b' and 'a_b' are one name to pi" in str(refused(stdio("a-b"), stdio("a_b")))
    assert refused(stdio("a-b"), stdio("c")) is None


@pytest.mark.parametrize(
    ("cli", "options"),
    [(NEW, ("--no-approve", "--no-mcp")), (OLD, ())],
)
def test_the_judges_command(cli: CliInfo, options: tuple[str, ...], tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path / "user"), "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}
    request = JudgeRequest(system="You judge.", prompt="Did it?", schema={})

    command = Pi().judge_command(request, Engine(backend="pi", model="anthropic/m"), env, tmp_path / "judge", cli)

    alone = ("--no-tools", "--no-skills", "--no-extensions", "--no-context-files", "--no-prompt-templates", "--no-themes")
    assert command.argv == (*RUN, *alone, *options, "--system-prompt", "You judge.", "--model", "anthropic/m")
    assert (command.stdin, command.cwd) == (b"Did it?", tmp_path / "judge/work")
    assert "OPENAI_API_KEY" not in command.env
    assert command.env["PI_CODING_AGENT_DIR"] == str(tmp_path / "judge/home/.pi/agent")


def test_an_expired_login_stops_the_attempt(user_home: Write, tmp_path: Path) -> None:
    home = user_home({".pi/agent/auth.json": {"anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1}}})

    with pytest.raises(EngineError, match="has expired"):
        agent(tmp_path, env={"HOME": str(home)}, engine=Engine(backend="pi", model="anthropic/m"))


def test_commands_for_keys_run_once_for_all_attempts(user_home: Write, tmp_path: Path) -> None:
    home = user_home({".pi/agent/auth.json": {"anthropic": {"type": "api_key", "key": "!echo x >> count; echo k-9"}}})
    backend, env = Pi(), {"PATH": "/usr/bin:/bin", "HOME": str(home)}

    for number in range(3):
        root = tmp_path / str(number)
        place = make_workspace(root)
        backend.agent_command(make_plan(root, env=env), place, NEW)
        assert json.loads((place.home / ".pi/agent/auth.json").read_text())["anthropic"]["key"] == "k-9"

    assert (home / "count").read_text() == "x\n"


def test_what_the_user_has_of_his_own(user_home: Write, tmp_path: Path) -> None:
    files = {f".pi/agent/{name}": "own" for name in ("AGENTS.md", "skills/own/SKILL.md", "extensions/x.ts", "mcp.json")}
    home = user_home({**files, ".agents/skills/other/SKILL.md": "own"})

    carry_customizations(Pi().customizations({"HOME": str(home)}), tmp_path / "attempt")

    found = {path.relative_to(tmp_path / "attempt").as_posix() for path in (tmp_path / "attempt").rglob("*") if path.is_file()}
    assert found == {*files, ".agents/skills/other/SKILL.md"} - {".pi/agent/mcp.json"}
