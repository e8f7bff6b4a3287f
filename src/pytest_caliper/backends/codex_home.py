"""The user's Codex login, and the isolated CODEX_HOME that an attempt gets instead of the user's own.

Only what is needed to reach the model crosses over: credentials, the provider in use and the defaults of the model. Never MCP
servers, hooks, `notify`, AGENTS.md, skills, prompts, rules, plugins, profiles' other settings or memories.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from pytest_caliper.backends.codex_errors import LOGIN_REMEDY
from pytest_caliper.backends.environment import host_home, matches
from pytest_caliper.backends.private_files import read_bytes, read_object, write_bytes, write_object
from pytest_caliper.contracts import EngineError, Workspace

_OPENAI = "openai"
_BEDROCK = "amazon-bedrock"
_LOCAL = frozenset({"ollama", "lmstudio", "ollama-chat"})
_BUILT_IN = _LOCAL | {_OPENAI, _BEDROCK}

_KEY_VARIABLES = ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_FEDERATION_RULE_ID")
_PASSED = (
    *(*_KEY_VARIABLES, "OPENAI_IDENTITY_TOKEN_*", "OPENAI_SPIFFE_*", "SPIFFE_ENDPOINT_SOCKET", "OPENAI_WORKLOAD_IDENTITY_*"),
    *("OPENAI_ORGANIZATION", "OPENAI_PROJECT", "CODEX_CA_CERTIFICATE", "CODEX_OSS_PORT", "CODEX_OSS_BASE_URL"),
)
"""Variables that say how the model is reached. Those of a Codex session that pytest was started from (`CODEX_THREAD_ID`,
`CODEX_SANDBOX`) stay outside."""

_DEFAULTS = (
    *("model", "model_provider", "model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "model_context_window"),
    *("model_auto_compact_token_limit", "model_supports_reasoning_summaries", "model_catalog_json", "service_tier"),
    *("openai_base_url", "chatgpt_base_url"),
)
"""Settings of the user's config.toml that cross over, beside the provider's table."""

_REQUEST_RETRIES, _STREAM_RETRIES = 0, 2
"""Codex' own limits multiply: 5 requests for each of 6 tries (recorded, 25 s). A lost stream and a refused request both count as
a stream's try. The built-in providers cannot be given limits (`reserved built-in provider IDs`)."""

_RENEWED_BEFORE_S = 300.0
"""Codex renews an access token that is this close to its end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodexLogin:
    """How the user's Codex reaches its model."""

    settings: Mapping[str, Any]
    """What crosses over of config.toml, `model_providers` with the one in use among it."""
    environment: Mapping[str, str]
    """Variables for the attempt."""
    auth: Mapping[str, Any] | None = None
    """auth.json without its refresh token."""
    in_keyring: bool = False
    """Whether config.toml says that the login is in the system's keyring."""
    aws_cache: Path | None = None
    """The user's AWS single sign-on cache, when the provider is on AWS."""

    @property
    def provider(self) -> str:
        """The provider's id."""
        return str(self.settings.get("model_provider") or _OPENAI)

    @property
    def table(self) -> Mapping[str, Any]:
        """The provider's own table; empty for a built-in one."""
        return _mapping(_mapping(self.settings.get("model_providers")).get(self.provider))

    def problem(self, now: float) -> str | None:
        """Why this cannot work at `now` (seconds since the epoch), in one line with the remedy; None when it may."""
        if self.provider not in _BUILT_IN and not self.table:
            return (
                f"Codex's config.toml selects the provider {self.provider!r} and has no [model_providers.{self.provider}]: add it"
            )
        variable = self.table.get("env_key")
        if isinstance(variable, str) and not self.environment.get(variable, "").strip():
            return (
                f"Codex's provider {self.provider!r} takes its key from {variable}, which is not set: "
                "export it, or choose another provider in config.toml (`codex login` is for OpenAI's own)"
            )
        if _has_own_key(self.table) or (self.provider != _OPENAI and not self.table.get("requires_openai_auth")):
            return None
        if any(self.environment.get(name) for name in _KEY_VARIABLES):
            return None
        return self._login_problem(now)

    def _login_problem(self, now: float) -> str | None:
        if not self.auth and self.in_keyring:
            return (
                "Codex keeps its login in the system's keyring, which an attempt cannot reach: set "
                '`cli_auth_credentials_store = "file"` in config.toml and run `codex login`, or set CODEX_API_KEY'
            )
        tokens = _mapping((self.auth or {}).get("tokens"))
        if not any(value for name, value in (self.auth or {}).items() if name not in ("auth_mode", "last_refresh")):
            return f"Codex is not logged in: {LOGIN_REMEDY}"
        expires = _expiry(tokens.get("access_token"))
        if not self.auth or self.auth.get("OPENAI_API_KEY") or expires is None or expires - _RENEWED_BEFORE_S > now:
            return None
        return "the login of Codex has expired: run `codex` once, which renews it, or `codex login`, or set CODEX_API_KEY"


def codex_home(workspace: Workspace) -> Path:
    """CODEX_HOME in a workspace."""
    return workspace.home / ".codex"


def user_directory(env: Mapping[str, str]) -> Path:
    """Where Codex keeps its user's files, by the host's environment."""
    directory = env.get("CODEX_HOME")
    return Path(directory) if directory else host_home(env) / ".codex"


def read_login(env: Mapping[str, str]) -> CodexLogin:
    """The login by the host's environment `env` and the user's files. Raises EngineError when one of them is damaged.

    As in the CLI, CODEX_API_KEY goes before auth.json. OPENAI_API_KEY, which the CLI reads for `codex login` alone, counts when
    there is nothing else.
    """
    directory = user_directory(env)
    config = _read_config(directory / "config.toml")
    settings = _carried(config, env, directory)
    provider = str(settings.get("model_provider") or _OPENAI)
    table = _mapping(_mapping(settings.get("model_providers")).get(provider))
    environment = {name: value for name, value in env.items() if value and matches(name, (*_PASSED, *_named_variables(table)))}
    on_aws = provider == _BEDROCK or "aws" in table
    if on_aws:
        environment |= _aws_environment(env)
    auth: dict[str, Any] = {}
    if not _has_own_key(table) and not any(environment.get(name) for name in _KEY_VARIABLES):
        auth = _without_refresh(read_object(directory / "auth.json", "log in again with `codex login`"))
        if not auth and (key := env.get("OPENAI_API_KEY", "").strip()) and config.get("forced_login_method") != "chatgpt":
            environment["CODEX_API_KEY"] = key
    return CodexLogin(
        settings=settings,
        environment=environment,
        auth=auth or None,
        in_keyring=config.get("cli_auth_credentials_store") in ("keyring", "auto"),
        aws_cache=host_home(env) / ".aws" / "sso" / "cache" if on_aws else None,
    )


def write_home(login: CodexLogin, config: Mapping[str, Any], workspace: Workspace) -> None:
    """Write `config` and the login below `workspace.home`, readable by their owner alone."""
    directory = codex_home(workspace)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_bytes(directory / "config.toml", tomli_w.dumps(config).encode("utf-8", "replace"))
    if login.auth is not None:
        write_object(directory / "auth.json", login.auth)
    for path in sorted(login.aws_cache.glob("*.json")) if login.aws_cache is not None else ():
        write_bytes(workspace.home / ".aws" / "sso" / "cache" / path.name, path.read_bytes())


def _read_config(path: Path) -> dict[str, Any]:
    data = read_bytes(path)
    try:
        return {} if data is None else tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise EngineError(f"{path}: not valid TOML ({error}): repair it") from error


def _carried(config: Mapping[str, Any], env: Mapping[str, str], directory: Path) -> dict[str, Any]:
    """The settings that cross over. A profile that `profile` selects (versions before 0.171 have them) goes first."""
    profile = _mapping(_mapping(config.get("profiles")).get(str(config.get("profile"))))
    given = {**config, **profile}
    carried = {name: given[name] for name in _DEFAULTS if name in given}
    if isinstance(catalog := carried.get("model_catalog_json"), str):
        carried["model_catalog_json"] = str(directory / catalog)
    provider = carried.get("model_provider")
    table = _mapping(_mapping(config.get("model_providers")).get(str(provider)))
    if provider == _BEDROCK and table:  # the one built-in provider that takes a table: its AWS profile
        carried["model_providers"] = {provider: dict(table)}
    elif provider is not None and provider not in _BUILT_IN and table:
        carried["model_providers"] = {provider: _limited(table, env)}
    return carried


def _limited(table: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """A provider's table with limits on its retries; a command that fetches its token runs with the user's own HOME."""
    out = dict(table)
    for name, most in (("request_max_retries", _REQUEST_RETRIES), ("stream_max_retries", _STREAM_RETRIES)):
        wish = out.get(name)
        out[name] = min(wish, most) if isinstance(wish, int) and wish >= 0 else most
    auth = _mapping(table.get("auth"))
    if isinstance(command := auth.get("command"), str):
        arguments = [f"HOME={host_home(env)}", command, *_texts(auth.get("args"))]
        out["auth"] = {**auth, "command": "/usr/bin/env", "args": arguments}
    return out


def _has_own_key(table: Mapping[str, Any]) -> bool:
    """Whether a provider's table says where its key comes from: the user's OpenAI login is not for it then."""
    return any(table.get(name) for name in ("env_key", "experimental_bearer_token", "auth", "aws"))


def _named_variables(table: Mapping[str, Any]) -> Iterable[str]:
    """Variables that a provider's table takes keys and headers from."""
    names = [table.get("env_key"), *_mapping(table.get("env_http_headers")).values()]
    return [name for name in names if isinstance(name, str) and name]


def _aws_environment(env: Mapping[str, str]) -> dict[str, str]:
    """AWS's variables, and the user's credential files, which a replaced HOME would hide."""
    home = host_home(env)
    files = {"AWS_SHARED_CREDENTIALS_FILE": home / ".aws/credentials", "AWS_CONFIG_FILE": home / ".aws/config"}
    out = {name: str(path) for name, path in files.items() if path.exists()}
    return out | {name: value for name, value in env.items() if value and matches(name, ("AWS_*",))}


def _without_refresh(auth: Mapping[str, Any]) -> dict[str, Any]:
    """The login with an empty refresh token, which Codex takes. A real one is good for one use: an attempt that used its copy
    would log the user out."""
    tokens = _mapping(auth.get("tokens"))
    return {**auth, "tokens": {**tokens, "refresh_token": ""}} if tokens else dict(auth)


def _expiry(token: Any) -> float | None:
    """When a JWT ends, in seconds since the epoch; None when it does not say."""
    parts = token.split(".") if isinstance(token, str) else []
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    end = claims.get("exp") if isinstance(claims, dict) else None
    return float(end) if isinstance(end, (int, float)) and not isinstance(end, bool) else None


def _texts(value: Any) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
