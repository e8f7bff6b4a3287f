"""Every recorded invocation of Claude Code, with what must be read from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from backend_cases import RECORDINGS, make_plan, make_skill, recording

from pytest_caliper.backends.claude_code import ClaudeCode
from pytest_caliper.contracts import HarnessResult, Workspace
from pytest_caliper.runs.records import Usage

ONE, TWO, NOTHING = (100, 20, 40, 7), (200, 40, 80, 14), (0, 0, 0, 0)
SONNET, OPUS = "claude-sonnet-4-5", "claude-opus-5-5"
LOGIN, CREDIT, MODEL, LIMIT, UPDATE = "/login", "no credit", "cannot use that model", "2030-03-17 17:46 UTC", "claude update"


@dataclass(frozen=True)
class Row:
    """What one recording amounts to. `error` and `fatal` are parts of the text; None says that there is none."""

    answer: str | None = None
    """None for a run that did not finish."""
    usage: tuple[int, int, int, int] | None = None
    """Input, output, cache read, cache creation."""
    error: str | None = None
    fatal: str | None = None
    timed_out: bool = False
    model: str | None = SONNET
    calls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """The beginning of each tool's output."""
    used: tuple[str, ...] = ()
    lists_skill: bool | None = False
    """Whether `greet-pirate` is among the reported skills; None when none were reported."""
    servers: tuple[str, ...] | None = ()


SILENT = {"lists_skill": None, "servers": None}
VERDICT = '{"verdict": "pass", "score": 1}'
CLAUDE: dict[str, Row] = {
    "a-configdir": Row(answer="ok", usage=ONE, lists_skill=True),
    "a-text": Row(answer="Hello from the fake model.", usage=ONE),
    "a-text-plain": Row(error="without a result event", model=None, **SILENT),
    "a-text-root-noflag": Row(error="exit code 1: --dangerously-skip-permissions cannot be used with root", model=None, **SILENT),
    "a-text-user": Row(answer="ok", usage=ONE),
    "b-bash": Row(answer="DONE-1", usage=TWO, calls=("Bash",), outputs=("Exit code 3\nhi-42",)),
    "c-write": Row(answer="DONE-1", usage=TWO, calls=("Write",), outputs=("File created successfully",)),
    "d-read": Row(answer="DONE-1", usage=TWO, calls=("Read",), outputs=("1\tline one\n2\tline two",)),
    "e-command-prompt": Row(answer="done", usage=ONE, model=OPUS),
    "e-skill-bare": Row(answer=VERDICT, usage=ONE, **SILENT),
    "e-skill-nobundled": Row(answer=VERDICT, usage=ONE, lists_skill=True),
    "e-skill-noskills-flag": Row(answer="ok", usage=ONE),
    "e-skill-project": Row(
        answer="DONE-1", usage=TWO, calls=("Skill",), outputs=("Launching skill",), used=("greet-pirate",), lists_skill=True
    ),
    "e-skill-safe-mode": Row(answer=VERDICT, usage=ONE, **SILENT),
    "e-skill-settingsources-project": Row(answer="ok", usage=ONE),
    "e-skill-sources-empty": Row(answer=VERDICT, usage=ONE, **SILENT),
    "e-skill-tool": Row(
        answer="DONE-1", usage=TWO, calls=("Skill",), outputs=("Launching skill",), used=("greet-pirate",), lists_skill=True
    ),
    "e-skill-tools-empty": Row(answer=VERDICT, usage=ONE, **SILENT),
    "e-skill-tools-skill-only": Row(answer=VERDICT, usage=ONE, **SILENT),
    "e-skill-unknown": Row(answer="done", usage=TWO, model=OPUS, calls=("Skill",), outputs=("<tool_use_error>Unknown skill",)),
    "f-mcp": Row(answer="ok", usage=TWO, calls=("mcp__echo__echo",), outputs=("ECHO ping-77",), servers=("echo:connected",)),
    "f-mcp-broken": Row(answer="ok", usage=ONE, servers=("echo:failed",)),
    "f-mcp-project-dotmcp": Row(answer="ok", usage=ONE, servers=("echo:connected",)),
    "fault-close": Row(usage=NOTHING, error="server_error: API Error: Connection dropped"),
    "fault-cut": Row(answer="This is a long answer that will be cut off half way through.", usage=(1100, 63, 440, 77)),
    "fault-garbage": Row(usage=NOTHING, error="unknown: API Error: API returned an empty or malformed response (HTTP 200)"),
    "g-429": Row(usage=NOTHING, error="rate_limit (HTTP 429): API Error: Request rejected (429)"),
    "g-429-retries2": Row(usage=NOTHING, error="rate_limit (HTTP 429)"),
    "g-429-retryafter": Row(usage=NOTHING, error="rate_limit (HTTP 429)"),
    "g-429-unified-key": Row(timed_out=True, error="rate_limit (HTTP 429): still retrying"),
    "g-limit-oauth": Row(usage=NOTHING, error="You've hit your 5-hour limit", fatal=LIMIT, model=OPUS),
    "h-400-credit": Row(usage=NOTHING, error="billing_error (HTTP 400): Credit balance", fatal=CREDIT, model=OPUS),
    "h-401": Row(timed_out=True, error="authentication_failed (HTTP 401): still retrying", fatal=LOGIN),
    "h-401-retries0": Row(usage=NOTHING, error="authentication_failed (HTTP 401): Invalid API key", fatal=LOGIN),
    "h-401-retries1": Row(usage=NOTHING, error="authentication_failed (HTTP 401): Invalid API key", fatal=LOGIN),
    "h-403": Row(usage=NOTHING, error="authentication_failed (HTTP 403)", fatal=LOGIN),
    "h-404": Row(usage=NOTHING, error="model_not_found (HTTP 404)", fatal=MODEL, model="nope"),
    "i-500": Row(usage=NOTHING, error="server_error (HTTP 500)"),
    "i-529": Row(usage=NOTHING, error="server_error (HTTP 529): API Error: 529 Overloaded"),
    "j-hang": Row(timed_out=True),
    "j-hang-mcp": Row(timed_out=True, servers=("echo:connected",)),
    "j-hang-tool": Row(timed_out=True, calls=("Bash",)),
    "j-hang-tool-term": Row(timed_out=True, calls=("Bash",), outputs=("Exit code 137",)),
    "j-interrupted-model": Row(timed_out=True, model=OPUS),
    "j-interrupted-tool": Row(timed_out=True, usage=ONE, model=OPUS, calls=("Bash",), outputs=("The user doesn't want",)),
    "l-badflag": Row(error="unknown option '--nope'", fatal=UPDATE, model=None, **SILENT),
    "l-nokey": Row(usage=NOTHING, error="authentication_failed: Not logged in", fatal=LOGIN),
    "l-nokey-empty": Row(usage=NOTHING, error="authentication_failed: Not logged in", fatal=LOGIN),
    "m-alias-sonnet": Row(answer="ok", usage=ONE, model="claude-sonnet-5-5"),
    "m-authtoken": Row(answer="ok", usage=ONE),
    "m-nomodel": Row(answer="ok", usage=ONE, model=OPUS),
    "m-oauthtoken-401": Row(usage=NOTHING, error="401 OAuth token revoked", fatal=LOGIN),
    "m-resume": Row(answer="Zork", usage=ONE),
    "m-resume-nopersist": Row(answer="Zork", usage=ONE),
    "o-sub-agent": Row(
        answer="done", usage=(400, 80, 160, 28), model=OPUS, calls=("Task", "Bash"), outputs=("Async agent launched", "sub")
    ),
}
CLAUDE20: dict[str, Row] = {
    "a-text": Row(answer="ok", usage=ONE),
    "b-bash": Row(answer="DONE-1", usage=TWO, calls=("Bash",), outputs=("Exit code 3\nhi",)),
    "e-skill": Row(
        answer="DONE-1", usage=TWO, calls=("Skill",), outputs=("Launching skill",), used=("greet-pirate",), lists_skill=True
    ),
    "f-mcp": Row(answer="ok", usage=TWO, calls=("mcp__echo__echo",), outputs=("ECHO ping-77",), servers=("echo:connected",)),
    "g-429": Row(usage=NOTHING, error="rate_limit (HTTP 429)"),
    "h-401": Row(timed_out=True, error="authentication_failed (HTTP 401)", fatal=LOGIN),
}
JUDGE: dict[str, tuple[str, object, str | None, str | None]] = {
    "n-judge": (VERDICT, None, None, None),
    "n-judge-401": ("", None, "authentication_failed (HTTP 401)", LOGIN),
    "n-judge-bare": ("pass", None, None, None),
    "n-judge-nologin": ("", None, "authentication_failed: Not logged in", LOGIN),
    "n-judge-schema": ('{"verdict":"pass","score":1}', {"verdict": "pass", "score": 1}, None, None),
    "n-judge-stdin": ("pass", None, None, None),
}
ROWS = [("claude", name, row) for name, row in CLAUDE.items()] + [("claude20", name, row) for name, row in CLAUDE20.items()]


@pytest.mark.parametrize(("folder", "names"), [("claude", {*CLAUDE, *JUDGE}), ("claude20", set(CLAUDE20))])
def test_every_recording_has_a_row(folder: str, names: set[str]) -> None:
    assert {path.stem for path in (RECORDINGS / folder).iterdir()} == names


@pytest.mark.parametrize(("folder", "name", "row"), ROWS, ids=[f"{folder}-{name}" for folder, name, _ in ROWS])
def test_an_agents_recording(folder: str, name: str, row: Row, tmp_path: Path) -> None:
    result = read(folder, name, tmp_path)

    assert (result.finished, result.answer) == (row.answer is not None, row.answer or "")
    assert result.usage == usage(row.usage)
    assert result.timed_out is row.timed_out
    assert result.model == row.model
    assert says(result.error, row.error)
    assert says(result.fatal, row.fatal)
    assert tuple(turn.tool_name for turn in result.transcript if turn.role == "tool_use") == row.calls
    outputs = [turn.tool_output or "" for turn in result.transcript if turn.role == "tool_result"]
    assert len(outputs) == len(row.outputs)
    assert all(output.startswith(beginning) for output, beginning in zip(outputs, row.outputs, strict=True))
    assert result.skills_used == row.used
    reported = result.skills_reported
    assert (None if reported is None else "greet-pirate" in reported) is row.lists_skill
    assert result.mcp_reported == row.servers
    assert not result.transcript_truncated
    assert (result.duration_s, result.cli_version) == (1.5, "2.1.332")


@pytest.mark.parametrize("name", JUDGE)
def test_a_judges_recording(name: str) -> None:
    text, structured, error, fatal = JUDGE[name]

    reply = ClaudeCode().read_judge(recording("claude", name))

    assert (reply.text, reply.structured) == (text, structured)
    assert says(reply.error, error)
    assert says(reply.fatal, fatal)
    assert reply.model == (None if error else SONNET)


def test_the_cli_itself_is_never_the_agent(tmp_path: Path) -> None:
    """Synthetic messages ("API Error: ...") are not turns of the agent's."""
    for name in ("g-429", "h-403", "l-nokey", "fault-garbage"):
        assert read("claude", name, tmp_path).transcript == ()


def test_a_tools_turns_hold_its_input_and_output(tmp_path: Path) -> None:
    said, call, result, done = read("claude", "c-write", tmp_path).transcript

    assert (said.role, said.content) == ("assistant", "Working on it.")
    assert (call.role, call.tool_name) == ("tool_use", "Write")
    assert call.tool_input == {"file_path": "$WORK/out.txt", "content": "forty-two\n"}
    assert (result.role, result.tool_name) == ("tool_result", "Write")
    assert (done.role, done.content) == ("assistant", "DONE-1")


def test_the_body_of_a_skill_is_a_users_turn(tmp_path: Path) -> None:
    roles = [(turn.role, turn.content[:28]) for turn in read("claude", "e-skill-tool", tmp_path).transcript]

    assert ("user", "Base directory for this skil") in roles


def test_what_a_sub_agent_says_is_marked(tmp_path: Path) -> None:
    contents = [turn.content for turn in read("claude", "o-sub-agent", tmp_path).transcript if turn.role == "assistant"]

    assert contents == ["[sub-agent] subanswer", "done"]


def test_a_command_that_the_prompt_calls_counts_as_used(tmp_path: Path) -> None:
    """The CLI lists commands among its slash commands only, and expands one with no event in the stream."""
    command = make_skill(tmp_path / "command", "foo", kind="command", files={"foo.md": "Do foo with $ARGUMENTS\n"})
    plan = make_plan(tmp_path, skills=(command,), prompt="/foo alpha")

    result = ClaudeCode().read_agent(recording("claude", "e-command-prompt"), plan, Workspace.at(tmp_path))

    assert result.skills_used == ("foo",)
    assert result.skills_reported is not None
    assert "foo" in result.skills_reported


def test_a_command_that_must_be_absent_is_reported_when_it_is_there(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, absent_skills=("foo",))

    result = ClaudeCode().read_agent(recording("claude", "e-command-prompt"), plan, Workspace.at(tmp_path))

    assert result.skills_reported is not None
    assert "foo" in result.skills_reported


def read(folder: str, name: str, root: Path) -> HarnessResult:
    return ClaudeCode().read_agent(recording(folder, name), make_plan(root), Workspace.at(root))


def usage(row: tuple[int, int, int, int] | None) -> Usage | None:
    if row is None:
        return None
    given, written, read_, created = row
    return Usage(input_tokens=given, output_tokens=written, cache_read_tokens=read_, cache_creation_tokens=created)


def says(text: str | None, part: str | None) -> bool:
    return text is None if part is None else text is not None and part in text and "\n" not in text
