"""Greets one MCP server and lists its tools: `python -I mcp_client.py SECONDS`, the server as JSON on standard input.

Runs as a process of its own, so that whatever the server does can be ended with it. Standard library alone. Prints one line of
JSON: `{"tools": [names]}` or `{"error": text}`. Protocol: modelcontextprotocol.io, revision 2025-06-18.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

VERSION = "2025-06-18"
CLIENT = {"name": "pytest-caliper", "version": "1"}
MAX_PAGES = 50
MAX_LINE = 16 * 1024 * 1024


class Failed(Exception):
    """Why the server cannot be used, in one line."""


class StdioServer:
    """A server that is a child process, one JSON message per line."""

    def __init__(self, config: dict[str, Any]) -> None:
        try:
            self._process = subprocess.Popen(
                [config["command"], *config["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=config["environment"]
            )
        except OSError as error:
            raise Failed(f"cannot be started: {error.strerror or error}") from None

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        self.notify(message)
        stdout = self._process.stdout
        while stdout is not None and (line := stdout.readline(MAX_LINE)):
            try:
                answer = json.loads(line)
            except ValueError:
                continue  # servers print banners
            if isinstance(answer, dict) and answer.get("id") == message["id"] and "method" not in answer:
                return answer
        raise Failed(f"ended without an answer to {message['method']} (status {self._process.wait()})")

    def notify(self, message: dict[str, Any]) -> None:
        try:
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
        except OSError:
            raise Failed(f"ended before {message['method']} (status {self._process.wait()})") from None


class HttpServer:
    """A server behind streamable HTTP: each message is a POST, the answer JSON or an event stream."""

    def __init__(self, config: dict[str, Any], timeout_s: float) -> None:
        self._url, self._timeout_s = config["url"], timeout_s
        self._headers = {**config["headers"], "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        with self._post(message) as reply:
            if session := reply.headers.get("Mcp-Session-Id"):
                self._headers["Mcp-Session-Id"] = session
            if "text/event-stream" in reply.headers.get("Content-Type", ""):
                for event, data in events(reply):
                    answer = _json(data) if event == "message" else None
                    if isinstance(answer, dict) and answer.get("id") == message["id"]:
                        return answer
                raise Failed(f"ended its stream without an answer to {message['method']}")
            answer = _json(reply.read(MAX_LINE).decode("utf-8", "replace"))
        if not isinstance(answer, dict):
            raise Failed("answered something that is no MCP message: is this the server's own URL?")
        return answer

    def notify(self, message: dict[str, Any]) -> None:
        self._headers["MCP-Protocol-Version"] = VERSION
        self._post(message).close()

    def _post(self, message: dict[str, Any]) -> Any:
        return opened(urllib.request.Request(self._url, json.dumps(message).encode(), self._headers), self._timeout_s)


class SseServer:
    """A server of the older HTTP+SSE transport: answers come on a stream that says where to POST."""

    def __init__(self, config: dict[str, Any], timeout_s: float) -> None:
        self._headers, self._timeout_s = config["headers"], timeout_s
        stream = opened(
            urllib.request.Request(config["url"], headers={**self._headers, "Accept": "text/event-stream"}), timeout_s
        )
        self._events = events(stream)
        where = next((data for event, data in self._events if event == "endpoint"), None)
        if where is None:
            raise Failed("its event stream names no endpoint: is this the server's own URL, and of type sse?")
        self._post_url = urllib.parse.urljoin(config["url"], where)

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        self.notify(message)
        for event, data in self._events:
            answer = _json(data) if event == "message" else None
            if isinstance(answer, dict) and answer.get("id") == message["id"]:
                return answer
        raise Failed(f"ended its stream without an answer to {message['method']}")

    def notify(self, message: dict[str, Any]) -> None:
        headers = {**self._headers, "Content-Type": "application/json"}
        opened(urllib.request.Request(self._post_url, json.dumps(message).encode(), headers), self._timeout_s).close()


def opened(request: urllib.request.Request, timeout_s: float) -> Any:
    """The response. Raises Failed with the status, and what it means for a login."""
    try:
        return urllib.request.urlopen(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            oauth = (
                " (it asks for an OAuth login, which no unattended run can do)" if error.headers.get("WWW-Authenticate") else ""
            )
            raise Failed(f"HTTP {error.code}: not allowed{oauth}: give a token in headers:") from None
        raise Failed(f"HTTP {error.code}: {error.reason}") from None
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Failed(f"cannot be reached: {getattr(error, 'reason', error)}") from None


def events(stream: Any) -> Iterator[tuple[str, str]]:
    """(event, data) of a text/event-stream."""
    event: str = "message"
    data: list[str] = []
    for raw in stream:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield event, "\n".join(data)
            event, data = "message", []
        elif line.startswith("event:"):
            event = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def tools_of(server: StdioServer | HttpServer | SseServer) -> list[str]:
    """Initialize, then every page of `tools/list`."""
    ids = itertools.count(1)

    def ask(method: str, **params: Any) -> dict[str, Any]:
        answer = server.request({"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params})
        if not isinstance(answer.get("result"), dict):
            error = answer.get("error")
            said = error.get("message") if isinstance(error, dict) else answer
            raise Failed(f"{method} failed: {said}")
        result: dict[str, Any] = answer["result"]
        return result

    welcome = ask("initialize", protocolVersion=VERSION, capabilities={}, clientInfo=CLIENT)
    server.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
    if "tools" not in (welcome.get("capabilities") or {}):
        return []
    names: list[str] = []
    page: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        listed = ask("tools/list", **page)
        names += [str(tool.get("name")) for tool in listed.get("tools") or [] if isinstance(tool, dict)]
        if not listed.get("nextCursor"):
            break
        page = {"cursor": listed["nextCursor"]}
    return names


def main(timeout_s: float) -> int:
    config = json.load(sys.stdin)
    result: dict[str, Any] = {}

    def work() -> None:
        try:
            if config["transport"] == "stdio":
                result["tools"] = tools_of(StdioServer(config))
            elif config["transport"] == "sse":
                result["tools"] = tools_of(SseServer(config, timeout_s))
            else:
                result["tools"] = tools_of(HttpServer(config, timeout_s))
        except Failed as error:
            result["error"] = str(error)

    thread = threading.Thread(target=work, daemon=True)
    started = time.monotonic()
    thread.start()
    thread.join(timeout_s)
    if not result:
        result["error"] = f"did not answer within {time.monotonic() - started:.0f} s"
    print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
