"""What a TARGET on the command line means."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pytest_caliper.backends.registry import builtin_backends, by_name, resolve_target
from pytest_caliper.contracts import Backend, Engine, EngineError


class Fake:
    def __init__(self, name: str, *aliases: str) -> None:
        self.name, self.aliases = name, aliases


def backends(*others: Fake) -> dict[str, Backend]:
    named = (Fake("claude-code", "claude"), Fake("codex"), Fake("pi"), Fake("opencode"), Fake("gemini", "gemini-cli"), *others)
    return by_name(cast("Any", named))


@pytest.mark.parametrize(
    ("text", "backend", "model"),
    [
        ("claude-code", "claude-code", None),
        ("claude", "claude-code", None),
        ("claude:opus", "claude-code", "opus"),
        ("claude-code:claude-haiku-4-5-20251001", "claude-code", "claude-haiku-4-5-20251001"),
        ("codex:gpt-5.2", "codex", "gpt-5.2"),
        (" codex : gpt-5.2 ", "codex", "gpt-5.2"),
        ("pi:anthropic/claude-sonnet-4-5:high", "pi", "anthropic/claude-sonnet-4-5:high"),
        ("opus", "claude-code", "opus"),
        ("sonnet[1m]", "claude-code", "sonnet[1m]"),
        ("haiku", "claude-code", "haiku"),
        ("opusplan", "claude-code", "opusplan"),
        ("claude-fable-5", "claude-code", "claude-fable-5"),
        ("claude-2", "claude-code", "claude-2"),
        ("claude-haiku-4-5-20251001", "claude-code", "claude-haiku-4-5-20251001"),
        ("gemini-pro", "claude-code", "gemini-pro"),
        ("codex-mini", "claude-code", "codex-mini"),
        ("gpt-5-codex", "claude-code", "gpt-5-codex"),
        ("p", "claude-code", "p"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-code", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/x", "claude-code", "arn:aws:bedrock:us-east-1:1:inference-profile/x"),
    ],
)
def test_a_target(text: str, backend: str, model: str | None) -> None:
    assert resolve_target(text, backends()) == Engine(backend=backend, model=model)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("claude-cod", "claude-code"),
        ("claudecode", "claude-code"),
        ("Claude-Code", "claude-code"),
        ("claude_code:opus", "claude-code:opus"),
        ("calude", "claude"),
        ("codx:gpt", "codex:gpt"),
        ("codex-", "codex"),
        ("oepncode", "opencode"),
        ("gemni:gemini-2.5-flash", "gemini:gemini-2.5-flash"),
        ("PI:x", "pi:x"),
    ],
)
def test_a_near_miss_is_an_error_that_says_what_was_meant(text: str, meant: str) -> None:
    with pytest.raises(EngineError, match=f"did you mean '{meant}'"):
        resolve_target(text, backends())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is blank"),
        ("  ", "is blank"),
        ("claude-code:", "no model stands after the colon"),
        ("codex: ", "no model stands after the colon"),
        (":opus", "no backend stands before the colon"),
        (":", "no backend stands before the colon"),
        ("claude-code:-p", "cannot be a model's name"),
        ("--help", "cannot be a model's name"),
        ("two words", "cannot be a model's name"),
        ("codex:gpt\n", None),
        ("codex:g\x00pt", "cannot be a model's name"),
    ],
)
def test_blank_and_impossible_parts(text: str, says: str | None) -> None:
    if says is None:
        assert resolve_target(text, backends()).model == "gpt"
    else:
        with pytest.raises(EngineError, match=says):
            resolve_target(text, backends())


def test_another_default_takes_the_bare_models() -> None:
    assert resolve_target("gpt-5.2", backends(), default="codex") == Engine(backend="codex", model="gpt-5.2")


@pytest.mark.parametrize("other", [Fake("codex"), Fake("mine", "claude"), Fake("gemini-cli")])
def test_two_backends_of_one_name_are_an_error_that_names_both(other: Fake) -> None:
    with pytest.raises(EngineError, match=r"two backends are called '(codex|claude|gemini-cli)' \(test_registry\.Fake and"):
        backends(other)


def test_the_same_backend_twice_is_no_clash() -> None:
    one = cast("Any", Fake("codex"))

    assert by_name([one, one]) == {"codex": one}


def test_the_builtin_backends_are_backends() -> None:
    built = builtin_backends()

    assert all(isinstance(backend, Backend) for backend in built)
    assert {"claude-code", "claude"} <= set(by_name(built))
    assert builtin_backends()[0] is not built[0]
