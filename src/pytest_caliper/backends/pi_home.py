"""The user's way to a model in pi, and the isolated agent directory that an attempt gets instead of the user's own.

Only credentials, provider definitions, the default model and transport settings cross over. Never extensions, packages, skills,
prompts, themes, AGENTS.md, SYSTEM.md or MCP servers: a run must not depend on whose machine it is made on.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_caliper.backends.environment import host_home
from pytest_caliper.backends.pi_errors import LOGIN_REMEDY
from pytest_caliper.backends.pi_providers import any_key, has_key, provider_environment
from pytest_caliper.backends.pi_values import Run, literal, missing_names, resolve
from pytest_caliper.backends.private_files import read_object, write_object
from pytest_caliper.contracts import EngineError

_CARRIED = (
    *("defaultProvider", "defaultModel", "defaultThinkingLevel", "modelThinkingLevels", "thinkingBudgets", "enabledModels"),
    *("transport", "httpProxy", "httpIdleTimeoutMs", "websocketConnectTimeoutMs"),
)
"""Settings that say which model answers and how it is reached."""
_QUIET = {"enableInstallTelemetry": False, "enableAnalytics": False, "cacheWarming": "off", "quietStartup": True}
_MAX_RETRIES = 2
_REUSABLE = frozenset({"github-copilot"})
"""Logins whose refresh token is the same every time; any other is good for one use, and a copy's use would log the user out."""
_RENAMED = frozenset({"azure", "azure-openai-responses"})
"""One provider under two names: which of them its credentials stand under is not for us to say."""
_EARLY_S = 300.0
"""pi renews a login that has less than 5 minutes left."""
_CATALOGS_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class PiLogin:
    """How the user's pi reaches its model."""

    provider: str | None
    """The provider whose credentials alone cross over; None when only pi can tell which one a model belongs to."""
    auth: Mapping[str, Any]
    """Of auth.json: provider -> credential, without refresh tokens that are good for one use."""
    models: Mapping[str, Any]
    """`providers` of models.json."""
    settings: Mapping[str, Any]
    """Of settings.json, with our own retry limits."""
    environment: Mapping[str, str]
    catalogs: Path | None = None
    """The user's cache of model lists, which pi reads offline."""

    def problem(self, env: Mapping[str, str], now: float) -> str | None:
        """Why this cannot work at `now` (seconds since the epoch), in one line with the remedy; None when it may."""
        if not self.auth and not self.models and not any_key(env):
            return f"pi is not logged in: {LOGIN_REMEDY}"
        if self.provider is None:
            return None
        credential = self.auth.get(self.provider, {})
        expires = credential.get("expires") if credential.get("type") == "oauth" else None
        if isinstance(expires, (int, float)) and not credential["refresh"] and expires / 1000 <= now + _EARLY_S:
            return (
                f"the login of pi for {self.provider} has expired: run `pi auth check --provider {self.provider}` "
                "or `pi` once, which renews it"
            )
        return self._unset(env)

    def _unset(self, env: Mapping[str, str]) -> str | None:
        key = _key_of(self.auth.get(self.provider or "", {})) or _key_of(self.models.get(self.provider or "", {}))
        if key is None or has_key(self.provider or "", env) or not (names := missing_names(key, env)):
            return None
        return f"pi's key for {self.provider} needs the environment variable {names[0]}, which is not set: export it"

    def resolved(self, env: Mapping[str, str], *, templates: bool, run: Run) -> PiLogin:
        """With every `$NAME` and `!command` replaced by what it stands for on the host.

        Where the provider is not known, a credential whose variable is unset is left out, as pi itself would pass it over. Raises
        EngineError for one that is needed, and for a command that fails.
        """
        resolver = _Resolver(login=self, env=env, templates=templates, run=run)
        auth = {name: entry for name, credential in self.auth.items() if (entry := resolver.credential(name, credential))}
        models = {name: resolver.definition(name, definition) for name, definition in self.models.items()}
        return replace(self, auth=auth, models=models)


def read_login(env: Mapping[str, str], model: str | None) -> PiLogin:
    """The login by the host's environment `env` and the user's files, for the engine's `model` (None: the user's default).

    Raises EngineError when a file is damaged.
    """
    directory = agent_directory(env)
    auth = {name: _without_refresh(name, entry) for name, entry in _mapping_in(directory / "auth.json").items()}
    auth = {name: entry for name, entry in auth.items() if entry}
    providers = _mapping_in(directory / "models.json").get("providers")
    models = dict(providers) if isinstance(providers, Mapping) else {}
    settings = _mapping_in(directory / "settings.json")
    provider = _provider(model, settings, {*auth, *models}, env)
    if provider is not None:
        auth = {name: entry for name, entry in auth.items() if name == provider}
        models = {name: entry for name, entry in models.items() if name == provider}
    carried = {name: settings[name] for name in _CARRIED if name in settings}
    store = directory / "models-store.json"
    return PiLogin(
        provider=provider,
        auth=auth,
        models=models,
        settings={**carried, **_QUIET, "retry": _retry(settings.get("retry"))},
        environment=provider_environment(provider, env),
        catalogs=store if store.is_file() and store.stat().st_size <= _CATALOGS_BYTES else None,
    )


def agent_directory(env: Mapping[str, str]) -> Path:
    """Where the user's pi keeps its files."""
    forced = env.get("PI_CODING_AGENT_DIR")
    if not forced:
        return host_home(env) / ".pi" / "agent"
    return host_home(env) / forced[2:] if forced.startswith("~/") else Path(forced)


def write_home(login: PiLogin, directory: Path) -> None:
    """Write a resolved login to the agent directory of an attempt, readable by its owner alone."""
    directory.mkdir(parents=True, exist_ok=True)
    write_object(directory / "auth.json", login.auth)
    write_object(directory / "settings.json", login.settings)
    if login.models:
        write_object(directory / "models.json", {"providers": login.models})
    if login.catalogs is not None:
        shutil.copyfile(login.catalogs, directory / "models-store.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Resolver:
    login: PiLogin
    env: Mapping[str, str]
    templates: bool
    run: Run

    def credential(self, provider: str, credential: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """An entry of auth.json; None when it is passed over."""
        key = credential.get("key")
        if credential.get("type") != "api_key" or not isinstance(key, str):
            return credential
        own = credential.get("env")
        more = {str(n): str(v) for n, v in own.items() if v} if isinstance(own, Mapping) else {}
        value = self._value(provider, "auth.json", key, {**self.env, **more})
        return None if value is None else {**credential, "key": value}

    def definition(self, provider: str, definition: Any) -> Any:
        """An entry of models.json, with its key and all its headers resolved."""
        if not isinstance(definition, Mapping):
            return definition
        out = self._headers(provider, definition)
        if isinstance(key := out.get("apiKey"), str):
            value = self._value(provider, "models.json", key, self.env)
            out = {**out, "apiKey": value} if value is not None else {n: v for n, v in out.items() if n != "apiKey"}
        if isinstance(models := out.get("models"), list):
            out = {**out, "models": [self._headers(provider, model) for model in models]}
        if isinstance(overrides := out.get("modelOverrides"), Mapping):
            out = {**out, "modelOverrides": {name: self._headers(provider, model) for name, model in overrides.items()}}
        return out

    def _headers(self, provider: str, holder: Any) -> Any:
        headers = holder.get("headers") if isinstance(holder, Mapping) else None
        if not isinstance(headers, Mapping):
            return holder
        values = {
            name: self._value(provider, "models.json", value, self.env) if isinstance(value, str) else value
            for name, value in headers.items()
        }
        return {**holder, "headers": {name: value for name, value in values.items() if value is not None}}

    def _value(self, provider: str, file: str, value: str, env: Mapping[str, str]) -> str | None:
        found = resolve(value, env, templates=self.templates, run=self.run)
        where = f"{agent_directory(self.env) / file}, {provider}"
        if found is None:
            if value.startswith("!"):
                raise EngineError(f"{where}: the command that prints its key failed: run it in a shell to see why")
            if self.login.provider is not None and not has_key(provider, self.env):
                names = ", ".join(missing_names(value, env))
                raise EngineError(f"{where}: the environment variable {names} is not set: export it")
            return None
        try:
            return literal(found, templates=self.templates)
        except ValueError as error:
            raise EngineError(f"{where}: {error}: update pi") from None


def _provider(model: str | None, settings: Mapping[str, Any], known: set[str], env: Mapping[str, str]) -> str | None:
    """The provider that the engine surely means: before the slash, or the user's default, and with credentials of its own."""
    name = settings.get("defaultProvider") if model is None else model.partition("/")[0] if "/" in model else None
    if not isinstance(name, str) or name in _RENAMED:
        return None
    return name if name in known or has_key(name, env) else None


def _retry(wish: Any) -> dict[str, Any]:
    """The user's retry settings where they are the smaller ones: a rate-limited attempt must not block its worker for minutes."""
    own = wish if isinstance(wish, Mapping) else {}
    limits = {"maxRetries": _MAX_RETRIES, "baseDelayMs": 2000, "maxAgentDelayMs": 10_000}
    bounded = {name: min(_count(own.get(name), limit), limit) for name, limit in limits.items()}
    provider = own.get("provider")
    timeout = provider.get("timeoutMs") if isinstance(provider, Mapping) else None
    at_provider = {"maxRetries": 0, **({"timeoutMs": timeout} if timeout is not None else {})}
    return {"enabled": own.get("enabled") is not False, **bounded, "provider": at_provider}


def _count(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _key_of(entry: Any) -> str | None:
    key = entry.get("key") or entry.get("apiKey") if isinstance(entry, Mapping) else None
    return key if isinstance(key, str) else None


def _without_refresh(provider: str, credential: Any) -> dict[str, Any] | None:
    if not isinstance(credential, Mapping):
        return None
    if credential.get("type") != "oauth":
        return dict(credential)
    return {**credential, "refresh": credential.get("refresh", "") if provider in _REUSABLE else ""}


def _mapping_in(path: Path) -> dict[str, Any]:
    return read_object(path, "repair it, or remove it and log in again with `pi`")
