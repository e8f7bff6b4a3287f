"""Programs of the user's: what is run, with real processes, and what they get."""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, make_workspace

from pytest_caliper.backends.command import CommandBackend
from pytest_caliper.backends.driver import ProcessInvoker, StandardHarness
from pytest_caliper.backends.registry import builtin_backends, by_name, resolve_target
from pytest_caliper.contracts import Backend, CliInfo, Engine, EngineError, HarnessResult, JudgeReply, JudgeRequest
from pytest_caliper.process import Processes
from pytest_caliper.spec.model import McpServer

CLI = CliInfo(path=Path("/usr/bin/env"), version="unknown")
SERVERS = (
    McpServer(name="echo", transport="stdio", line=4, command="./echo.py", args=("--x",), env={"K": "${WORD}"}),
    McpServer(name="web", transport="http", line=5, url="https://x.test/${WORD}", headers={"A": "Bearer ${WORD}"}),
)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def engine(command: Any) -> Engine:
    return Engine(backend="command", model=None if command is None else str(command))


def attempt(root: Path, command: Any, **changes: Any) -> HarnessResult:
    """One attempt with real processes."""
    backend, workspace = CommandBackend(root), make_workspace(root)
    plan = replace(make_plan(root, engine=engine(command), **changes), tag="command/attempt")
    with Processes("command") as processes:
        invoker = ProcessInvoker(processes, {"command": backend.find(plan.env)})
        return StandardHarness(invoker=invoker, backends={"command": backend}, waits_s=[0.0, 0.0])(plan, workspace)


def ask(root: Path, command: Any, prompt: str = "Does it hold?") -> JudgeReply:
    """One question with real processes."""
    backend, workspace = CommandBackend(root), make_workspace(root)
    plan = replace(make_plan(root, judge=engine(command)), tag="command/attempt")
    request = JudgeRequest(system="You judge.", prompt=prompt, schema={})
    with Processes("command") as processes:
        return backend.read_judge(ProcessInvoker(processes, {"command": CLI}).judge(backend, plan, workspace, request))


def test_it_is_a_backend() -> None:
    assert isinstance(CommandBackend(), Backend)


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("command:my-agent --flag", "my-agent --flag"),
        ("command: 'my agent' a:b ", "'my agent' a:b"),
        ("command:--odd", "--odd"),
        ("command", None),
    ],
)
def test_a_target_holds_a_command_line(target: str, model: str | None) -> None:
    assert resolve_target(target, by_name(builtin_backends())) == Engine(backend="command", model=model)


@pytest.mark.parametrize("target", ["command:a\nb", "command:a\x1b[31m", "command:"])
def test_a_target_that_cannot_be_shown_is_refused(target: str) -> None:
    with pytest.raises(EngineError):
        resolve_target(target, by_name(builtin_backends()))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (None, 'which program. write it after the colon, such as "command:my-agent --flag"'),
        ("''", "which program"),
        ("'open", "is no command line .No closing quotation."),
        ("no-such-program x", "no-such-program is not on PATH: correct the target"),
        ("./no-such-program", "no-such-program is no executable file"),
        ("./notes.txt", "notes.txt is no executable file"),
    ],
)
def test_a_command_that_cannot_run_is_refused(command: str | None, message: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")

    with pytest.raises(EngineError, match=message) as raised:
        CommandBackend(tmp_path).check(engine(command), {"PATH": "/usr/bin:/bin"})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("command", ["sh -c true", "/bin/sh", "./my-agent", "bin/my-agent --x", "../up/my-agent"])
def test_a_command_that_can_run_is_not_refused(command: str, tmp_path: Path) -> None:
    for place in ("here/my-agent", "here/bin/my-agent", "up/my-agent"):
        script(tmp_path / place, "true")

    CommandBackend(tmp_path / "here").check(engine(command), {"PATH": "/usr/bin:/bin"})


def test_words_that_are_paths_start_where_pytest_was_started(tmp_path: Path) -> None:
    command = "bin/agent ./one ../two three/four --x=./five 'six seven' /eight"

    done = CommandBackend(tmp_path / "a").agent_command(
        make_plan(tmp_path, engine=engine(command)), make_workspace(tmp_path), CLI
    )

    here = tmp_path / "a"
    assert done.argv == (
        *(str(here / "bin/agent"), str(here / "one"), str(tmp_path / "two")),
        *("three/four", "--x=./five", "six seven", "/eight"),
    )


def test_lone_commands_are_refused(tmp_path: Path) -> None:
    command = make_skill(tmp_path, "foo", kind="command", files={"foo.md": "Do foo"})

    assert "foo is a lone command file" in (CommandBackend().refuses(skills=(command,), mcp=()) or "")
    assert CommandBackend().refuses(skills=(make_skill(tmp_path / "s"),), mcp=SERVERS) is None


def test_a_text_is_the_answer(tmp_path: Path) -> None:
    agent = script(tmp_path / "agent", 'echo "I was asked:"; cat; echo noise >&2; pwd > here')

    result = attempt(tmp_path, agent, prompt="What is 2 + 2?\u2028")

    assert (result.answer, result.finished, result.error) == ("I was asked:\nWhat is 2 + 2?\u2028", True, None)
    assert [(turn.role, turn.content) for turn in result.transcript] == [("assistant", result.answer)]
    assert (result.usage, result.model, result.skills_reported, result.cli_version) == (None, None, None, "unknown")
    assert (tmp_path / "attempt/work/here").read_text().strip() == str(tmp_path / "attempt/work")


def test_a_failed_program_has_no_answer(tmp_path: Path) -> None:
    agent = script(tmp_path / "agent", "echo partly; echo first >&2; echo 'no key: set MY_KEY' >&2; exit 3")

    result = attempt(tmp_path, agent)

    assert (result.answer, result.finished, result.error) == ("", False, "exit code 3: no key: set MY_KEY")
    assert (result.fatal, result.transient) == (None, False)


def test_a_program_may_end_without_reading_its_prompt(tmp_path: Path) -> None:
    assert attempt(tmp_path, "true", prompt="x" * 1_000_000).finished


def test_a_long_prompt_arrives_whole(tmp_path: Path) -> None:
    assert attempt(tmp_path, "wc -c", prompt="é" * 200_000).answer.strip() == "400000"


def test_events_tell_more(tmp_path: Path) -> None:
    events = [
        {"type": "model", "name": "m-1"},
        {"type": "assistant", "text": "Working."},
        {"type": "tool_use", "id": "1", "name": "mcp__echo__echo", "input": {"text": "hi"}},
        {"type": "tool_result", "id": "1", "output": {"echo": "hi"}},
        {"type": "usage", "input_tokens": 10, "output_tokens": 2},
        {"type": "result", "text": "Done."},
    ]
    lines = "\n".join(map(json.dumps, events))
    agent = script(tmp_path / "agent", f"cat > prompt\ncat <<'END'\n{lines}\nEND")

    result = attempt(tmp_path, agent)

    assert (result.answer, result.finished, result.model) == ("Done.", True, "m-1")
    assert [turn.tool_name for turn in result.transcript] == [None, "mcp__echo__echo", "mcp__echo__echo"]
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.cache_read_tokens) == (10, None)


def test_an_agent_that_takes_too_long_is_stopped_with_what_it_did(tmp_path: Path) -> None:
    event = json.dumps({"type": "tool_use", "id": "1", "name": "shell", "input": {"command": "sleep"}})
    agent = script(tmp_path / "agent", f"echo '{event}'; sleep 600")

    result = attempt(tmp_path, agent, timeout_s=1.0)

    assert (result.finished, result.timed_out, result.error) == (False, True, None)
    assert [turn.tool_name for turn in result.transcript] == ["shell"]


def test_a_transient_error_is_tried_again(tmp_path: Path) -> None:
    error = json.dumps({"type": "error", "message": "slow down", "transient": True})
    answer = json.dumps({"type": "result", "text": "at last"})
    agent = script(
        tmp_path / "agent",
        f"echo x >> {tmp_path}/tries; test $(wc -l < {tmp_path}/tries) -lt 3 && echo '{error}' || echo '{answer}'",
    )

    result = attempt(tmp_path, agent, mcp=SERVERS[:1], env={"PATH": os.environ["PATH"], "WORD": "w"})

    assert (result.answer, result.retries) == ("at last", 2)


def test_what_an_agent_finds(tmp_path: Path) -> None:
    """Skills where they are discovered and by their paths, servers in a private file, and a private environment."""
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import json, os, stat\n"
        "config = os.environ['CALIPER_MCP_CONFIG']\n"
        "found = {'mode': stat.S_IMODE(os.stat(config).st_mode), 'config': json.load(open(config)), 'env': dict(os.environ)}\n"
        "found['skills'] = [open(path + '/SKILL.md').read() for path in os.environ['CALIPER_SKILLS'].split(os.pathsep)]\n"
        "print('found', json.dumps(found))\n"
    )
    skills = (make_skill(tmp_path / "one", "one"), make_skill(tmp_path / "two", "two"))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "user"), "WORD": "w", "MY_KEY": "k", "OTHER": "o"}
    env |= {"CALIPER_PASS_ENV": " MY_* , NOT_SET,,", "CALIPER_ROLE": "outer", "CALIPER_SKILLS": "outer"}

    result = attempt(tmp_path, f"{sys.executable} ./agent.py", skills=skills, mcp=SERVERS, env=env)

    found = json.loads(result.answer.removeprefix("found "))
    home, spec = tmp_path / "attempt/home", tmp_path / "project"
    assert found["env"]["CALIPER_SKILLS"] == f"{home}/.agents/skills/one:{home}/.agents/skills/two"
    assert found["skills"] == [(skill.root / "SKILL.md").read_text() for skill in skills]
    assert found["mode"] == stat.S_IRUSR | stat.S_IWUSR
    assert found["config"] == {
        "mcpServers": {
            "echo": {"type": "stdio", "command": str(spec / "echo.py"), "args": ["--x"], "env": {"K": "w"}},
            "web": {"type": "http", "url": "https://x.test/w", "headers": {"A": "Bearer w"}},
        }
    }
    assert found["env"]["HOME"] == str(home)
    assert (found["env"]["MY_KEY"], found["env"]["CALIPER_ROLE"]) == ("k", "agent")
    assert not {"OTHER", "WORD", "CALIPER_PASS_ENV", "CALIPER_SPEC_DIR"} & set(found["env"])


def test_a_baseline_finds_no_skill_and_no_servers(tmp_path: Path) -> None:
    result = attempt(tmp_path, 'sh -c \'echo "[$CALIPER_SKILLS]${CALIPER_MCP_CONFIG-none}"; ls -A "$HOME"\'')

    assert result.answer == "[]none"


@pytest.mark.parametrize(
    "reply",
    [
        '{"reasoning": "fine", "passed": true}',
        'Yes.\n```json\n{"reasoning": "fine", "passed": true}\n```',
    ],
)
def test_a_judges_reply_is_what_it_prints(reply: str, tmp_path: Path) -> None:
    judge = script(
        tmp_path / "judge",
        f"cat > {tmp_path}/question\necho $CALIPER_ROLE $(ls -A $HOME .) > {tmp_path}/seen\ncat <<'END'\n{reply}\nEND",
    )

    told = ask(tmp_path, judge)

    assert (told.text, told.error) == (reply, None)
    assert (tmp_path / "question").read_text() == "You judge.\n\nDoes it hold?\n"
    assert (tmp_path / "seen").read_text().split()[0] == "judge"
    assert "SKILL" not in (tmp_path / "seen").read_text()


def test_a_judge_may_print_events(tmp_path: Path) -> None:
    verdict = {"reasoning": "fine", "passed": True}
    events = [{"type": "model", "name": "m-1"}, {"type": "result", "text": verdict}]
    judge = script(tmp_path / "judge", "cat <<'END'\n" + "\n".join(map(json.dumps, events)) + "\nEND")

    told = ask(tmp_path, judge)

    assert (json.loads(told.text), told.model) == (verdict, "m-1")


def test_a_judge_that_fails_says_why(tmp_path: Path) -> None:
    told = ask(tmp_path, script(tmp_path / "judge", "echo no key >&2; exit 1"))

    assert (told.text, told.error) == ("", "exit code 1: no key")
