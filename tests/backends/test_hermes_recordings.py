"""Every recorded invocation of Hermes, with what must be read from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from backend_cases import make_plan
from hermes_told import FOLDER, told

from pytest_caliper.backends.hermes import Hermes
from pytest_caliper.contracts import HarnessResult, Workspace
from pytest_caliper.runs.records import Usage

ONE, TWO = (107, 20, 40), (214, 40, 80)
HELLO = "Hello from the fake model."
MODEL, LOGIN, UNKNOWN_MODEL = "fake-model", "hermes model", "does not serve that model"
EMPTY = "Provider returned an empty stream"


@dataclass(frozen=True)
class Row:
    """What one recording amounts to. `error` and `fatal` are parts of the text; None says that there is none."""

    answer: str | None = None
    """None for a run that did not finish."""
    usage: tuple[int, int, int] | None = None
    """Input, output, cache read; the provider of the recordings reports no cache writes."""
    error: str | None = None
    fatal: str | None = None
    transient: bool = False
    timed_out: bool = False
    model: str | None = MODEL
    calls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """A part of each tool's output."""
    used: tuple[str, ...] = ()
    skills: tuple[str, ...] | None = None


NO_REPORT = "without a usage report"
ROWS: dict[str, Row] = {
    "a-text": Row(answer=HELLO, usage=ONE),
    "b-bash": Row(answer="DONE-1", usage=TWO, calls=("terminal",), outputs=("hi-42",)),
    "c-write": Row(answer="DONE-1", usage=TWO, calls=("write_file",), outputs=("bytes_written",)),
    "d-read": Row(answer="DONE-1", usage=TWO, calls=("read_file",), outputs=("1|line one",)),
    "e-skill": Row(
        answer="DONE-1",
        usage=TWO,
        calls=("skill_view",),
        outputs=("ARRR-7731",),
        used=("greet-pirate",),
        skills=("greet-pirate",),
    ),
    "f-mcp": Row(answer="ok", usage=TWO, calls=("mcp__echo__echo",), outputs=("ECHO ping-77",)),
    "fault-html": Row(error=f"API call failed after 3 retries: {EMPTY}", transient=True),
    "g-429": Row(error="HTTP 429: Rate limit reached", transient=True),
    "h-401": Row(error="HTTP 401: Incorrect API key provided", fatal=LOGIN),
    "i-500": Row(error="HTTP 500: fake fault", transient=True),
    "i-503": Row(error="HTTP 503: The model is overloaded", transient=True),
    "j-hang": Row(timed_out=True),
    "j-hang-tool": Row(timed_out=True, usage=ONE, calls=("terminal",)),  # its usage file is another run's
    "j-hang-tool-int": Row(timed_out=True, usage=ONE, calls=("terminal",)),
    "j-hang-tool-term": Row(timed_out=True, usage=ONE, calls=("terminal",)),
    "j-tool-int": Row(error=NO_REPORT, model=None),
    "j-tool-kill": Row(error=NO_REPORT, model=None),
    "j-tool-term": Row(error=NO_REPORT, model=None),
    "l-nokey": Row(error="No inference provider configured", fatal=LOGIN, model=None),
    "m-anthropic": Row(error="'anthropic' package is required", fatal="pip install", model=None),
    "m-ctxlen": Row(answer=HELLO, usage=ONE),
    "m-model-flag": Row(answer=HELLO, usage=ONE, model="other-model"),
    "m-notice-rules": Row(answer=HELLO, usage=ONE),
    "m-rules-before-z": Row(error=NO_REPORT, usage=ONE),
    "m-rules-envvar": Row(error=NO_REPORT, usage=ONE),
    "m-rules-ignore-rules": Row(error=NO_REPORT, usage=ONE),
    "m-rules-none": Row(error=NO_REPORT, usage=ONE),
    "m-rules-safe-mode": Row(error=NO_REPORT, usage=ONE),
}
JUDGE: dict[str, tuple[str, str | None]] = {
    "n-judge": ("", "exit code 2: hermes -z: --toolsets did not contain any valid toolsets"),
    "n-judge-clarify": (HELLO, None),
    "n-judge-file": (HELLO, None),
    "n-judge-no_mcp": ("", "exit code 2: hermes -z: --toolsets did not contain any valid toolsets"),
    "n-judge-skills": (HELLO, None),
    "n-judge-todo": (HELLO, None),
}


def test_every_recording_has_a_row() -> None:
    assert {path.name.partition(".")[0] for path in FOLDER.iterdir()} == {*ROWS, *JUDGE}


@pytest.mark.parametrize("name", ROWS)
def test_an_agents_recording(name: str, tmp_path: Path) -> None:
    row, result = ROWS[name], read(name, tmp_path)

    assert (result.finished, result.answer) == (row.answer is not None, row.answer or "")
    assert result.usage == usage(row.usage)
    assert (result.timed_out, result.transient) == (row.timed_out, row.transient)
    assert result.model == row.model
    assert says(result.error, row.error)
    assert says(result.fatal, row.fatal)
    assert tuple(turn.tool_name for turn in result.transcript if turn.role == "tool_use") == row.calls
    outputs = [turn.tool_output or "" for turn in result.transcript if turn.role == "tool_result"]
    assert len(outputs) == len(row.outputs)
    assert all(part in output for output, part in zip(outputs, row.outputs, strict=True))
    assert result.skills_used == row.used
    assert result.skills_reported == row.skills
    assert result.mcp_reported is None
    assert not result.transcript_truncated
    assert (result.duration_s, result.cli_version) == (1.5, "0.19.0")


@pytest.mark.parametrize("name", JUDGE)
def test_a_judges_recording(name: str, tmp_path: Path) -> None:
    text, error = JUDGE[name]

    reply = Hermes().read_judge(told(name, tmp_path))

    assert (reply.text, reply.structured, reply.fatal) == (text, None, None)
    assert says(reply.error, error)
    assert reply.model == (None if error else MODEL)


def test_hermes_itself_is_never_the_agent(tmp_path: Path) -> None:
    """What it prints in place of an answer when a call failed is no turn and no answer."""
    for name in ("g-429", "h-401", "i-500", "fault-html"):
        assert read(name, tmp_path).transcript == ()


def test_a_tools_turns_hold_its_input_and_output(tmp_path: Path) -> None:
    said, call, result, done = read("c-write", tmp_path).transcript

    assert (said.role, said.content) == ("assistant", "Working on it.")
    assert (call.role, call.tool_name) == ("tool_use", "write_file")
    assert call.tool_input == {"path": "$WORK/out.txt", "content": "forty-two\n"}
    assert (result.role, result.tool_name) == ("tool_result", "write_file")
    assert (done.role, done.content) == ("assistant", "DONE-1")


def read(name: str, root: Path) -> HarnessResult:
    return Hermes().read_agent(told(name, root), make_plan(root), Workspace.at(root))


def usage(row: tuple[int, int, int] | None) -> Usage | None:
    if row is None:
        return None
    given, written, cached = row
    return Usage(input_tokens=given, output_tokens=written, cache_read_tokens=cached, cache_creation_tokens=None)


def says(text: str | None, part: str | None) -> bool:
    return text is None if part is None else text is not None and part in text and "\n" not in text
