"""What of the user's Hermes reaches an attempt, and what never does."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_caliper.backends.hermes_home import HermesLogin, model_arguments, read_login, user_home, write_home
from pytest_caliper.backends.mcp import ResolvedServer
from pytest_caliper.contracts import EngineError

Write = Callable[[dict[str, Any]], Path]
CONFIG: dict[str, Any] = {
    "model": {"provider": "openrouter", "default": "z-ai/glm-5.2"},
    "providers": {"mine": {"base_url": "http://127.0.0.1:9/v1", "key_env": "MY_PROVIDER_KEY"}},
    "mcp_servers": {"decoy": {"command": "false"}},
    "fallback_providers": [{"provider": "anthropic", "model": "x"}],
    "personalities": {"pirate": "arr"},
    "memory": {"provider": "mem0"},
    "skills": {"external_dirs": ["~/.agents/skills"]},
    "hooks": {"on_session_start": "touch /tmp/x"},
    "toolsets": ["all"],
    "compression": {"in_place": True},
}
FILES: dict[str, Any] = {
    ".hermes/config.yaml": yaml.safe_dump(CONFIG),
    ".hermes/.env": "# keys\nOPENROUTER_API_KEY=or-1\nexport OPENAI_API_KEY='oa-1'\nSLACK_BOT_TOKEN=s\nXAI_API_KEY=\nnonsense\n",
    ".hermes/auth.json": {
        "version": 1,
        "active_provider": "nous",
        "providers": {"nous": {"access_token": "a-1", "refresh_token": "renew-1", "expires_at": "2100-01-01T00:00:00Z"}},
        "credential_pool": {"openai-codex": [{"access_token": "a-2", "refresh_token": "renew-2"}]},
        "suppressed": {},
    },
    ".hermes/.anthropic_oauth.json": {"accessToken": "a-3", "refreshToken": "renew-3"},
    ".hermes/SOUL.md": "DECOY",
    ".hermes/memories/MEMORY.md": "DECOY",
    ".hermes/skills/decoy/SKILL.md": "DECOY",
    ".hermes/plugins/decoy/plugin.yaml": "DECOY",
}


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", **more}


def written(home: Path, target: Path, servers: tuple[ResolvedServer, ...] = (), **env: str) -> dict[str, str]:
    write_home(read_login(environment(home, **env)), target, servers)
    return {path.relative_to(target).as_posix(): path.read_text() for path in target.rglob("*") if path.is_file()}


def test_only_what_reaches_the_model_crosses_over(user_home: Write, tmp_path: Path) -> None:
    files = written(user_home(FILES), tmp_path / "attempt")

    assert set(files) == {"config.yaml", ".env", "auth.json", ".anthropic_oauth.json", ".no-bundled-skills"}
    assert "DECOY" not in "".join(files.values())
    config = yaml.safe_load(files["config.yaml"])
    assert config["model"] == CONFIG["model"]
    assert config["providers"] == CONFIG["providers"]
    assert not {"mcp_servers", "fallback_providers", "personalities", "hooks", "toolsets"} & set(config)
    assert config["memory"] == {"memory_enabled": False, "user_profile_enabled": False, "nudge_interval": 0}
    assert config["skills"] == {"creation_nudge_interval": 0}
    assert config["compression"] == {"in_place": False}
    assert files[".env"].splitlines() == ["OPENROUTER_API_KEY=or-1", "export OPENAI_API_KEY='oa-1'"]
    assert set(json.loads(files["auth.json"])) == {"version", "active_provider", "providers", "credential_pool"}


def test_refresh_tokens_stay_with_the_user(user_home: Write, tmp_path: Path) -> None:
    """One is good for one use; Hermes wants the field to be there."""
    home = user_home(FILES)

    text = "".join(written(home, tmp_path / "attempt").values())

    assert all(token in text for token in ("a-1", "a-2", "a-3"))
    assert not any(token in text for token in ("renew-1", "renew-2", "renew-3"))
    assert text.count("withheld") == 3
    assert "renew-1" in (home / ".hermes/auth.json").read_text()


def test_everything_is_readable_by_its_owner_alone(user_home: Write, tmp_path: Path) -> None:
    target = tmp_path / "attempt"

    written(user_home(FILES), target)

    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in target.iterdir()} == {0o600}


def test_an_earlier_try_leaves_nothing(user_home: Write, tmp_path: Path) -> None:
    home, target = user_home(FILES), tmp_path / "attempt"
    written(home, target)
    (target / "state.db").write_text("old")
    (target / "memories").mkdir()

    assert "state.db" not in written(home, target)


def test_mcp_servers_are_exactly_the_declared_ones(user_home: Write, tmp_path: Path) -> None:
    servers = (
        ResolvedServer(name="files", transport="stdio", command="/bin/x", args=("-a",), env={"K": "v"}),
        ResolvedServer(name="web", transport="http", url="https://x.test/mcp", headers={"Authorization": "Bearer t"}),
        ResolvedServer(name="old", transport="sse", url="https://x.test/sse"),
    )

    config = yaml.safe_load(written(user_home(FILES), tmp_path / "attempt", servers)["config.yaml"])

    assert config["mcp_servers"] == {
        "files": {"command": "/bin/x", "args": ["-a"], "env": {"K": "v"}},
        "web": {"url": "https://x.test/mcp", "headers": {"Authorization": "Bearer t"}},
        "old": {"url": "https://x.test/sse", "headers": {}, "transport": "sse"},
    }


def test_odd_characters_survive_the_configuration(user_home: Write, tmp_path: Path) -> None:
    odd = "é\u2028\u0085\x1b\U0001f3f4 'quoted' \"twice\": #"
    home = user_home({".hermes/config.yaml": yaml.safe_dump({"model": {"api_key": odd}})})

    assert yaml.safe_load(written(home, tmp_path / "attempt")["config.yaml"])["model"] == {"api_key": odd}


def test_only_variables_of_providers_pass(user_home: Write) -> None:
    given = {
        "OPENROUTER_API_KEY": "1",
        "ANTHROPIC_API_KEY": "1",
        "MY_PROVIDER_KEY": "1",
        "GLM_API_KEY": "",
        "GITHUB_TOKEN": "1",
        "AWS_SECRET_ACCESS_KEY": "1",
        "SLACK_BOT_TOKEN": "1",
        "HERMES_YOLO_MODE": "1",
        "HERMES_SESSION_ID": "1",
    }

    login = read_login(environment(user_home(FILES), **given))

    assert set(login.environment) == {"OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "MY_PROVIDER_KEY"}


@pytest.mark.parametrize(
    ("provider", "wanted"), [("bedrock", {"AWS_PROFILE"}), ("vertex", {"GOOGLE_CLOUD_PROJECT"}), (None, set())]
)
def test_a_clouds_variables_pass_for_its_provider_alone(provider: str | None, wanted: set[str], user_home: Write) -> None:
    env = environment(user_home({}), AWS_PROFILE="p", GOOGLE_CLOUD_PROJECT="g")

    assert set(read_login(env, provider).environment) == wanted


def test_variables_that_the_configuration_refers_to_pass(user_home: Write) -> None:
    config = {"model": {"provider": "custom", "base_url": "https://${MY_HOST}/v1", "api_key": "${MY_KEY}"}}
    env = environment(user_home({".hermes/config.yaml": yaml.safe_dump(config)}), MY_HOST="h", MY_KEY="k", MY_OTHER="o")

    assert dict(read_login(env).environment) == {"MY_HOST": "h", "MY_KEY": "k"}


@pytest.mark.parametrize(
    ("env", "profile", "expected"),
    [
        ({}, None, ".hermes"),
        ({}, "default", ".hermes"),
        ({}, "work\n", ".hermes/profiles/work"),
        ({}, "../../etc", ".hermes"),
        ({"HERMES_HOME": "/data/hermes"}, "work", "/data/hermes"),
    ],
)
def test_the_users_own_home(env: dict[str, str], profile: str | None, expected: str, tmp_path: Path) -> None:
    if profile is not None:
        (tmp_path / ".hermes").mkdir()
        (tmp_path / ".hermes" / "active_profile").write_text(profile)

    assert user_home(environment(tmp_path, **env)) == tmp_path / expected


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("config.yaml", "model: [", r"config\.yaml: not valid YAML .*hermes setup"),
        ("config.yaml", "model: \x00", r"config\.yaml: not valid YAML"),
        ("auth.json", "{", r"auth\.json: not valid JSON .*hermes model"),
    ],
)
def test_a_damaged_file_is_an_error_with_the_remedy(file: str, text: str, message: str, user_home: Write) -> None:
    home = user_home({f".hermes/{file}": text})

    with pytest.raises(EngineError, match=message) as raised:
        read_login(environment(home))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "- a list", "7", "model: a-model"])
def test_a_configuration_of_another_form_is_taken_as_hermes_takes_it(text: str, user_home: Write) -> None:
    login = read_login(environment(user_home({".hermes/config.yaml": text})))

    assert login.config == ({"model": {"default": "a-model"}} if "a-model" in text else {})


@pytest.mark.parametrize(
    ("files", "env", "problem"),
    [
        ({}, {}, "not logged in to any provider: run `hermes model`"),
        ({".hermes/.env": "SLACK_BOT_TOKEN=x"}, {}, "not logged in"),
        ({".hermes/auth.json": {"version": 1, "providers": {}}}, {}, "not logged in"),
        ({}, {"OPENAI_BASE_URL": "http://x"}, "not logged in"),
        ({}, {"OPENROUTER_API_KEY": "k"}, None),
        ({".hermes/.env": "GLM_API_KEY=x"}, {}, None),
        ({".hermes/config.yaml": "model: {provider: custom, base_url: 'http://127.0.0.1:1/v1'}"}, {}, None),
        ({".hermes/config.yaml": "providers: {mine: {base_url: x}}"}, {}, None),
        ({".hermes/config.yaml": "model: {provider: bedrock}"}, {}, None),
        ({".hermes/.anthropic_oauth.json": {"accessToken": "a"}}, {}, None),
        ({".hermes/auth.json": {"credential_pool": {"nous": [{}]}}}, {}, None),
        ({".hermes/auth.json": {"active_provider": "nous", "providers": {"nous": {"expires_at": 2000}}}}, {}, None),
        ({".hermes/auth.json": {"active_provider": "nous", "providers": {"nous": {"expires_at": 500}}}}, {}, "has expired"),
        (
            {".hermes/auth.json": {"active_provider": "nous", "providers": {"nous": {"expires_at": "1970-01-01T00:10:00Z"}}}},
            {},
            "at nous has expired: run `hermes -z hi`",
        ),
        ({".hermes/auth.json": {"active_provider": "nous", "providers": {"nous": {"expires_at": "soon"}}}}, {}, None),
    ],
)
def test_a_missing_login_is_seen(files: dict[str, Any], env: dict[str, str], problem: str | None, user_home: Write) -> None:
    found = read_login(environment(user_home(files), **env)).problem(1000.0)

    assert found is None if problem is None else found is not None and problem in found


@pytest.mark.parametrize(
    ("model", "provider", "options"),
    [
        (None, None, []),
        ("glm-5.2", None, ["--model", "glm-5.2"]),
        ("anthropic/claude-opus-4-8", None, ["--provider", "anthropic", "--model", "claude-opus-4-8"]),
        ("anthropic/claude-opus-4-8", "gemini", ["--provider", "anthropic", "--model", "claude-opus-4-8"]),
        ("anthropic/claude-opus-4-8", "openrouter", ["--model", "anthropic/claude-opus-4-8"]),
        ("anthropic/claude-opus-4-8", "nous", ["--model", "anthropic/claude-opus-4-8"]),
        ("openrouter/anthropic/claude-opus-4.8", "nous", ["--provider", "openrouter", "--model", "anthropic/claude-opus-4.8"]),
        ("mine/some/model", "openrouter", ["--provider", "mine", "--model", "some/model"]),
        ("z-ai/glm-5.2", None, ["--model", "z-ai/glm-5.2"]),
        ("anthropic/", None, ["--model", "anthropic/"]),
    ],
)
def test_a_target_names_provider_and_model(model: str | None, provider: str | None, options: list[str]) -> None:
    config = {"model": {"provider": provider}, "providers": {"mine": {}}}

    assert model_arguments(model, HermesLogin(config=config)) == options


def test_the_users_own_setup_crosses_over_on_request(user_home: Write, tmp_path: Path) -> None:
    """All of the configuration but the MCP servers; a conversation is never compressed in place."""
    target = tmp_path / "attempt"

    write_home(read_login(environment(user_home(FILES))), target, own=True)

    config = yaml.safe_load((target / "config.yaml").read_text())
    assert config["personalities"] == {"pirate": "arr"}
    assert config["memory"] == {"provider": "mem0"}
    assert config["compression"] == {"in_place": False}
    assert "mcp_servers" not in config
