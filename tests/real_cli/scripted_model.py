"""A scripted model server for driving real agent CLIs offline: speaks the model APIs of `dialects`, streaming and not.

A script is `{"turns": [turn, ...], "usage": {...}, "models": [name, ...]}`. A request is answered by the first turn whose `when`
holds (an empty `when` always holds; when none does, by the text "OK"). Conditions:

    tool_results N           how many tool results the request carries       min_tool_results N
    user "str"               in the last user message                        any / not_any "str"   anywhere in the body
    all ["str", ...]         each of them anywhere in the body
    model "str"              in the model's name                             tools true/false      the request offers tools
    tool_offered "Name"      among the tools offered                         request N             the N-th model request, from 0
    max_uses N               this turn answers at most N times

A turn replies with `text`, `thinking`, and `tool` or a list `tools`, or plays a `fault`. A tool is `{"name": {input}, ...}`: the
first name that the request offers is called (the first of all when it offers none of them), so one script can serve several CLIs.
Functions of an MCP server that the Responses API offers as a namespace are called `namespace__name`; an input that is a string
makes a freeform call.

Faults: `{"kind": "status", "status": 429, "type": ..., "code": ..., "message": ..., "headers": {...}}`, `{"kind": "hang"}`,
`{"kind": "cut"}` (the connection ends just before the answer is complete, or with `"after": N` after N events; at once without
streaming),
`{"kind": "garbage"}`, `{"kind": "wrong_type"}`, `{"kind": "close"}`. `delay` waits that many seconds first.

In a text or a tool's input `@CWD@` becomes the working directory that the request names, and `@FILE:a/b@` the first absolute path
in it that ends with `/a/b`. `usage` (of a turn or of the script) is disjoint: `input`, `cache_read`, `cache_write`, `output`;
`reasoning` is a part of `output`.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import dialects
from dialects import USAGE, Asked, Call, Dialect, Said

SECRET_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
DIRECTORY = re.compile(
    r"[Ww]orking directory: (.+?)(?:\\n|\"|$)"  # Claude Code, opencode, Hermes
    r"|<cwd>(?:\\n)?(.+?)(?:\\n)?</cwd>"  # Codex, pi
    r"|Workspace Directories:\*\*\\n *- (.+?)\\n"  # Gemini CLI
)
"""How CLIs name the working directory, in the request's JSON."""


class Script:
    """Chooses the turn that answers a request. Thread-safe."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.turns: list[dict[str, Any]] = data.get("turns", [])
        self.usage = {**USAGE, **data.get("usage", {})}
        self.models: list[str] = data.get("models", ["scripted-model"])
        self.new_id = dialects.ids()
        self._used: dict[int, int] = {}
        self._requests = 0
        self._lock = threading.Lock()

    def choose(self, asked: Asked, raw: str, model: str) -> dict[str, Any]:
        """The turn for a request with the body `raw`, its `@...@` filled in."""
        with self._lock:
            index, self._requests = self._requests, self._requests + 1
            for number, turn in enumerate(self.turns):
                when = turn.get("when", {})
                if self._used.get(number, 0) < when.get("max_uses", 1 << 30) and holds(when, asked, raw, model, index):
                    self._used[number] = self._used.get(number, 0) + 1
                    return with_paths(turn, raw)
        return {"text": "OK"}

    def said(self, turn: dict[str, Any], asked: Asked, model: str) -> Said:
        """What the turn says, its calls made with the tools that were offered."""
        calls = []
        for choices in turn.get("tools") or ([turn["tool"]] if "tool" in turn else []):
            name = next((name for name in choices if name in asked.tools), next(iter(choices)))
            calls.append(Call(call_id=self.new_id("toolu"), name=name, arguments=choices[name]))
        return Said(
            model=turn.get("model") or model or self.models[0],
            text=turn.get("text", ""),
            thinking=turn.get("thinking", ""),
            calls=tuple(calls),
            usage={**self.usage, **turn.get("usage", {})},
            stop=turn.get("stop"),
        )


def holds(when: dict[str, Any], asked: Asked, raw: str, model: str, index: int) -> bool:
    """Whether the conditions fit the request, which is the `index`-th."""
    return all(
        (
            when.get("tool_results", asked.results) == asked.results,
            when.get("min_tool_results", 0) <= asked.results,
            when.get("user", "") in asked.user,
            when.get("any", "") in raw,
            all(text in raw for text in when.get("all", ())),
            "not_any" not in when or when["not_any"] not in raw,
            when.get("model", "") in model,
            when.get("tools", bool(asked.tools)) == bool(asked.tools),
            when.get("request", index) == index,
            "tool_offered" not in when or when["tool_offered"] in asked.tools,
        )
    )


def with_paths(value: Any, raw: str) -> Any:
    """`value` with every `@CWD@` and `@FILE:...@` replaced by what the request's body names, where it does."""
    text = json.dumps(value)
    if "@CWD@" in text and (found := DIRECTORY.search(raw)):
        text = text.replace("@CWD@", found[found.lastindex or 0])
    for ending in set(re.findall(r"@FILE:([^@]+)@", text)):
        if found := re.search(rf"/[^\s\"'`<>()]*/{re.escape(ending)}", raw):
            text = text.replace(f"@FILE:{ending}@", found[0])
    return json.loads(text)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: ScriptedModel

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the client went away: that is how hanging requests end

    def do_GET(self) -> None:
        self.server.note(self, body=None)
        if self.path.partition("?")[0].endswith("/models"):
            self.send_json(200, dialects.model_list(self.server.script.models))
        else:
            self.send_json(200 if self.path == "/" else 404, dialects.ANTHROPIC.error(404, {"message": "unknown path"}))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        raw = self.read_body().decode("utf-8", "replace")
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        self.server.note(self, body=body)
        if (counted := dialects.counted_tokens(path, raw)) is not None:
            self.send_json(200, counted)
        elif routed := dialects.route(path, body):
            self.answer(body, raw, *routed)
        else:
            self.send_json(404, dialects.ANTHROPIC.error(404, {"message": "unknown path"}))

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def answer(self, body: dict[str, Any], raw: str, dialect: Dialect, model: str, stream: bool) -> None:
        script, asked = self.server.script, dialect.describe(body)
        turn = script.choose(asked, raw, model)
        time.sleep(turn.get("delay", 0))
        fault = turn.get("fault", {})
        if self.fault(fault, dialect):
            return
        reply = dialect.reply(script.said(turn, asked, model), script.new_id)
        if not stream:
            self.hang_up() if fault else self.send_json(200, reply.whole)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("request-id", script.new_id("req"))
        self.end_headers()
        end = fault.get("after", len(reply.events) - reply.closing) if fault.get("kind") == "cut" else None
        for name, data in reply.events[:end]:
            head = f"event: {name}\n" if name else ""
            payload = f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(payload), payload))
        if end is None:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.hang_up()

    def fault(self, fault: dict[str, Any], dialect: Dialect) -> bool:
        """Play a fault; True when it was the whole answer."""
        kind = fault.get("kind")
        if kind == "status":
            self.send_json(fault["status"], dialect.error(fault["status"], fault), fault.get("headers", {}))
        elif kind == "hang":
            self.server.closing.wait()
        elif kind == "garbage":
            self.send_bytes(200, b"\x00\xff\xfe not json, not sse \x80\n" * 8, "text/event-stream", {})
        elif kind == "wrong_type":
            self.send_bytes(200, b"<html><body>captive portal</body></html>", "text/html", {})
        elif kind == "close":
            self.hang_up()
        else:
            return False  # "cut" is played while streaming
        return True

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(2)

    def send_json(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
        self.send_bytes(status, json.dumps(data).encode(), "application/json", headers or {})

    def send_bytes(self, status: int, data: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class ScriptedModel(ThreadingHTTPServer):
    """The server, on a free port of 127.0.0.1; `with` serves until the end of the block."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, script: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = Script(script)
        self.requests: list[dict[str, Any]] = []
        """What was asked, in order: `method`, `path`, `headers` (without secrets) and the parsed `body`."""
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def note(self, handler: Handler, *, body: Any) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        headers.update({name: "[secret]" for name in SECRET_HEADERS if name in headers})
        self.requests.append({"method": handler.command, "path": handler.path, "headers": headers, "body": body})

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()
