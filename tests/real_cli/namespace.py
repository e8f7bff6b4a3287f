"""Runs commands beside a scripted model, where nothing but loopback exists: what end-to-end tests call."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KEY = "dummy-key"
MODEL_PATH = re.compile(r"(/messages|/responses|/chat/completions|:(stream)?[gG]enerateContent)$")


@dataclass(frozen=True, kw_only=True)
class CompletedRun:
    """A command that ran in a namespace."""

    returncode: int
    stdout: str
    stderr: str
    requests: list[dict[str, Any]]
    """What the model was asked, in order: `method`, `path`, `headers` and `body`."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The bodies of the requests for a message: one for each turn of a model."""
        return [entry["body"] for entry in self.requests if MODEL_PATH.search(entry["path"].partition("?")[0])]


def run_in_namespace(
    turns: Sequence[Mapping[str, Any]],
    argv: Sequence[str | Path],
    cwd: Path,
    *,
    env: Mapping[str, str | None] | None = None,
    usage: Mapping[str, int] | None = None,
    files: Mapping[str, str] | None = None,
    timeout_s: float = 300.0,
) -> CompletedRun:
    """Run `argv` in `cwd` in a network namespace of its own, with a model that follows `turns` (see `scripted_model`).

    The environment is clean: PATH, a UTF-8 locale, an empty HOME, ANTHROPIC_BASE_URL of the model and a dummy ANTHROPIC_API_KEY;
    `env` adds to it, and takes out what it maps to None. `files` are written below HOME first, by their relative paths. In their
    text and in the environment `@URL@` becomes the model's URL (without `/v1`), `@MCP_URL@` that of the MCP server of `mcp_http`,
    and `@HOME@` the home. Raises subprocess.TimeoutExpired.
    """
    with tempfile.TemporaryDirectory(prefix="caliper-case-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        script, log, home = place / "script.json", place / "requests.json", place / "home"
        home.mkdir()
        data = {"turns": list(turns), "usage": dict(usage or {}), "files": dict(files or {})}
        script.write_text(json.dumps(data), encoding="utf-8")
        clean: dict[str, str | None] = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "ANTHROPIC_API_KEY": KEY,
            **(env or {}),
        }
        done = subprocess.run(
            (
                *(sys.executable, str(HERE / "netns.py"), "--"),
                *(sys.executable, str(HERE / "run_case.py"), "--script", str(script), "--log", str(log), "--"),
                *map(str, argv),
            ),
            cwd=cwd,
            env={name: value for name, value in clean.items() if value is not None},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
        return CompletedRun(
            returncode=done.returncode,
            stdout=done.stdout.decode("utf-8", "replace"),
            stderr=done.stderr.decode("utf-8", "replace"),
            requests=json.loads(log.read_text(encoding="utf-8")) if log.exists() else [],
        )
