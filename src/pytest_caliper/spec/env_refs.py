"""References to environment variables, `${VAR}`, in the `mcp:` block of a spec."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_caliper.spec.model import McpServer, Spec

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""The one form there is; group 1 is the variable's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvRef:
    """One use of `${name}`."""

    name: str
    """Of the environment variable."""
    server: str
    """Name of the MCP server."""
    key: str
    """Where within the server: `env.API_TOKEN`, `headers.Authorization` or `url`."""
    line: int
    """1-based line of the server in the spec."""


def references(spec: Spec) -> tuple[EnvRef, ...]:
    """Every `${VAR}` of the spec, in the order of the file; once for each place that uses it."""
    return references_of(spec.mcp)


def references_of(servers: Iterable[McpServer]) -> tuple[EnvRef, ...]:
    """As `references`, of these servers."""
    found: dict[EnvRef, None] = {}
    for server in servers:
        places = [(f"env.{name}", value) for name, value in server.env.items()]
        places += [(f"headers.{name}", value) for name, value in server.headers.items()]
        for key, text in [*places, ("url", server.url or "")]:
            for match in REFERENCE.finditer(text):
                found[EnvRef(name=match.group(1), server=server.name, key=key, line=server.line)] = None
    return tuple(found)


def malformed(text: str) -> str | None:
    """The first `${…` in `text` that is no reference, such as `${}` or `${A:-b}`; None when all are well formed."""
    rest = REFERENCE.sub(lambda match: " " * len(match.group()), text)
    at = rest.find("${")
    if at < 0:
        return None
    end = rest.find("}", at)
    return text[at : end + 1] if end >= 0 else text[at:]
