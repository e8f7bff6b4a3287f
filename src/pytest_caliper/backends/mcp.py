"""MCP servers of a spec with `${VAR}` references and relative paths resolved: what every backend's own format is made from."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_caliper.contracts import EngineError
from pytest_caliper.spec.model import McpServer

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedServer:
    """A server ready to be written into a CLI's configuration. Holds secrets."""

    name: str
    transport: str
    """`stdio`, `http` or `sse`."""
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def resolve_server(server: McpServer, env: Mapping[str, str], spec_dir: Path) -> ResolvedServer:
    """The server with `${VAR}` taken from the host's `env`, and `./` and `../` paths from the spec's directory.

    References are resolved in `env`, `headers` and `url` alone: a secret in an argument would be seen by every process of the
    machine. Raises EngineError naming server, key and variable when one is unset.
    """
    return ResolvedServer(
        name=server.name,
        transport=server.transport,
        command=None if server.command is None else _path(server.command, spec_dir),
        args=tuple(_path(argument, spec_dir) for argument in server.args),
        env={key: _resolve(value, env, server.name, f"env.{key}") for key, value in server.env.items()},
        url=None if server.url is None else _resolve(server.url, env, server.name, "url"),
        headers={key: _resolve(value, env, server.name, f"headers.{key}") for key, value in server.headers.items()},
    )


def _resolve(text: str, env: Mapping[str, str], server: str, key: str) -> str:
    def value(match: re.Match[str]) -> str:
        if (found := env.get(match[1])) is None:
            raise EngineError(
                f"mcp server {server!r}: {key} needs the environment variable {match[1]}, which is not set: export it"
            )
        return found

    return _REFERENCE.sub(value, text)


def _path(text: str, spec_dir: Path) -> str:
    return os.path.normpath(spec_dir / text) if text.startswith(("./", "../")) else text
