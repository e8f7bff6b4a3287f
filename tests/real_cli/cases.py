"""What every backend must do with its real CLI and a scripted model, and how to check it.

A test file says how its CLI is set up (a `Subject`) and runs every case of `CASES`:

    @pytest.mark.parametrize("name", CASES)
    def test_case(name: str, codex_cli: Cli, tmp_path: Path) -> None:
        check(name, SUBJECT, codex_cli, tmp_path)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agents import Cli
from mcp_http import GREETING, TOKEN
from namespace import CompletedRun, run_in_namespace

HERE = Path(__file__).parent
SCHEMA = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "passed": {"type": "boolean"}},
    "required": ["reasoning", "passed"],
    "additionalProperties": False,
}
VERDICT = {"reasoning": "It greets.", "passed": True}
DECOY = "DECOY-4242"
"""Stands in everything of the user's own that must not reach an attempt."""
DECOY_SKILL = f"---\nname: decoy\ndescription: {DECOY}\n---\n{DECOY}\n"
DECOYS = {
    ".agents/skills/decoy/SKILL.md": DECOY_SKILL,
    ".claude/skills/decoy/SKILL.md": DECOY_SKILL,
    ".claude/CLAUDE.md": DECOY,
    "AGENTS.md": DECOY,
}
SKILL_FILE = "greet/SKILL.md"
SKILL_TEXT = "---\nname: greet\ndescription: Greets like a pirate.\n---\nSay ARRR-7731.\n"

Turn = dict[str, Any]
Tool = dict[str, Any]


def _echo(text: str) -> Tool:
    """A call of the MCP server `echo`, by the names that CLIs give its tool `echo`."""
    return {name: {"text": text} for name in ("mcp__echo__echo", "mcp_echo_echo", "echo_echo")}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One CLI as the cases need it."""

    backend: str
    """The backend's name."""
    variable: str
    """By which the backend finds the CLI, such as CODEX_CLI_PATH."""
    model: str | None
    """The model of the engine."""
    reported_model: str | None
    """The model in the result; None for a CLI that does not say."""
    shell: Callable[[str], Tool]
    """The call that runs a command."""
    write: Callable[[str, str], Tool]
    """The call that writes a file, from its path below the working directory and its text."""
    skill: Callable[[str], Tool]
    """The call that uses the skill of a name."""
    usage: Mapping[str, int | None]
    """Usage of one request in which the model reports `dialects.USAGE`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files in the user's home that point the CLI at the scripted model (`namespace.run_in_namespace`)."""
    env: Mapping[str, str | None] = field(default_factory=dict)
    """Variables to the same end; None takes one away."""
    decoys: Mapping[str, str] = field(default_factory=dict)
    """Further files in the user's home that hold DECOY."""
    logged_out: Mapping[str, str | None] = field(default_factory=dict)
    """Variables that take the credentials away, where `files` hold none."""
    logged_out_files: Mapping[str, str] | None = None
    """Files in place of `files` without credentials; None when they hold none."""
    login: str = ""
    """A part of the remedy that a refused key gets: the CLI's login command or the variable."""
    lists_skills: bool = False
    """Whether the result lists the skills that the CLI found."""
    mcp_reported: list[str] | None = None
    """What the result says of a connected MCP server `echo`."""
    judge_tools: frozenset[str] = frozenset()
    """Tools that a judge keeps."""
    judge_verdict: Tool | None = None
    """The call that gives a verdict, where structured output is a tool."""
    most_requests: int = 3
    """How often a request that always fails may be sent."""
    hang_s: float = 3.0
    """A time limit that is reached when the model hangs: longer than the CLI takes to ask it."""
    timeout_s: float = 60.0
    skips: Mapping[str, str] = field(default_factory=dict)
    """Case -> why this CLI cannot do it."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A subject, its CLI and a directory of the test."""

    subject: Subject
    cli: Cli
    path: Path

    @property
    def work(self) -> Path:
        """The attempt's working directory."""
        return self.path / "attempt" / "work"

    def drive(
        self,
        turns: list[Turn],
        *,
        env: Mapping[str, str | None] | None = None,
        files: Mapping[str, str] | None = None,
        **case: Any,
    ) -> tuple[Any, CompletedRun]:
        """Run the backend once (see `drive.py`): what came of it, as JSON, and the run. `files` replace the subject's."""
        subject, path = self.subject, self.path / "case.json"
        usual = {
            "backend": subject.backend,
            "root": str(self.path),
            "action": "agent",
            "prompt": "Do it.",
            "model": subject.model,
            "timeout_s": subject.timeout_s,
            "waits_s": [],
        }
        path.write_text(json.dumps({**usual, **case}), encoding="utf-8")
        done = run_in_namespace(
            turns,
            [sys.executable, HERE / "drive.py", path],
            self.path,
            env={**self.cli.environment(subject.variable), **subject.env, **(env or {})},
            files=subject.files if files is None else files,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done

    def use(self, tool: Tool, text: str = "Done.", **arguments: Any) -> tuple[Any, CompletedRun]:
        """`drive` with a model that calls one tool and then answers."""
        return self.drive([{"when": {"tool_results": 0, "tools": True}, "tool": tool}, {"text": text}], **arguments)


def check(name: str, subject: Subject, cli: Cli, path: Path) -> None:
    """Run the case `name` of CASES; skipped with the subject's reason where it has one."""
    if name in subject.skips:
        pytest.skip(subject.skips[name])
    CASES[name](Bench(subject=subject, cli=cli, path=path))


def outputs(result: Any) -> str:
    """All results of tools in a transcript."""
    return "\n".join(turn["tool_output"] or "" for turn in result["transcript"] if turn["role"] == "tool_result")


def calls(result: Any) -> list[Any]:
    return [turn for turn in result["transcript"] if turn["role"] == "tool_use"]


def fine(result: Any, answer: str) -> None:
    """The attempt is at its end with this answer and nothing else to say."""
    expected = {"answer": answer, "finished": True, "error": None, "fatal": None, "transient": False, "timed_out": False}
    assert {name: result[name] for name in expected} == expected


def failed(result: Any, *, transient: bool, fatal: bool) -> None:
    """The harness failed: there is no answer, one line says why, and whether trying again makes sense."""
    assert (result["finished"], result["timed_out"]) == (False, False)
    assert result["answer"] == ""
    assert result["error"]
    assert "\n" not in result["error"]
    assert (result["transient"], result["fatal"] is not None) == (transient, fatal), result["error"]


def refusal(status: int, **fields: Any) -> list[Turn]:
    return [{"fault": {"kind": "status", "status": status, **fields}}]


def text(bench: Bench) -> None:
    result, done = bench.drive([{"text": "Hello from the model."}])

    fine(result, "Hello from the model.")
    assert (result["model"], result["cli_version"]) == (bench.subject.reported_model, bench.cli.version)
    assert result["usage"] == bench.subject.usage
    assert [turn["role"] for turn in result["transcript"]] == ["assistant"]
    assert (result["skills_used"], len(done.messages)) == ([], 1)
    assert "greet" not in json.dumps(done.messages).replace("greeting", "")
    if not bench.subject.lists_skills:
        assert result["skills_reported"] is None


def shell(bench: Bench) -> None:
    """A command runs in the workspace with the private environment, and its call is in the transcript."""
    command = 'pwd > seen.txt; echo "home=$HOME tmp=$TMPDIR secret=$MY_SECRET" >> seen.txt; echo from-the-shell'

    result, _ = bench.use(bench.subject.shell(command), env={"MY_SECRET": "s"})

    attempt = bench.path / "attempt"
    fine(result, "Done.")
    assert (bench.work / "seen.txt").read_text().splitlines() == [
        str(bench.work),
        f"home={attempt / 'home'} tmp={attempt / 'tmp'} secret=",
    ]
    (call,) = calls(result)
    assert "from-the-shell" in json.dumps(call["tool_input"])
    assert "from-the-shell" in outputs(result)


def file_write(bench: Bench) -> None:
    result, _ = bench.use(bench.subject.write("out.txt", "forty-two\n"))

    fine(result, "Done.")
    assert (bench.work / "out.txt").read_text() == "forty-two\n"
    assert len(calls(result)) == 1


def usage_of_two_requests(bench: Bench) -> None:
    result, done = bench.use(bench.subject.shell("true"))

    assert len(done.messages) == 2
    assert result["usage"] == {name: amount and 2 * amount for name, amount in bench.subject.usage.items()}


def skill(bench: Bench) -> None:
    result, done = bench.use(bench.subject.skill("greet"), "ARRR-7731", skills=[_installed_skill(bench)])

    fine(result, "ARRR-7731")
    assert result["skills_used"] == ["greet"]
    assert "Greets like a pirate." in json.dumps(done.messages[0])
    assert "Say ARRR-7731." in json.dumps(done.messages[1])
    if bench.subject.lists_skills:
        assert "greet" in result["skills_reported"]


def skill_unused(bench: Bench) -> None:
    """A skill that is there and not used does not count as used."""
    result, done = bench.drive([{"text": "No."}], skills=[_installed_skill(bench)])

    fine(result, "No.")
    assert result["skills_used"] == []
    assert "Greets like a pirate." in json.dumps(done.messages[0])


def _installed_skill(bench: Bench) -> dict[str, str]:
    root = bench.path / "greet"
    root.mkdir()
    (root / "SKILL.md").write_text(SKILL_TEXT)
    return {"name": "greet", "root": str(root), "kind": "directory"}


def isolation(bench: Bench) -> None:
    """What the user has of his own does not reach the model, and stays as it is."""
    files = {**bench.subject.files, **DECOYS, **bench.subject.decoys}

    result, done = bench.drive([{"text": "Done."}], files=files)

    fine(result, "Done.")
    assert DECOY not in json.dumps(done.messages)


def mcp_stdio(bench: Bench) -> None:
    server = {
        "name": "echo",
        "transport": "stdio",
        "command": sys.executable,
        "args": ["./mcp_echo.py"],
        "env": {"GREETING": "hello-${WORD}"},
    }
    (bench.path / "mcp_echo.py").write_text((HERE / "mcp_echo.py").read_text())

    result, _ = bench.use(_echo("ping-77"), mcp=[server], env={"WORD": "w"})

    _called(bench, result, "hello-w ping-77")


def mcp_http(bench: Bench) -> None:
    server = {
        "name": "echo",
        "transport": "http",
        "url": "${MCP_URL}",
        "headers": {"Authorization": "Bearer ${MCP_TOKEN}"},
    }

    result, _ = bench.use(_echo("ping-78"), mcp=[server], env={"MCP_URL": "@MCP_URL@", "MCP_TOKEN": TOKEN})

    _called(bench, result, f"{GREETING} ping-78")


def _called(bench: Bench, result: Any, output: str) -> None:
    fine(result, "Done.")
    assert [call["tool_name"] for call in calls(result)] == ["mcp__echo__echo"]
    assert output in outputs(result)
    assert result["mcp_reported"] == bench.subject.mcp_reported


def throttled(bench: Bench) -> None:
    result, done = bench.drive(refusal(429, message="slow down"))

    failed(result, transient=True, fatal=False)
    assert len(done.messages) <= bench.subject.most_requests


def overloaded(bench: Bench) -> None:
    result, done = bench.drive(refusal(503, message="come back later"))

    failed(result, transient=True, fatal=False)
    assert len(done.messages) <= bench.subject.most_requests


def throttled_once(bench: Bench) -> None:
    """An invocation that met throttling is tried again, and only the last one counts."""
    turns = [{"when": {"user": "Do it.", "max_uses": bench.subject.most_requests}, **refusal(429)[0]}, {"text": "after all"}]

    result, _ = bench.drive(turns, waits_s=[0.0] * bench.subject.most_requests)

    fine(result, "after all")


def refused_key(bench: Bench) -> None:
    result, done = bench.drive(refusal(401, message="invalid key"))

    failed(result, transient=False, fatal=True)
    assert bench.subject.login in result["fatal"]
    assert len(done.messages) <= bench.subject.most_requests


def unknown_model(bench: Bench) -> None:
    result, _ = bench.drive(refusal(404, code="model_not_found", message="The model `nope` does not exist"))

    failed(result, transient=False, fatal=True)
    assert bench.subject.backend in result["fatal"]


def cut_stream(bench: Bench) -> None:
    result, done = bench.drive([{"text": "A long answer that is cut off.", "fault": {"kind": "cut"}}])

    assert (result["finished"], result["timed_out"], result["answer"]) == (False, False, "")
    assert result["error"]
    assert len(done.messages) <= 2 * bench.subject.most_requests


def hang(bench: Bench) -> None:
    result, done = bench.drive([{"fault": {"kind": "hang"}}], timeout_s=bench.subject.hang_s)

    assert (result["finished"], result["timed_out"], result["error"], result["answer"]) == (False, True, None, "")
    assert len(done.messages) >= 1


def hanging_tool(bench: Bench) -> None:
    """A command that never ends: its call is known all the same."""
    command = "echo waiting; tail -f /dev/null"

    result, _ = bench.use(bench.subject.shell(command), timeout_s=bench.subject.hang_s + 2)

    assert (result["finished"], result["timed_out"], result["error"]) == (False, True, None)
    assert [command in json.dumps(call["tool_input"]) for call in calls(result)] == [True]


def long_prompt(bench: Bench) -> None:
    """200 000 bytes, some of them in characters that are line ends to some readers."""
    prompt = "é\u2028" * 40_000 + "THE END"

    result, done = bench.drive([{"when": {"user": "THE END"}, "text": "read"}, {"text": "not read"}], prompt=prompt)

    fine(result, "read")
    assert json.dumps(prompt)[1:-1] in json.dumps(done.messages[0])


def odd_characters(bench: Bench) -> None:
    answer = "one\u2028two\u0085three\x0bfour\U0001f3f4\u200d\u2620"

    result, _ = bench.drive([{"text": answer}])

    fine(result, answer)


def judge(bench: Bench) -> None:
    reply, done = bench.drive([_verdict(bench)], action="judge", schema=SCHEMA, files={**bench.subject.files, **DECOYS})

    assert (reply["error"], reply["fatal"]) == (None, None)
    assert (reply["structured"] or json.loads(reply["text"])) == VERDICT
    assert reply["model"] == bench.subject.reported_model
    asked = json.dumps(done.messages)
    assert "You judge." in asked
    assert "Do it." in asked
    assert DECOY not in asked
    assert _tools_offered(done.messages[0]) <= bench.subject.judge_tools


def judge_long_question(bench: Bench) -> None:
    turns = [{"when": {"user": "THE END"}, **_verdict(bench)}, {"text": "not read"}]

    reply, _ = bench.drive(turns, action="judge", schema=SCHEMA, prompt="x" * 200_000 + "THE END")

    assert (reply["structured"] or json.loads(reply["text"])) == VERDICT


def judge_refused_key(bench: Bench) -> None:
    reply, _ = bench.drive(refusal(401, message="invalid key"), action="judge", schema=SCHEMA)

    assert reply["error"]
    assert bench.subject.login in reply["fatal"]
    assert reply["transient"] is False


def _verdict(bench: Bench) -> Turn:
    tool = bench.subject.judge_verdict
    return {"text": json.dumps(VERDICT)} if tool is None else {"tool": tool}


def _tools_offered(body: Any) -> set[str]:
    """Names of the tools in a request of any dialect."""
    tools = body.get("tools") or []
    declared = [function for tool in tools for function in tool.get("functionDeclarations", [tool])]
    return {str(tool.get("name") or (tool.get("function") or {}).get("name") or tool.get("type")) for tool in declared}


def logged_out(bench: Bench) -> None:
    """Missing credentials are noticed before anything runs."""
    subject = bench.subject
    files = subject.files if subject.logged_out_files is None else subject.logged_out_files

    result, done = bench.drive([], action="check", env=subject.logged_out, files=files)

    assert result["refused"] is not None
    assert subject.login in result["refused"]
    assert done.requests == []


def logged_in(bench: Bench) -> None:
    result, done = bench.drive([], action="check")

    assert (result["refused"], done.requests) == (None, [])


CASES: dict[str, Callable[[Bench], None]] = {
    case.__name__: case
    for case in (
        *(text, shell, file_write, usage_of_two_requests, skill, skill_unused, isolation, mcp_stdio, mcp_http),
        *(throttled, overloaded, throttled_once, refused_key, unknown_model, cut_stream, hang, hanging_tool),
        *(long_prompt, odd_characters, judge, judge_long_question, judge_refused_key, logged_out, logged_in),
    )
}
"""Every case by its name."""
