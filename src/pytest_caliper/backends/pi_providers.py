"""By which variables pi reaches each provider (docs/providers.md of pi 1.6, env-api-keys.js of 1.6 and 0.74)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_caliper.backends.environment import host_home, matches

KEYS: Mapping[str, tuple[str, ...]] = {
    "amazon-bedrock": (
        *("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    ),
    "ant-ling": ("ANT_LING_API_KEY",),
    "anthropic": ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_IDENTITY_TOKEN_FILE"),
    "azure": ("AZURE_OPENAI_API_KEY",),
    "azure-openai-responses": ("AZURE_OPENAI_API_KEY",),
    "baseten": ("BASETEN_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cloudflare-ai-gateway": ("CLOUDFLARE_API_KEY",),
    "cloudflare-workers-ai": ("CLOUDFLARE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "github-copilot": ("COPILOT_GITHUB_TOKEN",),
    "google": ("GEMINI_API_KEY",),
    "google-vertex": ("GOOGLE_CLOUD_API_KEY", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"),
    "groq": ("GROQ_API_KEY",),
    "huggingface": ("HF_TOKEN",),
    "kimi-coding": ("KIMI_API_KEY",),
    "meta": ("META_API_KEY",),
    "minimax": ("MINIMAX_API_KEY",),
    "minimax-cn": ("MINIMAX_CN_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshotai": ("MOONSHOT_API_KEY",),
    "moonshotai-cn": ("MOONSHOT_API_KEY",),
    "nvidia": ("NVIDIA_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "opencode": ("OPENCODE_API_KEY",),
    "opencode-go": ("OPENCODE_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "qwen-token-plan": ("QWEN_TOKEN_PLAN_TEAM_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"),
    "qwen-token-plan-cn": ("QWEN_TOKEN_PLAN_TEAM_CN_API_KEY", "QWEN_TOKEN_PLAN_CN_API_KEY"),
    "qwen-token-plan-individual": ("QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"),
    "qwen-token-plan-individual-cn": ("QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY", "QWEN_TOKEN_PLAN_CN_API_KEY"),
    "radius": ("RADIUS_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
    "vercel-ai-gateway": ("AI_GATEWAY_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "xiaomi": ("XIAOMI_API_KEY",),
    "xiaomi-token-plan-ams": ("XIAOMI_TOKEN_PLAN_AMS_API_KEY",),
    "xiaomi-token-plan-cn": ("XIAOMI_TOKEN_PLAN_CN_API_KEY",),
    "xiaomi-token-plan-sgp": ("XIAOMI_TOKEN_PLAN_SGP_API_KEY",),
    "zai": ("ZAI_API_KEY",),
    "zai-coding-cn": ("ZAI_CODING_CN_API_KEY",),
}
"""Provider -> variables any of which gives it credentials."""

_FURTHER: Mapping[str, tuple[str, ...]] = {
    "amazon-bedrock": ("AWS_*",),
    "anthropic": (
        *("ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID"),
        *("ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_WORKSPACE_ID"),
    ),
    "azure": ("AZURE_OPENAI_*",),
    "azure-openai-responses": ("AZURE_OPENAI_*",),
    "cloudflare-ai-gateway": ("CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"),
    "cloudflare-workers-ai": ("CLOUDFLARE_ACCOUNT_ID",),
    "google-vertex": ("GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*"),
}
_CLOUDS = frozenset({"amazon-bedrock", "google-vertex"})
"""Their credentials open more than a model: they cross over only when the engine names the provider."""
_ALWAYS = ("PI_CACHE_RETENTION", "PI_PACKAGE_DIR")


def has_key(provider: str, env: Mapping[str, str]) -> bool:
    """Whether the host's environment holds credentials of `provider`."""
    return any(env.get(name) for name in KEYS.get(provider, ()))


def any_key(env: Mapping[str, str]) -> bool:
    """Whether it holds credentials of any provider."""
    return any(has_key(provider, env) for provider in KEYS)


def provider_environment(provider: str | None, env: Mapping[str, str]) -> dict[str, str]:
    """The host's variables that reach `provider`, or any provider but the clouds when it is None.

    Credential files that a replaced HOME would hide are named by their absolute paths.
    """
    wanted = [provider] if provider is not None else [name for name in KEYS if name not in _CLOUDS]
    patterns = [*_ALWAYS, *(pattern for name in wanted for pattern in (*KEYS.get(name, ()), *_FURTHER.get(name, ())))]
    out = {name: str(path) for name, path in _files(provider, env).items() if path.exists()}
    return out | {name: value for name, value in env.items() if value and matches(name, patterns)}


def _files(provider: str | None, env: Mapping[str, str]) -> dict[str, Path]:
    home = host_home(env)
    if provider == "amazon-bedrock":
        return {"AWS_SHARED_CREDENTIALS_FILE": home / ".aws/credentials", "AWS_CONFIG_FILE": home / ".aws/config"}
    if provider == "google-vertex":
        gcloud = Path(env.get("CLOUDSDK_CONFIG") or home / ".config" / "gcloud")
        return {"GOOGLE_APPLICATION_CREDENTIALS": gcloud / "application_default_credentials.json"}
    return {}
