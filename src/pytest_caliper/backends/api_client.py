"""Asks a model once through its vendor's SDK: `python -I api_client.py`, with the question as JSON on stdin.

Runs as a program of its own: nothing of this package is imported, and the vendor's SDK is imported only here. The key is in the
environment, where the SDK looks for it. The question:

    {"sdk": "anthropic" | "openai", "model": str, "system": str | null, "prompt": str, "schema": object | null,
     "timeout_s": float, "path": [directory, ...]}

`path` names further directories that packages are installed in. The answer is one line of JSON on stdout, whatever happened:

    {"type": "reply", "text": str, "structured": object | null, "usage": {"input", "output", "cache_read", "cache_write"} | null,
     "model": str | null, "error": {"kind", "status", "code", "message"} | null}

Kinds of errors: `import` (the SDK), `setup` (of the client), `status` (an HTTP status), `connection`, `reply` (an answer that is
none), `length` (an answer that was cut), `filtered` (a refusal of the provider's) and `other`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

MAX_TOKENS = 16_000
"""Of an answer. Anthropic's API wants a limit; all its current models can write that much."""
MAX_RETRIES = 1
"""Of one question. SDKs wait as long as the server asks: further tries are the harness's, and cost the agent no time there."""
CONNECT_S = 10.0
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
_NO_SCHEMA = (400, 422)
"""How a server or a model that knows no structured output may refuse it."""


class Unusable(Exception):
    """The question got no answer."""

    def __init__(self, kind: str, message: str, *, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.status, self.code = kind, message, status, code


def main() -> None:
    """Answer the question on stdin."""
    question = json.loads(sys.stdin.buffer.read())
    sys.path.extend(place for place in question["path"] if place not in sys.path)
    line = json.dumps(answer(question), ensure_ascii=False) + "\n"
    sys.stdout.buffer.write(line.encode("utf-8", "replace"))


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a question, both as in the module's description."""
    reply: dict[str, Any] = {"type": "reply", "text": "", "structured": None, "usage": None, "model": None, "error": None}
    try:
        reply |= _ask(question)
    except Unusable as error:
        reply["error"] = _error(error)
    return reply


def read_anthropic(message: Mapping[str, Any]) -> dict[str, Any]:
    """Text, model, usage and error of a response of the Messages API."""
    blocks = message.get("content")
    if not isinstance(blocks, list):
        raise Unusable("reply", "the server did not answer with a message")
    usage = _mapping(message.get("usage"))
    stops = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "filtered"}
    return {
        "text": "".join(str(block.get("text", "")) for block in map(_mapping, blocks) if block.get("type") == "text"),
        "model": _text(message.get("model")),
        "usage": {
            "input": _count(usage.get("input_tokens")),
            "output": _count(usage.get("output_tokens")),
            "cache_read": _count(usage.get("cache_read_input_tokens")),
            "cache_write": _count(usage.get("cache_creation_input_tokens")),
        },
        "error": _stopped(message.get("stop_reason"), stops),
    }


def read_openai(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Text, model, usage and error of a response of the Chat Completions API, whose prompt tokens include those of the cache."""
    choices = completion.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Unusable("reply", _told(completion) or "the server did not answer with a completion")
    choice = _mapping(choices[0])
    message = _mapping(choice.get("message"))
    usage = _mapping(completion.get("usage"))
    details = _mapping(usage.get("prompt_tokens_details"))
    prompt, read, written = (
        _count(usage.get("prompt_tokens")),
        _count(details.get("cached_tokens")),
        _count(details.get("cache_write_tokens")),
    )
    return {
        "text": _text(message.get("content")) or _text(message.get("refusal")) or "",
        "model": _text(completion.get("model")),
        "usage": {
            "input": None if prompt is None else _count(prompt - (read or 0) - (written or 0)),
            "output": _count(usage.get("completion_tokens")),
            "cache_read": read,
            "cache_write": written,
        },
        "error": _stopped(choice.get("finish_reason"), {"length": "length", "content_filter": "filtered"}),
    }


def _ask(question: Mapping[str, Any]) -> dict[str, Any]:
    try:
        sdk = importlib.import_module(question["sdk"])
    except ImportError as error:
        raise Unusable("import", f"{question['sdk']} cannot be imported: {error}") from error
    send, read = (_send_anthropic, read_anthropic) if question["sdk"] == "anthropic" else (_send_openai, read_openai)
    schema = question["schema"]
    client = _client(sdk, question["timeout_s"])
    try:
        data = _sent(sdk, lambda: send(client, question, schema))
    except Unusable as error:
        if schema is None or error.status not in _NO_SCHEMA:
            raise
        schema = None  # the text is read as it comes
        data = _sent(sdk, lambda: send(client, question, None))
    reply = read(data)
    return {**reply, "structured": None if schema is None or reply["error"] else _json_object(reply["text"])}


def _client(sdk: Any, timeout_s: float) -> Any:
    make = sdk.Anthropic if sdk.__name__ == "anthropic" else sdk.OpenAI
    try:
        return make(max_retries=MAX_RETRIES, timeout=sdk.Timeout(timeout_s, connect=CONNECT_S))
    except Exception as error:  # a base URL, a proxy, a certificate: it is reported
        raise Unusable("setup", f"{type(error).__name__}: {error}") from error


def _send_anthropic(client: Any, question: Mapping[str, Any], schema: Any) -> Any:
    """Messages API. The schema goes past the SDK's own parameters, which older versions have no name for."""
    return client.messages.with_raw_response.create(
        model=question["model"],
        max_tokens=MAX_TOKENS,
        messages=[{"role": "user", "content": question["prompt"]}],
        **({} if question["system"] is None else {"system": question["system"]}),
        extra_body=None if schema is None else {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
    )


def _send_openai(client: Any, question: Mapping[str, Any], schema: Any) -> Any:
    """Chat Completions API, which compatible servers speak too."""
    system = [] if question["system"] is None else [{"role": "system", "content": question["system"]}]
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema, "strict": True}}
    return client.chat.completions.with_raw_response.create(
        model=question["model"],
        messages=[*system, {"role": "user", "content": question["prompt"]}],
        **({} if schema is None else {"response_format": form}),
    )


def _sent(sdk: Any, send: Callable[[], Any]) -> Mapping[str, Any]:
    """The JSON object that the server answered with. Raises Unusable."""
    try:
        body = send().http_response.content
    except sdk.APIStatusError as error:
        details = _details(error.body)
        code = _text(details.get("code")) or _text(details.get("type"))
        message = _text(details.get("message")) or error.message
        raise Unusable("status", message, status=error.status_code, code=code) from error
    except sdk.APIConnectionError as error:
        cause = f": {error.__cause__}" if error.__cause__ is not None else ""
        raise Unusable("connection", f"{error.message.rstrip('.')}{cause}") from error
    except Exception as error:  # reported, with its name
        raise Unusable("other", f"{type(error).__name__}: {error}") from error
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unusable("reply", "the server did not answer with JSON") from error
    return _mapping(data)


def _details(body: object) -> Mapping[str, Any]:
    """The error object of a response: the whole of it (OpenAI's SDK unwraps it) or what is under `error`."""
    whole = _mapping(body)
    return _mapping(whole.get("error", whole))


def _told(body: Mapping[str, Any]) -> str | None:
    """What went wrong by the words of a server that reports errors with status 200."""
    return _text(_details(body).get("message")) if "error" in body else None


def _stopped(reason: object, stops: Mapping[str, str]) -> dict[str, Any] | None:
    """The error of an answer that is not whole."""
    kind = stops.get(str(reason))
    if kind is None:
        return None
    words = {"length": "the answer was cut at its greatest length", "filtered": "the provider refused to answer"}
    return _error(Unusable(kind, f"{words[kind]} ({reason})", code=str(reason)))


def _error(error: Unusable) -> dict[str, Any]:
    message = error.message
    for name in KEYS:
        if value := os.environ.get(name):
            message = message.replace(value, f"[{name}]")
    return {"kind": error.kind, "status": error.status, "code": error.code, "message": message}


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


if __name__ == "__main__":
    main()
