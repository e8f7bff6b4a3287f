"""A scripted model server that speaks Anthropic's Messages API, streaming and not, for driving a real agent CLI offline.

A script is `{"turns": [turn, ...], "usage": {...}}`. A request is answered by the first turn whose `when` holds (an empty `when`
always holds; when none does, by the text "OK"). Conditions:

    tool_results N           how many tool results the request carries       min_tool_results N
    user "str"               in the last user message                        any / not_any "str"   anywhere in the body
    all ["str", ...]         each of them anywhere in the body
    model "str"              in the model's name                             tools true/false      the request offers tools
    tool_offered "Name"      among the tools offered                         request N             the N-th model request, from 0
    max_uses N               this turn answers at most N times

A turn replies with `text`, `thinking`, and `tool` or a list `tools` (`{"name": {input}}` each), or plays a `fault`:
`{"kind": "status", "status": 429, "type": ..., "message": ..., "headers": {...}}`, `{"kind": "hang"}`,
`{"kind": "cut", "after": events}`, `{"kind": "garbage"}`, `{"kind": "wrong_type"}`, `{"kind": "close"}`. `delay` waits that many
seconds first. `@CWD@` in a text or a tool's input becomes the working directory that the request names.
`usage` (of a turn or of the script) is disjoint: `input`, `cache_read`, `cache_write`, `output`.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input": 100, "cache_read": 40, "cache_write": 7, "output": 20}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
SECRET_HEADERS = ("authorization", "x-api-key")


class Script:
    """Chooses the turn that answers a request. Thread-safe."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.turns: list[dict[str, Any]] = data.get("turns", [])
        self.usage = {**USAGE, **data.get("usage", {})}
        self._used: dict[int, int] = {}
        self._requests = 0
        self._ids = itertools.count(1)
        self._lock = threading.Lock()

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_scripted{next(self._ids):06d}"

    def choose(self, body: dict[str, Any], raw: str) -> tuple[int | None, dict[str, Any]]:
        with self._lock:
            index, self._requests = self._requests, self._requests + 1
            for number, turn in enumerate(self.turns):
                if self._used.get(number, 0) < turn.get("when", {}).get("max_uses", 1 << 30) and holds(turn, body, raw, index):
                    self._used[number] = self._used.get(number, 0) + 1
                    return number, turn
        return None, {"text": "OK"}


def holds(turn: dict[str, Any], body: dict[str, Any], raw: str, index: int) -> bool:
    """Whether the turn's `when` fits the request, which is the `index`-th."""
    when = turn.get("when", {})
    user, results = describe(body)
    tools = [tool.get("name") for tool in body.get("tools") or []]
    return all(
        (
            when.get("tool_results", results) == results,
            when.get("min_tool_results", 0) <= results,
            when.get("user", "") in user,
            when.get("any", "") in raw,
            all(text in raw for text in when.get("all", ())),
            "not_any" not in when or when["not_any"] not in raw,
            when.get("model", "") in str(body.get("model", "")),
            when.get("tools", bool(tools)) == bool(tools),
            when.get("request", index) == index,
            "tool_offered" not in when or when["tool_offered"] in tools,
        )
    )


def describe(body: dict[str, Any]) -> tuple[str, int]:
    """The last user text and the number of tool results in a request."""
    user, results = "", 0
    for message in body.get("messages", []):
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        results += sum(block.get("type") == "tool_result" for block in blocks)
        texts = [block.get("text", "") for block in blocks if block.get("type") == "text"]
        if message["role"] == "user" and texts:
            user = "\n".join(texts)
    return user, results


def with_directory(value: Any, raw: str) -> Any:
    """`value` with every `@CWD@` replaced by the working directory that the request's body names."""
    text = json.dumps(value)
    if "@CWD@" not in text:
        return value
    found = re.search(r"[Ww]orking directory: (.+?)(?:\\n|\")", raw)
    return json.loads(text.replace("@CWD@", found[1] if found else "@CWD@"))


def reply(script: Script, turn: dict[str, Any], model: str) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]]:
    """The turn as stream events and as one message."""
    amounts = {**script.usage, **turn.get("usage", {})}
    usage = {
        "input_tokens": amounts["input"],
        "cache_read_input_tokens": amounts["cache_read"],
        "cache_creation_input_tokens": amounts["cache_write"],
        "output_tokens": 1,
    }
    final = {**usage, "output_tokens": amounts["output"]}
    blocks = blocks_of(script, turn)
    stop = turn.get("stop") or ("tool_use" if blocks and blocks[-1]["type"] == "tool_use" else "end_turn")
    message = {
        "id": script.new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": turn.get("model", model),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": message})]
    for index, block in enumerate(blocks):
        start, deltas = opened(block)
        events.append(("content_block_start", {"index": index, "content_block": start}))
        events += [("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        events.append(("content_block_stop", {"index": index}))
    events.append(("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": final}))
    events.append(("message_stop", {}))
    return events, {**message, "content": blocks, "stop_reason": stop, "usage": final}


def blocks_of(script: Script, turn: dict[str, Any]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if thinking := turn.get("thinking"):
        blocks.append({"type": "thinking", "thinking": thinking, "signature": "ZmFrZQ=="})
    if text := turn.get("text"):
        blocks.append({"type": "text", "text": text})
    for tool in turn.get("tools") or ([turn["tool"]] if "tool" in turn else []):
        for name, arguments in tool.items():
            blocks.append({"type": "tool_use", "id": script.new_id("toolu"), "name": name, "input": arguments})
    return blocks


def opened(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A content block as its start and its deltas."""
    if block["type"] == "text":
        pieces = re.findall(r".{1,4096}", block["text"], re.DOTALL)
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]


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
        self.send_json(200 if self.path == "/" else 404, {"type": "error", "error": {"type": "not_found_error", "message": "-"}})

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
        if path.endswith("/messages/count_tokens"):
            self.send_json(200, {"input_tokens": max(1, len(raw) // 4)})
        elif path.endswith("/messages"):
            self.answer(body, raw)
        else:
            self.send_json(404, {"type": "error", "error": {"type": "not_found_error", "message": "unknown path"}})

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

    def answer(self, body: dict[str, Any], raw: str) -> None:
        script = self.server.script
        _, turn = script.choose(body, raw)
        turn = with_directory(turn, raw)
        time.sleep(turn.get("delay", 0))
        fault = turn.get("fault", {})
        if self.fault(fault):
            return
        events, message = reply(script, turn, str(body.get("model", "")))
        if not body.get("stream"):
            self.send_json(200, message)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("request-id", script.new_id("req"))
        self.end_headers()
        for number, (name, data) in enumerate(events):
            if fault.get("kind") == "cut" and number == fault["after"]:
                self.hang_up()
                return
            payload = f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(payload), payload))
        self.wfile.write(b"0\r\n\r\n")

    def fault(self, fault: dict[str, Any]) -> bool:
        """Play a fault; True when it was the whole answer."""
        kind = fault.get("kind")
        if kind == "status":
            status = fault["status"]
            error = {"type": fault.get("type") or ERROR_TYPES.get(status, "api_error"), "message": fault.get("message", "fault")}
            self.send_json(status, {"type": "error", "error": error}, fault.get("headers", {}))
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
