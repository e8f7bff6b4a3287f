"""The user's opencode setup, and the isolated home that an attempt gets instead of the user's own.

Only what is needed to reach the model crosses over: the default model, and the table and credentials of its provider. Never
agents, commands, plugins, MCP servers, instructions, permissions or skills.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends import opencode_providers
from pytest_caliper.backends.environment import host_home
from pytest_caliper.backends.private_files import parse_object, read_bytes, read_object, write_bytes
from pytest_caliper.contracts import EngineError

_CARRIED = ("provider", "model")
_REFERENCE = re.compile(r"\{(env|file):([^}]+)\}")
_REPAIR = "repair it"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenCodeSetup:
    """How the user's opencode reaches a model."""

    model: str | None
    """`provider/model`: what was asked for, else the user's default."""
    problem: str | None
    """Why this cannot work, in one line with the remedy; None when it may."""
    provider: Mapping[str, Any] = field(default_factory=dict)
    """`provider` of opencode.json with the table of the one in use, if it has one; references filled in. Holds secrets."""
    auth: Mapping[str, Any] = field(default_factory=dict)
    """The entry of auth.json for the provider in use, without a refresh token that may be good for one use."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The provider's variables."""

    @property
    def needs_plugins(self) -> bool:
        """Whether a login is in use that the CLI's own plugins handle."""
        return any(entry.get("type") == "oauth" for entry in self.auth.values())


def read_setup(env: Mapping[str, str], model: str | None, *, now: float) -> OpenCodeSetup:
    """The setup by the host's environment `env` and the user's files for `model` (None: the default), at `now` (seconds).

    Raises EngineError when a file is damaged or cannot be read.
    """
    config = _config(env)
    wanted = model or _text(config.get("model")) or _recent_model(env)
    if wanted is None:
        return OpenCodeSetup(
            model=None,
            problem='opencode has no default model: name one as opencode:PROVIDER/MODEL, or set "model" in opencode.json',
        )
    provider, slash, name = wanted.partition("/")
    if not (provider and slash and name):
        problem = f"{wanted!r} is no model of opencode: write opencode:PROVIDER/MODEL, as `opencode models` lists them"
        return OpenCodeSetup(model=wanted, problem=problem)
    logins = _logins(env)
    table = _mapping(_mapping(config.get("provider")).get(provider))
    environment = opencode_providers.environment(provider, table, env, models_file=models_file(env))
    return OpenCodeSetup(
        model=wanted,
        problem=_problem(provider, table, environment, logins, now),
        provider={provider: table} if table else {},
        auth={provider: _carried_login(logins[provider], now)} if provider in logins else {},
        environment=environment,
    )


def config_directory(env: Mapping[str, str]) -> Path:
    """Where the user's opencode keeps its configuration."""
    return _xdg(env, "XDG_CONFIG_HOME", ".config")


def models_file(env: Mapping[str, str]) -> Path | None:
    """The list of models that the user's opencode fetched last, which may know models that the CLI itself does not yet."""
    forced = env.get("OPENCODE_MODELS_PATH")
    path = Path(forced) if forced else _xdg(env, "XDG_CACHE_HOME", ".cache") / "models.json"
    return path if path.is_file() else None


def write_home(setup: OpenCodeSetup, home: Path, further: Mapping[str, Any]) -> None:
    """Write the setup and `further` keys of opencode.json below `home`, readable by its owner alone."""
    if setup.auth:
        write_bytes(home / ".local" / "share" / "opencode" / "auth.json", json.dumps(setup.auth, indent=2).encode())
    fixed = {"$schema": "https://opencode.ai/config.json", "autoupdate": False, "share": "disabled"}
    text = json.dumps({**fixed, "provider": setup.provider, **further}, indent=2)
    # The CLI fills in `{env:X}` and `{file:X}` in the file's text: here all has been filled in, and secrets are themselves.
    text = re.sub(r"\{(env|file):", r"\\u007b\1:", text)
    write_bytes(home / ".config" / "opencode" / "opencode.json", text.encode())


def _config(env: Mapping[str, str]) -> dict[str, Any]:
    """The carried keys of all of the user's configurations, later ones over earlier ones, in the CLI's own order."""
    directory = config_directory(env)
    places = [directory / name for name in ("config.json", "opencode.json", "opencode.jsonc")]
    if forced := env.get("OPENCODE_CONFIG"):
        places.append(Path(forced))
    for folder in (host_home(env) / ".opencode", *map(Path, filter(None, [env.get("OPENCODE_CONFIG_DIR")]))):
        places += [folder / "opencode.json", folder / "opencode.jsonc"]
    merged: dict[str, Any] = {}
    for path in places:
        merged = _merge(merged, _filled(_carried(read_object(path, _REPAIR)), env, path.parent))
    if content := env.get("OPENCODE_CONFIG_CONTENT"):
        merged = _merge(merged, _filled(_carried(parse_object(content, "OPENCODE_CONFIG_CONTENT", _REPAIR)), env, directory))
    return merged


def _carried(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: config[name] for name in _CARRIED if name in config}


def _filled(value: Any, env: Mapping[str, str], folder: Path) -> Any:
    """`value` with `{env:NAME}` and `{file:PATH}` replaced as the CLI does: unset is empty, a missing file is an error."""
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: _referenced(match[1], match[2], env, folder), value)
    if isinstance(value, Mapping):
        return {name: _filled(entry, env, folder) for name, entry in value.items()}
    return [_filled(entry, env, folder) for entry in value] if isinstance(value, list) else value


def _referenced(kind: str, name: str, env: Mapping[str, str], folder: Path) -> str:
    if kind == "env":
        return env.get(name, "")
    path = host_home(env) / name[2:] if name.startswith("~/") else folder / name
    data = read_bytes(path)
    if data is None:
        raise EngineError(f"opencode's configuration in {folder} names {path}, which does not exist: correct it")
    return data.decode("utf-8", "replace").strip()


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(old)
    for name, value in new.items():
        known = out.get(name)
        out[name] = _merge(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return out


def _recent_model(env: Mapping[str, str]) -> str | None:
    """What the user chose last, which `opencode run` takes as well when nothing is configured."""
    recent = read_object(_xdg(env, "XDG_STATE_HOME", ".local/state") / "model.json", _REPAIR).get("recent")
    for entry in recent if isinstance(recent, list) else []:
        provider, model = _mapping(entry).get("providerID"), _mapping(entry).get("modelID")
        if isinstance(provider, str) and isinstance(model, str) and provider and model:
            return f"{provider}/{model}"
    return None


def _logins(env: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """The entries of auth.json: provider -> `{"type": "api" | "oauth" | "wellknown", ...}`."""
    if content := env.get("OPENCODE_AUTH_CONTENT"):
        data = parse_object(content, "OPENCODE_AUTH_CONTENT", _REPAIR)
    else:
        data = read_object(_xdg(env, "XDG_DATA_HOME", ".local/share") / "auth.json", "log in again with `opencode auth login`")
    return {name: entry for name, entry in data.items() if isinstance(entry, Mapping)}


def _carried_login(entry: Mapping[str, Any], now: float) -> dict[str, Any]:
    """A login as an attempt may have it.

    A refresh token may be good for one use: an attempt that used its copy would log the user out. Where the access token does not
    expire by itself (`expires` 0, as GitHub Copilot's), the refresh token is the key.
    """
    if entry.get("type") == "oauth" and _expiry(entry) > now:
        return {**entry, "refresh": ""}
    return dict(entry)


def _expiry(entry: Mapping[str, Any]) -> float:
    """When an access token ends, in seconds since the epoch; 0 where the entry does not say."""
    expires = entry.get("expires")
    return expires / 1000 if isinstance(expires, (int, float)) and not isinstance(expires, bool) else 0.0


def _problem(
    provider: str, table: Mapping[str, Any], environment: Mapping[str, str], logins: Mapping[str, Mapping[str, Any]], now: float
) -> str | None:
    login = logins.get(provider)
    if login is not None and login.get("type") == "oauth" and 0 < _expiry(login) <= now:
        return f"opencode's login to {provider} has expired: run `opencode run hi` once, which renews it, or use an API key"
    if login is not None or opencode_providers.reachable(provider, table, environment):
        return None
    remedy = f"log in with `opencode auth login`, or set {opencode_providers.key_variable(provider)}"
    if any(entry.get("type") == "wellknown" for entry in logins.values()):
        remedy += " (an organisation's login is not carried over: it would bring servers and instructions along)"
    return f"opencode is not logged in to {provider}: {remedy}"


def _xdg(env: Mapping[str, str], variable: str, fallback: str) -> Path:
    base = env.get(variable)
    return (Path(base) if base else host_home(env) / fallback) / "opencode"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
