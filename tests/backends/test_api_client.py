"""What the API client asks a vendor's SDK, and what it makes of the answer. A stand-in for the SDK, no network."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_caliper.backends.api_client import Unusable, answer, read_anthropic, read_openai

SCHEMA = {"type": "object", "properties": {"passed": {"type": "boolean"}}}
MESSAGE = {
    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "one\u2028"}, {"type": "text", "text": "two"}],
    "model": "m-1",
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 7},
}
COMPLETION = {
    "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
    "model": "m-2",
    "usage": {
        "prompt_tokens": 147,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
    },
}
FOUR = {"input": 100, "output": 20, "cache_read": 40, "cache_write": 7}


class APIStatusError(Exception):
    def __init__(self, status_code: int, body: object = None) -> None:
        super().__init__(f"Error code: {status_code}")
        self.message, self.status_code, self.body = f"Error code: {status_code}", status_code, body


class APIConnectionError(Exception):
    message = "Connection error."


class Sdk:
    """A vendor's SDK: every request gets the next of `replies`, which are bodies or exceptions."""

    def __init__(self, name: str, *replies: Any) -> None:
        self.__name__ = name
        self.replies = list(replies)
        self.asked: list[dict[str, Any]] = []
        self.clients: list[dict[str, Any]] = []
        self.APIStatusError, self.APIConnectionError = APIStatusError, APIConnectionError
        self.Anthropic = self.OpenAI = self._client

    def Timeout(self, timeout: float, *, connect: float) -> tuple[float, float]:  # noqa: N802
        return timeout, connect

    def _client(self, **arguments: Any) -> Any:
        self.clients.append(arguments)
        messages = SimpleNamespace(with_raw_response=SimpleNamespace(create=self._create))
        return SimpleNamespace(messages=messages, chat=SimpleNamespace(completions=messages))

    def _create(self, **arguments: Any) -> Any:
        self.asked.append(arguments)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        return SimpleNamespace(http_response=SimpleNamespace(content=content))


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`ask(sdk, **changes)`: the client's answer, with the stand-in imported in the SDK's place."""

    def run(sdk: Sdk, **changes: Any) -> dict[str, Any]:
        monkeypatch.setitem(sys.modules, sdk.__name__, sdk)  # type: ignore[arg-type]
        usual = {"sdk": sdk.__name__, "model": "m", "system": None, "prompt": "Hi", "schema": None, "timeout_s": 60.0, "path": []}
        return answer({**usual, **changes})

    return run


def test_what_anthropic_is_asked(ask: Any) -> None:
    sdk = Sdk("anthropic", MESSAGE)

    reply = ask(sdk)

    assert reply == {"type": "reply", "text": "one\u2028two", "structured": None, "usage": FOUR, "model": "m-1", "error": None}
    assert sdk.clients == [{"max_retries": 1, "timeout": (60.0, 10.0)}]
    assert sdk.asked == [
        {"model": "m", "max_tokens": 16_000, "messages": [{"role": "user", "content": "Hi"}], "extra_body": None},
    ]


def test_what_openai_is_asked(ask: Any) -> None:
    sdk = Sdk("openai", COMPLETION)

    reply = ask(sdk)

    assert reply == {"type": "reply", "text": "hello", "structured": None, "usage": FOUR, "model": "m-2", "error": None}
    assert sdk.asked == [{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}]


def test_a_schema_and_a_system_prompt_for_anthropic(ask: Any) -> None:
    sdk = Sdk("anthropic", {**MESSAGE, "content": [{"type": "text", "text": '{"passed": true}'}]})

    reply = ask(sdk, system="You judge.", schema=SCHEMA)

    assert reply["structured"] == {"passed": True}
    assert sdk.asked[0]["system"] == "You judge."
    assert sdk.asked[0]["extra_body"] == {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}


def test_a_schema_and_a_system_prompt_for_openai(ask: Any) -> None:
    choice = {"message": {"content": '{"passed": false}'}, "finish_reason": "stop"}
    sdk = Sdk("openai", {**COMPLETION, "choices": [choice]})

    reply = ask(sdk, system="You judge.", schema=SCHEMA)

    assert reply["structured"] == {"passed": False}
    assert sdk.asked[0]["messages"][0] == {"role": "system", "content": "You judge."}
    assert sdk.asked[0]["response_format"]["json_schema"] == {"name": "verdict", "schema": SCHEMA, "strict": True}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("name", "body"), [("anthropic", MESSAGE), ("openai", COMPLETION)])
def test_a_server_without_structured_output_is_asked_again_without(name: str, body: Any, status: int, ask: Any) -> None:
    sdk = Sdk(name, APIStatusError(status, {"error": {"message": "unknown field"}}), body)

    reply = ask(sdk, schema=SCHEMA)

    assert (reply["error"], reply["structured"]) == (None, None)
    assert reply["text"]
    assert "schema" in json.dumps(sdk.asked[0])
    assert "schema" not in json.dumps(sdk.asked[1])


@pytest.mark.parametrize(("status", "schema"), [(429, SCHEMA), (401, SCHEMA), (400, None)])
def test_other_refusals_are_not_asked_again(status: int, schema: Any, ask: Any) -> None:
    sdk = Sdk("openai", APIStatusError(status))

    assert ask(sdk, schema=schema)["error"]["status"] == status
    assert len(sdk.asked) == 1


def test_a_text_that_keeps_to_no_schema_is_no_structured_output(ask: Any) -> None:
    for text in ("I like boats.", "[1, 2]", '{"passed": tr', "[" * 100_000):
        reply = ask(Sdk("openai", {"choices": [{"message": {"content": text}}]}), schema=SCHEMA)
        assert (reply["structured"], reply["text"], reply["error"]) == (None, text, None)


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, "rate_limit_error", "slow"),
        ({"message": "no money", "type": "requests", "code": "insufficient_quota"}, "insufficient_quota", "no money"),
        ({"error": "just words"}, None, "Error code: 429"),
        ("<html>", None, "Error code: 429"),
        (None, None, "Error code: 429"),
    ],
)
def test_a_refusal_by_its_structured_fields(body: object, code: str | None, message: str, ask: Any) -> None:
    error = ask(Sdk("anthropic", APIStatusError(429, body)))["error"]

    assert error == {"kind": "status", "status": 429, "code": code, "message": message}


def test_a_lost_connection_names_its_cause(ask: Any) -> None:
    lost = APIConnectionError()
    lost.__cause__ = OSError(111, "Connection refused")

    error = ask(Sdk("anthropic", lost))["error"]

    assert error == {
        "kind": "connection",
        "status": None,
        "code": None,
        "message": "Connection error: [Errno 111] Connection refused",
    }


def test_whatever_an_sdk_raises_is_an_error_without_the_key(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    error = ask(Sdk("openai", RuntimeError("cannot send sk-very-secret")))["error"]

    assert (error["kind"], error["message"]) == ("other", "RuntimeError: cannot send [OPENAI_API_KEY]")


def test_a_client_that_cannot_be_made(ask: Any) -> None:
    sdk = Sdk("openai")
    sdk.OpenAI = lambda **_: (_ for _ in ()).throw(ValueError("Unknown scheme for proxy URL"))

    assert ask(sdk)["error"]["kind"] == "setup"


def test_an_sdk_that_cannot_be_imported() -> None:
    question = {"sdk": "no_such_sdk", "schema": None}

    error = answer(question)["error"]

    assert error["kind"] == "import"
    assert "no_such_sdk" in error["message"]


@pytest.mark.parametrize(
    "body", [b"<html>portal</html>", b"\xff\xfe", b"[" * 100_000, [1], {}, {"content": "text"}, {"choices": []}]
)
@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_body_that_is_no_answer(name: str, body: Any, ask: Any) -> None:
    assert ask(Sdk(name, body))["error"]["kind"] == "reply"


def test_an_error_with_status_200_is_told() -> None:
    with pytest.raises(Unusable, match="provider is down"):
        read_openai({"error": {"message": "provider is down", "code": 502}})


@pytest.mark.parametrize(
    ("stop", "kind"),
    [
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "filtered"),
        ("end_turn", None),
        (None, None),
    ],
)
def test_why_anthropics_model_stopped(stop: str | None, kind: str | None) -> None:
    error = read_anthropic({**MESSAGE, "stop_reason": stop})["error"]

    assert (error and error["kind"]) == kind


@pytest.mark.parametrize(("stop", "kind"), [("length", "length"), ("content_filter", "filtered"), ("stop", None), (None, None)])
def test_why_openais_model_stopped(stop: str | None, kind: str | None) -> None:
    error = read_openai({"choices": [{"message": {"content": "x"}, "finish_reason": stop}]})["error"]

    assert (error and error["kind"]) == kind


def test_a_cut_verdict_is_no_structured_output(ask: Any) -> None:
    choice = {"message": {"content": '{"passed": true}'}, "finish_reason": "length"}

    reply = ask(Sdk("openai", {"choices": [choice]}), schema=SCHEMA)

    assert (reply["structured"], reply["error"]["kind"]) == (None, "length")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, {"input": None, "output": None, "cache_read": None, "cache_write": None}),
        ({"prompt_tokens": 9, "completion_tokens": 0}, {"input": 9, "output": 0, "cache_read": None, "cache_write": None}),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 20}},
            {"input": None, "output": None, "cache_read": 20, "cache_write": None},
        ),
        (
            {"prompt_tokens": "9", "completion_tokens": True},
            {"input": None, "output": None, "cache_read": None, "cache_write": None},
        ),
    ],
)
def test_what_was_not_counted_is_unknown(usage: Any, expected: Any) -> None:
    assert read_openai({"choices": [{"message": {"content": "x"}}], "usage": usage})["usage"] == expected


def test_a_models_own_refusal_is_its_answer() -> None:
    reply = read_openai({"choices": [{"message": {"content": None, "refusal": "I will not."}, "finish_reason": "stop"}]})

    assert (reply["text"], reply["error"]) == ("I will not.", None)
