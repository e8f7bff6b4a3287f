"""Serve a scripted model and run a command against it: `python run_case.py --script S.json --log OUT.json -- CMD...`.

Meant to be started by `netns.py`. The command gets `ANTHROPIC_BASE_URL`; its exit status is returned. OUT.json gets the requests
that the model saw, in order.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from scripted_model import ScriptedModel


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    with ScriptedModel(json.loads(options.script.read_text(encoding="utf-8"))) as server:
        try:
            done = subprocess.run(command, env={**os.environ, "ANTHROPIC_BASE_URL": server.url}, check=False)
        finally:
            options.log.write_text(json.dumps(server.requests), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
