"""MCP servers in pi's own form, and the names that it gives them and their tools (docs/mcp.md of pi 1.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_caliper.backends.mcp import ResolvedServer
from pytest_caliper.backends.pi_values import literal
from pytest_caliper.spec.model import McpServer

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_]")
_PREFIX = "mcp__"


def mcp_refusal(servers: Iterable[McpServer]) -> str | None:
    """One line why pi cannot have these servers, with the remedy; None when it can."""
    seen: dict[str, str] = {}
    for server in servers:
        if server.transport == "sse":
            return (
                f"mcp server {server.name!r}: pi does not speak sse: use `type: http` where the server has it (often at /mcp), "
                "or another engine"
            )
        if not _NAME.fullmatch(server.name):
            return f"mcp server {server.name!r}: pi takes letters, digits, `_` and `-` in a server's name: rename it"
        if other := seen.get(namespace(server.name)):
            return f"mcp servers {other!r} and {server.name!r} are one name to pi: rename one of them"
        seen[namespace(server.name)] = server.name
    return None


def mcp_config(servers: Iterable[ResolvedServer]) -> dict[str, Any]:
    """The content of mcp.json. Tools are declared to the model itself, as by every other CLI."""
    return {"mcpServers": {server.name: _entry(server) for server in servers}}


def namespace(server: str) -> str:
    """A server's name as it stands in its tools' names."""
    return _OTHER.sub("_", server)


def tool_name(name: str, details: Any, servers: Iterable[str]) -> str:
    """`mcp__server__tool` with the names as the server and the spec spell them.

    `details` of a tool's result name both; before there is a result, the server is known by the spec's own names `servers`.
    """
    if not name.startswith(_PREFIX):
        return name
    if isinstance(details, Mapping) and isinstance(details.get("server"), str) and isinstance(details.get("tool"), str):
        return f"{_PREFIX}{details['server']}__{details['tool']}"
    server = server_of(name, servers)
    return name if server is None else f"{_PREFIX}{server}__{name.removeprefix(f'{_PREFIX}{namespace(server)}__')}"


def server_of(tool: str, servers: Iterable[str]) -> str | None:
    """Which of `servers` a tool's name belongs to; the longest name that fits."""
    fitting = [server for server in servers if tool.startswith(f"{_PREFIX}{namespace(server)}__")]
    return max(fitting, key=len, default=None)


def _entry(server: ResolvedServer) -> dict[str, Any]:
    shared = {"exposure": "direct"}
    if server.transport == "stdio":
        env = {name: literal(value, templates=True) for name, value in server.env.items()}
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": env, **shared}
    headers = {name: literal(value, templates=True) for name, value in server.headers.items()}
    return {"type": "http", "url": server.url, "headers": headers, **shared}
