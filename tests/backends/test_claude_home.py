"""The user's login, and what of it reaches an attempt's home."""

from __future__ import annotations

import hashlib
import json
import stat
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.backends.claude_home import CachedKeychain, ClaudeLogin, read_login, run_security, write_home
from pytest_caliper.contracts import EngineError

Write = Callable[[dict[str, Any]], Path]
OAUTH = {"accessToken": "access-1", "refreshToken": "refresh-1", "expiresAt": 4102444800000, "scopes": ["user:inference"]}
NOW = 1_800_000_000.0


def login_of(home: Path, keychain: Any = None, **variables: str) -> ClaudeLogin:
    return read_login({"HOME": str(home), **variables}, keychain=keychain, managed=())


def written(login: ClaudeLogin, root: Path) -> dict[str, Any]:
    """Files below the attempt's home, as text or JSON."""
    home = root / "attempt-home"
    write_home(login, home)
    out = {}
    for path in sorted(home.rglob("*")):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            out[path.relative_to(home).as_posix()] = json.loads(path.read_text(encoding="utf-8"))
    return out


def test_nothing_personal_crosses_over(user_home: Write, tmp_path: Path) -> None:
    home = user_home(
        {
            ".claude/CLAUDE.md": "SECRET-MEMORY",
            ".claude/skills/mine/SKILL.md": "SECRET-SKILL",
            ".claude/commands/mine.md": "SECRET-COMMAND",
            ".claude/agents/mine.md": "SECRET-AGENT",
            ".claude/plugins/config.json": {"a": "SECRET-PLUGIN"},
            ".claude/projects/x/memory/MEMORY.md": "SECRET-PROJECT",
            ".claude/settings.json": {
                "model": "opus",
                "hooks": {"PreToolUse": ["SECRET-HOOK"]},
                "permissions": {"deny": ["SECRET-PERMISSION"]},
                "enabledPlugins": {"SECRET-PLUGIN": True},
                "outputStyle": "SECRET-STYLE",
                "env": {
                    "ANTHROPIC_BASE_URL": "https://gateway.example",
                    "MY_TOKEN": "SECRET-ENV",
                    "CLAUDECODE": "SECRET-NESTING",
                },
            },
            ".claude/settings.local.json": {"model": "SECRET-LOCAL"},
            ".claude/.credentials.json": {"claudeAiOauth": OAUTH, "mcpOAuth": {"x": "SECRET-MCP"}},
            ".claude.json": {
                "oauthAccount": {"accountUuid": "u-1"},
                "userID": "id-1",
                "mcpServers": {"x": "SECRET-SERVER"},
                "projects": {"/p": "SECRET-HISTORY"},
            },
        }
    )

    login = login_of(home)

    assert written(login, tmp_path) == {
        ".claude.json": {"oauthAccount": {"accountUuid": "u-1"}, "userID": "id-1"},
        ".claude/.credentials.json": {"claudeAiOauth": {name: OAUTH[name] for name in ("accessToken", "expiresAt", "scopes")}},
        ".claude/settings.json": {"model": "opus"},
    }
    assert login.environment == {"ANTHROPIC_BASE_URL": "https://gateway.example"}
    assert login.model == "opus"
    assert login.problem(NOW) is None


def test_a_refresh_token_never_leaves_the_users_home(user_home: Write, tmp_path: Path) -> None:
    """It is good for one use: an attempt that renewed its copy would log the user out."""
    home = user_home({".claude/.credentials.json": {"claudeAiOauth": OAUTH}})

    assert "refresh-1" not in json.dumps(written(login_of(home), tmp_path))


def test_another_configuration_directory_holds_everything(user_home: Write, tmp_path: Path) -> None:
    home = user_home(
        {
            "conf/.credentials.json": {"claudeAiOauth": OAUTH},
            "conf/.claude.json": {"userID": "conf"},
            ".claude.json": {"userID": "default"},
        }
    )

    login = login_of(home, CLAUDE_CONFIG_DIR=str(home / "conf"))

    assert login.oauth is not None
    assert written(login, tmp_path)[".claude.json"] == {"userID": "conf"}
    assert "CLAUDE_CONFIG_DIR" not in login.environment


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"])
def test_a_key_in_the_environment_is_enough_and_leaves_the_files_alone(name: str, user_home: Write, tmp_path: Path) -> None:
    home = user_home({".claude/.credentials.json": "damaged {", ".claude.json": {"oauthAccount": {}}})

    login = login_of(home, **{name: "key-1"})

    assert login.environment == {name: "key-1"}
    assert login.problem(NOW) is None
    assert written(login, tmp_path) == {}


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"ANTHROPIC_API_KEY": ""},
        {"CLAUDE_CODE_USE_BEDROCK": "0"},
        {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"},
    ],
)
def test_no_login_is_a_problem_with_every_remedy(variables: dict[str, str], user_home: Write) -> None:
    problem = login_of(user_home({".claude.json": {"userID": "u"}}), **variables).problem(NOW)

    assert problem is not None
    assert all(remedy in problem for remedy in ("`claude`", "/login", "ANTHROPIC_API_KEY", "`claude setup-token`"))
    assert "\n" not in problem


def test_an_expired_login_is_a_problem_of_its_own(user_home: Write) -> None:
    home = user_home({".claude/.credentials.json": {"claudeAiOauth": {**OAUTH, "expiresAt": 1000}}})

    assert "has expired: run `claude` once" in (login_of(home).problem(NOW) or "")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".claude/settings.json", {"apiKeyHelper": "get-key"}),
        (".claude/settings.json", {"env": {"ANTHROPIC_API_KEY": "k"}}),
        (".claude/settings.json", {"env": {"CLAUDE_CODE_USE_VERTEX": 1}}),
        (".claude.json", {"primaryApiKey": "k"}),
    ],
)
def test_other_places_of_a_login(path: str, content: dict[str, Any], user_home: Write) -> None:
    assert login_of(user_home({path: content})).problem(NOW) is None


def test_a_login_in_the_administrators_settings_counts(tmp_path: Path) -> None:
    managed = tmp_path / "managed.json"
    managed.write_text('{"apiKeyHelper": "x"}')

    assert read_login({"HOME": str(tmp_path)}, managed=(managed,)).problem(NOW) is None
    managed.write_text("damaged {")
    assert read_login({"HOME": str(tmp_path)}, managed=(managed,)).problem(NOW) is not None


def test_a_key_helper_runs_with_the_users_own_home(user_home: Write) -> None:
    """Its files are there; the attempt's HOME is empty."""
    home = user_home({"key": "key-1", ".claude/settings.json": {"apiKeyHelper": "cat ~/key; echo \"$HOME\"'s'"}})

    settings = login_of(home).settings

    assert settings is not None
    done = subprocess.run(
        settings["apiKeyHelper"], shell=True, env={"HOME": "/empty"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"key-1{home}s\n"


@pytest.mark.parametrize("path", [".claude/settings.json", ".claude/.credentials.json", ".claude.json"])
def test_a_damaged_file_is_named(path: str, user_home: Write) -> None:
    home = user_home({path: '{"a": '})

    with pytest.raises(EngineError, match=r"not valid JSON .*: repair it") as caught:
        login_of(home)

    assert str(home / path) in str(caught.value)


@pytest.mark.parametrize("content", ["[]", "null", '"text"', '{"claudeAiOauth": "text"}', '{"claudeAiOauth": {}}'])
def test_credentials_of_another_shape_are_none(content: str, user_home: Write) -> None:
    assert login_of(user_home({".claude/.credentials.json": content})).oauth is None


def test_provider_variables_pass_and_a_parent_sessions_do_not(tmp_path: Path) -> None:
    host = {
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_CUSTOM_HEADERS": "x: y",
        "CLAUDE_CODE_CLIENT_CERT": "/c.pem",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SSE_PORT": "1234",
        "CLAUDE_CODE_SESSION_ID": "s",
        "CLAUDE_CODE_EFFORT_LEVEL": "max",
        "CLAUDE_CONFIG_DIR": str(tmp_path),
        "AWS_SECRET_ACCESS_KEY": "not asked for",
    }

    assert set(login_of(tmp_path, **host).environment) == {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_CUSTOM_HEADERS",
        "CLAUDE_CODE_CLIENT_CERT",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    }


def test_bedrock_finds_the_users_aws_files(user_home: Write, tmp_path: Path) -> None:
    home = user_home({".aws/credentials": "[default]", ".aws/config": "[default]", ".aws/sso/cache/a.json": {"accessToken": "t"}})

    login = login_of(home, CLAUDE_CODE_USE_BEDROCK="1", AWS_REGION="eu-west-1", AWS_CONFIG_FILE="/own/config")

    assert login.environment == {
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "AWS_REGION": "eu-west-1",
        "AWS_CONFIG_FILE": "/own/config",
        "AWS_SHARED_CREDENTIALS_FILE": str(home / ".aws/credentials"),
    }
    assert written(login, tmp_path) == {".aws/sso/cache/a.json": {"accessToken": "t"}}
    assert login.problem(NOW) is None


def test_vertex_finds_the_users_google_credentials(user_home: Write) -> None:
    home = user_home({".config/gcloud/application_default_credentials.json": "{}"})

    login = login_of(home, CLAUDE_CODE_USE_VERTEX="true", CLOUD_ML_REGION="us-east5", VERTEX_REGION_X="y", AWS_REGION="no")

    assert login.environment == {
        "CLAUDE_CODE_USE_VERTEX": "true",
        "CLOUD_ML_REGION": "us-east5",
        "VERTEX_REGION_X": "y",
        "GOOGLE_APPLICATION_CREDENTIALS": str(home / ".config/gcloud/application_default_credentials.json"),
    }


def test_providers_may_be_switched_on_in_the_settings(user_home: Write) -> None:
    home = user_home({".claude/settings.json": {"env": {"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_MODEL": "m"}}})

    environment = login_of(home, AWS_PROFILE="work", ANTHROPIC_MODEL="other").environment

    assert environment == {"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_MODEL": "m", "AWS_PROFILE": "work"}


class FakeKeychain:
    def __init__(self, **secrets: str) -> None:
        self.secrets = secrets
        self.asked: list[str] = []

    def __call__(self, service: str, env: Mapping[str, str]) -> str | None:
        self.asked.append(service)
        return self.secrets.get(service)


def test_the_keychain_holds_the_login(tmp_path: Path) -> None:
    keychain = FakeKeychain(**{"Claude Code-credentials": json.dumps({"claudeAiOauth": OAUTH})})

    login = login_of(tmp_path, keychain)

    assert written(login, tmp_path)[".claude/.credentials.json"]["claudeAiOauth"]["accessToken"] == "access-1"
    assert keychain.asked == ["Claude Code-credentials", "Claude Code"]


def test_the_keychain_of_another_configuration_directory(tmp_path: Path) -> None:
    config = str(tmp_path / "conf")
    suffix = hashlib.sha256(config.encode()).hexdigest()[:8]
    keychain = FakeKeychain(**{f"Claude Code-credentials-{suffix}": json.dumps({"claudeAiOauth": OAUTH})})

    assert login_of(tmp_path, keychain, CLAUDE_CONFIG_DIR=config).oauth is not None


def test_a_console_key_in_the_keychain(tmp_path: Path) -> None:
    login = login_of(tmp_path, FakeKeychain(**{"Claude Code": "key-1\n"}))

    assert login.account == {"primaryApiKey": "key-1"}
    assert login.problem(NOW) is None


def test_without_an_entry_in_the_keychain_the_file_counts(user_home: Write) -> None:
    home = user_home({".claude/.credentials.json": {"claudeAiOauth": OAUTH}})

    assert login_of(home, FakeKeychain()).oauth is not None


def test_the_keychain_is_left_alone_when_there_is_a_key(tmp_path: Path) -> None:
    keychain = FakeKeychain()

    login_of(tmp_path, keychain, ANTHROPIC_API_KEY="k")

    assert keychain.asked == []


def test_a_damaged_entry_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"keychain entry .* is damaged: log in"):
        login_of(tmp_path, FakeKeychain(**{"Claude Code-credentials": "no json"}))


def test_the_keychain_is_asked_once_and_again_after_a_while() -> None:
    keychain, clock = FakeKeychain(), [0.0]
    cached = CachedKeychain(keychain, now=lambda: clock[0], keep_s=600)

    for moment in (0.0, 10.0, 599.0, 601.0, 602.0):
        clock[0] = moment
        cached("Claude Code", {})

    assert len(keychain.asked) == 2


def test_security_is_asked_for_the_service(tmp_path: Path) -> None:
    program = tmp_path / "security"
    program.write_text('#!/bin/sh\necho "$*" >> "$LOG"\n[ "$3" = Known ] || exit 44\necho secret\n')
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(tmp_path / "log")}

    assert run_security("Known", env) == "secret"
    assert run_security("Other", env) is None
    assert (tmp_path / "log").read_text().splitlines()[0] == "find-generic-password -s Known -w"


def test_a_keychain_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="keychain did not answer"):
        run_security("Known", {"PATH": str(tmp_path)})


def test_an_existing_file_is_never_written_through(tmp_path: Path) -> None:
    """A link at the place of the credentials would carry them elsewhere."""
    place = tmp_path / "home/.claude/.credentials.json"
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "stolen")

    write_home(ClaudeLogin(environment={}, oauth=OAUTH), tmp_path / "home")

    assert not (tmp_path / "stolen").exists()
    assert not place.is_symlink()
    assert place.stat().st_mode & 0o777 == 0o600
