"""Every recorded invocation of Gemini CLI, with what must be read from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from backend_cases import RECORDINGS, make_plan, recording

from pytest_caliper.backends.gemini import Gemini
from pytest_caliper.contracts import HarnessResult, Workspace
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

ONE, TWO = (107, 20, 40), (214, 40, 80)
FLASH = "gemini-2.5-flash"
LOGIN, MODEL = "GEMINI_API_KEY", "cannot use that model"
SHELL, SKILL = ("run_shell_command",), ("activate_skill",)


@dataclass(frozen=True)
class Row:
    """What one recording amounts to. `error` and `fatal` are parts of the text; None says that there is none."""

    answer: str | None = None
    """None for a run that did not finish."""
    usage: tuple[int, int, int] | None = None
    """Input, output, cache read."""
    error: str | None = None
    fatal: str | None = None
    transient: bool = False
    timed_out: bool = False
    model: str | None = FLASH
    calls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """The beginning of each tool's output."""
    used: tuple[str, ...] = ()


ACTIVATED = Row(answer="DONE-1", usage=TWO, calls=SKILL, outputs=("Skill **greet-pirate** activated",), used=("greet-pirate",))
AGENT: dict[str, Row] = {
    "a-text": Row(answer="Hello from the fake model.", usage=ONE),
    "b-bash": Row(answer="DONE-1", usage=TWO, calls=SHELL, outputs=("Blocked: command substitution",)),
    "b-bash-simple": Row(answer="DONE-1", usage=TWO, calls=SHELL, outputs=("hi\nerr",)),
    "c-write": Row(answer="DONE-1", usage=TWO, calls=("write_file",), outputs=("",)),
    "d-read": Row(answer="DONE-1", usage=TWO, calls=("read_file",), outputs=("",)),
    "e-skill-home": ACTIVATED,
    "e-skill-homeagents": ACTIVATED,
    "e-skill-proj": ACTIVATED,
    "e-skill-projagents": ACTIVATED,
    "f-mcp": Row(answer="ok", usage=TWO, calls=("mcp__echo__echo",), outputs=("ECHO ping-77",)),
    "fault-cut": Row(error="terminated", transient=True),
    "fault-html": Row(error="Incomplete JSON segment at the end"),
    "g-429": Row(error="(HTTP 429): Rate limit reached", transient=True),
    "g-429-maxattempts2": Row(error="(HTTP 429): Rate limit reached", transient=True),
    "g-429-quota": Row(error="(HTTP 429): You exceeded your current quota", transient=True),
    "h-401": Row(error="(HTTP 401): Incorrect API key provided", fatal=LOGIN),
    "i-500": Row(error="(HTTP 500): fake fault", transient=True),
    "i-503": Row(error="(HTTP 503): The model is overloaded", transient=True),
    "j-hang": Row(timed_out=True),
    "j-hang-tool": Row(timed_out=True, calls=SHELL),
    "j-tool-int": Row(timed_out=True, calls=SHELL),
    "j-tool-kill": Row(timed_out=True, calls=SHELL),
    "j-tool-term": Row(timed_out=True, calls=SHELL),
    "k-404": Row(error="ModelNotFoundError: The model `nope` does not exist", fatal=MODEL),
    "l-nokey": Row(error="exit code 41: When using Gemini API", fatal=LOGIN, model=None),
    "l-nokey-nosettings": Row(error="exit code 41: Invalid auth method selected.", fatal=LOGIN, model=None),
    "l-untrusted": Row(error="exit code 55: Gemini CLI is not running in a trusted", fatal="--skip-trust", model=None),
    "l-untrusted-skiptrust": Row(answer="Hello from the fake model.", usage=ONE),
    "m-nomodel": Row(timed_out=True, model="auto"),
}
VERDICT = '{"verdict": "pass", "score": 1}'
JUDGE = {
    "n-judge-core-empty": VERDICT,
    "n-judge-core-none": VERDICT,
    "n-judge-exclude": VERDICT,
    "n-judge-json": '{"verdict": "pass"}',
    "n-judge-sysmd": VERDICT,
}


def test_every_recording_has_a_row() -> None:
    assert {path.stem for path in (RECORDINGS / "gemini").iterdir()} == {*AGENT, *JUDGE}


@pytest.mark.parametrize("name", AGENT)
def test_an_agents_recording(name: str, tmp_path: Path) -> None:
    row, result = AGENT[name], read(name, tmp_path)

    assert (result.finished, result.answer) == (row.answer is not None, row.answer or "")
    assert result.usage == usage(row.usage)
    assert (result.timed_out, result.transient, result.model) == (row.timed_out, row.transient, row.model)
    assert says(result.error, row.error)
    assert says(result.fatal, row.fatal)
    assert tuple(turn.tool_name for turn in result.transcript if turn.role == "tool_use") == row.calls
    outputs = [turn.tool_output or "" for turn in result.transcript if turn.role == "tool_result"]
    assert len(outputs) == len(row.outputs)
    assert all(output.startswith(beginning) for output, beginning in zip(outputs, row.outputs, strict=True))
    assert (result.skills_used, result.skills_reported, result.mcp_reported) == (row.used, None, None)
    assert not result.transcript_truncated
    assert (result.duration_s, result.cli_version) == (1.5, "2.1.332")


@pytest.mark.parametrize("name", JUDGE)
def test_a_judges_recording(name: str) -> None:
    reply = Gemini().read_judge(recording("gemini", name))

    assert (reply.text, reply.structured, reply.model) == (JUDGE[name], None, FLASH)
    assert (reply.error, reply.fatal, reply.transient) == (None, None, False)


@pytest.mark.parametrize("name", ["a-text", "g-429", "h-401", "k-404", "l-nokey", "fault-cut", "j-hang"])
def test_the_agents_recordings_read_as_a_judges(name: str) -> None:
    """The judge is asked in the same format: an answer where there is one, the same error where there is none."""
    row, reply = AGENT[name], Gemini().read_judge(recording("gemini", name))

    assert reply.text == (row.answer or "")
    assert says(reply.error, "the judge gave no answer within 2 s" if row.timed_out else row.error)
    assert says(reply.fatal, row.fatal)
    assert reply.transient is row.transient


def test_chunks_make_one_turn(tmp_path: Path) -> None:
    contents = [(turn.role, turn.content) for turn in read("a-text", tmp_path).transcript]

    assert contents == [("assistant", "Hello from the fake model.")]


def test_a_tools_turns_hold_its_input_and_output(tmp_path: Path) -> None:
    said, call, result, done = read("b-bash-simple", tmp_path).transcript

    assert (said.role, said.content) == ("assistant", "Working on it.")
    assert (call.role, call.tool_input) == ("tool_use", {"command": "echo hi; echo err >&2; exit 3"})
    assert (result.role, result.tool_name) == ("tool_result", "run_shell_command")
    assert (done.role, done.content) == ("assistant", "DONE-1")


def test_what_was_said_before_a_cut_is_no_answer(tmp_path: Path) -> None:
    result = read("fault-cut", tmp_path)

    assert [turn.content for turn in result.transcript] == ["This is a long answer that will be cut off. This"]
    assert result.answer == ""


def read(name: str, root: Path) -> HarnessResult:
    echo = McpServer(name="echo", transport="stdio", line=1, command="echo")
    return Gemini().read_agent(recording("gemini", name), make_plan(root, mcp=(echo,)), Workspace.at(root))


def usage(row: tuple[int, int, int] | None) -> Usage | None:
    return None if row is None else Usage(input_tokens=row[0], output_tokens=row[1], cache_read_tokens=row[2])


def says(text: str | None, part: str | None) -> bool:
    return text is None if part is None else text is not None and part in text and "\n" not in text
