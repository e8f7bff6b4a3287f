"""The user's Claude Code login, and the isolated home that an attempt gets instead of the user's own.

Only what is needed to reach the model crosses over: credentials, the account, the default model and how a provider is reached.
Never hooks, plugins, MCP servers, permissions, memories, CLAUDE.md, skills or commands: a run must not depend on whose machine it
is made on.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_caliper.backends.claude_errors import LOGIN_REMEDY
from pytest_caliper.backends.environment import host_home, matches
from pytest_caliper.backends.private_files import write_bytes, write_object
from pytest_caliper.contracts import EngineError

Keychain = Callable[[str, Mapping[str, str]], "str | None"]
"""Answers a macOS keychain service name and the host's environment with the secret, or None."""

_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_AWS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS")
_GOOGLE = ("CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD")
_AZURE = ("CLAUDE_CODE_USE_FOUNDRY",)
_PROVIDERS = (*_AWS, *_GOOGLE, *_AZURE, "CLAUDE_CODE_USE_GATEWAY")

PASSED: tuple[str, ...] = (
    *("ANTHROPIC_*", *_KEYS, *_PROVIDERS, "CLAUDE_CODE_SKIP_*_AUTH", "CLAUDE_CODE_API_BASE_URL", "CLAUDE_CODE_CUSTOM_OAUTH_URL"),
    *("CLAUDE_CODE_CERT_STORE", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"),
    *("CLAUDE_CODE_PROXY_*", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS", "CLAUDE_CODE_EXTRA_BODY", "API_TIMEOUT_MS"),
    # What some gateways and providers cannot serve, and must be told not to be asked for.
    *("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_SUBAGENT_MODEL"),
    "DISABLE_PROMPT_CACHING*",
)
"""Variables that say how the model is reached. Everything else of Claude Code's stays outside: `CLAUDECODE`,
`CLAUDE_CODE_ENTRYPOINT` and `CLAUDE_CODE_SSE_PORT` of a session that pytest was started from would tie the attempt to it."""

_AWS_PASSED = ("AWS_*",)
_GOOGLE_PASSED = ("GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "CLOUD_ML_REGION", "VERTEX_*")
_AZURE_PASSED = ("AZURE_*", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "MSI_ENDPOINT")

_COMMAND_SETTINGS = ("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh")
_ACCOUNT_FIELDS = ("oauthAccount", "primaryApiKey", "customApiKeyResponses", "userID", "hasCompletedOnboarding")
_MANAGED_SETTINGS = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
"""Settings of the machine's administrator: the CLI reads them by itself, here they only count as a login."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaudeLogin:
    """How the user's Claude Code reaches its model."""

    environment: Mapping[str, str]
    """Variables for the attempt: the host's and those of `env` in settings.json, which win as they do in the CLI."""
    oauth: Mapping[str, Any] | None = None
    """`claudeAiOauth` of the credentials, without its refresh token."""
    account: Mapping[str, Any] | None = None
    """Login fields of `.claude.json`."""
    settings: Mapping[str, Any] | None = None
    """`model` and the commands that produce credentials."""
    managed: bool = False
    """Whether the administrator's settings hold a login."""
    aws_cache: Path | None = None
    """The user's AWS single sign-on cache, when a provider on AWS is on."""

    @property
    def model(self) -> str | None:
        """The default model of the user's settings."""
        model = (self.settings or {}).get("model")
        return model if isinstance(model, str) and model else None

    def problem(self, now: float) -> str | None:
        """Why this cannot work at `now` (seconds since the epoch), in one line with the remedy; None when it may."""
        if _authenticated(self.environment) or self.managed or "apiKeyHelper" in (self.settings or {}):
            return None
        if (self.account or {}).get("primaryApiKey"):
            return None
        if self.oauth is None:
            return f"Claude Code is not logged in: {LOGIN_REMEDY}"
        expires = self.oauth.get("expiresAt")
        if isinstance(expires, (int, float)) and expires / 1000 <= now:
            return (
                "the login of Claude Code has expired: run `claude` once, which renews it, "
                "or set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN from `claude setup-token`"
            )
        return None


def config_directory(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps its user's files, by the host's environment."""
    config = env.get("CLAUDE_CONFIG_DIR")
    return Path(config) if config else host_home(env) / ".claude"


def read_login(
    env: Mapping[str, str], *, keychain: Keychain | None = None, managed: tuple[Path, ...] = _MANAGED_SETTINGS
) -> ClaudeLogin:
    """The login by the host's environment `env` and the user's files, or the `keychain` where there is one.

    Files are read only when the environment holds no key and no provider. Raises EngineError when one of them is damaged.
    """
    config = env.get("CLAUDE_CONFIG_DIR")
    directory = config_directory(env)
    settings = _read_object(directory / "settings.json") or {}
    environment = {name: value for name, value in env.items() if value and matches(name, PASSED)}
    own = settings.get("env")
    if isinstance(own, Mapping):
        environment |= {str(name): str(value) for name, value in own.items() if matches(str(name), PASSED)}
    environment |= _provider_environment(env, environment)
    login = ClaudeLogin(
        environment=environment,
        settings=_carried_settings(settings, env) or None,
        managed=any(_holds_login(path) for path in managed),
        aws_cache=host_home(env) / ".aws" / "sso" / "cache" if _on(environment, _AWS) else None,
    )
    if _authenticated(environment):
        return login
    state = _read_object((directory if config else host_home(env)) / ".claude.json") or {}
    account = {name: state[name] for name in _ACCOUNT_FIELDS if name in state}
    credentials = _read_object(directory / ".credentials.json")
    if keychain is not None:
        credentials = _from_keychain(keychain, env, config) or credentials
        if "primaryApiKey" not in account and (key := keychain(_service("Claude Code", config), env)):
            account["primaryApiKey"] = key.strip()
    return replace(login, account=account or None, oauth=_without_refresh(credentials))


def write_home(login: ClaudeLogin, home: Path) -> None:
    """Write the login below `home`, readable by its owner alone."""
    config = home / ".claude"
    config.mkdir(parents=True, exist_ok=True)
    if login.oauth is not None:
        write_object(config / ".credentials.json", {"claudeAiOauth": login.oauth})
    if login.account is not None:
        write_object(home / ".claude.json", login.account)
    if login.settings is not None:
        write_object(config / "settings.json", login.settings)
    for path in sorted(login.aws_cache.glob("*.json")) if login.aws_cache is not None else ():
        write_bytes(home / ".aws" / "sso" / "cache" / path.name, path.read_bytes())


def run_security(service: str, env: Mapping[str, str]) -> str | None:
    """The secret of `service` in the user's macOS keychain, by the system's `security`; None when it has none."""
    command = ("security", "find-generic-password", "-s", service, "-w")
    try:
        done = subprocess.run(command, env=dict(env), capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"the keychain did not answer ({error}): unlock it, or set ANTHROPIC_API_KEY") from error
    return done.stdout.decode("utf-8", "replace").strip() or None if done.returncode == 0 else None


def _carried_settings(settings: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """The default model, and the commands that fetch credentials: those run with the user's own HOME, where their files are."""
    carried: dict[str, Any] = {}
    if isinstance(model := settings.get("model"), str) and model:
        carried["model"] = model
    for name in _COMMAND_SETTINGS:
        if isinstance(command := settings.get(name), str) and command.strip():
            carried[name] = f"HOME={shlex.quote(str(host_home(env)))} sh -c {shlex.quote(command)}"
    return carried


def _provider_environment(env: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Variables of the cloud providers that are on, with the user's credential files, which a replaced HOME would hide."""
    out: dict[str, str] = {}
    home = host_home(env)
    gcloud = Path(env.get("CLOUDSDK_CONFIG") or home / ".config" / "gcloud")
    families = (
        (_AWS, _AWS_PASSED, {"AWS_SHARED_CREDENTIALS_FILE": home / ".aws/credentials", "AWS_CONFIG_FILE": home / ".aws/config"}),
        (_GOOGLE, _GOOGLE_PASSED, {"GOOGLE_APPLICATION_CREDENTIALS": gcloud / "application_default_credentials.json"}),
        (_AZURE, _AZURE_PASSED, {"AZURE_CONFIG_DIR": home / ".azure"}),
    )
    for switches, patterns, files in families:
        if _on(environment, switches):
            out |= {name: str(path) for name, path in files.items() if path.exists()}
            out |= {name: value for name, value in env.items() if value and matches(name, patterns)}
    return out


def _authenticated(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) for name in _KEYS) or _on(environment, _PROVIDERS)


def _on(environment: Mapping[str, str], switches: tuple[str, ...]) -> bool:
    return any(environment.get(name, "").lower() in ("1", "true", "yes", "on") for name in switches)


def _holds_login(path: Path) -> bool:
    try:
        settings = _read_object(path) or {}
    except EngineError:
        return False  # not the user's file to repair; the CLI says so itself
    own = settings.get("env")
    return "apiKeyHelper" in settings or (isinstance(own, Mapping) and _authenticated({str(k): str(v) for k, v in own.items()}))


def _from_keychain(keychain: Keychain, env: Mapping[str, str], config: str | None) -> dict[str, Any] | None:
    secret = keychain(_service("Claude Code-credentials", config), env)
    if secret is None:
        return None
    try:
        data = json.loads(secret)
    except ValueError as error:
        raise EngineError(f"the keychain entry of Claude Code is damaged: {LOGIN_REMEDY}") from error
    return data if isinstance(data, dict) else None


def _service(name: str, config: str | None) -> str:
    """The keychain's service name: with a suffix for a configuration directory of the user's choice."""
    return f"{name}-{hashlib.sha256(config.encode()).hexdigest()[:8]}" if config else name


def _without_refresh(credentials: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The access token alone. A refresh token is good for one use: an attempt that used its copy would log the user out."""
    oauth = (credentials or {}).get("claudeAiOauth")
    if not isinstance(oauth, Mapping) or not oauth.get("accessToken"):
        return None
    return {name: value for name, value in oauth.items() if name != "refreshToken"}


def _read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None when there is no such file. Raises EngineError when it cannot be used."""
    try:
        data = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EngineError(f"{path}: {error.strerror}: make it readable, or set ANTHROPIC_API_KEY") from error
    except ValueError as error:
        raise EngineError(f"{path}: not valid JSON ({error}): repair it, or log in again with `claude`") from error
    return data if isinstance(data, dict) else None


class CachedKeychain:
    """Asks the keychain once per service, and again when what it holds may have been renewed."""

    def __init__(self, ask: Keychain, *, now: Callable[[], float] = time.time, keep_s: float = 600.0) -> None:
        self._ask, self._now, self._keep_s = ask, now, keep_s
        self._answers: dict[str, tuple[float, str | None]] = {}

    def __call__(self, service: str, env: Mapping[str, str]) -> str | None:
        known = self._answers.get(service)
        if known is None or self._now() - known[0] > self._keep_s:
            known = (self._now(), self._ask(service, env))
            self._answers[service] = known
        return known[1]
