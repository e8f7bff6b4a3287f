"""Every recorded invocation of Codex, with what must be read from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from backend_cases import RECORDINGS, make_plan, make_skill, recording

from pytest_caliper.backends.codex import Codex
from pytest_caliper.contracts import HarnessResult, Workspace
from pytest_caliper.runs.records import Usage

ONE, TWO = (107, 20, 40, 0), (214, 40, 80, 0)
LOGIN, MODEL, BILLING, UPDATE = "codex login", "codex:MODEL", "no credit or quota", "@openai/codex@latest"
PIRATE = "---\nname: greet-pirate\ndescription: A greeting.\n---\n# Pirate greeting\nSay ARRR-7731 and then the user's name.\n"


@dataclass(frozen=True)
class Row:
    """What one recording amounts to. `error` and `fatal` are parts of the text; None says that there is none."""

    answer: str | None = None
    """None for a run that did not finish."""
    usage: tuple[int, int, int, int] | None = None
    """Input, output, cache read, cache creation."""
    error: str | None = None
    fatal: str | None = None
    transient: bool = False
    timed_out: bool = False
    calls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """The beginning of each tool's output."""
    used: tuple[str, ...] = ()


def fine(answer: str, usage: tuple[int, int, int, int] = ONE, **more: Any) -> Row:
    return Row(answer=answer, usage=usage, **more)


def passing(error: str) -> Row:
    return Row(error=error, transient=True)


VERDICT = '{"verdict": "pass", "score": 1}'
SHELL: dict[str, Any] = {"usage": TWO, "calls": ("command_execution",)}
CUT = "stream disconnected before completion: "
STOPPED = Row(timed_out=True, calls=("command_execution",))
READ = fine("ok", **SHELL, outputs=("---\nname: greet-pirate",), used=("greet-pirate",))
NOT_READ = fine("ok", **SHELL, outputs=("[exit code 1]",))
PATCHED: dict[str, Any] = {"usage": TWO, "calls": ("file_change",), "outputs": ("completed",)}
CODEX: dict[str, Row] = {
    "a-text": fine("Hello from the fake model."),
    "a-text2": fine(VERDICT),
    "b-bash": fine("DONE-1", **SHELL, outputs=("hi-42\n$WORK\nerr\n[exit code 3]",)),
    "c-write-heredoc": fine("DONE-1", **PATCHED),
    "c-write-patch": fine("DONE-1", TWO),  # a tool that the model was not offered: no event
    "c-write-shell": fine("DONE-1", **SHELL, outputs=("",)),
    "d-read": fine("DONE-1", **SHELL, outputs=("line one",)),
    "e-skill-agents": READ,
    "e-skill-home": READ,
    "e-skill-homeagents": NOT_READ,
    "e-skill-mention": fine("ok"),
    "e-skill-projcodex": NOT_READ,
    "e-skills-disabled": fine("ok"),
    "f-mcp": fine("ok", TWO, calls=("mcp__echo__echo",), outputs=("ECHO ping-77",)),
    "f-mcp-broken": fine("ok"),
    "f-mcp-c-flag": fine("ok", TWO, calls=("mcp__echo__echo",), outputs=("ECHO ping-78",)),
    "fault-cut": passing(CUT + "Transport error"),
    "fault-html": passing(CUT + "stream closed before response.completed"),
    "g-429": passing("last status: 429 Too Many Requests"),
    "g-429-noretry": passing("last status: 429 Too Many Requests"),
    "g-429-quota": Row(error="Quota exceeded.", fatal=BILLING),
    "h-401": Row(error="unexpected status 401 Unauthorized", fatal=LOGIN),
    "h-401-noretry": Row(error="unexpected status 401 Unauthorized", fatal=LOGIN),
    "i-500": passing("We’re currently experiencing high demand"),
    "i-500-noretry": passing("We’re currently experiencing high demand"),
    "i-503": passing("unexpected status 503 Service Unavailable"),
    "i-503-once-recovers": fine("recovered"),
    "j-hang": Row(timed_out=True),
    "j-hang-tool": STOPPED,
    "j-hang-tool-term": STOPPED,
    "j-tool-int": STOPPED,
    "j-tool-kill": STOPPED,
    "j-tool-term": STOPPED,
    "k-400": Row(error="The 'nope' model is not supported when using Codex with a ChatGPT account.", fatal=MODEL),
    "l-badflag": Row(error="unexpected argument '--nope'", fatal=UPDATE),
    "l-nohome": Row(error="exit code 1: Error finding codex home: CODEX_HOME points to"),
    "l-nokey": Row(error="Missing environment variable: `FAKE_KEY`.", fatal="FAKE_KEY"),
    "l-nologin": Row(error=f"still retrying when it ended: {CUT}failed to lookup", transient=True, timed_out=True),
    "l-nologin-401": Row(error="unexpected status 401 Unauthorized: Missing bearer", fatal=LOGIN),
    "m-agents-md": fine("ok"),
    "m-flags-only": fine("ok"),
    "m-flags-only-noanalytics": fine("ok"),
    "m-model-gpt-5": fine("ok", TWO),
    "m-model-gpt-5-codex": fine("ok", TWO),
    "m-model-gpt-5-5": fine("ok", **PATCHED),
    "m-model-gpt-5-5-codex": fine("ok", **PATCHED),
    "m-openai-base-url": fine("ok"),
    "m-resume": fine("Zork"),
}
JUDGE: dict[str, tuple[str, object, str | None]] = {
    "n-judge": (VERDICT, {"verdict": "pass", "score": 1}, None),
    "n-judge-min": (VERDICT, {"verdict": "pass", "score": 1}, None),
    "n-plain-noJson": ("", None, "without turn.completed"),
}


def test_every_recording_has_a_row() -> None:
    names = {path.name.removesuffix(path.suffix) for path in (RECORDINGS / "codex").iterdir()}
    assert names == {*CODEX, *JUDGE}


@pytest.mark.parametrize("name", CODEX)
def test_an_agents_recording(name: str, tmp_path: Path) -> None:
    row = CODEX[name]

    result = read(name, tmp_path)

    assert (result.finished, result.answer) == (row.answer is not None, row.answer or "")
    assert result.usage == usage(row.usage)
    assert (result.timed_out, result.transient) == (row.timed_out, row.transient)
    assert says(result.error, row.error)
    assert says(result.fatal, row.fatal)
    assert tuple(turn.tool_name for turn in result.transcript if turn.role == "tool_use") == row.calls
    outputs = [turn.tool_output or "" for turn in result.transcript if turn.role == "tool_result"]
    assert len(outputs) == len(row.outputs)
    assert all(output.startswith(beginning) for output, beginning in zip(outputs, row.outputs, strict=True))
    assert result.skills_used == row.used
    assert (result.skills_reported, result.mcp_reported, result.model) == (None, None, None)
    assert not result.transcript_truncated


@pytest.mark.parametrize("name", JUDGE)
def test_a_judges_recording(name: str) -> None:
    text, structured, error = JUDGE[name]

    reply = Codex().read_judge(recording("codex", name))

    assert (reply.text, reply.structured) == (text, structured)
    assert says(reply.error, error)
    assert (reply.fatal, reply.transient, reply.model) == (None, False, None)


@pytest.mark.parametrize(("name", "error"), [("h-401", "unexpected status 401"), ("i-503", "unexpected status 503")])
def test_a_judge_that_fails(name: str, error: str) -> None:
    reply = Codex().read_judge(recording("codex", name))

    assert (reply.text, reply.structured) == ("", None)
    assert says(reply.error, error)
    assert (reply.fatal is not None, reply.transient) == (name == "h-401", name == "i-503")


def test_a_judge_that_gives_no_answer() -> None:
    assert says(Codex().read_judge(recording("codex", "j-hang")).error, "the judge gave no answer within 2 s")


def test_a_commands_turns_hold_the_agents_own_words(tmp_path: Path) -> None:
    said, call, result, done = read("b-bash", tmp_path).transcript

    assert (said.role, said.content) == ("assistant", "Working on it.")
    assert call.tool_input == {"command": "echo hi-$((40+2)); pwd; echo err >&2; exit 3"}
    assert (result.tool_name, result.tool_output) == ("command_execution", "hi-42\n$WORK\nerr\n[exit code 3]")
    assert (done.role, done.content) == ("assistant", "DONE-1")


def test_quotes_of_a_command_are_the_agents(tmp_path: Path) -> None:
    call = read("c-write-shell", tmp_path).transcript[1]

    assert call.tool_input == {"command": "printf 'forty-two\\n' > out.txt"}


def test_a_patch_names_its_files(tmp_path: Path) -> None:
    call = read("c-write-heredoc", tmp_path).transcript[1]

    assert call.tool_input == {"changes": [{"path": "$WORK/out2.txt", "kind": "add"}]}


def read(name: str, root: Path) -> HarnessResult:
    plan = make_plan(root, skills=(make_skill(root / "skill", files={"SKILL.md": PIRATE}),))
    return Codex().read_agent(recording("codex", name), plan, Workspace.at(root / "attempt"))


def usage(counts: tuple[int, int, int, int] | None) -> Usage | None:
    if counts is None:
        return None
    given, written, cached, created = counts
    return Usage(input_tokens=given, output_tokens=written, cache_read_tokens=cached, cache_creation_tokens=created)


def says(text: str | None, part: str | None) -> bool:
    return text is None if part is None else text is not None and part in text and "\n" not in text
