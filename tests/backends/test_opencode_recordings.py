"""Every recorded invocation of opencode, with what must be read from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from backend_cases import RECORDINGS, make_plan, recording

from pytest_caliper.backends.opencode import OpenCode
from pytest_caliper.contracts import HarnessResult, RawOutput, Workspace
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

ONE, TWO = (107, 20, 40), (214, 40, 80)
LOGIN, MODEL, CREDIT = "opencode auth login", "cannot use fake/fake-model", "no credit or quota left"


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
    calls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """The beginning of each tool's output."""
    used: tuple[str, ...] = ()


NO_RIPGREP = Row(answer="DONE-1", usage=TWO, calls=("skill",), outputs=("ripgrep execution failed",))
AGENT: dict[str, Row] = {
    "a-text": Row(answer="Hello from the fake model.", usage=ONE),
    "b-bash": Row(answer="DONE-1", usage=TWO, calls=("bash",), outputs=("hi-42\n$WORK\nerr",)),
    "b-bash-auto": Row(answer="DONE-1", usage=TWO, calls=("bash",), outputs=("hi\n",)),
    "c-write": Row(answer="DONE-1", usage=TWO, calls=("write",), outputs=("Wrote file successfully.",)),
    "c-write-outside-auto": Row(answer="DONE-1", usage=TWO, calls=("write",), outputs=("Wrote file successfully.",)),
    "d-read": Row(answer="DONE-1", usage=TWO, calls=("read",), outputs=("<path>$WORK/data.txt",)),
    "e-skill-home": NO_RIPGREP,
    "e-skill-homeagents": NO_RIPGREP,
    "e-skill-homeclaude": NO_RIPGREP,
    "e-skill-proj": NO_RIPGREP,
    "e-skill-projagents": NO_RIPGREP,
    "e-skill-rg": Row(
        answer="DONE-1", usage=TWO, calls=("skill",), outputs=('<skill_content name="greet-pirate">',), used=("greet-pirate",)
    ),
    "f-mcp": Row(answer="ok", usage=TWO, calls=("mcp__echo__echo",), outputs=("ECHO ping-77",)),
    "fault-cut": Row(error="APIError: Connection reset by server", transient=True),
    "g-429": Row(error="APIError (HTTP 429): Rate limit reached", transient=True),
    "g-429-quota": Row(error="APIError (HTTP 429): You exceeded your current quota", fatal=CREDIT),
    "h-401": Row(error="APIError (HTTP 401): Incorrect API key provided", fatal=LOGIN),
    "i-500": Row(error="APIError (HTTP 500): fake fault", transient=True),
    "i-503": Row(error="APIError (HTTP 503): The model is overloaded", transient=True),
    "j-hang": Row(timed_out=True),
    "j-hang-tool": Row(timed_out=True),
    "j-tool-int": Row(timed_out=True),
    "j-tool-kill": Row(timed_out=True),
    "j-tool-term": Row(timed_out=True),
    "k-404": Row(error="APIError (HTTP 404): The model `nope` does not exist", fatal=MODEL),
    "k-unknown-model": Row(error="UnknownError: Unexpected server error. Check server logs for details."),
    "l-nokey": Row(timed_out=True),
    "l-nokey-anthropic": Row(error="UnknownError: Unexpected server error. Check server logs for details."),
    "m-title": Row(answer="ok", usage=ONE),
}
VERDICT = '{"verdict": "pass", "score": 1}'
JUDGE = {"n-judge": VERDICT, "n-judge-deny": VERDICT}


def test_every_recording_has_a_row() -> None:
    assert {path.stem for path in (RECORDINGS / "opencode").iterdir()} == {*AGENT, *JUDGE}


@pytest.mark.parametrize("name", AGENT)
def test_an_agents_recording(name: str, tmp_path: Path) -> None:
    row, result = AGENT[name], read(name, tmp_path)

    assert (result.finished, result.answer) == (row.answer is not None, row.answer or "")
    assert result.usage == usage(row.usage)
    assert (result.timed_out, result.transient, result.model) == (row.timed_out, row.transient, "fake/fake-model")
    assert says(result.error, row.error)
    assert says(result.fatal, row.fatal)
    assert tuple(turn.tool_name for turn in result.transcript if turn.role == "tool_use") == row.calls
    outputs = [turn.tool_output or "" for turn in result.transcript if turn.role == "tool_result"]
    assert len(outputs) == len(row.outputs)
    assert all(output.startswith(beginning) for output, beginning in zip(outputs, row.outputs, strict=True))
    assert (result.skills_used, result.skills_reported, result.mcp_reported) == (row.used, None, None)
    assert not result.transcript_truncated
    assert result.duration_s == 1.5


@pytest.mark.parametrize("name", JUDGE)
def test_a_judges_recording(name: str) -> None:
    reply = OpenCode().read_judge(invocation(name))

    assert (reply.text, reply.structured, reply.model) == (JUDGE[name], None, "fake/fake-model")
    assert (reply.error, reply.fatal, reply.transient) == (None, None, False)


@pytest.mark.parametrize("name", ["a-text", "g-429", "h-401", "k-404", "l-nokey", "fault-cut"])
def test_the_agents_recordings_read_as_a_judges(name: str) -> None:
    """The judge is asked in the same format: an answer where there is one, the same error where there is none."""
    row, reply = AGENT[name], OpenCode().read_judge(invocation(name))

    assert reply.text == (row.answer or "")
    assert says(reply.error, "the judge gave no answer within 2 s" if row.timed_out else row.error)
    assert says(reply.fatal, row.fatal)
    assert reply.transient is row.transient


def test_a_tools_turns_hold_its_input_and_output(tmp_path: Path) -> None:
    said, call, result, done = read("c-write", tmp_path).transcript

    assert (said.role, said.content) == ("assistant", "Working on it.")
    assert (call.role, call.tool_input) == ("tool_use", {"filePath": "$WORK/out.txt", "content": "forty-two\n"})
    assert (result.role, result.tool_name) == ("tool_result", "write")
    assert (done.role, done.content) == ("assistant", "DONE-1")


def invocation(name: str) -> RawOutput:
    return replace(recording("opencode", name), argv=("opencode", "run", "--model", "fake/fake-model", "--title", "t"))


def read(name: str, root: Path) -> HarnessResult:
    echo = McpServer(name="echo", transport="stdio", line=1, command="echo")
    return OpenCode().read_agent(invocation(name), make_plan(root, mcp=(echo,)), Workspace.at(root))


def usage(row: tuple[int, int, int] | None) -> Usage | None:
    return None if row is None else Usage(input_tokens=row[0], output_tokens=row[1], cache_read_tokens=row[2])


def says(text: str | None, part: str | None) -> bool:
    return text is None if part is None else text is not None and part in text and "\n" not in text
