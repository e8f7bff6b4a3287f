"""What of the user's setup reaches opencode, and what is run."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, make_workspace

from pytest_caliper.backends.opencode import OpenCode
from pytest_caliper.backends.opencode_home import OpenCodeSetup, read_setup
from pytest_caliper.contracts import CliInfo, Engine, EngineError, JudgeRequest
from pytest_caliper.spec.model import McpServer, Sandbox

Write = Callable[[dict[str, Any]], Path]
CLI = CliInfo(path=Path("/opt/opencode"), version="1.18.33")
NOW = 1_800_000_000.0
CONFIG, AUTH, STATE = ".config/opencode/opencode.json", ".local/share/opencode/auth.json", ".local/state/opencode/model.json"
OAUTH = {"type": "oauth", "access": "a", "refresh": "SECRET-REFRESH", "expires": 4102444800000}
LOG = ("--print-logs", "--log-level", "WARN")
ENGINE = Engine(backend="opencode", model="anthropic/claude-sonnet-4-5")


def setup_of(home: Path, model: str | None = "anthropic/m", **variables: str) -> OpenCodeSetup:
    return read_setup({"HOME": str(home), **variables}, model, now=NOW)


def written(home: Path) -> dict[str, Any]:
    found = {}
    for path in sorted(home.rglob("*")):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            found[path.relative_to(home).as_posix()] = json.loads(path.read_text(encoding="utf-8"))
    return found


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("files", "variables", "model"),
    [
        ({}, {"ANTHROPIC_API_KEY": "k"}, "anthropic/m"),
        ({AUTH: {"anthropic": {"type": "api", "key": "k"}}}, {}, "anthropic/m"),
        ({AUTH: {"anthropic": OAUTH}}, {}, "anthropic/m"),
        ({AUTH: {"github-copilot": {**OAUTH, "expires": 0}}}, {}, "github-copilot/m"),
        ({}, {"OPENCODE_AUTH_CONTENT": '{"anthropic": {"type": "api", "key": "k"}}'}, "anthropic/m"),
        ({CONFIG: {"provider": {"local": {"options": {"baseURL": "http://x"}}}}}, {}, "local/m"),
        ({CONFIG: {"provider": {"mine": {"env": ["MY_KEY"]}}}}, {"MY_KEY": "k"}, "mine/m"),
        ({".cache/opencode/models.json": {"late": {"env": ["LATECOMER_KEY"]}}}, {"LATECOMER_KEY": "k"}, "late/m"),
        ({}, {"AWS_PROFILE": "work"}, "amazon-bedrock/anthropic.claude:0"),
        ({".aws/credentials": "[default]"}, {}, "amazon-bedrock/m"),
        ({".config/gcloud/application_default_credentials.json": "{}"}, {}, "google-vertex/m"),
        ({}, {"GEMINI_API_KEY": "k"}, "google/m"),
        ({}, {"ZHIPU_API_KEY": "k"}, "zai-coding-plan/m"),
        ({}, {"CLOUDFLARE_API_TOKEN": "k"}, "cloudflare-workers-ai/m"),
        ({}, {}, "opencode/big-pickle"),
    ],
)
def test_ways_to_be_logged_in(files: dict[str, Any], variables: dict[str, str], model: str, user_home: Write) -> None:
    setup = setup_of(user_home(files), model, **variables)

    assert (setup.model, setup.problem) == (model, None)


@pytest.mark.parametrize(
    ("files", "variables", "model", "says"),
    [
        ({}, {}, None, "no default model: name one as opencode:PROVIDER/MODEL"),
        ({}, {"ANTHROPIC_API_KEY": "k"}, "claude", "'claude' is no model of opencode"),
        ({}, {"ANTHROPIC_API_KEY": "k"}, "anthropic/", "is no model of opencode"),
        ({}, {}, "anthropic/m", "not logged in to anthropic: log in with `opencode auth login`, or set ANTHROPIC_API_KEY"),
        ({}, {"ANTHROPIC_BASE_URL": "http://x", "OPENAI_API_KEY": "k"}, "anthropic/m", "set ANTHROPIC_API_KEY"),
        ({AUTH: {"openai": {"type": "api", "key": "k"}}}, {}, "google/m", "set GEMINI_API_KEY"),
        ({AUTH: {"anthropic": {**OAUTH, "expires": 1000}}}, {}, "anthropic/m", "has expired: run `opencode run hi` once"),
        (
            {AUTH: {"https://org": {"type": "wellknown", "key": "K", "token": "t"}}},
            {},
            "org/m",
            "organisation's login is not carried",
        ),
    ],
)
def test_ways_not_to_be(files: dict[str, Any], variables: dict[str, str], model: str | None, says: str, user_home: Write) -> None:
    problem = setup_of(user_home(files), model, **variables).problem

    assert problem is not None
    assert says in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("files", "model"),
    [
        ({CONFIG: {"model": "a/config"}, STATE: {"recent": [{"providerID": "a", "modelID": "recent"}]}}, "a/config"),
        ({STATE: {"recent": [7, {"providerID": "a"}, {"providerID": "a", "modelID": "recent"}]}}, "a/recent"),
        ({STATE: {"recent": "odd"}}, None),
        ({".config/opencode/config.json": {"model": "a/old"}, ".config/opencode/opencode.jsonc": '{"model": "a/new",} // x'}, "a/new"),
        ({CONFIG: {"model": "a/global"}, ".opencode/opencode.json": {"model": "a/directory"}}, "a/directory"),
    ],
)  # fmt: skip
def test_the_default_model(files: dict[str, Any], model: str | None, user_home: Write) -> None:
    assert setup_of(user_home(files), None).model == model


def test_configurations_by_variables(user_home: Write) -> None:
    home = user_home({"own.json": {"model": "a/own", "provider": {"a": {"options": {"x": 1}}}}})
    content = '{"model": "a/inline", "provider": {"a": {"options": {"y": 2}}}}'

    setup = setup_of(home, None, OPENCODE_CONFIG=str(home / "own.json"), OPENCODE_CONFIG_CONTENT=content)

    assert setup.model == "a/inline"
    assert setup.provider == {"a": {"options": {"x": 1, "y": 2}}}


def test_references_are_filled_in_from_the_users_own_places(user_home: Write) -> None:
    home = user_home(
        {
            CONFIG: {
                "provider": {"a": {"options": {"apiKey": "{file:./key}", "headers": {"h": "{env:H}-{file:~/top}{env:NONE}"}}}}
            },
            ".config/opencode/key": "key-1\n",
            "top": "top-1",
        }
    )

    assert setup_of(home, "a/m", H="h-1").provider == {"a": {"options": {"apiKey": "key-1", "headers": {"h": "h-1-top-1"}}}}


def test_a_reference_to_a_missing_file_is_named(user_home: Write) -> None:
    home = user_home(
        {CONFIG: {"provider": {"a": {"options": {"apiKey": "{file:nope}"}}}, "agent": {"x": {"prompt": "{file:gone}"}}}}
    )

    with pytest.raises(EngineError, match=r"names .*/nope, which does not exist"):
        setup_of(home)


@pytest.mark.parametrize("path", [CONFIG, AUTH, STATE])
def test_a_damaged_file_is_named(path: str, user_home: Write) -> None:
    with pytest.raises(EngineError, match="not valid JSON"):
        setup_of(user_home({path: "{"}), None if path == STATE else "a/m")


def test_nothing_personal_crosses_over(user_home: Write, tmp_path: Path) -> None:
    home = user_home(
        {
            CONFIG: {
                "provider": {"anthropic": {"options": {"timeout": 5}}, "other": {"options": {"apiKey": "SECRET-OTHER"}}},
                "model": "anthropic/m-1",
                "small_model": "other/SECRET-SMALL",
                "agent": {"build": {"prompt": "SECRET-AGENT"}},
                "command": {"x": {"template": "SECRET-COMMAND"}},
                "plugin": ["SECRET-PLUGIN"],
                "mcp": {"x": {"type": "local", "command": ["SECRET-SERVER"]}},
                "instructions": ["SECRET-RULES.md"],
                "permission": {"bash": "SECRET-PERMISSION"},
            },
            AUTH: {"anthropic": OAUTH, "other": {"type": "api", "key": "SECRET-KEY"}},
            ".config/opencode/AGENTS.md": "SECRET-MEMORY",
            ".config/opencode/skills/mine/SKILL.md": "SECRET-SKILL",
        }
    )
    place = make_workspace(tmp_path)
    host = {"HOME": str(home), "PATH": "/usr/bin", "OPENAI_API_KEY": "SECRET-OPENAI", "OPENCODE_SERVER_PASSWORD": "SECRET-P"}

    command = OpenCode().agent_command(make_plan(tmp_path, env=host), place, CLI)

    files = written(place.home)
    assert "SECRET" not in json.dumps([files, dict(command.env)])
    assert files == {
        AUTH: {"anthropic": {**OAUTH, "refresh": ""}},
        CONFIG: {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"anthropic": {"options": {"timeout": 5}}},
            "mcp": {},
        },
    }
    assert command.argv[command.argv.index("--model") + 1] == "anthropic/m-1"
    assert "OPENCODE_DISABLE_DEFAULT_PLUGINS" not in command.env  # they handle the login


def test_the_agents_command(user_home: Write, tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    home = user_home({".cache/opencode/models.json": "{}"})
    host = {"PATH": "/usr/bin", "HOME": str(home), "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "u", "XDG_RUNTIME_DIR": "/run"}
    plan = make_plan(tmp_path, env=host, engine=ENGINE, prompt="Say “hi”\n", sandbox=Sandbox(extra_path=(tmp_path / "tools",)))

    command = OpenCode().agent_command(plan, place, CLI)

    assert command.argv == (
        *("/opt/opencode", "run", "--format", "json", "--model", "anthropic/claude-sonnet-4-5", "--title", "caliper"),
        *(*LOG, "--auto"),
    )
    assert command.cwd == place.work
    assert command.stdin == "Say “hi”\n".encode()
    assert command.env == {
        "PATH": f"{tmp_path / 'tools'}:/usr/bin",
        "HOME": str(place.home),
        "TMPDIR": str(place.tmp),
        "CALIPER_WORKDIR": str(place.work),
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": "u",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_SHARE": "1",
        "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS": "1",
        "OPENCODE_DISABLE_TERMINAL_TITLE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_PURE": "1",
        "OPENCODE_MODELS_PATH": str(home / ".cache/opencode/models.json"),
    }


def test_a_run_without_a_model_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no default model"):
        OpenCode().agent_command(make_plan(tmp_path), make_workspace(tmp_path), CLI)


def test_skills_are_installed_where_they_are_discovered(tmp_path: Path) -> None:
    program(tmp_path / "bin/rg")
    skill = make_skill(tmp_path / "skill", files={"SKILL.md": "# s\n", "ref/a.md": "a"})
    place = make_workspace(tmp_path)
    plan = make_plan(tmp_path, skills=(skill,), engine=ENGINE, sandbox=Sandbox(extra_path=(tmp_path / "bin",)))

    OpenCode().agent_command(plan, place, CLI)

    assert (place.home / ".config/opencode/skills/greet-pirate/ref/a.md").read_text() == "a"


def test_a_skill_needs_ripgrep(tmp_path: Path) -> None:
    """Without it the CLI's skill tool fails (recorded), or fetches a copy in every attempt."""
    skill, env = make_skill(tmp_path / "skill"), {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), "ANTHROPIC_API_KEY": "k"}
    backend = OpenCode()

    backend.check(ENGINE, env)
    assert backend.refuses(skills=(skill,), mcp=()) is None
    with pytest.raises(EngineError, match="no `rg` on PATH: install it"):
        backend.check(ENGINE, env)
    with pytest.raises(EngineError, match="no `rg` on PATH: install it"):
        backend.agent_command(make_plan(tmp_path, skills=(skill,), env=env, engine=ENGINE), make_workspace(tmp_path), CLI)
    program(tmp_path / "bin/rg")
    backend.check(ENGINE, env)


def test_mcp_servers_are_written_with_their_references_resolved(tmp_path: Path) -> None:
    servers = (
        McpServer(name="db", transport="stdio", line=1, command="./bin/db", args=("-v",), env={"TOKEN": "a-${T}"}),
        McpServer(name="web", transport="http", line=5, url="https://h/${T}", headers={"Authorization": "Bearer ${T}"}),
        McpServer(name="old", transport="sse", line=9, url="https://h/sse"),
    )
    place = make_workspace(tmp_path)
    plan = make_plan(tmp_path, mcp=servers, env={"HOME": str(tmp_path), "T": "{env:HOME}{file:/x}"}, engine=ENGINE)

    command = OpenCode().agent_command(plan, place, CLI)

    text = (place.home / CONFIG).read_text()
    assert "{env:" not in text
    assert "{file:" not in text
    secret = "{env:HOME}{file:/x}"
    assert written(place.home)[CONFIG]["mcp"] == {
        "db": {"type": "local", "command": [str(plan.spec_dir / "bin/db"), "-v"], "environment": {"TOKEN": f"a-{secret}"}, "enabled": True},
        "web": {"type": "remote", "url": f"https://h/{secret}", "headers": {"Authorization": f"Bearer {secret}"}, "oauth": False, "enabled": True},
        "old": {"type": "remote", "url": "https://h/sse", "headers": {}, "oauth": False, "enabled": True},
    }  # fmt: skip
    assert secret not in str(command.argv)


def test_a_throttled_agent_is_prepared_again(tmp_path: Path) -> None:
    place, plan = make_workspace(tmp_path), make_plan(tmp_path, engine=ENGINE)

    assert OpenCode().agent_command(plan, place, CLI) == OpenCode().agent_command(plan, place, CLI)


def test_the_users_own_plugins_run_only_on_request(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, engine=ENGINE, user_customizations=True)

    assert "OPENCODE_PURE" not in OpenCode().agent_command(plan, make_workspace(tmp_path), CLI).env
    targets = {custom.target for custom in OpenCode().customizations({"HOME": str(tmp_path)})}
    assert {".config/opencode/skills", ".config/opencode/AGENTS.md", ".agents/skills"} <= targets
    assert not any(target.endswith(".json") for target in targets)


def test_the_judge_is_an_agent_without_tools(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin", "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k"}
    request = JudgeRequest(system="You judge {env:HOME}.", prompt="Did it work?\u2028", schema={})

    command = OpenCode().judge_command(request, ENGINE, env, tmp_path / "judge-1", CLI)

    assert command.argv == (
        *("/opt/opencode", "run", "--format", "json", "--model", "anthropic/claude-sonnet-4-5", "--title", "caliper"),
        *(*LOG, "--agent", "judge"),
    )
    assert command.stdin == "Did it work?\u2028".encode()
    assert command.cwd == tmp_path / "judge-1/work"
    assert written(Path(command.env["HOME"]))[CONFIG]["agent"] == {
        "judge": {"mode": "primary", "prompt": "You judge {env:HOME}.", "tools": {"*": False}}
    }


def test_commands_are_refused(tmp_path: Path) -> None:
    command = make_skill(tmp_path / "c", "deploy", kind="command", files={"deploy.md": "Deploy\n"})

    assert "'deploy' is a command" in (OpenCode().refuses(skills=(command,), mcp=()) or "")
    assert OpenCode().refuses(skills=(), mcp=(McpServer(name="x", transport="sse", line=1, url="https://x"),)) is None


def test_check_names_what_is_missing(tmp_path: Path) -> None:
    OpenCode().check(ENGINE, {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k"})
    with pytest.raises(EngineError, match="opencode auth login"):
        OpenCode().check(ENGINE, {"HOME": str(tmp_path)})
