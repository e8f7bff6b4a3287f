"""How Hermes is found and what is run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from backend_cases import make_plan, make_skill, make_workspace

from pytest_caliper.backends.hermes import LAUNCHER, Hermes
from pytest_caliper.contracts import Backend, CliInfo, Engine, EngineError, JudgeRequest
from pytest_caliper.spec.model import McpServer, Sandbox

CLI = CliInfo(path=Path("/opt/hermes"), version="0.19.0")
BANNER = "Hermes Agent v0.19.0 (2026.7.20)\nInstall directory: /x\nPython: 3.11.7\nOpenAI SDK: 2.24.0"
ECHO = McpServer(name="echo", transport="stdio", line=4, command="./echo.py", args=("--x", "../y"), env={"K": "${WORD}"})


def program(path: Path, script: str, interpreter: str = "/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{interpreter}\n{script}\n")
    path.chmod(0o755)
    return path


def test_it_is_a_backend() -> None:
    assert isinstance(Hermes(), Backend)
    assert Hermes().max_prompt_bytes == 122_880


def test_the_cli_is_found_on_path(tmp_path: Path) -> None:
    path = program(tmp_path / "bin/hermes", f"echo '{BANNER}'")

    assert Hermes().find({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}) == CliInfo(path=path, version="0.19.0")


def test_a_forced_binary_wins(tmp_path: Path) -> None:
    program(tmp_path / "bin/hermes", f"echo '{BANNER}'")
    forced = program(tmp_path / "other/my hermes", "echo 'Hermes Agent v0.21.3'")

    found = Hermes().find({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HERMES_CLI_PATH": str(forced)})

    assert found == CliInfo(path=forced, version="0.21.3")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Hermes JavaScript compiler and Virtual Machine. Hermes release version: 0.12.0'", "no version of Hermes Agent"),
        ("echo 'Hermes Agent v0.18.9'", "0.18.9 .* is too old, 0.19.0 is needed: update it with `hermes update`"),
        ("echo broken >&2; exit 3", "--version failed with exit code 3 .broken."),
    ],
)
def test_an_unusable_cli_is_refused_with_the_remedy(script: str, message: str, tmp_path: Path) -> None:
    program(tmp_path / "hermes", script)

    with pytest.raises(EngineError, match=message) as raised:
        Hermes().find({"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert "\n" not in str(raised.value)


def test_a_missing_cli_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no `hermes` on PATH: install it"):
        Hermes().find({"PATH": str(tmp_path)})
    with pytest.raises(EngineError, match="HERMES_CLI_PATH is /nowhere, which is no executable file"):
        Hermes().find({"PATH": "/bin", "HERMES_CLI_PATH": "/nowhere"})


def test_asking_for_the_version_reads_nothing_of_the_users(tmp_path: Path) -> None:
    program(
        tmp_path / "hermes", 'echo "Hermes Agent v0.19.0"; echo "$HOME $HERMES_HOME $SECRET" >&2; test "$HOME" != "$USERS_HOME"'
    )

    Hermes().find({"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "HERMES_HOME": str(tmp_path)})


def test_a_missing_login_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="hermes model"):
        Hermes().check(Engine(backend="hermes"), {"HOME": str(tmp_path)})
    Hermes().check(Engine(backend="hermes"), {"HOME": str(tmp_path), "OPENROUTER_API_KEY": "k"})


def test_lone_commands_are_refused(tmp_path: Path) -> None:
    command = make_skill(tmp_path, "foo", kind="command", files={"foo.md": "Do foo"})

    assert "foo is a lone command file" in (Hermes().refuses(skills=(command,), mcp=()) or "")
    assert Hermes().refuses(skills=(make_skill(tmp_path / "s"),), mcp=(ECHO,)) is None


@pytest.mark.parametrize(
    ("answer", "lacks"), [("echo True", False), ("echo False", True), ("exit 1", False), ("echo whatever", False)]
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_copy_without_mcp_is_seen(answer: str, lacks: bool, wrapped: bool, tmp_path: Path) -> None:
    """Through the official installer's wrapper too. What cannot be known is not refused."""
    python = program(tmp_path / "venv/bin/python3", answer)
    path = program(tmp_path / "venv/bin/hermes", "import sys", str(python))
    if wrapped:
        path = program(tmp_path / "bin/hermes", f'unset PYTHONPATH\nexec "{path}" "$@"')
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    said = Hermes().lacks(CliInfo(path=path, version="0.19.0"), env, mcp=(ECHO,))

    assert (said is not None and "hermes-agent[mcp]" in said) is lacks
    assert Hermes().lacks(CliInfo(path=path, version="0.19.0"), env, mcp=()) is None


def test_an_unknown_way_to_start_hermes_is_not_refused(tmp_path: Path) -> None:
    for path in (
        program(tmp_path / "hermes", "exec $HERMES"),
        tmp_path / "none",
        program(tmp_path / "loop", f"exec {tmp_path}/loop"),
    ):
        assert Hermes().lacks(CliInfo(path=path, version="1"), {"PATH": "/bin"}, mcp=(ECHO,)) is None


def test_what_an_attempt_runs(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "user"), "OPENROUTER_API_KEY": "k", "SECRET": "s", "WORD": "w"}
    env |= {"HERMES_HOME": str(tmp_path / "elsewhere"), "HERMES_SESSION_ID": "outer"}
    skill = make_skill(tmp_path / "skill")
    plan = make_plan(
        tmp_path,
        env=env,
        engine=Engine(backend="hermes", model="openrouter/z-ai/glm-5.2"),
        skills=(skill,),
        mcp=(ECHO,),
        prompt="--help\u2028",
        sandbox=Sandbox(extra_path=(Path("/opt/tools"),)),
    )

    command = Hermes().agent_command(plan, workspace, CLI)

    home = workspace.home / ".hermes"
    assert command.argv == (
        *(sys.executable, "-I", "-S", str(LAUNCHER), "agent", str(home), "/opt/hermes"),
        *("--yolo", "--provider", "openrouter", "--model", "z-ai/glm-5.2"),
    )
    assert (command.cwd, command.stdin) == (workspace.work, "--help\u2028".encode())
    assert command.env["HERMES_HOME"] == str(home)
    assert command.env["HERMES_DISABLE_LAZY_INSTALLS"] == "1"
    assert command.env["OPENROUTER_API_KEY"] == "k"
    assert command.env["PATH"].startswith("/opt/tools:")
    assert not {"SECRET", "HERMES_SESSION_ID", "WORD"} & set(command.env)
    assert (home / "skills/greet-pirate/SKILL.md").read_text() == (skill.root / "SKILL.md").read_text()
    spec = plan.spec_dir
    servers = yaml.safe_load((home / "config.yaml").read_text())["mcp_servers"]
    assert servers == {"echo": {"command": str(spec / "echo.py"), "args": ["--x", str(spec.parent / "y")], "env": {"K": "w"}}}


def test_the_baseline_has_no_skill_and_the_arms_differ_by_nothing_else(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    skilled = Hermes().agent_command(make_plan(tmp_path, skills=(make_skill(tmp_path / "s"),)), workspace, CLI)

    bare = Hermes().agent_command(make_plan(tmp_path), workspace, CLI)

    assert skilled == bare
    assert not (workspace.home / ".hermes/skills").exists()


@pytest.mark.parametrize(
    ("prompt", "message"), [("é" * 70_000, "140,000 bytes is too long for hermes, which takes 122,880"), ("a\0b", "NUL")]
)
def test_a_prompt_that_is_no_argument_is_refused(prompt: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=message):
        Hermes().agent_command(make_plan(tmp_path, prompt=prompt), make_workspace(tmp_path), CLI)


def test_mcp_without_support_is_refused_before_it_runs(tmp_path: Path) -> None:
    python = program(tmp_path / "venv/bin/python3", "echo False")
    path = program(tmp_path / "venv/bin/hermes", "import sys", str(python))

    with pytest.raises(EngineError, match=r"hermes-agent\[mcp\]"):
        Hermes().agent_command(make_plan(tmp_path, mcp=(ECHO,)), make_workspace(tmp_path), CliInfo(path=path, version="0.19.0"))


def test_what_a_judge_runs(tmp_path: Path) -> None:
    env: dict[str, Any] = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "user"), "GLM_API_KEY": "k"}
    request = JudgeRequest(system="You judge.", prompt="Does it hold?", schema={})

    command = Hermes().judge_command(request, Engine(backend="hermes", model="glm-5.2"), env, tmp_path / "judge-1", CLI)

    home = tmp_path / "judge-1/home/.hermes"
    assert command.argv[4:] == ("judge", str(home), "/opt/hermes", "-t", "todo", "--model", "glm-5.2")
    assert command.stdin == b"You judge.\n\nDoes it hold?"
    assert command.cwd == tmp_path / "judge-1/work"
    assert "mcp_servers" not in (home / "config.yaml").read_text()


def test_a_question_that_is_too_long_is_refused(tmp_path: Path) -> None:
    request = JudgeRequest(system="s", prompt="x" * 130_000, schema={})

    with pytest.raises(EngineError, match="too long for hermes"):
        Hermes().judge_command(request, Engine(backend="hermes"), {"HOME": str(tmp_path)}, tmp_path / "judge-1", CLI)


def test_the_users_own_files_are_named_for_those_who_ask(tmp_path: Path) -> None:
    home = tmp_path / "user" / ".hermes"

    named = {(custom.source, custom.target) for custom in Hermes().customizations({"HOME": str(tmp_path / "user")})}

    assert (home / "SOUL.md", ".hermes/SOUL.md") in named
    assert (home / "skills", ".hermes/skills") in named
    assert not {"config.yaml", "auth.json", "state.db", ".env"} & {source.name for source, _ in named}
