"""A stdio MCP server whose tool `echo` fails as its text says: `die` ends the server, `hang` never answers. Where a file `broken` lies
in its working directory it does not start."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from mcp_echo import answer

if Path("broken").exists():
    sys.exit("broken")
for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "tools/call":
        text = request["params"]["arguments"]["text"]
        if text == "die":
            os._exit(3)
        while text == "hang":
            time.sleep(1)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request, "")}), flush=True)
