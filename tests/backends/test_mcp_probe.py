"""Declared MCP servers are greeted before anything is paid for: real processes, real HTTP on loopback."""

from __future__ import annotations

import json
import sys
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import psutil
import pytest

from pytest_caliper.backends.mcp import ResolvedServer
from pytest_caliper.backends.mcp_probe import probe_server
from pytest_caliper.contracts import EngineError
from pytest_caliper.process import Processes

TOKEN = "Bearer let-me-in-please"
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
STDIO = """
import json, os, sys
print("a banner", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {}}
    elif message["method"] == "tools/list":
        cursor = message["params"].get("cursor")
        result = {"tools": [{"name": os.environ["FIRST"]}], "nextCursor": "2"} if not cursor else {"tools": [{"name": "second"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture
def processes() -> Iterator[Processes]:
    with Processes(f"mcp-{uuid.uuid4().hex}") as running:
        yield running


def stdio(code: str, **fields: Any) -> ResolvedServer:
    return ResolvedServer(**{"name": "echo", "transport": "stdio", "command": sys.executable, "args": ("-c", code), **fields})


def test_a_stdio_server_lists_every_page(processes: Processes, tmp_path: Path) -> None:
    tools = probe_server(stdio(STDIO, env={"FIRST": "first"}), env=ENV, processes=processes, root=tmp_path)
    assert tools == ("first", "second")


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (stdio("", command="/missing/server", args=()), "cannot be started: No such file or directory"),
        (stdio("import sys; sys.exit('no database')"), "ended .*status 1.*no database"),
        (stdio("import time; time.sleep(60)"), "did not answer within"),
        (
            stdio("import json; m = json.loads(input()); print(json.dumps({'id': m['id'], 'error': {'message': 'too old'}}))"),
            "initialize failed: too old",
        ),
        (
            ResolvedServer(name="echo", transport="http", url="http://127.0.0.1:9/mcp"),
            "cannot be reached: .*refused",
        ),
    ],
)
def test_a_broken_server_is_named_with_its_fault(
    processes: Processes, tmp_path: Path, server: ResolvedServer, message: str
) -> None:
    with pytest.raises(EngineError, match=f"^mcp server 'echo' .*{message}.*check its entry under mcp:$"):
        probe_server(server, env=ENV, processes=processes, root=tmp_path, timeout_s=2.0)


def test_nothing_of_a_server_survives(processes: Processes, tmp_path: Path) -> None:
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(EngineError):
        probe_server(stdio(code), env=ENV, processes=processes, root=tmp_path / "root", timeout_s=1.0)
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def answer_to(message: dict[str, Any]) -> dict[str, Any] | None:
    if message["method"] == "initialize":
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"capabilities": {"tools": {}}}}
    if message["method"] == "tools/list":
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [{"name": "remote"}]}}
    return None


class Remote(BaseHTTPRequestHandler):
    """`/json` and `/stream` speak streamable HTTP, `/sse` the older transport; all check the token."""

    queue: Queue[dict[str, Any]] = Queue()

    def log_message(self, *_: object) -> None: ...

    def _allowed(self) -> bool:
        if self.headers.get("Authorization") == TOKEN:
            return True
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Bearer resource_metadata=x")
        self.end_headers()
        return False

    def do_GET(self) -> None:
        if not self._allowed():
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /post?session=1\n\n")
        for _ in range(2):
            self.wfile.write(f"event: message\ndata: {json.dumps(self.queue.get(timeout=20))}\n\n".encode())
            self.wfile.flush()

    def do_POST(self) -> None:
        if not self._allowed():
            return
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = answer_to(message)
        if self.path.startswith("/post") and answer is not None:
            self.queue.put(answer)
            answer = None
        body = b"" if answer is None else json.dumps(answer).encode()
        kind = "application/json"
        if self.path == "/stream" and answer is not None:
            body, kind = b": ping\r\n\r\nevent: message\r\ndata: " + body + b"\r\n\r\n", "text/event-stream"
        self.send_response(202 if answer is None else 200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Remote) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(("path", "transport"), [("/json", "http"), ("/stream", "http"), ("/sse", "sse")])
def test_a_remote_server_lists_its_tools(processes: Processes, tmp_path: Path, url: str, path: str, transport: str) -> None:
    server = ResolvedServer(name="remote", transport=transport, url=url + path, headers={"Authorization": TOKEN})
    assert probe_server(server, env=ENV, processes=processes, root=tmp_path) == ("remote",)


@pytest.mark.parametrize(("path", "transport"), [("/json", "http"), ("/sse", "sse")])
def test_a_login_that_nobody_can_do_is_named(processes: Processes, tmp_path: Path, url: str, path: str, transport: str) -> None:
    server = ResolvedServer(name="remote", transport=transport, url=url + path)
    with pytest.raises(EngineError, match=r"HTTP 401: not allowed .*OAuth.*give a token in headers:"):
        probe_server(server, env=ENV, processes=processes, root=tmp_path)
