"""Serve a scripted model and run a command against it: `python run_case.py --script S.json --log OUT.json -- CMD...`.

Meant to be started by `netns.py`. The command gets `ANTHROPIC_BASE_URL`; its exit status is returned. Before it starts, the
script's `files` are written below HOME. In them and in the environment `@URL@` becomes the model's URL, `@MCP_URL@` that of an
MCP server (see `mcp_http`) and `@HOME@` the home. OUT.json gets the requests that the model saw, in order.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from mcp_http import HttpEcho
from scripted_model import ScriptedModel


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    script = json.loads(options.script.read_text(encoding="utf-8"))
    with ScriptedModel(script) as server, HttpEcho() as mcp:
        places = {"@URL@": server.url, "@MCP_URL@": mcp.url, "@HOME@": os.environ["HOME"]}
        for name, text in script.get("files", {}).items():
            path = Path(os.environ["HOME"], name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled(text, places), encoding="utf-8")
        env = {name: filled(value, places) for name, value in os.environ.items()}
        try:
            done = subprocess.run(command, env={**env, "ANTHROPIC_BASE_URL": server.url}, check=False)
        finally:
            options.log.write_text(json.dumps(server.requests), encoding="utf-8")
    return done.returncode


def filled(text: str, places: dict[str, str]) -> str:
    """`text` with every placeholder replaced."""
    for name, value in places.items():
        text = text.replace(name, value)
    return text


if __name__ == "__main__":
    sys.exit(main())
