"""The scripted model itself: what a fault or a condition means must be beyond doubt."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from scripted_model import ScriptedModel


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
