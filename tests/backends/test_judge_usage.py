"""What a judge's call used, as each CLI reports it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from backend_cases import output, recording
from hermes_told import told

from pytest_caliper.backends.api_backend import OpenaiApi
from pytest_caliper.backends.claude_code import ClaudeCode
from pytest_caliper.backends.codex import Codex
from pytest_caliper.backends.command import CommandBackend
from pytest_caliper.backends.gemini import Gemini
from pytest_caliper.backends.hermes import Hermes
from pytest_caliper.backends.opencode import OpenCode
from pytest_caliper.backends.pi import Pi
from pytest_caliper.contracts import Backend
from pytest_caliper.runs.records import Usage

ALL_FOUR = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=40, cache_creation_tokens=7)
NO_WRITES = Usage(input_tokens=107, output_tokens=20, cache_read_tokens=40)
"""The same request, by CLIs that do not tell what was written into a cache."""


@pytest.mark.parametrize(
    ("make", "folder", "name", "usage"),
    [
        (ClaudeCode, "claude", "n-judge", ALL_FOUR),
        (ClaudeCode, "claude", "n-judge-schema", ALL_FOUR),
        (ClaudeCode, "claude20", "a-text", ALL_FOUR),
        (Codex, "codex", "n-judge", Usage(input_tokens=107, output_tokens=20, cache_read_tokens=40, cache_creation_tokens=0)),
        (Gemini, "gemini", "n-judge-sysmd", NO_WRITES),
        (Gemini, "gemini", "n-judge-json", NO_WRITES),
        (Gemini, "gemini", "a-text", NO_WRITES),
        (OpenCode, "opencode", "n-judge", NO_WRITES),
        (Pi, "pi", "n-judge", NO_WRITES),
        (Pi, "pi20", "n-judge", NO_WRITES),
        (Codex, "codex", "g-429", None),
        (Gemini, "gemini", "g-429", None),
        (OpenCode, "opencode", "h-401", None),
        (Pi, "pi", "n-judge-text", None),
    ],
)
def test_a_recorded_call(make: Callable[[], Backend], folder: str, name: str, usage: Usage | None) -> None:
    assert make().read_judge(recording(folder, name)).usage == usage


@pytest.mark.parametrize(("name", "usage"), [("n-judge-todo", NO_WRITES), ("n-judge", None), ("g-429", None)])
def test_a_recorded_call_of_hermes(name: str, usage: Usage | None, tmp_path: Path) -> None:
    assert Hermes().read_judge(told(name, tmp_path)).usage == usage


def test_a_call_of_an_api(tmp_path: Path) -> None:
    reply = {"type": "reply", "text": "x", "structured": None, "model": "m", "error": None, "usage": {"input": 3, "output": 2}}
    assert OpenaiApi().read_judge(output(tmp_path / "out", reply)).usage == Usage(input_tokens=3, output_tokens=2)
    assert OpenaiApi().read_judge(output(tmp_path / "out", {**reply, "usage": None})).usage is None


def test_a_call_of_a_command(tmp_path: Path) -> None:
    events = [{"type": "usage", "input_tokens": 3}, {"type": "usage", "input_tokens": 4}, {"type": "result", "text": "x"}]
    assert CommandBackend().read_judge(output(tmp_path / "out", *events)).usage == Usage(input_tokens=7)
    assert CommandBackend().read_judge(output(tmp_path / "out", events[-1])).usage is None


@pytest.mark.parametrize("tokens", [None, [], "many", {"prompt": "a lot"}, {"prompt": True, "total": 0}])
def test_a_document_of_gemini_that_counts_nothing(tokens: object, tmp_path: Path) -> None:
    document = {"response": "x", "stats": {"models": {"gemini-9": {"tokens": tokens}, "other": None}}}
    assert Gemini().read_judge(output(tmp_path / "out", document)).usage is None
