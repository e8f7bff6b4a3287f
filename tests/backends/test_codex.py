"""How Codex is found, and what is run."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, make_workspace

from pytest_caliper.backends.codex import Codex
from pytest_caliper.backends.codex_home import codex_home
from pytest_caliper.backends.customizations import carry_customizations
from pytest_caliper.contracts import AttemptPlan, CliInfo, Engine, EngineError, JudgeRequest, Workspace
from pytest_caliper.spec.model import McpServer, Sandbox

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Write = Callable[[dict[str, Any]], Path]
CLI = CliInfo(path=Path("/opt/codex"), version="0.171.0")
KEY = {"CODEX_API_KEY": "k"}


def program(path: Path, version: str = "codex-cli 0.171.0", code: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'WARNING: proceeding' >&2\necho '{version}'\nexit {code}\n")
    path.chmod(0o755)
    return path


def plan_of(root: Path, **changes: Any) -> AttemptPlan:
    env = {"PATH": "/usr/bin", "HOME": str(root / "user"), **KEY, **changes.pop("env", {})}
    return make_plan(root, env=env, engine=Engine(backend="codex", model=changes.pop("model", None)), **changes)


def config_of(place: Workspace) -> dict[str, Any]:
    return tomllib.loads((codex_home(place) / "config.toml").read_text(encoding="utf-8"))


def test_the_one_on_path(tmp_path: Path) -> None:
    path = program(tmp_path / "bin/codex")

    assert Codex(applications=()).find({"PATH": str(path.parent)}) == CliInfo(path=path, version="0.171.0")


def test_the_forced_one_goes_first(tmp_path: Path) -> None:
    program(tmp_path / "bin/codex")
    program(tmp_path / "Applications/Codex.app/Contents/Resources/codex")
    forced = program(tmp_path / "mine", "codex-cli 0.150.0-alpha.4.3")

    found = Codex(applications=[tmp_path / "Applications"]).find({"PATH": str(tmp_path / "bin"), "CODEX_CLI_PATH": str(forced)})

    assert found == CliInfo(path=forced, version="0.150.0-alpha.4.3")


def test_the_desktop_app_goes_before_path(tmp_path: Path) -> None:
    program(tmp_path / "bin/codex")
    mine = program(tmp_path / "home/Applications/Codex.app/Contents/Resources/codex", "codex-cli 0.160.0")
    places = [tmp_path / "Applications", tmp_path / "home/Applications"]

    found = Codex(applications=places).find({"PATH": str(tmp_path / "bin")})

    assert found == CliInfo(path=mine, version="0.160.0")


def test_the_chatgpt_app_goes_after_path(tmp_path: Path) -> None:
    bundled = program(tmp_path / "Applications/ChatGPT.app/Contents/Resources/codex", "codex-cli 0.160.0")
    backend = Codex(applications=[tmp_path / "Applications"])
    empty = {"PATH": str(tmp_path)}

    assert backend.find(empty).path == bundled
    assert backend.find({"PATH": str(program(tmp_path / "bin/codex").parent)}).path == tmp_path / "bin/codex"


def test_an_app_without_a_binary_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "Applications/Codex.app/Contents/Resources/codex").mkdir(parents=True)
    path = program(tmp_path / "bin/codex")

    assert Codex(applications=[tmp_path / "Applications"]).find({"PATH": str(path.parent)}).path == path


@pytest.mark.parametrize(
    ("version", "code", "part"),
    [
        ("codex-cli 0.129.9", 0, "too old, 0.130.0 is needed: update it with `npm install -g @openai/codex`"),
        ("hello", 0, "printed no version: is it Codex?"),
        ("codex-cli 0.171.0", 3, "failed with exit code 3"),
    ],
)
def test_what_is_no_usable_codex(version: str, code: int, part: str, tmp_path: Path) -> None:
    path = program(tmp_path / "codex", version, code)

    with pytest.raises(EngineError) as raised:
        Codex(applications=()).find({"PATH": "/nowhere", "CODEX_CLI_PATH": str(path)})

    assert part in str(raised.value)


def test_not_installed(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"npm install -g @openai/codex.*CODEX_CLI_PATH"):
        Codex(applications=()).find({"PATH": str(tmp_path)})


def test_the_login_is_checked(tmp_path: Path) -> None:
    engine = Engine(backend="codex")
    with pytest.raises(EngineError, match="codex login"):
        Codex().check(engine, {"HOME": str(tmp_path)})
    Codex().check(engine, {"HOME": str(tmp_path), **KEY})


def test_what_is_refused(tmp_path: Path) -> None:
    command = make_skill(tmp_path / "c", "deploy", kind="command", files={"deploy.md": "x"})
    odd = McpServer(name="my server", transport="stdio", command="x", line=1)
    fine = McpServer(name="my-server.2", transport="http", url="https://x", line=1)

    assert Codex().refuses(skills=(make_skill(tmp_path / "s"),), mcp=(fine,)) is None
    assert "claude-code" in (Codex().refuses(skills=(command,), mcp=()) or "")
    assert "'my server': rename it" in (Codex().refuses(skills=(), mcp=(odd,)) or "")


def test_the_agents_command(tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    host = {"OTHER_SECRET": "s", "CODEX_THREAD_ID": "outer", "CODEX_SANDBOX": "seatbelt"}
    plan = plan_of(tmp_path, env=host, prompt="Say “hi”\n", model="gpt-5.5", sandbox=Sandbox(extra_path=(tmp_path / "tools",)))

    command = Codex().agent_command(plan, place, CLI)

    assert command.argv == (
        *("/opt/codex", "exec", "--json", "--skip-git-repo-check", "--color", "never"),
        *("--dangerously-bypass-approvals-and-sandbox", "--model", "gpt-5.5", "-"),
    )
    assert (command.cwd, command.stdin) == (place.work, "Say “hi”\n".encode())
    assert command.env == {
        "PATH": f"{tmp_path / 'tools'}:/usr/bin",
        "HOME": str(place.home),
        "TMPDIR": str(place.tmp),
        "CALIPER_WORKDIR": str(place.work),
        "CODEX_HOME": str(place.home / ".codex"),
        "CODEX_API_KEY": "k",
    }


def test_the_agents_configuration(tmp_path: Path) -> None:
    place = make_workspace(tmp_path)

    Codex().agent_command(plan_of(tmp_path), place, CLI)

    config = config_of(place)
    assert "mcp_servers" not in config
    assert config["allow_login_shell"] is False
    assert (config["check_for_update_on_startup"], config["analytics"]) == (False, {"enabled": False})
    assert (config["cli_auth_credentials_store"], config["mcp_oauth_credentials_store"]) == ("file", "file")
    assert config["skills"] == {"bundled": {"enabled": False}}
    assert {"apps", "plugins", "unbounded_connection_retries", "shell_snapshot"} <= config["features"].keys()
    assert not any(config["features"].values())
    assert "shell_tool" not in config["features"]


def test_the_arms_differ_by_the_skill_alone(tmp_path: Path) -> None:
    with_skill, without = make_workspace(tmp_path / "a"), make_workspace(tmp_path / "b")
    skill = make_skill(tmp_path / "skill")

    Codex().agent_command(plan_of(tmp_path, skills=(skill,)), with_skill, CLI)
    Codex().agent_command(plan_of(tmp_path), without, CLI)

    assert config_of(with_skill) == config_of(without)
    installed = codex_home(with_skill) / "skills/greet-pirate/SKILL.md"
    assert installed.read_text() == (tmp_path / "skill/SKILL.md").read_text()
    assert not (codex_home(without) / "skills").exists()


def test_mcp_servers_are_the_specs_own(user_home: Write, tmp_path: Path) -> None:
    user_home({".codex/config.toml": '[mcp_servers.mine]\ncommand = "SECRET"\n'})
    place = make_workspace(tmp_path)
    servers = (
        McpServer(
            name="echo", transport="stdio", command="./serve.py", args=("-x", "../data"), env={"TOKEN": "a-${WORD}"}, line=1
        ),
        McpServer(name="far", transport="http", url="https://x/${WORD}", headers={"Authorization": "Bearer ${WORD}"}, line=2),
        McpServer(name="older", transport="sse", url="https://y/sse", line=3),
    )

    command = Codex().agent_command(plan_of(tmp_path, mcp=servers, env={"WORD": "w-1"}), place, CLI)

    path = codex_home(place) / "config.toml"
    common = {"required": True, "startup_timeout_sec": 30}
    assert config_of(place)["mcp_servers"] == {
        "echo": {
            "command": str(tmp_path / "project/serve.py"),
            "args": ["-x", str(tmp_path / "data")],
            "env": {"TOKEN": "a-w-1"},
            **common,
        },
        "far": {"url": "https://x/w-1", "http_headers": {"Authorization": "Bearer w-1"}, **common},
        "older": {"url": "https://y/sse", "http_headers": {}, **common},
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "w-1" not in json.dumps([command.argv, dict(command.env)])


def test_a_variable_that_is_not_set(tmp_path: Path) -> None:
    server = McpServer(name="far", transport="http", url="https://x", headers={"A": "${NO_SUCH}"}, line=1)

    with pytest.raises(EngineError, match=r"'far': headers\.A needs the environment variable NO_SUCH"):
        Codex().agent_command(plan_of(tmp_path, mcp=(server,)), make_workspace(tmp_path), CLI)


def test_the_judges_command(tmp_path: Path) -> None:
    request = JudgeRequest(system="You “judge”.\nFairly.", prompt="Did it?\u2028", schema={"type": "object"})
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path / "user"), **KEY}

    command = Codex().judge_command(request, Engine(backend="codex"), env, tmp_path / "judge", CLI)

    place = Workspace.at(tmp_path / "judge")
    schema = place.home / ".codex/verdict-schema.json"
    assert command.argv == (
        *("/opt/codex", "exec", "--json", "--skip-git-repo-check", "--color", "never"),
        *("--sandbox", "read-only", "--output-schema", str(schema), "-"),
    )
    assert json.loads(schema.read_text()) == {"type": "object"}
    assert (command.cwd, command.stdin) == (place.work, "Did it?\u2028".encode())
    assert list(place.work.iterdir()) == []
    config = config_of(place)
    assert config["developer_instructions"] == "You “judge”.\nFairly."
    assert (config["web_search"], config["agents"], config["project_doc_max_bytes"]) == ("disabled", {"enabled": False}, 0)
    assert {"shell_tool", "unified_exec", "apps", "view_image", "goals"} <= config["features"].keys()
    assert not any(config["features"].values())


def test_an_older_judge_is_told_in_its_own_words(tmp_path: Path) -> None:
    """0.130 ends with an error at `agents.enabled`."""
    request = JudgeRequest(system="s", prompt="p", schema={})
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path / "user"), **KEY}
    old = CliInfo(path=CLI.path, version="0.170.2-alpha.1")

    Codex().judge_command(request, Engine(backend="codex", model="m"), env, tmp_path / "judge", old)

    config = config_of(Workspace.at(tmp_path / "judge"))
    assert "agents" not in config
    assert config["features"]["multi_agent"] is False


def test_the_users_own_setup_on_request(user_home: Write, tmp_path: Path) -> None:
    home = user_home(
        {
            ".codex/AGENTS.md": "memory",
            ".codex/skills/mine/SKILL.md": "mine",
            ".codex/config.toml": '[mcp_servers.mine]\ncommand = "x"\n',
            ".agents/skills/other/SKILL.md": "other",
        }
    )
    place = make_workspace(tmp_path)
    plan = plan_of(tmp_path)
    Codex().agent_command(plan, place, CLI)

    carry_customizations(Codex().customizations({"HOME": str(home)}), place.home)

    assert (place.home / ".codex/AGENTS.md").read_text() == "memory"
    assert (place.home / ".codex/skills/mine/SKILL.md").read_text() == "mine"
    assert (place.home / ".agents/skills/other/SKILL.md").read_text() == "other"
    assert "mcp_servers" not in config_of(place)
