from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.contracts import HarnessResult, Workspace
from pytest_caliper.judging.attempt_view import AttemptView, view_data, view_from
from pytest_caliper.runs.records import ChangedFile, Turn

WORKSPACE = Workspace.at(Path("/tmp/root"))


def view(*turns: Turn, **fields: Any) -> AttemptView:
    result = HarnessResult(answer="", finished=True, transcript=turns, **fields)
    return view_from(json.loads(json.dumps(view_data(result, WORKSPACE))))


def use(name: str, output: str | None = None, **given: Any) -> Turn:
    return Turn(role="tool_use", tool_name=name, tool_input=given, tool_output=output)


def returned(text: str, name: str | None = None) -> Turn:
    return Turn(role="tool_result", tool_name=name, tool_output=text)


@pytest.mark.parametrize(
    ("turns", "outputs"),
    [
        ((use("A"), returned("1", "A"), use("A"), returned("2", "A")), ["1", "2"]),
        ((use("A"), use("B"), returned("a", "A"), returned("b", "B")), ["a", "b"]),
        ((use("A"), use("A"), returned("2", "A")), [None, "2"]),
        ((use("A"), use("A"), returned("2"), returned("1")), ["1", "2"]),
        ((use("A"), use("B"), returned("b", "B")), [None, "b"]),
        ((use("A", output="own"),), ["own"]),
        ((returned("nobody's"), use("A")), [None]),
        ((use("A"), Turn(role="tool_result", content="as content")), ["as content"]),
    ],
)
def test_results_meet_their_calls(turns: tuple[Turn, ...], outputs: list[str | None]) -> None:
    assert [call.output for call in view(*turns).tool_calls] == outputs


@pytest.mark.parametrize(
    ("turn", "commands"),
    [
        (use("Bash", command="git log"), ["git log"]),
        (use("run_shell_command", command="ls"), ["ls"]),
        (use("terminal", command="ls"), ["ls"]),
        (use("shell", command=["git", "commit", "-m", "a b"]), ["git commit -m 'a b'"]),
        (use("command_execution", command="/bin/bash -lc 'git status -s'"), ["git status -s"]),
        (use("shell", command=["bash", "-lc", 'echo "it\'s"']), ['echo "it\'s"']),
        (use("command_execution", command="/bin/bash -lc 'not closed"), ["/bin/bash -lc 'not closed"]),
        (use("Bash", command="bash -c 'x'"), ["bash -c 'x'"]),
        (use("exec_command", cmd="ls"), ["ls"]),
        (use("Bash", command=7), []),
        (use("Bash"), []),
        (use("Write", command="no shell"), []),
    ],
)
def test_commands(turn: Turn, commands: tuple[str, ...]) -> None:
    assert view(turn).commands == commands


def test_files_and_workdir() -> None:
    changed = (
        ChangedFile(path="a.txt", change="added", size=1),
        ChangedFile(path="ä/b", change="deleted", size=0),
    )
    seen = view(changed_files=changed)
    assert seen.files == ["a.txt", "ä/b"]
    assert seen.workdir == Path("/tmp/root/work")
    assert seen.usage is None


def test_odd_text_crosses() -> None:
    assert view(use("A", text="\udc80\u2028\x00"), returned("\ud800")).tool_calls[0].output == "\ud800"
