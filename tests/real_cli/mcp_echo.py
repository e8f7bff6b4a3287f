"""A stdio MCP server with one tool, `echo`, whose answer carries the environment variable GREETING."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TOOL = {
    "name": "echo",
    "description": "Echo the text back",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(request: dict[str, Any], greeting: str) -> dict[str, Any]:
    """The `result` or `error` member for a request."""
    method, parameters = request["method"], request.get("params", {})
    if method == "initialize":
        info = {"name": "echo", "version": "1"}
        version = parameters.get("protocolVersion", "2025-06-18")
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "tools/call":
        text = f"{greeting} {parameters['arguments']['text']}"
        return {"result": {"content": [{"type": "text", "text": text}], "isError": False}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": f"no method {method}"}}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            reply = answer(request, os.environ.get("GREETING", ""))
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)
