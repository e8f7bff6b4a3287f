"""How Claude Code is found and what is run."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, make_workspace

from pytest_caliper.backends.claude_code import ClaudeCode
from pytest_caliper.contracts import CliInfo, Engine, EngineError, JudgeRequest
from pytest_caliper.spec.model import McpServer, Sandbox

CLI = CliInfo(path=Path("/opt/claude"), version="2.1.332")


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def backend() -> ClaudeCode:
    return ClaudeCode(keychain=lambda *_: None)


@pytest.mark.parametrize("printed", ["2.1.332 (Claude Code)", "2.1.197 (Claude Code)", "2.1.0 (Claude Code)", "3.0.1"])
def test_the_cli_is_found_on_path(printed: str, tmp_path: Path) -> None:
    path = program(tmp_path / "bin/claude", f"echo '{printed}'")

    found = backend().find({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})

    assert found == CliInfo(path=path, version=printed.split(maxsplit=1)[0])


def test_a_forced_binary_wins(tmp_path: Path) -> None:
    program(tmp_path / "bin/claude", "echo '2.1.300 (Claude Code)'")
    forced = program(tmp_path / "other/my claude", "echo '2.1.310 (Claude Code)'")

    found = backend().find({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "CLAUDE_CLI_PATH": str(forced)})

    assert found == CliInfo(path=forced, version="2.1.310")


@pytest.mark.parametrize("mode", [None, 0o644, "directory"])
def test_a_forced_binary_that_cannot_run_is_an_error(mode: Any, tmp_path: Path) -> None:
    path = tmp_path / "claude"
    if mode == "directory":
        path.mkdir()
    elif mode is not None:
        program(path, "echo 2.1.332").chmod(mode)

    with pytest.raises(EngineError, match=r"CLAUDE_CLI_PATH is .*, which is no executable file"):
        backend().find({"PATH": "/usr/bin:/bin", "CLAUDE_CLI_PATH": str(path)})


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo '2.0.76 (Claude Code)'", r"2\.0\.76 .* is too old, 2\.1\.0 is needed: update it with `claude update`"),
        ("echo '1.0.128 (Claude Code)'", "is too old"),
        ("echo hello", "printed no version"),
        ("echo broken >&2; exit 3", r"failed with exit code 3 \(broken\)"),
    ],
)
def test_a_cli_that_will_not_do(script: str, says: str, tmp_path: Path) -> None:
    program(tmp_path / "claude", script)

    with pytest.raises(EngineError, match=says):
        backend().find({"PATH": f"{tmp_path}:/usr/bin:/bin"})


def test_a_missing_cli_is_told_how_to_be_installed(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"not installed: .*npm install -g @anthropic-ai/claude-code"):
        backend().find({"PATH": str(tmp_path)})


def test_a_file_of_another_machine_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "claude"
    path.write_bytes(b"\x7fELF not for here")
    path.chmod(0o755)

    with pytest.raises(EngineError, match="does not start"):
        backend().find({"PATH": str(tmp_path)})


def test_asking_for_the_version_touches_no_home_of_the_users(tmp_path: Path) -> None:
    program(tmp_path / "bin/claude", 'touch "$HOME/touched"; echo "2.1.332 (Claude Code) $SECRET"')
    (tmp_path / "user").mkdir()

    found = backend().find({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path / "user"), "SECRET": "s"})

    assert found.version == "2.1.332"
    assert list((tmp_path / "user").iterdir()) == []


def test_check_passes_with_a_key_and_fails_without(tmp_path: Path) -> None:
    engine = Engine(backend="claude-code")

    backend().check(engine, {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k"})
    with pytest.raises(EngineError, match="not logged in"):
        backend().check(engine, {"HOME": str(tmp_path)})


def test_the_agents_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    place = make_workspace(tmp_path)
    host = {"PATH": "/usr/bin", "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k", "CLAUDECODE": "1", "OTHER_SECRET": "s"}
    plan = make_plan(tmp_path, env=host, prompt="Say “hi”\n", sandbox=Sandbox(extra_path=(tmp_path / "tools",)))

    command = backend().agent_command(plan, place, CLI)

    assert command.argv == (
        *("/opt/claude", "-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"),
        *("--no-session-persistence", "--strict-mcp-config"),
    )
    assert command.cwd == place.work
    assert command.stdin == "Say “hi”\n".encode()
    assert command.env == {
        "PATH": f"{tmp_path / 'tools'}:/usr/bin",
        "HOME": str(place.home),
        "TMPDIR": str(place.tmp),
        "CALIPER_WORKDIR": str(place.work),
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "DISABLE_AUTOUPDATER": "1",
    }


def test_root_is_let_in_as_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CLI refuses --dangerously-skip-permissions to root otherwise, and containers run as root."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    command = backend().agent_command(make_plan(tmp_path), make_workspace(tmp_path), CLI)

    assert command.env["IS_SANDBOX"] == "1"


@pytest.mark.parametrize(
    ("wish", "limit"), [("0", "0"), ("1", "1"), ("2", "2"), ("9", "2"), ("-1", "2"), ("many", "2"), ("", "2")]
)
def test_the_users_own_retry_limit_counts_when_it_is_smaller(wish: str, limit: str, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, env={"HOME": str(tmp_path), "CLAUDE_CODE_MAX_RETRIES": wish})

    command = backend().agent_command(plan, make_workspace(tmp_path), CLI)

    assert command.env["CLAUDE_CODE_MAX_RETRIES"] == limit


def test_a_model_is_asked_for(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, engine=Engine(backend="claude-code", model="opus"))

    assert backend().agent_command(plan, make_workspace(tmp_path), CLI).argv[-2:] == ("--model", "opus")


def test_skills_and_commands_are_installed_where_they_are_discovered(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skill", files={"SKILL.md": "# s\n", "ref/a.md": "a"})
    command = make_skill(tmp_path / "command", "deploy", kind="command", files={"deploy.md": "Deploy\n"})
    place = make_workspace(tmp_path)

    backend().agent_command(make_plan(tmp_path, skills=(skill, command)), place, CLI)

    files = sorted(path.relative_to(place.home).as_posix() for path in place.home.rglob("*") if path.is_file())
    assert files == [
        ".claude/commands/deploy.md",
        ".claude/skills/greet-pirate/SKILL.md",
        ".claude/skills/greet-pirate/ref/a.md",
    ]


def test_the_arms_differ_by_the_skill_alone(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skill")
    with_skill = backend().agent_command(make_plan(tmp_path, skills=(skill,)), make_workspace(tmp_path / "a"), CLI)
    without = backend().agent_command(make_plan(tmp_path), make_workspace(tmp_path / "b"), CLI)

    assert with_skill.argv == without.argv
    assert set(with_skill.env) == set(without.env)


def test_mcp_servers_are_written_with_their_references_resolved(tmp_path: Path) -> None:
    servers = (
        McpServer(
            name="db", transport="stdio", line=1, command="./bin/db", args=("../x.py", "./y", "-v"), env={"TOKEN": "a-${T}"}
        ),
        McpServer(name="web", transport="http", line=5, url="https://h/${T}", headers={"Authorization": "Bearer ${T}${U}"}),
    )
    place = make_workspace(tmp_path)
    plan = make_plan(tmp_path, mcp=servers, env={"HOME": str(tmp_path), "T": "t-1", "U": ""})

    command = backend().agent_command(plan, place, CLI)

    path = Path(command.argv[command.argv.index("--mcp-config") + 1])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {
        "mcpServers": {
            "db": {
                "type": "stdio",
                "command": str(plan.spec_dir / "bin/db"),
                "args": [str(plan.spec_dir.parent / "x.py"), str(plan.spec_dir / "y"), "-v"],
                "env": {"TOKEN": "a-t-1"},
            },
            "web": {"type": "http", "url": "https://h/t-1", "headers": {"Authorization": "Bearer t-1"}},
        }
    }


def test_an_unset_reference_names_server_key_and_variable(tmp_path: Path) -> None:
    server = McpServer(name="db", transport="stdio", line=1, command="db", env={"TOKEN": "${NOT_SET}"})

    with pytest.raises(EngineError, match=r"mcp server 'db': env\.TOKEN needs the environment variable NOT_SET"):
        backend().agent_command(make_plan(tmp_path, mcp=(server,)), make_workspace(tmp_path), CLI)


REQUEST = JudgeRequest(system="You judge.", prompt="Did it work?\u2028", schema={"type": "object"})


def test_the_judges_command_has_no_tools_skills_or_settings(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k"}

    command = backend().judge_command(REQUEST, Engine(backend="claude-code", model="haiku"), env, tmp_path / "judge-1", CLI)

    assert command.argv == (
        *("/opt/claude", "-p", "--output-format", "json", "--no-session-persistence", "--strict-mcp-config", "--tools", ""),
        *("--disable-slash-commands", "--setting-sources", "", "--system-prompt", "You judge."),
        *("--json-schema", '{"type": "object"}', "--model", "haiku"),
    )
    assert command.stdin == "Did it work?\u2028".encode()
    assert command.env["ANTHROPIC_API_KEY"] == "k"
    assert command.env["CLAUDE_CODE_MAX_RETRIES"] == "2"
    assert Path(command.env["HOME"]).parent == command.cwd.parent == Path(command.env["TMPDIR"]).parent == tmp_path / "judge-1"
    assert all(path.is_dir() and not list(path.iterdir()) for path in (command.cwd, Path(command.env["TMPDIR"])))


def test_the_judge_keeps_the_users_key_helper_and_default_model(
    user_home: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    """`--setting-sources ""` would leave both out."""
    home = user_home({".claude/settings.json": {"apiKeyHelper": "get-key", "model": "opus"}})

    command = backend().judge_command(REQUEST, Engine(backend="claude-code"), {"HOME": str(home)}, tmp_path / "judge-1", CLI)

    assert command.argv[-2:] == ("--model", "opus")
    settings = json.loads(Path(command.argv[command.argv.index("--settings") + 1]).read_text())
    assert settings["apiKeyHelper"].endswith("sh -c get-key")


def test_nothing_is_refused() -> None:
    assert backend().refuses(skills=(), mcp=(McpServer(name="x", transport="sse", line=1, url="https://x"),)) is None


def test_a_command_can_be_prepared_again_in_the_same_home(tmp_path: Path) -> None:
    """A throttled attempt is tried again: its login, skills and MCP servers stand there already."""
    home = tmp_path / "user"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / ".credentials.json").write_text('{"claudeAiOauth": {"accessToken": "a", "expiresAt": 99999999999999}}')
    (home / ".claude.json").write_text('{"oauthAccount": {"emailAddress": "x"}}')
    (home / ".claude" / "settings.json").write_text('{"model": "opus"}')
    server = McpServer(name="s", transport="stdio", line=1, command="x")
    plan = make_plan(tmp_path, env={"HOME": str(home), "PATH": "/bin"}, mcp=(server,), skills=(make_skill(tmp_path),))
    place, cli = make_workspace(tmp_path), CliInfo(path=Path("/bin/true"), version="1")

    assert ClaudeCode().agent_command(plan, place, cli) == ClaudeCode().agent_command(plan, place, cli)
