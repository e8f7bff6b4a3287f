"""The user's Hermes login, and the neutral HERMES_HOME that an attempt gets instead of the user's own.

Hermes is an assistant with a memory, a persona and skills that it writes itself. An attempt gets none of that: credentials, the
default model and how providers are reached cross over; SOUL.md, memories, skills, plugins, hooks, MCP servers, toolsets and
fallback models do not. `--ignore-rules` would not do it: with `-z`, 0.19.0 reads SOUL.md and MEMORY.md all the same (recorded).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pytest_caliper.backends.customizations import Customization
from pytest_caliper.backends.environment import host_home, matches
from pytest_caliper.backends.hermes_errors import LOGIN_REMEDY
from pytest_caliper.backends.mcp import ResolvedServer
from pytest_caliper.backends.private_files import read_bytes, read_object, write_bytes
from pytest_caliper.contracts import EngineError

_KEYS = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_*", "NOUS_*", "GOOGLE_API_KEY", "GEMINI_*", "DEEPSEEK_*", "XAI_*"),
    *("ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "COPILOT_*", "GLM_*", "ZAI_*"),
    *("Z_AI_API_KEY", "KIMI_*", "MINIMAX_*", "DASHSCOPE_*", "ALIBABA_CODING_PLAN_*", "QWEN_*", "ARCEE*", "GMI_*", "HF_TOKEN"),
    *("HF_BASE_URL", "KILOCODE_*", "LM_API_KEY", "LM_BASE_URL", "NVIDIA_API_KEY", "NVIDIA_BASE_URL", "OLLAMA_API_KEY"),
    *("OLLAMA_BASE_URL", "OPENCODE_GO_*", "OPENCODE_ZEN_*", "STEPFUN_*", "TOKENHUB_*", "XIAOMI_*", "NOVITA_*", "FIREWORKS_*"),
    *("UPSTAGE_*", "DEEPINFRA_*", "AZURE_FOUNDRY_*"),
)
"""Variables by which Hermes 0.19 reaches providers (its registry and its model-provider plugins). Not GITHUB_TOKEN and GH_TOKEN,
which it takes for Copilot too: they open much more than a model."""
_OTHERS = ("HERMES_INFERENCE_MODEL", "HERMES_INFERENCE_PROVIDER")
_CLOUDS: Mapping[str, tuple[str, ...]] = {
    "bedrock": ("AWS_*", "BEDROCK_*"),
    "vertex": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_*", "VERTEX_*"),
    "azure-foundry": ("AZURE_*",),
}
"""What a provider on a cloud needs, passed only where that provider is the one."""

_CARRIED = (
    *("model", "providers", "custom_providers", "model_aliases", "credential_pool_strategies", "openrouter"),
    *("bedrock", "vertex", "network", "prompt_caching"),
)
"""Parts of config.yaml. Not `fallback_providers`: a run must not change its model half-way."""
_QUIET: Mapping[str, Any] = {
    "agent": {"api_max_retries": 2},
    "auxiliary": {"title_generation": {"enabled": False}},
    "compression": {"in_place": False},
    "model_catalog": {"enabled": False},
    "security": {"allow_lazy_installs": False},
}
"""Few retries, and no calls and downloads beside the task. Compressing a conversation begins a new session: in place, `sessions
export` would leave out what came before."""
_NEUTRAL: Mapping[str, Any] = {
    "memory": {"memory_enabled": False, "user_profile_enabled": False, "nudge_interval": 0},
    "skills": {"creation_nudge_interval": 0},
    "curator": {"enabled": False},
    "lsp": {"enabled": False},
    "security": {"tirith_enabled": False},
}
"""No memory, no skills written in the background, no helpers that are fetched from the net."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$")
_WITHHELD = "withheld"
_REPAIR = "repair it, or log in again with `hermes model`"
AGGREGATORS = frozenset({"nous", "openrouter", "copilot", "kilocode"})
"""Providers whose models are called VENDOR/MODEL (0.19.0)."""
PROVIDERS = AGGREGATORS | {
    *("alibaba", "alibaba-coding-plan", "anthropic", "arcee", "azure-foundry", "bedrock", "copilot-acp", "custom"),
    *("deepinfra", "deepseek", "fireworks", "gemini", "gmi", "huggingface", "kimi-coding", "kimi-coding-cn"),
    *("lmstudio", "minimax", "minimax-cn", "minimax-oauth", "novita", "nvidia", "ollama-cloud", "openai-api"),
    *("openai-codex", "opencode-go", "opencode-zen", "qwen-oauth", "stepfun", "tencent-tokenhub", "upstage"),
    *("vertex", "xai", "xai-oauth", "xiaomi", "zai"),
}
"""What `--provider` takes (0.19.0), besides the providers of the user's configuration."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HermesLogin:
    """How the user's Hermes reaches its model."""

    config: Mapping[str, Any] = field(default_factory=dict)
    """The carried parts of config.yaml."""
    whole: Mapping[str, Any] = field(default_factory=dict)
    """All of config.yaml but the MCP servers: for an attempt that is to have the user's own setup."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the host."""
    dotenv: Mapping[str, str] = field(default_factory=dict)
    """Name -> line of the user's `.env`; in Hermes they win over the host's."""
    auth: Mapping[str, Any] = field(default_factory=dict)
    """auth.json, without refresh tokens."""
    anthropic: Mapping[str, Any] = field(default_factory=dict)
    """`.anthropic_oauth.json`, without its refresh token."""

    @property
    def provider(self) -> str | None:
        """The configured provider; None when Hermes is to find one."""
        return _word(_mapping(self.config.get("model")).get("provider"))

    @property
    def own_providers(self) -> frozenset[str]:
        """Providers that the user's configuration describes."""
        listed = self.config.get("custom_providers")
        named = {str(_mapping(entry).get("name")) for entry in listed} if isinstance(listed, list) else set()
        return frozenset(named | set(map(str, _mapping(self.config.get("providers")))))

    def problem(self, now: float) -> str | None:
        """Why this cannot work at `now` (seconds since the epoch), in one line with the remedy; None when it may."""
        model = _mapping(self.config.get("model"))
        if any(model.get(name) for name in ("api_key", "base_url")) or self.own_providers or self.provider in _CLOUDS:
            return None
        if any(matches(name, _KEYS) and not name.endswith("_BASE_URL") for name in (*self.environment, *self.dotenv)):
            return None
        logins = _mapping(self.auth.get("providers"))
        if not (logins or self.auth.get("credential_pool") or self.anthropic):
            return f"Hermes is not logged in to any provider: {LOGIN_REMEDY}"
        login = _mapping(logins.get(self.provider or str(self.auth.get("active_provider"))))
        ends = _seconds(login.get("expires_at") or _mapping(login.get("tokens")).get("expires_at"))
        if ends is not None and ends <= now:
            where = self.provider or self.auth.get("active_provider")
            return f"the login of Hermes at {where} has expired: run `hermes -z hi`, which renews it, or set an API key"
        return None


def read_login(env: Mapping[str, str], provider: str | None = None) -> HermesLogin:
    """The login by the host's environment `env` and the user's files; `provider` is the one that a target names.

    Raises EngineError when a file is damaged.
    """
    home = user_home(env)
    whole = _read_yaml(home / "config.yaml")
    whole.pop("mcp_servers", None)
    if isinstance(whole.get("model"), str):  # the short form
        whole["model"] = {"default": whole["model"]}
    config = {name: value for name, value in whole.items() if name in _CARRIED}
    wanted = provider or _word(_mapping(config.get("model")).get("provider")) or ""
    patterns = (*_KEYS, *_OTHERS, *_CLOUDS.get(wanted, ()), *_referenced(config))
    auth = read_object(home / "auth.json", _REPAIR)
    carried = {name: auth[name] for name in ("version", "active_provider", "providers", "credential_pool") if name in auth}
    return HermesLogin(
        config=config,
        whole=whole,
        environment={name: value for name, value in env.items() if value and matches(name, patterns)},
        dotenv={name: line for name, line in _read_dotenv(home / ".env") if matches(name, patterns)},
        auth=_without_refresh(carried),
        anthropic=_without_refresh(read_object(home / ".anthropic_oauth.json", _REPAIR)),
    )


def user_home(env: Mapping[str, str]) -> Path:
    """HERMES_HOME of the user: the variable, else ~/.hermes or the profile that is active there."""
    if named := env.get("HERMES_HOME", "").strip():
        return Path(named).expanduser()
    home = host_home(env) / ".hermes"
    try:
        profile = (home / "active_profile").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return home
    return home if profile in ("", "default") or "/" in profile else home / "profiles" / profile


def write_home(login: HermesLogin, home: Path, servers: tuple[ResolvedServer, ...] = (), *, own: bool = False) -> None:
    """Write a fresh HERMES_HOME, readable by its owner alone; what an earlier try left there is removed.

    With `own` it has all of the user's configuration but the MCP servers.
    """
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700, parents=True)
    config = _merged(login.whole, _QUIET) if own else {**login.config, **_merged(_QUIET, _NEUTRAL)}
    if servers:
        config["mcp_servers"] = {server.name: _server(server) for server in servers}
    _write(home / "config.yaml", _yaml(config))
    _write(home / ".no-bundled-skills", "")
    if login.dotenv:
        _write(home / ".env", "\n".join([*login.dotenv.values(), ""]))
    if login.auth:
        _write(home / "auth.json", json.dumps(login.auth, indent=2))
    if login.anthropic:
        _write(home / ".anthropic_oauth.json", json.dumps(login.anthropic, indent=2))


def model_arguments(model: str | None, login: HermesLogin) -> list[str]:
    """The options for a target's model: `PROVIDER/MODEL` for a provider that Hermes knows, else a model of the user's provider.

    Where the configured provider is an aggregator, `anthropic/claude-...` is a model of its own, and stays so.
    """
    if model is None:
        return []
    head, slash, tail = model.partition("/")
    own = head in login.own_providers or head in AGGREGATORS
    if slash and tail and (own or (head in PROVIDERS and login.provider not in AGGREGATORS)):
        return ["--provider", head, "--model", tail]
    return ["--model", model]


def customizations(env: Mapping[str, str]) -> tuple[Customization, ...]:
    """Where Hermes's users keep what makes it theirs."""
    home = user_home(env)
    names = ("SOUL.md", "memories", "skills", "plugins", "hooks", "skins")
    return tuple(Customization(source=home / name, target=f".hermes/{name}") for name in names)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both, `above` winning, level by level."""
    out = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(out.get(name), Mapping)
        out[name] = _merged(out[name], value) if both else value
    return out


def _server(server: ResolvedServer) -> dict[str, Any]:
    """An entry of `mcp_servers` in Hermes's own format."""
    if server.transport == "stdio":
        return {"command": server.command, "args": list(server.args), "env": dict(server.env)}
    entry: dict[str, Any] = {"url": server.url, "headers": dict(server.headers)}
    return entry | ({"transport": "sse"} if server.transport == "sse" else {})


def _without_refresh(data: Any) -> Any:
    """`data` with its refresh tokens blotted out, which Hermes wants to be there.

    A refresh token is good for one use: an attempt that used its copy would log the user out.
    """
    if isinstance(data, Mapping):
        return {
            name: _WITHHELD if str(name).replace("_", "").lower() == "refreshtoken" and value else _without_refresh(value)
            for name, value in data.items()
        }
    return [_without_refresh(entry) for entry in data] if isinstance(data, list) else data


def _referenced(value: Any, key: str = "") -> Iterator[str]:
    """Variables that the configuration names: `${VAR}` anywhere, and the values of `key_env`."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            yield from _referenced(entry, str(name))
    elif isinstance(value, list):
        for entry in value:
            yield from _referenced(entry, key)
    elif isinstance(value, str):
        yield from _REFERENCE.findall(value)
        if key in ("key_env", "api_key_env", "keyEnv", "apiKeyEnv") and re.fullmatch(r"\w+", value):
            yield value


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.safe_load(_read(path) or "")
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise EngineError(f"{path}: not valid YAML ({reason}): repair it, or run `hermes setup`") from error
    return data if isinstance(data, dict) else {}


def _yaml(data: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(dict(data), allow_unicode=True, sort_keys=False)


def _read_dotenv(path: Path) -> Iterator[tuple[str, str]]:
    for line in (_read(path) or "").split("\n"):
        if (match := _ASSIGNMENT.match(line)) and match[2].strip().strip("'\""):
            yield match[1], line.strip()


def _read(path: Path) -> str | None:
    """The text of a file; None when there is none. Raises EngineError when it cannot be read."""
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", "replace")


def _write(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8", "replace"))


def _seconds(value: Any) -> float | None:
    """A point in time, given as seconds, milliseconds or ISO 8601, in seconds since the epoch."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value / 1000 if value > 1e11 else float(value)
    try:
        when = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _word(value: Any) -> str | None:
    return value.strip().lower() if isinstance(value, str) and value.strip() else None
