"""Asks a declared MCP server what it offers, before any attempt is paid for."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_caliper.backends.environment import base_environment
from pytest_caliper.backends.mcp import ResolvedServer
from pytest_caliper.contracts import Command, EngineError, Workspace
from pytest_caliper.process import Processes

CLIENT = Path(__file__).with_name("mcp_client.py")
TIMEOUT_S = 30.0
_LAST_WORDS = 4096


def probe_server(
    server: ResolvedServer, *, env: Mapping[str, str], processes: Processes, root: Path, timeout_s: float = TIMEOUT_S
) -> tuple[str, ...]:
    """The names of the server's tools. Works below `root`, in a workspace like an attempt's.

    Raises EngineError with one line that names the server, its fault and what to look at.
    """
    workspace = Workspace.at(root)
    for directory in (workspace.home, workspace.work, workspace.tmp):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    environment = base_environment(env, workspace)
    config = {
        "transport": server.transport,
        "command": server.command,
        "args": server.args,
        "environment": {**environment, **server.env},
        "url": server.url,
        "headers": dict(server.headers),
    }
    command = Command(
        argv=(sys.executable, "-I", str(CLIENT), str(timeout_s)),
        cwd=workspace.work,
        env=environment,
        stdin=json.dumps(config).encode(),  # not an argument: it holds secrets
    )
    out, err = root / "greeting.out", root / "greeting.err"
    processes.run(command, stdout=out, stderr=err, timeout_s=timeout_s + 10.0, tag=f"{processes.session_tag}/mcp")
    try:
        answer = json.loads(out.read_bytes())
    except ValueError:
        answer = {"error": "the greeting broke off"}
    if "tools" in answer:
        return tuple(answer["tools"])
    raise EngineError(f"mcp server {server.name!r} {answer['error']}{_said(err)}; check its entry under mcp:")


def _said(err: Path) -> str:
    """The last line of what the server said on standard error."""
    data = err.read_bytes()[-_LAST_WORDS:].decode("utf-8", "replace")
    lines = [line.strip() for line in data.split("\n") if line.strip()]
    return f" ({lines[-1][:200]})" if lines else ""
