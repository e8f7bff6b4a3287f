"""The config.toml of an attempt's agent and of the judge. Checked against 0.171.0; older ones pass over what they do not know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_caliper.backends.mcp import ResolvedServer
from pytest_caliper.spec.model import McpServer

_SERVER_NAME = re.compile(r"[a-zA-Z0-9_:@/.-]+")
_AGENTS_SWITCH = (0, 171, 0)
"""The first version known to have `agents.enabled`; 0.130 ends with an error at it, and has `features.multi_agent`
and `tools.view_image`."""
_SERVER_START_S = 30
"""As long as the greeting before the run waits."""

_QUIET: dict[str, Any] = {
    "check_for_update_on_startup": False,
    "allow_login_shell": False,  # `bash -lc` takes PATH from /etc/profile: `sandbox.extra_path` would be lost
    "cli_auth_credentials_store": "file",
    "mcp_oauth_credentials_store": "file",  # the keyring's are the user's, whatever CODEX_HOME is
    "analytics": {"enabled": False},  # 5 s at exit where it cannot be reached
    "feedback": {"enabled": False},
    "history": {"persistence": "none"},
}
_FEATURES: dict[str, bool] = {
    "apps": False,
    "memories": False,
    "plugins": False,
    "remote_plugin": False,
    "shell_snapshot": False,
    "skill_mcp_dependency_install": False,
    "tool_suggest": False,
    "unbounded_connection_retries": False,
}
_TOOLS: dict[str, bool] = {
    "browser_use": False,
    "computer_use": False,
    "goals": False,
    "hooks": False,
    "image_generation": False,
    "in_app_browser": False,
    "shell_tool": False,
    "skill_search": False,
    "sleep_tool": False,
    "unified_exec": False,
    "view_image": False,
}
"""What a judge is not given. `apply_patch` and `request_user_input` remain: the sandbox refuses the one, nobody answers the
other."""


def agent_config(settings: Mapping[str, Any], servers: Iterable[ResolvedServer]) -> dict[str, Any]:
    """The configuration of an agent with the user's `settings` and the spec's `servers` alone. Holds secrets."""
    config = {**settings, **_QUIET, "skills": {"bundled": {"enabled": False}}, "features": dict(_FEATURES)}
    if tables := {server.name: _server(server) for server in servers}:
        config["mcp_servers"] = tables
    return config


def judge_config(settings: Mapping[str, Any], system: str, *, version: str) -> dict[str, Any]:
    """The configuration of a judge that is told `system`, and that has no skills and as few tools as Codex can do with."""
    config = {
        **settings,
        **_QUIET,
        "developer_instructions": system,
        "include_apps_instructions": False,
        "include_environment_context": False,
        "include_permissions_instructions": False,
        "project_doc_max_bytes": 0,
        "web_search": "disabled",
        "features": {**_FEATURES, **_TOOLS},
        "skills": {"include_instructions": False, "bundled": {"enabled": False}},
    }
    if version_numbers(version) >= _AGENTS_SWITCH:
        return {**config, "agents": {"enabled": False}}
    return {**config, "features": {**_FEATURES, **_TOOLS, "multi_agent": False}, "tools": {"view_image": False}}


def version_numbers(version: str) -> tuple[int, ...]:
    """`0.171.0-alpha.2` -> (0, 171, 0)."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0])[:3])


def server_refusal(servers: Iterable[McpServer]) -> str | None:
    """Why Codex cannot have these servers; None when it can."""
    for server in servers:
        if not _SERVER_NAME.fullmatch(server.name):
            return f"Codex allows letters, digits and _:@/.- in the name of an mcp server, not {server.name!r}: rename it"
    return None


def _server(server: ResolvedServer) -> dict[str, Any]:
    """A table of `mcp_servers`. `required` makes Codex fail, with the reason, where it would go on in silence."""
    common = {"required": True, "startup_timeout_sec": _SERVER_START_S}
    if server.transport == "stdio":
        return {"command": server.command, "args": list(server.args), "env": dict(server.env), **common}
    return {"url": server.url, "http_headers": dict(server.headers), **common}
