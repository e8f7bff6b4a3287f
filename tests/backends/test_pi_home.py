"""The user's way to a model, and what of it reaches an attempt's home."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.backends.pi_home import PiLogin, read_login, write_home
from pytest_caliper.contracts import EngineError

Write = Callable[[dict[str, Any]], Path]
NOW = 1_800_000_000.0
KEY = {"type": "api_key", "key": "k-1"}
OAUTH = {"type": "oauth", "access": "access-1", "refresh": "refresh-1", "expires": (NOW + 3600) * 1000}
RETRY = {"enabled": True, "maxRetries": 2, "baseDelayMs": 2000, "maxAgentDelayMs": 10_000, "provider": {"maxRetries": 0}}


def answer(command: str, env: Mapping[str, str]) -> str | None:
    return None if command == "fail" else f"{command}@{env['HOME']}"


def written(login: PiLogin, env: Mapping[str, str], root: Path, *, templates: bool = True) -> dict[str, Any]:
    """Files of the attempt's agent directory, as JSON."""
    directory = root / "attempt-home" / ".pi" / "agent"
    write_home(login.resolved(env, templates=templates, run=answer), directory)
    secret = [path for path in directory.iterdir() if path.name != "models-store.json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in secret} == {0o600}
    return {path.relative_to(directory).as_posix(): json.loads(path.read_text()) for path in directory.rglob("*")}


def test_nothing_personal_crosses_over(user_home: Write, tmp_path: Path) -> None:
    personal = {
        "AGENTS.md": "SECRET",
        "SYSTEM.md": "SECRET",
        "APPEND_SYSTEM.md": "SECRET",
        "skills/mine/SKILL.md": "SECRET",
        "extensions/mine.ts": "SECRET",
        "prompts/mine.md": "SECRET",
        "themes/mine.json": "SECRET",
        "mcp.json": {"mcpServers": {"x": "SECRET"}},
        "mcp-auth.json": {"x": "SECRET"},
        "sessions/a.jsonl": "SECRET",
    }
    settings = {
        "defaultProvider": "anthropic",
        "defaultModel": "claude-opus",
        "defaultThinkingLevel": "high",
        "httpProxy": "http://proxy.example",
        "packages": ["SECRET"],
        "extensions": ["SECRET"],
        "skills": ["SECRET"],
        "shellCommandPrefix": "SECRET",
        "defaultTools": ["SECRET"],
        "retry": {"maxRetries": 9, "provider": {"maxRetries": 5, "timeoutMs": 1000}},
    }
    files = {".pi/agent/" + name: text for name, text in personal.items()}
    store = {"anthropic": {"models": []}}
    home = user_home(
        {
            **files,
            ".pi/agent/settings.json": settings,
            ".pi/agent/auth.json": {"anthropic": KEY},
            ".pi/agent/models-store.json": store,
        }
    )
    env = {"HOME": str(home)}

    found = written(read_login(env, None), env, tmp_path)

    assert "SECRET" not in json.dumps(found)
    assert set(found) == {"auth.json", "settings.json", "models-store.json"}
    assert found["auth.json"] == {"anthropic": KEY}
    assert found["models-store.json"] == store
    assert found["settings.json"] == {
        "defaultProvider": "anthropic",
        "defaultModel": "claude-opus",
        "defaultThinkingLevel": "high",
        "httpProxy": "http://proxy.example",
        "enableInstallTelemetry": False,
        "enableAnalytics": False,
        "cacheWarming": "off",
        "quietStartup": True,
        "retry": {**RETRY, "provider": {"maxRetries": 0, "timeoutMs": 1000}},
    }


@pytest.mark.parametrize(
    ("wish", "limits"),
    [
        (None, RETRY),
        ({"enabled": False}, {**RETRY, "enabled": False}),
        ({"maxRetries": 0, "baseDelayMs": 10}, {**RETRY, "maxRetries": 0, "baseDelayMs": 10}),
        ({"maxRetries": "many", "maxAgentDelayMs": -1}, RETRY),
        ("nonsense", RETRY),
    ],
)
def test_retries_are_bounded(wish: Any, limits: dict[str, Any], user_home: Write) -> None:
    home = user_home({".pi/agent/settings.json": {} if wish is None else {"retry": wish}})

    assert read_login({"HOME": str(home)}, None).settings["retry"] == limits


def test_a_known_providers_credentials_cross_over_alone(user_home: Write, tmp_path: Path) -> None:
    models = {
        "mine": {"baseUrl": "http://127.0.0.1:1/v1", "apiKey": "!mine-key", "models": [{"id": "m"}]},
        "other": {"baseUrl": "http://o", "apiKey": "!fail"},
    }
    home = user_home({".pi/agent/auth.json": {"openai": KEY}, ".pi/agent/models.json": {"providers": models}})
    env = {
        "HOME": str(home),
        "OPENAI_API_KEY": "o",
        "ANTHROPIC_API_KEY": "a",
        "AWS_SECRET_ACCESS_KEY": "w",
        "PI_PACKAGE_DIR": "/p",
    }

    login = read_login(env, "mine/m")

    assert login.provider == "mine"
    assert login.environment == {"PI_PACKAGE_DIR": "/p"}
    found = written(login, env, tmp_path)
    assert found["auth.json"] == {}
    assert found["models.json"] == {"providers": {"mine": {**models["mine"], "apiKey": f"mine-key@{home}"}}}


def test_all_credentials_cross_over_where_only_pi_knows_the_provider(user_home: Write) -> None:
    home = user_home({".pi/agent/auth.json": {"openai": KEY, "xai": KEY}})
    env = {"HOME": str(home), "GROQ_API_KEY": "g", "ANTHROPIC_API_KEY": "a", "AWS_PROFILE": "w", "GOOGLE_CLOUD_PROJECT": "p"}

    for model in ("sonnet", "elsewhere/sonnet", "azure/gpt", None):
        login = read_login(env, model)

        assert (login.provider, set(login.auth)) == (None, {"openai", "xai"})
        assert login.environment == {"GROQ_API_KEY": "g", "ANTHROPIC_API_KEY": "a"}


def test_a_clouds_credentials_cross_over_with_their_files(user_home: Write) -> None:
    home = user_home({".aws/credentials": "[default]", ".aws/config": "[default]", ".config/gcloud/x": ""})
    env = {"HOME": str(home), "AWS_PROFILE": "w", "AWS_REGION": "r", "ANTHROPIC_API_KEY": "a"}

    assert read_login(env, "amazon-bedrock/claude").environment == {
        "AWS_PROFILE": "w",
        "AWS_REGION": "r",
        "AWS_SHARED_CREDENTIALS_FILE": str(home / ".aws/credentials"),
        "AWS_CONFIG_FILE": str(home / ".aws/config"),
    }


def test_names_and_commands_are_resolved_on_the_host(user_home: Write, tmp_path: Path) -> None:
    models = {
        "mine": {
            "baseUrl": "http://$HOME",
            "apiKey": "${PART}-x",
            "headers": {"A": "!header", "B": "plain"},
            "models": [{"id": "m", "headers": {"C": "$PART"}}],
            "modelOverrides": {"n": {"headers": {"D": "$PART"}}, "o": {"name": "O"}},
        }
    }
    auth = {"mine": {"type": "api_key", "key": "$OWN$PART", "env": {"OWN": "own-"}}}
    home = user_home({".pi/agent/models.json": {"providers": models}, ".pi/agent/auth.json": auth})
    env = {"HOME": str(home), "PART": "p$1"}

    found = written(read_login(env, "mine/m"), env, tmp_path)

    mine = found["models.json"]["providers"]["mine"]
    assert (mine["baseUrl"], mine["apiKey"]) == ("http://$HOME", "p$$1-x")
    assert mine["headers"] == {"A": f"header@{home}", "B": "plain"}
    assert (mine["models"][0]["headers"], mine["modelOverrides"]["n"]["headers"]) == ({"C": "p$$1"}, {"D": "p$$1"})
    assert mine["modelOverrides"]["o"] == {"name": "O"}
    assert found["auth.json"]["mine"]["key"] == "own-p$$1"


def test_an_old_pi_gets_its_own_spelling(user_home: Write, tmp_path: Path) -> None:
    home = user_home({".pi/agent/models.json": {"providers": {"mine": {"baseUrl": "u", "apiKey": "MY_KEY"}}}})
    env = {"HOME": str(home), "MY_KEY": "a$b"}

    found = written(read_login(env, "mine/m"), env, tmp_path, templates=False)

    assert found["models.json"]["providers"]["mine"]["apiKey"] == "a$b"


def test_an_unset_variable_is_named_when_it_is_needed(user_home: Write, tmp_path: Path) -> None:
    home = user_home({".pi/agent/auth.json": {"openai": {"type": "api_key", "key": "$UNSET"}, "xai": KEY}})
    env = {"HOME": str(home)}

    login = read_login(env, "openai/gpt")

    problem = login.problem(env, NOW)
    assert problem == "pi's key for openai needs the environment variable UNSET, which is not set: export it"
    with pytest.raises(EngineError, match=r"auth\.json, openai: the environment variable UNSET is not set: export it"):
        login.resolved(env, templates=True, run=answer)
    assert written(read_login(env, "gpt"), env, tmp_path)["auth.json"] == {"xai": KEY}


def test_a_command_that_fails_is_an_error(user_home: Write) -> None:
    home = user_home({".pi/agent/auth.json": {"openai": {"type": "api_key", "key": "!fail"}}})
    env = {"HOME": str(home)}

    with pytest.raises(EngineError, match=r"auth\.json, openai: the command that prints its key failed: run it in a shell"):
        read_login(env, None).resolved(env, templates=True, run=answer)


def test_a_refresh_token_stays_at_home_unless_it_can_be_used_again(user_home: Write) -> None:
    home = user_home({".pi/agent/auth.json": {"anthropic": OAUTH, "github-copilot": OAUTH}})

    auth = read_login({"HOME": str(home)}, "sonnet").auth

    assert auth == {"anthropic": {**OAUTH, "refresh": ""}, "github-copilot": OAUTH}


@pytest.mark.parametrize(
    ("provider", "seconds_left", "expired"),
    [("anthropic", 3600, False), ("anthropic", 200, True), ("anthropic", -5, True), ("github-copilot", -5, False)],
)
def test_a_login_that_has_expired(provider: str, seconds_left: int, expired: bool, user_home: Write) -> None:
    home = user_home({".pi/agent/auth.json": {provider: {**OAUTH, "expires": (NOW + seconds_left) * 1000}}})
    env = {"HOME": str(home)}

    problem = read_login(env, f"{provider}/m").problem(env, NOW)

    assert (problem is not None and f"has expired: run `pi auth check --provider {provider}`" in problem) is expired


@pytest.mark.parametrize(
    ("files", "variables", "logged_in"),
    [
        ({}, {}, False),
        ({".pi/agent/settings.json": {"defaultProvider": "anthropic"}}, {"STRIPE_API_KEY": "s"}, False),
        ({".pi/agent/auth.json": {}}, {"ANTHROPIC_API_KEY": ""}, False),
        ({}, {"ANTHROPIC_API_KEY": "a"}, True),
        ({}, {"AWS_PROFILE": "a"}, True),
        ({".pi/agent/auth.json": {"openai": KEY}}, {}, True),
        ({".pi/agent/models.json": {"providers": {"local": {"baseUrl": "u"}}}}, {}, True),
    ],
)
def test_who_is_logged_in(files: dict[str, Any], variables: dict[str, str], logged_in: bool, user_home: Write) -> None:
    env = {"HOME": str(user_home(files)), **variables}

    problem = read_login(env, None).problem(env, NOW)

    assert problem is None if logged_in else problem is not None and "/login" in problem


def test_the_users_own_agent_directory(user_home: Write) -> None:
    home = user_home({"elsewhere/auth.json": {"openai": KEY}})

    for place in (str(home / "elsewhere"), "~/elsewhere"):
        assert read_login({"HOME": str(home), "PI_CODING_AGENT_DIR": place}, None).auth == {"openai": KEY}


def test_comments_in_models_json(user_home: Write) -> None:
    text = '\ufeff{ // mine\n "providers": {"p": {"baseUrl": "http://x", /* y */ "models": [{"id": "a"},],},},}'
    home = user_home({".pi/agent/models.json": text})

    assert read_login({"HOME": str(home)}, None).models == {"p": {"baseUrl": "http://x", "models": [{"id": "a"}]}}


@pytest.mark.parametrize("name", ["auth.json", "models.json", "settings.json"])
def test_a_damaged_file_is_named(name: str, user_home: Write) -> None:
    home = user_home({f".pi/agent/{name}": "{nonsense"})

    with pytest.raises(EngineError, match=rf"{name}: not valid JSON .* repair it"):
        read_login({"HOME": str(home)}, None)


@pytest.mark.parametrize("content", ['{"providers": 1}', "[]", "3", '{"anthropic": "x"}'])
def test_odd_content_is_nothing(content: str, user_home: Write, tmp_path: Path) -> None:
    home = user_home({f".pi/agent/{name}.json": content for name in ("auth", "models", "settings")})
    env = {"HOME": str(home)}

    found = written(read_login(env, None), env, tmp_path)

    assert set(found) == {"auth.json", "settings.json"}
    assert found["auth.json"] == {}
