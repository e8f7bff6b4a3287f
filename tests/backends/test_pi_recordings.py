"""Every recorded invocation of pi, with what must be read from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from backend_cases import RECORDINGS, make_plan, make_skill, recording

from pytest_caliper.backends.pi import Pi
from pytest_caliper.contracts import HarnessResult, RawOutput, Workspace
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

VERSIONS = {"pi": "1.6.0", "pi20": "0.74.2"}
ONE, TWO = (107, 20, 40, None), (214, 40, 80, None)
WITH_WRITES = (100, 20, 40, 7)
FAKE = "fake/fake-model"
LOGIN, MODEL, LIMIT, UPDATE = "/login", "pi:PROVIDER/MODEL", "limit or credit", "update it with"
PIRATE = ("greet-pirate",)


@dataclass(frozen=True)
class Row:
    """What one recording amounts to. `error` and `fatal` are parts of the text; None says that there is none."""

    answer: str | None = None
    """None for a run that did not finish."""
    usage: tuple[int, int, int, int | None] | None = None
    """Input, output, cache read, cache creation."""
    error: str | None = None
    fatal: str | None = None
    transient: bool = False
    timed_out: bool = False
    model: str | None = None
    calls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """The beginning of each tool's output."""
    used: tuple[str, ...] = ()
    skills: tuple[str, ...] | None = ()
    servers: tuple[str, ...] | None = ()


def fine(answer: str, usage: tuple[int, int, int, int | None] = ONE, **more: Any) -> Row:
    return Row(**{"answer": answer, "usage": usage, "model": FAKE, **more})


def passing(error: str) -> Row:
    return Row(error=error, transient=True)


VERDICT = '{"verdict": "pass", "score": 1}'
SILENT: dict[str, Any] = {"skills": None, "servers": None}
BASH = Row(timed_out=True, usage=ONE, model=FAKE, calls=("bash",))
NOT_THERE: dict[str, Any] = {"usage": TWO, "calls": ("read",), "outputs": ("ENOENT",), "skills": PIRATE}
NO_TOOL: dict[str, Any] = {"usage": TWO, "calls": ("mcp__echo__echo",), "outputs": ("Tool mcp__echo__echo not found",)}
PI: dict[str, Row] = {
    "a-text": fine("Hello from the fake model."),
    "a-text-anthropic": fine("Hello from the fake model.", WITH_WRITES),
    "a-text-google": fine("Hello from the fake model."),
    "a-text-responses": fine("Hello from the fake model."),
    "b-bash": fine("DONE-1", TWO, calls=("bash",), outputs=("hi-42\n$WORK\nerr",)),
    "c-write": fine("DONE-1", TWO, calls=("write",), outputs=("Successfully wrote to out.txt",)),
    "d-read": fine("DONE-1", TWO, calls=("read",), outputs=("line one",)),
    "e-skill-agentdir": fine("ok", TWO, calls=("read",), outputs=("---\nname: greet-pirate",), skills=PIRATE, used=PIRATE),
    "e-skill-homeagents": fine("ok", **NOT_THERE),
    "e-skill-noapprove": fine("ok"),
    "e-skill-projagents": fine("ok", **NOT_THERE),
    "e-skill-projpi": fine("ok", **NOT_THERE),
    "e-skill-slash": fine("ok", skills=PIRATE, used=PIRATE),
    "f-mcp-agentdir": fine("ok", **NO_TOOL, servers=("echo:codemode",)),
    "f-mcp-agentdir-direct": fine("ok", TWO, calls=("mcp__echo__echo",), outputs=("ECHO ping-77",), servers=("echo:connected",)),
    "f-mcp-broken": fine(VERDICT, servers=("echo:codemode",)),
    "f-mcp-one-broken": fine("ok", TWO, calls=("mcp__my-echo__echo",), outputs=("ECHO p",), servers=("my_echo:connected",)),
    "f-mcp-project": fine("ok", **NO_TOOL),
    "f-mcp-projpi": fine("ok", **NO_TOOL, servers=("echo:codemode",)),
    "fault-close": passing("Connection error.: other side closed"),
    "fault-cut": passing("terminated: other side closed"),
    "fault-cut-recovered": fine("ok"),
    "fault-garbage": passing("Stream ended without finish_reason"),
    "fault-html": passing("Stream ended without finish_reason"),
    "g-429": passing('429: {"message":"Rate limit reached"'),
    "g-429-anthropic": passing('429 {"type":"error"'),
    "g-quota": Row(error="You exceeded your current quota", fatal=LIMIT),
    "h-401": Row(error="401: ", fatal=LOGIN),
    "h-401-anthropic": Row(error="401 ", fatal=LOGIN),
    "h-401-textmode": Row(error="exit code 1: 401: ", fatal=LOGIN, **SILENT),
    "i-500": passing("500: "),
    "i-503-recovered": fine("ok"),
    "i-529-anthropic": passing("529 "),
    "j-hang": Row(timed_out=True),
    "j-hang-tool": BASH,
    "j-hang-tool-term": BASH,
    "j-tool-int": BASH,
    "j-tool-kill": BASH,
    "j-tool-term": BASH,
    "k-404-google": Row(error='{"error":{"code":404', fatal=MODEL),
    "k-404-responses": Row(error="fake API error (404)", fatal=MODEL),
    "k-unknown-model": Row(error='exit code 1: Model "nope/nomodel" not found', fatal=MODEL, **SILENT),
    "l-badflag": Row(error="Error: Unknown option: --nope", fatal=UPDATE, **SILENT),
    "l-nokey": Row(error="No API key found for the selected model.", fatal=LOGIN, **SILENT),
    "l-nokey-model": Row(error="No API key found for anthropic.", fatal=LOGIN, **SILENT),
    "m-anthropic-baseurl": fine("ok", WITH_WRITES, model="anthropic/claude-sonnet-4-5"),
    "m-cache-write": fine("ok", WITH_WRITES),
    "m-no-offline": fine("ok"),
    "m-nohome-agents": fine("ok"),
    "m-resume": fine("Zork"),
    "m-settings-noretry": passing("429: "),
    "m-stdin": fine("ok"),
    "n-judge": fine(VERDICT),
    "n-judge-text": Row(error="ended without an agent_settled event", **SILENT),
    "o-length": Row(usage=ONE, model=FAKE, error="cut at its output limit"),
}
PI20: dict[str, Row] = {
    "a-text": Row(error="Unknown option: --", fatal=UPDATE, **SILENT),
    "a-text-dashdash": Row(error="Unknown options: --approve, --", fatal=UPDATE, **SILENT),
    "e-skill": Row(error="Unknown option: --", fatal=UPDATE, **SILENT),
    "e-skill-stdin": fine("ok", TWO, calls=("read",), outputs=("---\nname: greet-pirate",), **SILENT),
    "fault-cut": Row(error="terminated", transient=True, **SILENT),
    "fault-cut-recovered": fine("ok", **SILENT),
    "g-429": Row(error="429 fake fault", transient=True, **SILENT),
    "k-unknown-model": Row(error='Model "nope/nomodel" not found', fatal=MODEL, **SILENT),
    "l-nokey-model": Row(error="No API key found for anthropic.", fatal=LOGIN, **SILENT),
    "m-stdin": fine("hello", **SILENT),
    "n-judge": fine("{}", **SILENT),
}
ROWS = [("pi", name, row) for name, row in PI.items()] + [("pi20", name, row) for name, row in PI20.items()]


@pytest.mark.parametrize(("folder", "names"), [("pi", set(PI)), ("pi20", set(PI20))])
def test_every_recording_has_a_row(folder: str, names: set[str]) -> None:
    assert {path.stem for path in (RECORDINGS / folder).iterdir()} == names


@pytest.mark.parametrize(("folder", "name", "row"), ROWS, ids=[f"{folder}-{name}" for folder, name, _ in ROWS])
def test_an_agents_recording(folder: str, name: str, row: Row, tmp_path: Path) -> None:
    result = read(folder, name, tmp_path)

    assert (result.finished, result.answer) == (row.answer is not None, row.answer or "")
    assert result.usage == usage(row.usage)
    assert (result.timed_out, result.transient) == (row.timed_out, row.transient)
    assert result.model == row.model
    assert says(result.error, row.error)
    assert says(result.fatal, row.fatal)
    assert tuple(turn.tool_name for turn in result.transcript if turn.role == "tool_use") == row.calls
    outputs = [turn.tool_output or "" for turn in result.transcript if turn.role == "tool_result"]
    assert len(outputs) == len(row.outputs)
    assert all(output.startswith(beginning) for output, beginning in zip(outputs, row.outputs, strict=True))
    assert (result.skills_reported, result.skills_used) == (row.skills, row.used)
    assert result.mcp_reported == row.servers
    assert not result.transcript_truncated
    assert (result.duration_s, result.cli_version) == (1.5, VERSIONS[folder])


@pytest.mark.parametrize(
    ("folder", "name", "text", "error", "fatal", "transient"),
    [
        ("pi", "n-judge", VERDICT, None, None, False),
        ("pi20", "n-judge", "{}", None, None, False),
        ("pi", "n-judge-text", "", "without an agent_settled", None, False),
        ("pi", "h-401", "", "401: ", LOGIN, False),
        ("pi", "g-429", "", "429: ", None, True),
        ("pi", "fault-cut", "", "terminated", None, True),
        ("pi", "j-hang", "", "no answer within 2 s", None, False),
    ],
)
def test_a_judges_recording(folder: str, name: str, text: str, error: str | None, fatal: str | None, transient: bool) -> None:
    reply = Pi().read_judge(raw(folder, name))

    assert (reply.text, reply.structured, reply.transient) == (text, None, transient)
    assert says(reply.error, error)
    assert says(reply.fatal, fatal)
    assert reply.model == (None if error else FAKE)


def test_a_failed_tries_text_is_no_turn(tmp_path: Path) -> None:
    """pi takes it out of its own conversation: `entry_appended` with `replacement: null`, and in 0.74 without a word."""
    for folder in ("pi", "pi20"):
        turns = read(folder, "fault-cut-recovered", tmp_path, prompt="Hi").transcript

        assert [(turn.role, turn.content) for turn in turns] == [("assistant", "ok")]
        assert read(folder, "fault-cut", tmp_path, prompt="Hi").transcript == ()


def test_a_tools_turns_hold_its_input_and_output(tmp_path: Path) -> None:
    said, call, result, done = read("pi", "c-write", tmp_path, prompt="Write it").transcript

    assert (said.role, said.content) == ("assistant", "Working on it.")
    assert (call.role, call.tool_name) == ("tool_use", "write")
    assert call.tool_input == {"path": "out.txt", "content": "forty-two\n"}
    assert (result.role, result.tool_name) == ("tool_result", "write")
    assert (done.role, done.content) == ("assistant", "DONE-1")


def test_a_skill_that_the_prompt_names_is_a_users_turn(tmp_path: Path) -> None:
    first = read("pi", "e-skill-slash", tmp_path, prompt="/skill:greet-pirate for Bob").transcript[0]

    assert first.role == "user"
    assert "Say ARRR-7731" in first.content


def test_a_server_without_tools_makes_the_attempt_unfair(tmp_path: Path) -> None:
    servers = tuple(McpServer(name=name, transport="stdio", line=1, command="x") for name in ("my-echo", "bad"))

    result = read("pi", "f-mcp-one-broken", tmp_path, mcp=servers)

    assert says(result.error, "gave no tools within 10 s: bad: try its command")
    assert result.mcp_reported == ("my-echo:connected", "bad:no tools")


def test_a_skill_read_in_an_old_pi_is_known_by_its_place(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skill")
    stream = (RECORDINGS / "pi20" / "e-skill-stdin.stdout").read_text(encoding="utf-8")
    place = Workspace.at(tmp_path / "attempt")
    (tmp_path / "out").write_text(stream.replace("$HOME", str(place.home)), encoding="utf-8")

    result = Pi().read_agent(
        replace(raw("pi20", "e-skill-stdin"), stdout=tmp_path / "out"), make_plan(tmp_path, skills=(skill,)), place
    )

    assert (result.skills_reported, result.skills_used) == (None, PIRATE)


def raw(folder: str, name: str) -> RawOutput:
    return replace(recording(folder, name), argv=("pi",), cli_version=VERSIONS[folder])


def read(folder: str, name: str, root: Path, **plan: Any) -> HarnessResult:
    return Pi().read_agent(raw(folder, name), make_plan(root, **plan), Workspace.at(root))


def usage(row: tuple[int, int, int, int | None] | None) -> Usage | None:
    if row is None:
        return None
    given, written, cached, created = row
    return Usage(input_tokens=given, output_tokens=written, cache_read_tokens=cached, cache_creation_tokens=created)


def says(text: str | None, part: str | None) -> bool:
    return text is None if part is None else text is not None and part in text and "\n" not in text
