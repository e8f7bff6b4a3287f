"""The MCP server of `mcp_echo` over HTTP (streamable HTTP transport, without streams), with a checked Authorization header."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mcp_echo import answer

TOKEN = "dummy-mcp-token"
"""What must be in the header `Authorization: Bearer ...`."""
GREETING = "http-hello"


class Handler(BaseHTTPRequestHandler):
    """One connection: a POST carries one JSON-RPC message."""

    protocol_version = "HTTP/1.1"
    server: HttpEcho

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.partition("?")[0] != "/mcp":
            self.send(404)
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.server.refused += 1
            self.send(401, {"error": "unauthorized"})
        else:
            request = json.loads(raw)
            if "id" in request:
                self.send(200, {"jsonrpc": "2.0", "id": request["id"], **answer(request, GREETING)})
            else:
                self.send(202)

    def do_GET(self) -> None:
        """The server starts no messages of its own, so there is no stream to open; nor is there anything else to get."""
        self.send(405 if self.path.partition("?")[0] == "/mcp" else 404)

    def do_DELETE(self) -> None:
        self.do_GET()

    def send(self, status: int, data: Any = None) -> None:
        body = b"" if data is None else json.dumps(data).encode()
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class HttpEcho(ThreadingHTTPServer):
    """The server, on a free port of 127.0.0.1; `with` serves until the end of the block."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.refused = 0
        """Requests without the token."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def __enter__(self) -> HttpEcho:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()
        self.server_close()
