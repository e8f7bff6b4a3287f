"""The model APIs that the scripted model speaks: how each asks, answers and refuses.

Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, and Gemini's generateContent. A turn's usage is in disjoint amounts,
of which `output` includes `reasoning`; each dialect counts them in its own way.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

USAGE = {"input": 100, "cache_read": 40, "cache_write": 7, "output": 20, "reasoning": 0}
PIECE = 4096
"""Characters of text in one event of a stream."""
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
GEMINI_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
Event = tuple[str | None, Any]
"""Name of a server-sent event, where the dialect names them, and its data."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a script's conditions see of a request."""

    user: str = ""
    """The last text of the user."""
    results: int = 0
    """How many tool results there are."""
    tools: tuple[str, ...] = ()
    """Names of the tools offered."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool; `arguments` are a string for a freeform tool of the Responses API."""

    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the model says in one turn."""

    model: str
    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    usage: dict[str, int] = field(default_factory=lambda: dict(USAGE))
    stop: str | None = None
    """The dialect's own stop reason, in place of the usual one."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A turn in a dialect's words."""

    events: list[Event]
    whole: dict[str, Any]
    """The same without streaming."""
    closing: int
    """How many of the last events say that the answer is complete."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One model API."""

    name: str
    describe: Callable[[dict[str, Any]], Asked]
    reply: Callable[[Said, Callable[[str], str]], Reply]
    """Takes what is said and a maker of ids by their prefix."""
    error: Callable[[int, dict[str, Any]], dict[str, Any]]
    """The body of an error response, from its status and the fault."""


def ids() -> Callable[[str], str]:
    """A maker of ids: `msg` -> `msg_scripted000001`. Thread-safe, as `next` of a counter is."""
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}_scripted{next(numbers):06d}"


def route(path: str, body: dict[str, Any]) -> tuple[Dialect, str, bool] | None:
    """(dialect, model, whether to stream) of a POST to `path`; None for a path without a model behind it."""
    model, stream = str(body.get("model", "")), bool(body.get("stream"))
    for ending, dialect in (("/messages", ANTHROPIC), ("/responses", RESPONSES), ("/chat/completions", CHAT)):
        if path.endswith(ending):
            return dialect, model, stream
    if found := re.search(r"/models/([^/:]+):(stream)?[gG]enerateContent$", path):
        return GEMINI, found[1], found[2] is not None
    return None


def counted_tokens(path: str, raw: str) -> dict[str, int] | None:
    """The answer to a POST that has tokens counted; None for any other path."""
    amount = max(1, len(raw) // 4)
    if path.endswith("/messages/count_tokens"):
        return {"input_tokens": amount}
    return {"totalTokens": amount} if path.endswith(":countTokens") else None


def model_list(names: list[str]) -> dict[str, Any]:
    """One answer to a GET of the models that suits every API."""
    entries = [{"id": name, "object": "model", "type": "model", "display_name": name, "created": 0} for name in names]
    return {"object": "list", "data": entries, "models": [{"name": f"models/{name}"} for name in names], "has_more": False}


def text_of(content: Any) -> str:
    """The text in a message's content, whatever the API's spelling."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return content.get("text") or ""
    return "\n".join(filter(None, map(text_of, content or [])))


def pieces(text: str, size: int = PIECE) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _prompt_tokens(usage: dict[str, int]) -> int:
    """Input as OpenAI and Gemini count it: with what came from a cache or went into it."""
    return usage["input"] + usage["cache_read"] + usage["cache_write"]


# Anthropic Messages


def _anthropic_asked(body: dict[str, Any]) -> Asked:
    user, results = "", 0
    for message in body.get("messages", []):
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        results += sum(block.get("type") == "tool_result" for block in blocks)
        texts = [block for block in blocks if block.get("type") == "text"]
        if message["role"] == "user" and texts:
            user = text_of(texts)
    return Asked(user=user, results=results, tools=tuple(str(tool.get("name")) for tool in body.get("tools") or []))


def _anthropic_reply(said: Said, new_id: Callable[[str], str]) -> Reply:
    usage = {
        "input_tokens": said.usage["input"],
        "cache_read_input_tokens": said.usage["cache_read"],
        "cache_creation_input_tokens": said.usage["cache_write"],
        "output_tokens": 1,
    }
    final = {**usage, "output_tokens": said.usage["output"]}
    blocks = _anthropic_blocks(said)
    stop = said.stop or ("tool_use" if said.calls else "end_turn")
    message = {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": message})]
    for index, block in enumerate(blocks):
        start, deltas = _opened(block)
        events.append(("content_block_start", {"index": index, "content_block": start}))
        events += [("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        events.append(("content_block_stop", {"index": index}))
    events.append(("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": final}))
    events.append(("message_stop", {}))
    whole = {**message, "content": blocks, "stop_reason": stop, "usage": final}
    return Reply(events=[(name, {"type": name, **data}) for name, data in events], whole=whole, closing=3)


def _anthropic_blocks(said: Said) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if said.thinking:
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": "ZmFrZQ=="})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    blocks += [{"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.arguments} for call in said.calls]
    return blocks


def _opened(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A content block as its start and its deltas."""
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]


def _anthropic_error(status: int, fault: dict[str, Any]) -> dict[str, Any]:
    return {"type": "error", "error": {"type": _error_type(status, fault), "message": fault.get("message", "fault")}}


def _error_type(status: int, fault: dict[str, Any]) -> str:
    return fault.get("type") or ERROR_TYPES.get(status, "api_error")


# OpenAI Responses


def _responses_asked(body: dict[str, Any]) -> Asked:
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    users = [text_of(item.get("content")) for item in items if item.get("role") == "user"]
    tools: list[str] = []
    for tool in body.get("tools") or []:
        name = str(tool.get("name") or tool.get("type"))
        tools.append(name)
        # Codex offers the tools of an MCP server as a namespace with functions.
        tools += [f"{name}__{function.get('name')}" for function in tool.get("tools") or []]
    return Asked(
        user=users[-1] if users else "",
        results=sum(str(item.get("type")).endswith("_call_output") for item in items),
        tools=tuple(tools),
    )


def _responses_reply(said: Said, new_id: Callable[[str], str]) -> Reply:
    items = _responses_items(said, new_id)
    total, output = _prompt_tokens(said.usage), said.usage["output"]
    usage = {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": said.usage["cache_read"], "cache_write_tokens": said.usage["cache_write"]},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": said.usage["reasoning"]},
        "total_tokens": total + output,
    }
    base = {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": said.model,
        "status": "in_progress",
        "output": [],
    }
    events: list[tuple[str, dict[str, Any]]] = [("response.created", {"response": base})]
    for index, item in enumerate(items):
        events += _responses_events(index, item)
    whole = {**base, "status": "completed", "output": items, "usage": usage}
    events.append(("response.completed", {"response": whole}))
    return Reply(events=[(name, {"type": name, **data}) for name, data in events], whole=whole, closing=2)


def _responses_items(said: Said, new_id: Callable[[str], str]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        items.append({"type": "reasoning", "id": new_id("rs"), "encrypted_content": "ZmFrZQ==", "summary": summary})
    if said.text:
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
        items.append(
            {"type": "message", "id": new_id("msg"), "role": "assistant", "status": "completed", "content": content},
        )
    for call in said.calls:
        if isinstance(call.arguments, str):
            custom = {"type": "custom_tool_call", "id": new_id("ctc"), "call_id": call.call_id}
            items.append({**custom, "name": call.name, "input": call.arguments})
        else:
            space, _, short = call.name.rpartition("__")
            name = {"namespace": space, "name": short} if space else {"name": call.name}
            function = {"type": "function_call", "id": new_id("fc"), "call_id": call.call_id}
            items.append({**function, **name, "arguments": json.dumps(call.arguments)})
    return items


def _responses_events(index: int, item: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    place = {"output_index": index}
    if item["type"] != "message":
        added, deltas = item, []
    else:
        added = {**item, "content": [], "status": "in_progress"}
        where = {"item_id": item["id"], **place, "content_index": 0}
        texts = pieces(item["content"][0]["text"])
        deltas = [("response.output_text.delta", {**where, "delta": piece}) for piece in texts]
    return [
        ("response.output_item.added", {**place, "item": added}),
        *deltas,
        ("response.output_item.done", {**place, "item": item}),
    ]


def _openai_error(status: int, fault: dict[str, Any]) -> dict[str, Any]:
    message, code = fault.get("message", "fault"), fault.get("code")
    return {"error": {"message": message, "type": _error_type(status, fault), "code": code, "param": None}}


# OpenAI Chat Completions


def _chat_asked(body: dict[str, Any]) -> Asked:
    messages = body.get("messages", [])
    users = [text_of(message.get("content")) for message in messages if message.get("role") == "user"]
    return Asked(
        user=users[-1] if users else "",
        results=sum(message.get("role") == "tool" for message in messages),
        tools=tuple(str((tool.get("function") or tool).get("name")) for tool in body.get("tools") or []),
    )


def _chat_reply(said: Said, new_id: Callable[[str], str]) -> Reply:
    total, output = _prompt_tokens(said.usage), said.usage["output"]
    usage = {
        "prompt_tokens": total,
        "completion_tokens": output,
        "total_tokens": total + output,
        "prompt_tokens_details": {"cached_tokens": said.usage["cache_read"]},
        "completion_tokens_details": {"reasoning_tokens": said.usage["reasoning"]},
    }
    calls = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in said.calls
    ]
    base = {"id": new_id("chatcmpl"), "created": int(time.time()), "model": said.model}
    stop = said.stop or ("tool_calls" if calls else "stop")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return None, {**base, "object": "chat.completion.chunk", "choices": [choice]}

    events = [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": piece}) for piece in pieces(said.text)),
        *(chunk({"tool_calls": [{"index": index, **call}]}) for index, call in enumerate(calls)),
        chunk({}, stop),
        (None, {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}),
        (None, "[DONE]"),
    ]
    message = {"role": "assistant", "content": said.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": stop}
    return Reply(events=events, whole={**base, "object": "chat.completion", "usage": usage, "choices": [choice]}, closing=3)


# Gemini generateContent


def _gemini_asked(body: dict[str, Any]) -> Asked:
    user, results = "", 0
    for content in body.get("contents", []):
        parts = content.get("parts") or []
        results += sum("functionResponse" in part for part in parts)
        texts = [part for part in parts if "text" in part]
        if content.get("role") == "user" and texts:
            user = text_of(texts)
    declared = [function for tool in body.get("tools") or [] for function in tool.get("functionDeclarations") or []]
    return Asked(user=user, results=results, tools=tuple(str(function["name"]) for function in declared))


def _gemini_reply(said: Said, new_id: Callable[[str], str]) -> Reply:
    total, output, reasoning = _prompt_tokens(said.usage), said.usage["output"], said.usage["reasoning"]
    usage = {
        "promptTokenCount": total,
        "cachedContentTokenCount": said.usage["cache_read"],
        "candidatesTokenCount": output - reasoning,
        "thoughtsTokenCount": reasoning,
        "totalTokenCount": total + output,
    }
    # Two pieces at least: the last part carries the reason why it ends, and a stream can be cut before it.
    size = min(PIECE, max(1, -(-len(said.text) // 2)))
    parts: list[dict[str, Any]] = [{"text": said.thinking, "thought": True}] if said.thinking else []
    parts += [{"text": piece} for piece in pieces(said.text, size)]
    calls = [{"id": call.call_id, "name": call.name, "args": call.arguments} for call in said.calls]
    parts += [{"functionCall": call, "thoughtSignature": "ZmFrZQ=="} for call in calls]
    base = {"modelVersion": said.model, "responseId": new_id("resp"), "usageMetadata": usage}

    def chunk(some: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
        ending = {"finishReason": finish} if finish else {}
        return {**base, "candidates": [{"index": 0, "content": {"role": "model", "parts": some}, **ending}]}

    stop = said.stop or "STOP"
    events: list[Event] = [*((None, chunk([part])) for part in parts[:-1]), (None, chunk(parts[-1:], stop))]
    return Reply(events=events, whole=chunk(parts, stop), closing=1)


def _gemini_error(status: int, fault: dict[str, Any]) -> dict[str, Any]:
    named = fault.get("type") or GEMINI_STATUS.get(status, "UNKNOWN")
    return {"error": {"code": status, "message": fault.get("message", "fault"), "status": named}}


ANTHROPIC = Dialect(name="anthropic", describe=_anthropic_asked, reply=_anthropic_reply, error=_anthropic_error)
RESPONSES = Dialect(name="responses", describe=_responses_asked, reply=_responses_reply, error=_openai_error)
CHAT = Dialect(name="chat", describe=_chat_asked, reply=_chat_reply, error=_openai_error)
GEMINI = Dialect(name="gemini", describe=_gemini_asked, reply=_gemini_reply, error=_gemini_error)
