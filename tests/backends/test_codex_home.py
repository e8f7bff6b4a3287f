"""The user's Codex login, and what of it reaches an attempt's home."""

from __future__ import annotations

import base64
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.backends.codex_home import CodexLogin, codex_home, read_login, write_home
from pytest_caliper.contracts import EngineError, Workspace

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Write = Callable[[dict[str, Any]], Path]
NOW = 1_800_000_000.0
PROVIDER = '[model_providers.gateway]\nname = "Gateway"\nbase_url = "https://g.example/v1"\n'


def jwt(**claims: Any) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims)]
    return ".".join([*parts, "signature"])


def tokens(expires: float) -> dict[str, Any]:
    given = {"id_token": jwt(email="a@b"), "access_token": jwt(exp=expires), "refresh_token": "refresh-1", "account_id": "acc"}
    return {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": given, "last_refresh": "2026-11-30T00:00:00Z"}


def login_of(home: Path, **variables: str) -> CodexLogin:
    return read_login({"HOME": str(home), **variables})


def test_nothing_personal_crosses_over(user_home: Write, tmp_path: Path) -> None:
    home = user_home(
        {
            ".codex/config.toml": """
model = "gpt-6.2-sol"
model_reasoning_effort = "high"
model_provider = "gateway"
model_instructions_file = "/SECRET-INSTRUCTIONS"
developer_instructions = "SECRET-INSTRUCTIONS"
approval_policy = "untrusted"
notify = ["SECRET-NOTIFY"]
[mcp_servers.mine]
command = "SECRET-SERVER"
[model_providers.gateway]
name = "Gateway"
base_url = "https://g.example/v1"
env_key = "GATEWAY_KEY"
request_max_retries = 9
http_headers = { X-Team = "blue" }
env_http_headers = { X-Token = "GATEWAY_TOKEN" }
[model_providers.other]
name = "Other"
experimental_bearer_token = "SECRET-TOKEN"
[hooks]
x = "SECRET-HOOK"
[plugins.x]
enabled = true
[projects."/SECRET"]
trust_level = "trusted"
[shell_environment_policy]
set = { A = "SECRET-ENVIRONMENT" }
""",
            ".codex/auth.json": {"OPENAI_API_KEY": "SECRET-LOGIN"},
            ".codex/AGENTS.md": "SECRET-MEMORY",
            ".codex/skills/mine/SKILL.md": "SECRET-SKILL",
            ".codex/history.jsonl": "SECRET-HISTORY",
            ".codex/hooks.json": "SECRET-HOOK",
        }
    )

    login = login_of(home, GATEWAY_KEY="k", GATEWAY_TOKEN="t", OPENAI_API_KEY="SECRET-KEY", CODEX_THREAD_ID="SECRET-NESTING")

    assert login.settings == {
        "model": "gpt-6.2-sol",
        "model_provider": "gateway",
        "model_reasoning_effort": "high",
        "model_providers": {
            "gateway": {
                "name": "Gateway",
                "base_url": "https://g.example/v1",
                "env_key": "GATEWAY_KEY",
                "request_max_retries": 0,
                "stream_max_retries": 2,
                "http_headers": {"X-Team": "blue"},
                "env_http_headers": {"X-Token": "GATEWAY_TOKEN"},
            }
        },
    }
    assert dict(login.environment) == {"GATEWAY_KEY": "k", "GATEWAY_TOKEN": "t"}
    assert login.problem(NOW) is None
    assert "SECRET" not in json.dumps([login.settings, login.auth])
    before = sorted(home.rglob("*"))
    place = Workspace.at(tmp_path / "attempt")
    write_home(login, login.settings, place)
    assert [path.relative_to(place.home).as_posix() for path in place.home.rglob("*") if path.is_file()] == [".codex/config.toml"]
    assert sorted(home.rglob("*")) == before


def test_the_login_is_written_for_its_owner_without_its_refresh_token(user_home: Write, tmp_path: Path) -> None:
    """A refresh token is good for one use: an attempt that used its copy would log the user out."""
    login = login_of(user_home({".codex/auth.json": tokens(NOW + 86400)}))
    place = Workspace.at(tmp_path / "attempt")

    write_home(login, {"model": "x", "mcp_servers": {"a b": {"url": "u", "http_headers": {"A": 'quo"te\n'}}}}, place)

    for name in ("auth.json", "config.toml"):
        assert stat.S_IMODE((codex_home(place) / name).stat().st_mode) == 0o600
    written = json.loads((codex_home(place) / "auth.json").read_text())
    assert written["tokens"] == {**tokens(NOW + 86400)["tokens"], "refresh_token": ""}
    assert written["auth_mode"] == "chatgpt"
    config = tomllib.loads((codex_home(place) / "config.toml").read_text())
    assert config["mcp_servers"]["a b"]["http_headers"] == {"A": 'quo"te\n'}
    assert login.problem(NOW) is None


@pytest.mark.parametrize(
    ("files", "variables", "part"),
    [
        ({}, {}, "not logged in: run `codex login`"),
        ({".codex/auth.json": {"auth_mode": "apikey", "OPENAI_API_KEY": None}}, {}, "not logged in"),
        ({".codex/auth.json": "[]"}, {}, "not logged in"),
        ({".codex/auth.json": tokens(NOW - 1)}, {}, "has expired: run `codex` once"),
        ({".codex/auth.json": tokens(NOW + 200)}, {}, "has expired: run `codex` once"),
        ({".codex/config.toml": 'cli_auth_credentials_store = "keyring"'}, {}, "system's keyring"),
        ({".codex/config.toml": 'model_provider = "gateway"'}, {}, "no [model_providers.gateway]"),
        ({".codex/config.toml": f'model_provider = "gateway"\n{PROVIDER}env_key = "G_KEY"\n'}, {}, "takes its key from G_KEY"),
        ({".codex/config.toml": f'model_provider = "gateway"\n{PROVIDER}requires_openai_auth = true\n'}, {}, "not logged in"),
        ({}, {"CODEX_API_KEY": ""}, "not logged in"),
        ({".codex/config.toml": 'forced_login_method = "chatgpt"'}, {"OPENAI_API_KEY": "k"}, "not logged in"),
    ],
)
def test_what_cannot_work_is_said(files: dict[str, Any], variables: dict[str, str], part: str, user_home: Write) -> None:
    problem = login_of(user_home(files), **variables).problem(NOW)

    assert problem is not None
    assert part in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("files", "variables"),
    [
        ({}, {"CODEX_API_KEY": "k"}),
        ({}, {"OPENAI_API_KEY": "k"}),
        ({}, {"CODEX_ACCESS_TOKEN": "t"}),
        ({".codex/auth.json": {"OPENAI_API_KEY": "k"}}, {}),
        ({".codex/auth.json": {"auth_mode": "personalAccessToken", "personal_access_token": "t"}}, {}),
        ({".codex/auth.json": tokens(NOW + 86400)}, {}),
        ({".codex/auth.json": {"tokens": {"access_token": "not.a.jwt"}}}, {}),
        ({".codex/config.toml": f'model_provider = "gateway"\n{PROVIDER}env_key = "G_KEY"\n'}, {"G_KEY": "k"}),
        ({".codex/config.toml": f'model_provider = "gateway"\n{PROVIDER}'}, {}),
        ({".codex/config.toml": 'model_provider = "ollama"'}, {}),
        ({".codex/config.toml": 'model_provider = "amazon-bedrock"'}, {}),
    ],
)
def test_what_may_work_is_let_through(files: dict[str, Any], variables: dict[str, str], user_home: Write) -> None:
    assert login_of(user_home(files), **variables).problem(NOW) is None


def test_keys_go_as_they_do_in_the_cli(user_home: Write) -> None:
    """CODEX_API_KEY before auth.json; OPENAI_API_KEY, which the CLI does not read, only when there is nothing else."""
    home = user_home({".codex/auth.json": {"OPENAI_API_KEY": "from-file"}})

    assert login_of(home, CODEX_API_KEY="c").auth is None
    kept = login_of(home, OPENAI_API_KEY="o")
    assert (kept.auth, dict(kept.environment)) == ({"OPENAI_API_KEY": "from-file"}, {})
    (home / ".codex/auth.json").unlink()
    assert dict(login_of(home, OPENAI_API_KEY="o").environment) == {"CODEX_API_KEY": "o"}


def test_another_codex_home(user_home: Write) -> None:
    home = user_home(
        {"elsewhere/auth.json": {"OPENAI_API_KEY": "k"}, "elsewhere/config.toml": 'model_catalog_json = "models.json"'}
    )

    login = login_of(home, CODEX_HOME=str(home / "elsewhere"))

    assert (login.auth, login.settings) == (
        {"OPENAI_API_KEY": "k"},
        {"model_catalog_json": str(home / "elsewhere/models.json")},
    )


def test_a_profile_goes_first(user_home: Write) -> None:
    home = user_home({".codex/config.toml": 'profile = "p"\nmodel = "a"\n[profiles.p]\nmodel = "b"\nnotify = ["x"]\n'})

    assert login_of(home).settings == {"model": "b"}


def test_a_command_for_the_token_runs_in_the_users_home(user_home: Write) -> None:
    auth = '[model_providers.gateway.auth]\ncommand = "token"\nargs = ["--for", "codex"]\ntimeout_ms = 5000\n'
    home = user_home({".codex/config.toml": f'model_provider = "gateway"\n{PROVIDER}{auth}'})

    table = login_of(home).settings["model_providers"]["gateway"]

    assert table["auth"] == {"command": "/usr/bin/env", "args": [f"HOME={home}", "token", "--for", "codex"], "timeout_ms": 5000}


def test_fewer_retries_are_the_users_choice(user_home: Write) -> None:
    home = user_home(
        {".codex/config.toml": f'model_provider = "gateway"\n{PROVIDER}stream_max_retries = 1\nrequest_max_retries = 3\n'}
    )

    table = login_of(home).settings["model_providers"]["gateway"]

    assert (table["request_max_retries"], table["stream_max_retries"]) == (0, 1)


def test_aws_credentials_are_found_and_its_sign_on_carried(user_home: Write, tmp_path: Path) -> None:
    bedrock = 'model_provider = "amazon-bedrock"\n[model_providers.amazon-bedrock.aws]\nprofile = "work"\n'
    home = user_home({".codex/config.toml": bedrock, ".aws/config": "", ".aws/sso/cache/a.json": {"accessToken": "t"}})

    login = login_of(home, AWS_REGION="eu-west-1", OTHER="x")

    assert dict(login.environment) == {"AWS_CONFIG_FILE": str(home / ".aws/config"), "AWS_REGION": "eu-west-1"}
    assert login.settings["model_providers"] == {"amazon-bedrock": {"aws": {"profile": "work"}}}
    place = Workspace.at(tmp_path / "attempt")
    write_home(login, {}, place)
    assert json.loads((place.home / ".aws/sso/cache/a.json").read_text()) == {"accessToken": "t"}


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("config.toml", "model = ", "not valid TOML"),
        ("config.toml", 'model = "a"\nmodel = "b"', "not valid TOML"),
        ("auth.json", "{", "codex login"),
    ],
)
def test_damaged_files_are_named(name: str, content: str, part: str, user_home: Write) -> None:
    home = user_home({f".codex/{name}": content})

    with pytest.raises(EngineError, match=name.replace(".", r"\.")) as raised:
        login_of(home)

    assert part in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_config_with_a_byte_order_mark(user_home: Write) -> None:
    assert login_of(user_home({".codex/config.toml": '\ufeffmodel = "a"'})).settings == {"model": "a"}


def test_a_home_without_files(tmp_path: Path) -> None:
    login = login_of(tmp_path / "nowhere", CODEX_API_KEY="k")

    assert (dict(login.settings), login.auth, login.problem(NOW)) == ({}, None, None)
