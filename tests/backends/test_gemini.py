"""What of the user's login reaches Gemini CLI, and what is run."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, make_workspace

from pytest_caliper.backends.gemini import Gemini
from pytest_caliper.backends.gemini_home import DEFAULT_MODEL, GeminiLogin, read_login
from pytest_caliper.contracts import CliInfo, Engine, EngineError, JudgeRequest
from pytest_caliper.spec.model import McpServer, Sandbox

Write = Callable[[dict[str, Any]], Path]
CLI = CliInfo(path=Path("/opt/gemini"), version="0.61.0")
NOW = 1_800_000_000.0
OAUTH = {"access_token": "a", "refresh_token": "r", "expiry_date": 1}
ALONE = ("--allowed-mcp-server-names", "none-declared")


def login_of(home: Path, **variables: str) -> GeminiLogin:
    return read_login({"HOME": str(home), **variables}, now=NOW)


def settings(kind: str | None = None, **further: Any) -> dict[str, Any]:
    auth = {} if kind is None else {"security": {"auth": {"selectedType": kind}}}
    return {".gemini/settings.json": {**auth, **further}}


def written(home: Path) -> dict[str, Any]:
    found = {}
    for path in sorted(home.rglob("*")):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            found[path.relative_to(home).as_posix()] = path.read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize(
    ("files", "variables", "kind"),
    [
        ({}, {"GEMINI_API_KEY": "k"}, "gemini-api-key"),
        ({}, {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "http://x"}, "gemini-api-key"),
        ({}, {"GOOGLE_API_KEY": "k"}, "vertex-ai"),
        ({}, {"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}, "vertex-ai"),
        ({}, {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_CLOUD_ACCESS_TOKEN": "t"}, "oauth-personal"),
        ({}, {"GEMINI_CLI_USE_COMPUTE_ADC": "true"}, "compute-default-credentials"),
        (settings("oauth-personal") | {".gemini/oauth_creds.json": OAUTH}, {"GEMINI_API_KEY": "k"}, "oauth-personal"),
        ({".gemini/oauth_creds.json": OAUTH}, {}, "oauth-personal"),
        ({".gemini/settings.json": {"selectedAuthType": "oauth-personal"}, ".gemini/oauth_creds.json": OAUTH}, {}, "oauth-personal"),
        (settings("oauth-personal"), {"GEMINI_API_KEY": "k"}, "gemini-api-key"),
        (settings("gemini-api-key") | {".gemini/gemini-credentials.json": "encrypted"}, {}, "gemini-api-key"),
        ({".gemini/.env": "# keys\nexport GEMINI_API_KEY='k'\n"}, {}, "gemini-api-key"),
        ({".env": 'GEMINI_API_KEY = "k"  # mine\nodd line\n'}, {}, "gemini-api-key"),
    ],
)  # fmt: skip
def test_ways_to_be_logged_in(files: dict[str, Any], variables: dict[str, str], kind: str, user_home: Write) -> None:
    login = login_of(user_home(files), **variables)

    assert (login.auth_type, login.problem) == (kind, None)


@pytest.mark.parametrize(
    ("files", "variables", "says"),
    [
        ({}, {}, "not logged in: log in with `gemini` (Sign in with Google), or set GEMINI_API_KEY"),
        ({}, {"GEMINI_API_KEY": ""}, "not logged in"),
        ({}, {"GOOGLE_GEMINI_BASE_URL": "http://x"}, "not logged in"),
        (settings("gemini-api-key"), {}, "set GEMINI_API_KEY"),
        (settings("vertex-ai"), {"GOOGLE_CLOUD_PROJECT": "p"}, "GOOGLE_CLOUD_LOCATION"),
        (settings("oauth-personal"), {}, "log in with `gemini`"),
        ({".gemini/oauth_creds.json": {"access_token": "a", "expiry_date": 1000}}, {}, "has expired: run `gemini` once"),
        ({".gemini/oauth_creds.json": "[]"}, {}, "not logged in"),
    ],
)
def test_ways_not_to_be(files: dict[str, Any], variables: dict[str, str], says: str, user_home: Write) -> None:
    problem = login_of(user_home(files), **variables).problem

    assert problem is not None
    assert says in problem
    assert "\n" not in problem


def test_a_damaged_login_is_named(user_home: Write) -> None:
    home = user_home({".gemini/oauth_creds.json": "{"})

    with pytest.raises(EngineError, match=r"oauth_creds\.json: not valid JSON .*: log in with `gemini`"):
        login_of(home)
    assert login_of(home, GEMINI_API_KEY="k").problem is None


def test_nothing_personal_crosses_over(user_home: Write, tmp_path: Path) -> None:
    home = user_home(
        {
            ".gemini/settings.json": {
                "security": {"auth": {"selectedType": "oauth-personal"}},
                "model": {"name": "gemini-2.5-flash"},
                "mcpServers": {"x": {"command": "SECRET-SERVER"}},
                "hooks": {"BeforeTool": ["SECRET-HOOK"]},
                "context": {"fileName": "SECRET-CONTEXT"},
                "general": {"maxAttempts": 1, "preferredEditor": "SECRET-EDITOR"},
            },
            ".gemini/oauth_creds.json": OAUTH,
            ".gemini/google_accounts.json": {"active": "me@example.org"},
            ".gemini/GEMINI.md": "SECRET-MEMORY",
            ".gemini/skills/mine/SKILL.md": "SECRET-SKILL",
            ".gemini/extensions/x/gemini-extension.json": "SECRET-EXTENSION",
            ".gemini/mcp-oauth-tokens.json": "SECRET-TOKEN",
            ".gemini/.env": "GOOGLE_CLOUD_PROJECT=p\nOTHER=SECRET-VARIABLE\n",
        }
    )
    place = make_workspace(tmp_path)

    command = Gemini().agent_command(make_plan(tmp_path, env={"HOME": str(home), "PATH": "/usr/bin"}), place, CLI)

    files = written(place.home)
    assert set(files) == {".gemini/settings.json", ".gemini/oauth_creds.json", ".gemini/google_accounts.json"}
    assert "SECRET" not in json.dumps([files, dict(command.env)])
    assert json.loads(files[".gemini/oauth_creds.json"]) == OAUTH
    assert json.loads(files[".gemini/settings.json"]) == {
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 1},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "advanced": {"ignoreLocalEnv": True},
        "security": {"auth": {"selectedType": "oauth-personal"}},
        "skills": {"disabled": ["antigravity-support", "skill-creator"]},
        "mcpServers": {},
    }
    assert command.env["GOOGLE_CLOUD_PROJECT"] == "p"
    assert command.argv[-4:] == ("-m", "gemini-2.5-flash", *ALONE)


def test_a_key_leaves_the_other_credentials_at_home(user_home: Write, tmp_path: Path) -> None:
    home = user_home({".gemini/oauth_creds.json": OAUTH, ".gemini/gemini-credentials.json": "encrypted"})
    place = make_workspace(tmp_path)

    Gemini().agent_command(make_plan(tmp_path, env={"HOME": str(home), "GEMINI_API_KEY": "k"}), place, CLI)

    assert set(written(place.home)) == {".gemini/settings.json"}


def test_another_home_of_the_cli(user_home: Write) -> None:
    home = user_home({"conf/.gemini/oauth_creds.json": OAUTH})

    login = login_of(home, GEMINI_CLI_HOME=str(home / "conf"))

    assert login.auth_type == "oauth-personal"
    assert "GEMINI_CLI_HOME" not in login.environment


def test_vertex_finds_the_users_google_credentials(user_home: Write) -> None:
    home = user_home({".config/gcloud/application_default_credentials.json": "{}"})

    login = login_of(home, GOOGLE_GENAI_USE_VERTEXAI="true", GOOGLE_CLOUD_PROJECT="p", GOOGLE_CLOUD_LOCATION="l")

    assert login.environment["GOOGLE_APPLICATION_CREDENTIALS"] == str(
        home / ".config/gcloud/application_default_credentials.json"
    )


def test_the_agents_command(tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    host = {
        "PATH": "/usr/bin",
        "HOME": str(tmp_path),
        "GEMINI_API_KEY": "k",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1",
        "GEMINI_SYSTEM_MD": "/mine.md",
        "GEMINI_CLI_IDE_SERVER_PORT": "1",
        "OTHER_SECRET": "s",
    }
    plan = make_plan(tmp_path, env=host, prompt="Say “hi”\n", sandbox=Sandbox(extra_path=(tmp_path / "tools",)))

    command = Gemini().agent_command(plan, place, CLI)

    assert command.argv == (
        *("/opt/gemini", "--output-format", "stream-json", "--approval-mode", "yolo", "-m", DEFAULT_MODEL),
        *ALONE,
    )
    assert command.cwd == place.work
    assert command.stdin == "Say “hi”\n".encode()
    assert command.env == {
        "PATH": f"{tmp_path / 'tools'}:/usr/bin",
        "HOME": str(place.home),
        "TMPDIR": str(place.tmp),
        "CALIPER_WORKDIR": str(place.work),
        "GEMINI_API_KEY": "k",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_TELEMETRY_ENABLED": "false",
        "NO_BROWSER": "true",
    }


@pytest.mark.parametrize(
    ("model", "variables", "asked"),
    [
        ("pro", {"GEMINI_MODEL": "m-env"}, "pro"),
        (None, {"GEMINI_MODEL": "m-env"}, "m-env"),
        (None, {}, "m-settings"),
    ],
)
def test_a_model_is_always_named(
    model: str | None, variables: dict[str, str], asked: str, user_home: Write, tmp_path: Path
) -> None:
    """Without one the CLI asks a second model which to take, before each turn."""
    home = user_home(settings(model={"name": "m-settings"}))
    plan = make_plan(tmp_path, env={"HOME": str(home), **variables}, engine=Engine(backend="gemini", model=model))

    argv = Gemini().agent_command(plan, make_workspace(tmp_path), CLI).argv

    assert argv[argv.index("-m") + 1] == asked


@pytest.mark.parametrize(("wish", "limit"), [(1, 1), (2, 2), (9, 2), (0, 2), (True, 2), ("1", 2), (None, 2)])
def test_the_users_own_retry_limit_counts_when_it_is_smaller(wish: Any, limit: int, user_home: Write) -> None:
    assert login_of(user_home(settings(general={"maxAttempts": wish}))).max_attempts == limit


def test_skills_are_installed_where_they_are_discovered(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skill", "skill-creator", files={"SKILL.md": "# s\n", "ref/a.md": "a"})
    place = make_workspace(tmp_path)

    Gemini().agent_command(make_plan(tmp_path, skills=(skill,)), place, CLI)

    assert (place.home / ".gemini/skills/skill-creator/ref/a.md").read_text() == "a"
    disabled = json.loads((place.home / ".gemini/settings.json").read_text())["skills"]["disabled"]
    assert disabled == ["antigravity-support"]


def test_mcp_servers_are_written_with_their_references_resolved(tmp_path: Path) -> None:
    """The CLI replaces `$NAME` in all of settings.json, and once more in `env` and `headers`: values must come out as they are."""
    servers = (
        McpServer(name="db", transport="stdio", line=1, command="./bin/db", args=("$HOME", "-v"), env={"TOKEN": "a-${T}"}),
        McpServer(name="web", transport="http", line=5, url="https://h/${T}", headers={"Authorization": "Bearer ${T}"}),
        McpServer(name="old", transport="sse", line=9, url="https://h/sse"),
    )
    place = make_workspace(tmp_path)
    plan = make_plan(tmp_path, mcp=servers, env={"HOME": str(tmp_path), "T": "t$1"})

    command = Gemini().agent_command(plan, place, CLI)

    path = place.home / ".gemini/settings.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    dollar = "${CALIPER_DOLLAR:-$}"
    assert json.loads(path.read_text())["mcpServers"] == {
        "db": {
            "command": str(plan.spec_dir / "bin/db"),
            "args": [f"{dollar}HOME", "-v"],
            "env": {"TOKEN": f"a-t\\{dollar}1"},
            "trust": True,
        },
        "web": {
            "type": "http",
            "url": f"https://h/t{dollar}1",
            "headers": {"Authorization": f"Bearer t\\{dollar}1"},
            "trust": True,
        },
        "old": {"type": "sse", "url": "https://h/sse", "headers": {}, "trust": True},
    }
    assert command.argv[-6:] == tuple(word for name in ("db", "web", "old") for word in ("--allowed-mcp-server-names", name))
    assert "t$1" not in str(command.argv)


def test_a_throttled_agent_is_prepared_again(tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    plan = make_plan(tmp_path, skills=(make_skill(tmp_path / "skill"),))

    assert Gemini().agent_command(plan, place, CLI) == Gemini().agent_command(plan, place, CLI)


def test_the_judges_command_has_no_tools_skills_or_agents(user_home: Write, tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin", "HOME": str(user_home({".gemini/GEMINI.md": "SECRET"})), "GEMINI_API_KEY": "k"}
    request = JudgeRequest(system="You judge.", prompt="Did it work?\u2028", schema={})

    command = Gemini().judge_command(request, Engine(backend="gemini", model="flash"), env, tmp_path / "judge-1", CLI)

    assert command.argv == (
        *("/opt/gemini", "--output-format", "stream-json", "--approval-mode", "default", "-m", "flash", *ALONE),
    )
    assert command.stdin == "Did it work?\u2028".encode()
    assert Path(command.env["GEMINI_SYSTEM_MD"]).read_text() == "You judge."
    assert command.cwd == tmp_path / "judge-1/work"
    home = Path(command.env["HOME"])
    assert set(written(home)) == {".gemini/settings.json", "system.md"}
    chosen = json.loads((home / ".gemini/settings.json").read_text())
    assert (chosen["tools"], chosen["skills"], chosen["experimental"]) == (
        {"core": ["none"]},
        {"enabled": False},
        {"enableAgents": False},
    )


def test_check_passes_with_a_key_and_fails_without(tmp_path: Path) -> None:
    engine = Engine(backend="gemini")

    Gemini().check(engine, {"HOME": str(tmp_path), "GEMINI_API_KEY": "k"})
    with pytest.raises(EngineError, match="not logged in"):
        Gemini().check(engine, {"HOME": str(tmp_path)})


def test_what_cannot_be_honoured_is_refused(tmp_path: Path) -> None:
    command = make_skill(tmp_path / "c", "deploy", kind="command", files={"deploy.md": "Deploy\n"})
    server = McpServer(name="db", transport="stdio", line=1, command="db", env={"PYTHONPATH": "/x", "A": "b"})
    backend = Gemini()

    assert "'deploy' is a command" in (backend.refuses(skills=(command,), mcp=()) or "")
    assert "mcp server 'db': Gemini CLI drops PYTHONPATH from env" in (backend.refuses(skills=(), mcp=(server,)) or "")
    assert (
        backend.refuses(skills=(make_skill(tmp_path / "s"),), mcp=(McpServer(name="x", transport="sse", line=1, url="u"),))
        is None
    )


def test_the_users_own_setup_holds_no_servers(user_home: Write) -> None:
    targets = {custom.target for custom in Gemini().customizations({"HOME": str(user_home({}))})}

    assert {".gemini/skills", ".gemini/GEMINI.md", ".agents/skills"} <= targets
    assert ".gemini/settings.json" not in targets
