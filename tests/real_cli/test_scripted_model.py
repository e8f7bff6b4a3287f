"""The scripted model itself: what a fault or a condition means must be beyond doubt, in every dialect."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from mcp_http import GREETING, TOKEN, HttpEcho
from scripted_model import ScriptedModel

RESULT = "the tool's result"
TOOLS: dict[str, list[Any]] = {
    "anthropic": [{"name": "look"}, {"name": "mcp__echo__echo"}],
    "responses": [{"type": "function", "name": "look"}, {"type": "namespace", "name": "mcp__echo", "tools": [{"name": "echo"}]}],
    "chat": [{"type": "function", "function": {"name": name}} for name in ("look", "mcp__echo__echo")],
    "gemini": [{"functionDeclarations": [{"name": "look"}, {"name": "mcp__echo__echo"}]}],
}
"""The same two tools in each dialect."""
DIALECTS = sorted(TOOLS)


def request_of(dialect: str, user: str, *, results: int = 0, stream: bool = False, tools: bool = False) -> tuple[str, Any]:
    """(path, body) of a request with a user's text and tool results after it."""
    offered = {"tools": TOOLS[dialect]} if tools else {}
    if dialect == "gemini":
        parts = [{"functionResponse": {"name": "look", "response": {"output": RESULT}}}] * results
        contents = [{"role": "user", "parts": [{"text": user}]}, {"role": "user", "parts": parts}]
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/m:{method}", {"contents": contents, **offered}
    common = {"model": "m", "stream": stream, **offered}
    if dialect == "responses":
        outputs = [{"type": "function_call_output", "call_id": "c", "output": RESULT}] * results
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": user}]}
        return "/v1/responses", {"input": [message, *outputs], **common}
    if dialect == "chat":
        tool = {"role": "tool", "tool_call_id": "c", "content": RESULT}
        return "/v1/chat/completions", {"messages": [{"role": "user", "content": user}, *[tool] * results], **common}
    blocks = [{"type": "tool_result", "tool_use_id": "c", "content": RESULT}] * results
    messages = [{"role": "user", "content": user}, *([{"role": "user", "content": blocks}] if results else [])]
    return "/v1/messages", {"messages": messages, **common}


def post(server: ScriptedModel, path: str, body: Any) -> str:
    """The body of the answer. Raises as `urllib.request.urlopen` does."""
    with urllib.request.urlopen(urllib.request.Request(server.url + path, json.dumps(body).encode()), timeout=30) as response:
        return response.read().decode()


def send(server: ScriptedModel, dialect: str, user: str = "hi", **options: Any) -> Any:
    """A request's answer: parsed, or the data of its events when it streams."""
    text = post(server, *request_of(dialect, user, **options))
    if not options.get("stream"):
        return json.loads(text)
    data = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return [piece if piece == "[DONE]" else json.loads(piece) for piece in data]


def ask(server: ScriptedModel, user: str = "hi", **fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": user}], **fields}
    request = urllib.request.Request(f"{server.url}/v1/messages", json.dumps(body).encode(), {"x-api-key": "k"})
    with urllib.request.urlopen(request, timeout=30) as response:
        data = response.read().decode()
    return data if fields.get("stream") else json.loads(data)


def test_the_first_turn_that_holds_answers() -> None:
    turns = [{"when": {"user": "a", "max_uses": 1}, "text": "one"}, {"when": {"tools": True}, "text": "two"}]
    with ScriptedModel({"turns": turns}) as server:
        texts = [ask(server, "a"), ask(server, "a"), ask(server, "b", tools=[{"name": "T"}])]

    assert [reply["content"][0]["text"] for reply in texts] == ["one", "OK", "two"]


def test_tool_results_are_counted_and_the_directory_is_filled_in() -> None:
    turns = [{"when": {"tool_results": 0}, "tool": {"Write": {"file_path": "@CWD@/a"}}}, {"text": "done"}]
    with ScriptedModel({"turns": turns}) as server:
        first = ask(server, system="Primary working directory: /some where/x\nmore")
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}
        second = ask(server, messages=[result])

    assert first["content"][0]["input"] == {"file_path": "/some where/x/a"}
    assert first["stop_reason"] == "tool_use"
    assert second["content"][0]["text"] == "done"


def test_a_stream_ends_with_the_usage_of_the_script() -> None:
    with ScriptedModel({"turns": [{"text": "streamed"}], "usage": {"output": 5}}) as server:
        stream = ask(server, stream=True)

    assert '"text": "streamed"' in stream
    assert '"output_tokens": 5' in stream
    assert stream.rstrip().endswith('data: {"type": "message_stop"}')


def test_a_status_fault_is_an_api_error() -> None:
    with (
        ScriptedModel({"turns": [{"fault": {"kind": "status", "status": 429, "headers": {"x-a": "b"}}}]}) as server,
        pytest.raises(urllib.error.HTTPError) as caught,
    ):
        ask(server)

    with caught.value as error:
        assert (error.code, error.headers["x-a"]) == (429, "b")
        assert json.loads(error.read())["error"]["type"] == "rate_limit_error"


def test_requests_are_noted_without_their_keys() -> None:
    with ScriptedModel({}) as server:
        ask(server, "hello")

    (request,) = server.requests
    assert (request["method"], request["headers"]["x-api-key"]) == ("POST", "[secret]")
    assert request["body"]["messages"][0]["content"] == "hello"


TEXT_AT: dict[str, Any] = {
    "anthropic": lambda reply: reply["content"][0]["text"],
    "responses": lambda reply: reply["output"][0]["content"][0]["text"],
    "chat": lambda reply: reply["choices"][0]["message"]["content"],
    "gemini": lambda reply: "".join(part["text"] for part in reply["candidates"][0]["content"]["parts"]),
}
TEXT_OF_EVENT: dict[str, Any] = {
    "anthropic": lambda event: event.get("delta", {}).get("text"),
    "responses": lambda event: event["type"] == "response.output_text.delta" and event["delta"],
    "chat": lambda event: event != "[DONE]" and event["choices"] and event["choices"][0]["delta"].get("content"),
    "gemini": lambda event: event["candidates"][0]["content"]["parts"][0]["text"],
}
CALL_AT: dict[str, Any] = {
    "anthropic": lambda reply: (reply["content"][0]["name"], reply["content"][0]["input"]),
    "responses": lambda reply: (reply["output"][0]["name"], json.loads(reply["output"][0]["arguments"])),
    "chat": lambda reply: (
        reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
        json.loads(reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]),
    ),
    "gemini": lambda reply: tuple(
        reply["candidates"][0]["content"]["parts"][0]["functionCall"][name] for name in ("name", "args")
    ),
}
ENDS: dict[str, Any] = {
    "anthropic": lambda event: event["type"] == "message_stop",
    "responses": lambda event: event["type"] == "response.completed",
    "chat": lambda event: event == "[DONE]",
    "gemini": lambda event: event["candidates"][0].get("finishReason") == "STOP",
}
"""Whether an event is the one that says that the answer is complete."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_conditions_hold_in_every_dialect(dialect: str) -> None:
    turns = [
        {"when": {"tool_results": 2}, "text": "two results"},
        {"when": {"tool_offered": "mcp__echo__echo"}, "text": "tools"},
        {"when": {"model": "m", "user": "hello", "tools": False}, "text": "greeted"},
    ]
    with ScriptedModel({"turns": turns}) as server:
        replies = [
            send(server, dialect, results=2, tools=True),
            send(server, dialect, tools=True),
            send(server, dialect, "hello"),
            send(server, dialect, "other"),
        ]

    assert [TEXT_AT[dialect](reply) for reply in replies] == ["two results", "tools", "greeted", "OK"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_first_tool_that_is_offered_is_called(dialect: str) -> None:
    tool = {"peek": {"a": 1}, "look": {"b": 2}, "mcp__echo__echo": {"c": 3}}
    with ScriptedModel({"turns": [{"tool": tool}]}) as server:
        offered, alone = send(server, dialect, tools=True), send(server, dialect)

    assert CALL_AT[dialect](offered) == ("look", {"b": 2})
    assert CALL_AT[dialect](alone) == ("peek", {"a": 1})


def test_a_function_in_a_namespace_is_called_by_both_names_and_a_string_is_freeform() -> None:
    turns = [{"when": {"user": "mcp"}, "tool": {"mcp__echo__echo": {"text": "x"}}}, {"tool": {"apply_patch": "*** Begin"}}]
    with ScriptedModel({"turns": turns}) as server:
        (call,) = send(server, "responses", "mcp", tools=True)["output"]
        (patch,) = send(server, "responses")["output"]

    assert (call["type"], call["namespace"], call["name"]) == ("function_call", "mcp__echo", "echo")
    assert (patch["type"], patch["name"], patch["input"]) == ("custom_tool_call", "apply_patch", "*** Begin")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", ["one\u2028two", "x" * 10_000])
def test_a_stream_holds_the_text_and_ends(dialect: str, text: str) -> None:
    with ScriptedModel({"turns": [{"text": text}]}) as server:
        events = send(server, dialect, stream=True)
        whole = send(server, dialect)

    assert "".join(TEXT_OF_EVENT[dialect](event) or "" for event in events) == text
    assert [bool(ENDS[dialect](event)) for event in events] == [False] * (len(events) - 1) + [True]
    assert TEXT_AT[dialect](whole) == text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_stream_has_the_text_and_no_end(dialect: str) -> None:
    with ScriptedModel({"turns": [{"text": "a long answer", "fault": {"kind": "cut"}}]}) as server:
        with pytest.raises(http.client.IncompleteRead) as caught:
            send(server, dialect, stream=True)
        with pytest.raises(http.client.RemoteDisconnected):
            send(server, dialect)

    partial = caught.value.partial.decode()
    data = [json.loads(line.removeprefix("data: ")) for line in partial.split("\n") if line.startswith("data: ")]
    assert any(TEXT_OF_EVENT[dialect](event) for event in data)
    assert not any(ENDS[dialect](event) for event in data)


def test_disjoint_usage_is_counted_as_each_api_counts() -> None:
    usage = {"input": 100, "cache_read": 40, "cache_write": 7, "output": 20, "reasoning": 5}
    with ScriptedModel({"turns": [{"text": "x"}], "usage": usage}) as server:
        anthropic, responses, chat, gemini = (send(server, name) for name in ("anthropic", "responses", "chat", "gemini"))

    assert anthropic["usage"] == {
        "input_tokens": 100,
        "cache_read_input_tokens": 40,
        "cache_creation_input_tokens": 7,
        "output_tokens": 20,
    }
    assert responses["usage"] == {
        "input_tokens": 147,
        "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 167,
    }
    assert (chat["usage"]["prompt_tokens"], chat["usage"]["completion_tokens"]) == (147, 20)
    assert chat["usage"]["completion_tokens_details"] == {"reasoning_tokens": 5}
    assert gemini["usageMetadata"] == {
        "promptTokenCount": 147,
        "cachedContentTokenCount": 40,
        "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 167,
    }


@pytest.mark.parametrize(
    ("dialect", "error"),
    [
        ("anthropic", {"type": "rate_limit_error", "message": "slow"}),
        ("responses", {"message": "slow", "type": "rate_limit_error", "code": "c", "param": None}),
        ("chat", {"message": "slow", "type": "rate_limit_error", "code": "c", "param": None}),
        ("gemini", {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}),
    ],
)
def test_a_status_fault_in_every_dialect(dialect: str, error: dict[str, Any]) -> None:
    fault = {"kind": "status", "status": 429, "message": "slow", "code": "c"}
    with ScriptedModel({"turns": [{"fault": fault}]}) as server, pytest.raises(urllib.error.HTTPError) as caught:
        send(server, dialect)

    with caught.value as response:
        assert (response.code, json.loads(response.read())["error"]) == (429, error)


@pytest.mark.parametrize(
    "sentence",
    [
        "Primary working directory: /some where/x\nmore",
        "<env>\n  Working directory: /some where/x\n</env>",
        "<environment_context>\n  <cwd>/some where/x</cwd>\n",
        "</docs>\n\n<cwd>\n/some where/x\n</cwd>",
        "- **Workspace Directories:**\n  - /some where/x\n- **Directory Structure:**",
    ],
)
def test_the_working_directory_in_the_words_of_each_cli(sentence: str) -> None:
    with ScriptedModel({"turns": [{"text": "in @CWD@"}]}) as server:
        reply = send(server, "chat", sentence)

    assert TEXT_AT["chat"](reply) == "in /some where/x"


def test_a_file_that_the_request_names_is_filled_in() -> None:
    with ScriptedModel(
        {"turns": [{"tool": {"read": {"path": "@FILE:greet/SKILL.md@", "other": "@FILE:b/SKILL.md@"}}}]}
    ) as server:
        reply = send(server, "chat", "<location>/a/greet-not/SKILL.md</location><location>/a/b-c/greet/SKILL.md</location>")

    assert CALL_AT["chat"](reply) == ("read", {"path": "/a/b-c/greet/SKILL.md", "other": "@FILE:b/SKILL.md@"})


def test_models_are_listed_and_tokens_counted() -> None:
    with ScriptedModel({"models": ["one"]}) as server:
        for path in ("/v1/models", "/v1beta/models?pageSize=5"):
            with urllib.request.urlopen(server.url + path, timeout=30) as response:
                listed = json.load(response)
            assert ([entry["id"] for entry in listed["data"]], listed["models"]) == (["one"], [{"name": "models/one"}])
        assert json.loads(post(server, "/v1/messages/count_tokens?beta=true", {"messages": []}))["input_tokens"] > 0
        assert json.loads(post(server, "/v1beta/models/m:countTokens", {"contents": []}))["totalTokens"] > 0
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server, "/api/show", {})
        caught.value.close()

    assert caught.value.code == 404


def call_mcp(server: HttpEcho, token: str | None, message: dict[str, Any]) -> tuple[int, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(server.url, json.dumps({"jsonrpc": "2.0", **message}).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read() or "null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None


def test_the_mcp_server_over_http_wants_its_token() -> None:
    call = {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}
    with HttpEcho() as server:
        refused = [call_mcp(server, None, {"id": 1, **call}), call_mcp(server, "other", {"id": 1, **call})]
        notified = call_mcp(server, TOKEN, {"method": "notifications/initialized"})
        status, reply = call_mcp(server, TOKEN, {"id": 2, **call})

    assert (refused, server.refused, notified) == ([(401, None), (401, None)], 2, (202, None))
    assert (status, reply["id"], reply["result"]["content"][0]["text"]) == (200, 2, f"{GREETING} x")
