"""The vendors whose models are asked through their SDKs, and what tells one from the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Vendor:
    """One model API and its SDK."""

    backend: str
    """The name of its backend."""
    title: str
    """For people: `the Anthropic API`."""
    sdk: str
    """The SDK's name, on PyPI and to import."""
    oldest: tuple[int, int, int]
    """The first version that will do."""
    default_model: str
    """Asked when the engine names none."""
    keys: tuple[str, ...]
    """Variables that hold a key; the first one that is set counts."""
    base_url: str
    """The variable that leads elsewhere."""
    passed: tuple[str, ...] = ()
    """Further variables that the SDK reads."""

    def key(self, env: Mapping[str, str]) -> str | None:
        """The name of the variable whose key counts; None when none is set."""
        return next((name for name in self.keys if env.get(name, "").strip()), None)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """What the SDK gets of the host's environment: one key, and how the server is reached."""
        names = (self.key(env), self.base_url, *self.passed)
        return {name: env[name] for name in names if name is not None and env.get(name)}


ANTHROPIC = Vendor(
    backend="claude-api",
    title="the Anthropic API",
    sdk="anthropic",
    oldest=(0, 41, 0),
    default_model="claude-sonnet-5-5",
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    base_url="ANTHROPIC_BASE_URL",
    passed=("ANTHROPIC_CUSTOM_HEADERS",),
)
OPENAI = Vendor(
    backend="openai-api",
    title="the OpenAI API",
    sdk="openai",
    oldest=(1, 55, 3),
    default_model="gpt-5.5",
    keys=("OPENAI_API_KEY",),
    base_url="OPENAI_BASE_URL",
    passed=("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),
)
"""The oldest versions are the first that work with httpx 0.28, which a fresh install of older ones gets too."""
