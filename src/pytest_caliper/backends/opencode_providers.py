"""Which environment variables reach which of opencode's providers, by the list of models in 1.18.33.

A provider's variables begin with its name in most cases (`OPENAI_API_KEY`); the exceptions are listed. The list that the user's
opencode fetched last names those of providers that came later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_caliper.backends.environment import host_home, matches
from pytest_caliper.backends.jsonl import parse_json

_AWS = ("AWS_*",)
_VERTEX = ("GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "VERTEX_*")
_EXCEPTIONS: dict[str, tuple[str, ...]] = {
    "abliteration-ai": ("ABLIT_KEY",),
    "alibaba": ("DASHSCOPE_API_KEY",),
    "amazon-bedrock": _AWS,
    "coralbricks": ("CORAL_API_KEY",),
    "github-copilot": ("GITHUB_TOKEN",),
    "github-models": ("GITHUB_TOKEN",),
    "gitlab": ("GITLAB_TOKEN", "GITLAB_INSTANCE_URL"),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    "google-vertex": _VERTEX,
    "google-vertex-anthropic": _VERTEX,
    "huggingface": ("HF_TOKEN",),
    "iflowcn": ("IFLOW_API_KEY",),
    "io-net": ("IOINTELLIGENCE_API_KEY",),
    "moonshotai": ("MOONSHOT_API_KEY",),
    "opencode": ("OPENCODE_API_KEY",),
    "sap-ai-core": ("AICORE_*",),
    "the-grid-ai": ("THEGRID_API_KEY",),
    "thinkingmachines": ("TINKER_API_KEY",),
    "togetherai": ("TOGETHER_API_KEY",),
    "vercel": ("AI_GATEWAY_API_KEY",),
    "volcengine": ("ARK_API_KEY", "ARK_CODING_PLAN_API_KEY"),
    "zai": ("ZHIPU_API_KEY",),
    "zhipuai": ("ZHIPU_API_KEY",),
}
"""Provider, or the beginning of its name before a further `-word`, -> patterns of its variables."""
_FREE = "opencode"
"""Has models that need no key."""


def environment(
    provider: str, table: Mapping[str, Any], env: Mapping[str, str], *, models_file: Path | None = None
) -> dict[str, str]:
    """The variables of the host's `env` for a provider, with the user's credential files, which a replaced HOME would hide.

    `table` is the provider's entry in the user's configuration. Raises nothing: a damaged `models_file` names no variables.
    """
    names = (*_patterns(provider), *_named(table), *_named(_listed(provider, models_file)))
    out = {str(name): str(path) for name, path in _credential_files(provider, env).items() if path.exists()}
    return out | {name: value for name, value in env.items() if value and matches(name, names)}


def reachable(provider: str, table: Mapping[str, Any], variables: Mapping[str, str]) -> bool:
    """Whether there is a sign that a provider can be used without an entry in auth.json: a variable, or a configured address or
    key. Options such as `ANTHROPIC_BASE_URL` are no sign."""
    options = table.get("options")
    configured = isinstance(options, Mapping) and any(options.get(name) for name in ("apiKey", "baseURL", "headers"))
    keys = [name for name in variables if re.search(r"KEY|TOKEN|CREDENTIAL|PROFILE|SECRET", name)]
    return provider.split("-", maxsplit=1)[0] == _FREE or configured or bool(keys)


def key_variable(provider: str) -> str:
    """The variable to name in a remedy."""
    first = _patterns(provider)[0]
    return first if "*" not in first else f"{first.rstrip('*')}API_KEY" if first not in (*_AWS, *_VERTEX) else first


def _patterns(provider: str) -> tuple[str, ...]:
    words = provider.split("-")
    for end in range(len(words), 0, -1):
        if (known := _EXCEPTIONS.get("-".join(words[:end]))) is not None:
            return known
    return (f"{re.sub(r'[^A-Z0-9]', '_', re.split(r'[-.]', provider)[0].upper())}_*",)


def _named(table: Mapping[str, Any]) -> tuple[str, ...]:
    names = table.get("env")
    return tuple(name for name in names if isinstance(name, str) and "*" not in name) if isinstance(names, list) else ()


def _listed(provider: str, models_file: Path | None) -> Mapping[str, Any]:
    if models_file is None:
        return {}
    try:
        data = parse_json(models_file.read_bytes())
    except OSError:
        return {}
    entry = data.get(provider) if isinstance(data, Mapping) else None
    return entry if isinstance(entry, Mapping) else {}


def _credential_files(provider: str, env: Mapping[str, str]) -> dict[str, Path]:
    home, patterns = host_home(env), _patterns(provider)
    if patterns == _AWS:
        return {"AWS_SHARED_CREDENTIALS_FILE": home / ".aws" / "credentials", "AWS_CONFIG_FILE": home / ".aws" / "config"}
    if patterns == _VERTEX:
        gcloud = Path(env.get("CLOUDSDK_CONFIG") or home / ".config" / "gcloud")
        return {"GOOGLE_APPLICATION_CREDENTIALS": gcloud / "application_default_credentials.json"}
    return {}
