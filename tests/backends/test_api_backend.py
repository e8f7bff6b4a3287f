"""The backends `claude-api` and `openai-api`: how they are found, what is run, and what is read."""

from __future__ import annotations

import importlib.metadata
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from backend_cases import make_plan, make_skill, make_workspace, output

from pytest_caliper.backends.api_backend import ClaudeApi, OpenaiApi
from pytest_caliper.backends.registry import builtin_backends, by_name, resolve_target
from pytest_caliper.contracts import Backend, CliInfo, Engine, EngineError, HarnessResult, JudgeReply, JudgeRequest
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import McpServer

CLI = CliInfo(path=Path(sys.executable), version="1.99.0")
SERVER = McpServer(name="db", transport="stdio", line=1, command="x")
REQUEST = JudgeRequest(system="You judge.", prompt="Well?", schema={"type": "object"})
BOTH = pytest.mark.parametrize("api", [ClaudeApi(), OpenaiApi()], ids=["claude-api", "openai-api"])
Api = Any


def reply(**changes: Any) -> dict[str, Any]:
    return {"type": "reply", "text": "hi", "structured": None, "usage": None, "model": "m-1", "error": None, **changes}


def failed(kind: str, message: str = "words", status: int | None = None, code: str | None = None) -> dict[str, Any]:
    return reply(text="", model=None, error={"kind": kind, "status": status, "code": code, "message": message})


def read(api: Api, tmp_path: Path, *events: Any, **raw: Any) -> HarnessResult:
    return api.read_agent(output(tmp_path / "out", *events, **raw), make_plan(tmp_path), make_workspace(tmp_path))


def test_targets() -> None:
    known = by_name(builtin_backends())

    assert resolve_target("anthropic:claude-x-1", known) == Engine(backend="claude-api", model="claude-x-1")
    assert resolve_target("openai", known) == Engine(backend="openai-api")
    assert resolve_target("openai-api:org/model:7b", known) == Engine(backend="openai-api", model="org/model:7b")
    assert resolve_target("anthropic.claude-sonnet-4-5-v1:0", known).backend == "claude-code"
    assert resolve_target("pi:openai/gpt-5.5", known) == Engine(backend="pi", model="openai/gpt-5.5")
    with pytest.raises(EngineError, match=r"did you mean 'openai-api:gpt-5\.5'"):
        resolve_target("openapi-api:gpt-5.5", known)


@BOTH
def test_it_is_a_backend(api: Api) -> None:
    assert isinstance(api, Backend)


@BOTH
def test_this_python_with_the_sdk_is_the_cli(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {api.vendor.sdk: "7.1.0rc1"}.__getitem__)

    assert api.find({}) == CliInfo(path=Path(sys.executable), version="7.1.0rc1")


@BOTH
def test_a_missing_sdk_names_the_extra(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)

    with pytest.raises(
        EngineError, match=rf"{api.name} needs the package `{api.vendor.sdk}`: pip install 'pytest-caliper\[api\]'"
    ):
        api.find({})


@pytest.mark.parametrize(("api", "version"), [(ClaudeApi(), "0.40.0"), (OpenaiApi(), "1.55.2"), (OpenaiApi(), "1.50")])
def test_an_old_sdk_is_refused(api: Api, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)

    with pytest.raises(EngineError, match=rf"{version} is too old, .* is needed: pip install --upgrade"):
        api.find({})


def test_the_oldest_versions_are_those_of_the_extra() -> None:
    """What pyproject.toml asks for is what `find` lets in."""
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    for api in (ClaudeApi(), OpenaiApi()):
        numbers = [str(number) for number in api.vendor.oldest]
        floors = {f'"{api.vendor.sdk}>={".".join(numbers[:size])}"' for size in (2, 3) if not any(map(int, numbers[size:]))}
        assert sum(project.count(floor) for floor in floors) == 2  # the extra and the test group


@pytest.mark.parametrize(
    ("api", "env"),
    [
        (ClaudeApi(), {"ANTHROPIC_API_KEY": "k"}),
        (ClaudeApi(), {"ANTHROPIC_AUTH_TOKEN": "t"}),
        (OpenaiApi(), {"OPENAI_API_KEY": "k"}),
    ],
)
def test_a_key_is_enough(api: Api, env: dict[str, str]) -> None:
    api.check(Engine(backend=api.name), env)


@pytest.mark.parametrize(
    ("api", "env", "says"),
    [
        (ClaudeApi(), {"OPENAI_API_KEY": "k"}, "export ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"),
        (ClaudeApi(), {"ANTHROPIC_API_KEY": " "}, "claude-api needs a key"),
        (OpenaiApi(), {"ANTHROPIC_API_KEY": "k"}, "export OPENAI_API_KEY"),
        (OpenaiApi(), {"OPENAI_API_KEY": "secret\n"}, "OPENAI_API_KEY holds blanks, line breaks"),
        (OpenaiApi(), {"OPENAI_API_KEY": "two words"}, "holds blanks"),
        (OpenaiApi(), {"OPENAI_API_KEY": "sk-…"}, "odd characters"),
    ],
)
def test_a_key_that_will_not_do(api: Api, env: dict[str, str], says: str) -> None:
    with pytest.raises(EngineError, match=says) as caught:
        api.check(Engine(backend=api.name), env)
    assert "secret" not in str(caught.value)


@BOTH
def test_skills_and_servers_are_refused_by_name(api: Api, tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skill")

    assert api.refuses(skills=(), mcp=()) is None
    assert "skill greet-pirate, mcp server db" in api.refuses(skills=(skill,), mcp=(SERVER,))
    assert api.name in api.refuses(skills=(), mcp=(SERVER,))
    with pytest.raises(EngineError, match="cannot use skill greet-pirate"):
        api.agent_command(make_plan(tmp_path, skills=(skill,)), make_workspace(tmp_path), CLI)


def test_the_agents_command(tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    host = {
        "PATH": "/usr/bin",
        "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_AUTH_TOKEN": "t",
        "ANTHROPIC_BASE_URL": "http://gateway",
        "HTTPS_PROXY": "http://proxy",
        "OPENAI_API_KEY": "other",
        "PYTHONPATH": "/elsewhere",
    }

    command = ClaudeApi().agent_command(make_plan(tmp_path, env=host, prompt="Say “hi”\u2028\ud800"), place, CLI)

    assert command.argv == (sys.executable, "-I", str(place.home / "api_client.py"))
    assert command.cwd == place.work
    assert command.env == {
        "PATH": "/usr/bin",
        "HOME": str(place.home),
        "TMPDIR": str(place.tmp),
        "CALIPER_WORKDIR": str(place.work),
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": "http://gateway",
        "HTTPS_PROXY": "http://proxy",
    }
    question = json.loads(command.stdin)
    del question["path"]
    assert question == {
        "sdk": "anthropic",
        "model": "claude-sonnet-5-5",
        "system": None,
        "prompt": "Say “hi”\u2028?",
        "schema": None,
        "timeout_s": 60.0,
    }
    assert list(place.work.iterdir()) == []


def test_the_judges_command(tmp_path: Path) -> None:
    host = {"HOME": str(tmp_path), "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://local/v1", "OPENAI_ORG_ID": "o"}

    command = OpenaiApi().judge_command(REQUEST, Engine(backend="openai-api", model="gpt-x"), host, tmp_path / "judge-1", CLI)

    question = json.loads(command.stdin)
    assert (question["sdk"], question["model"], question["system"]) == ("openai", "gpt-x", "You judge.")
    assert (question["prompt"], question["schema"]) == ("Well?", {"type": "object"})
    assert command.cwd == tmp_path / "judge-1" / "work"
    assert {name: value for name, value in command.env.items() if name.startswith("OPENAI_")} == {
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": "http://local/v1",
        "OPENAI_ORG_ID": "o",
    }


@BOTH
def test_no_secret_is_on_the_command_line_or_in_a_file(api: Api, tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    name = api.vendor.keys[0]

    command = api.agent_command(make_plan(tmp_path, env={"HOME": str(tmp_path), name: "sk-secret"}), place, CLI)

    assert command.env[name] == "sk-secret"
    assert "sk-secret" not in " ".join(command.argv)
    assert b"sk-secret" not in command.stdin
    assert all(b"sk-secret" not in path.read_bytes() for path in place.root.rglob("*") if path.is_file())


def test_packages_of_the_users_own_are_found_in_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-I` hides the user's site-packages; modules in the working directory and on PYTHONPATH stay hidden."""
    site, work = tmp_path / "user" / "site-packages", tmp_path / "work"
    for directory, words in ((site, "the user's own"), (work, "a module of the project")):
        directory.mkdir(parents=True)
        (directory / "openai.py").write_text(f"raise ImportError({words!r})\n")
    monkeypatch.setattr(sys, "path", [str(work), "", str(site)])
    env = {"HOME": str(tmp_path), "OPENAI_API_KEY": "k"}
    command = OpenaiApi().agent_command(make_plan(tmp_path, env=env), make_workspace(tmp_path), CLI)
    bare = (command.argv[0], "-S", *command.argv[1:])  # this Python's own packages may hold the real one

    done = subprocess.run(
        bare,
        input=command.stdin,
        capture_output=True,
        cwd=work,
        env={**command.env, "PYTHONPATH": str(work)},
        check=True,
        timeout=60,
    )

    assert json.loads(done.stdout)["error"]["message"] == "openai cannot be imported: the user's own"


def test_the_copied_program_is_readable_and_writable_by_its_owner(tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    ClaudeApi().agent_command(make_plan(tmp_path), place, CLI)

    assert stat.S_IMODE(os.stat(place.home / "api_client.py").st_mode) & 0o600 == 0o600


@BOTH
def test_an_answer(api: Api, tmp_path: Path) -> None:
    usage = {"input": 100, "output": 20, "cache_read": 40, "cache_write": None}

    result = read(api, tmp_path, b"a warning\n", reply(text="one\u2028two", usage=usage))

    assert (result.answer, result.finished, result.error) == ("one\u2028two", True, None)
    assert result.usage == Usage(input_tokens=100, output_tokens=20, cache_read_tokens=40)
    assert [(turn.role, turn.content) for turn in result.transcript] == [("assistant", "one\u2028two")]
    assert (result.skills_reported, result.mcp_reported, result.skills_used) == ((), (), ())
    assert (result.model, result.duration_s) == ("m-1", 2.0)


NOT_COUNTED = [None, {}, {"input": None, "output": None, "cache_read": None, "cache_write": None}, {"input": "1"}, "many"]


@pytest.mark.parametrize("usage", NOT_COUNTED)
def test_usage_that_was_not_counted_is_unknown(usage: Any, tmp_path: Path) -> None:
    assert read(OpenaiApi(), tmp_path, reply(usage=usage)).usage is None


@pytest.mark.parametrize(
    ("error", "says", "fatal", "transient"),
    [
        (failed("status", "slow", 429, "rate_limit_error"), "rate_limit_error (HTTP 429): slow", None, True),
        (failed("status", "x", 529, "overloaded_error"), "overloaded_error (HTTP 529)", None, True),
        (failed("status", "x", 500), "error (HTTP 500)", None, True),
        (failed("status", "too long", 400, "invalid_request_error"), "(HTTP 400): too long", None, False),
        (failed("status", "x", 413), "(HTTP 413)", None, False),
        (failed("status", "bad key", 401, "authentication_error"), "(HTTP 401): bad key", "_API_KEY", False),
        (failed("status", "x", 403, "permission_error"), "(HTTP 403)", "refuses the key", False),
        (failed("status", "model: nope", 404, "not_found_error"), "(HTTP 404): model: nope", "-api:MODEL", False),
        (failed("status", "x", 403, "model_not_found"), "model_not_found", "-api:MODEL", False),
        (failed("status", "x", 402, "billing_error"), "(HTTP 402)", "no credit left", False),
        (failed("status", "x", 429, "insufficient_quota"), "insufficient_quota (HTTP 429)", "no credit left", False),
        (failed("status", "Your credit balance is too low to access", 400, "invalid_request_error"), "", "no credit left", False),
        (failed("status", "You have reached your specified API usage limits. You will regain access on 2030-01-01.", 400),
         "", "regain access on 2030-01-01. Raise the limit", False),
        (failed("connection", "Connection error: refused"), "Connection error: refused", None, True),
        (failed("import", "openai cannot be imported"), "cannot be imported", "pip install --force-reinstall", False),
        (failed("setup", "ValueError: bad proxy"), "bad proxy", "proxy variables", False),
        (failed("reply", "no JSON"), "no JSON: check ", None, False),
        (failed("length", "cut"), "cut", None, False),
        (failed("filtered", "refused"), "refused", None, False),
        (failed("other", "Odd: \x1b[31mtwo\nlines"), "Odd: two lines", None, False),
        (failed("status"), "error (HTTP None): words", None, False),
    ],
)  # fmt: skip
@BOTH
def test_an_error(api: Api, error: Any, says: str, fatal: str | None, transient: bool, tmp_path: Path) -> None:
    agent = read(api, tmp_path, error)
    judge: JudgeReply = api.read_judge(output(tmp_path / "judge", error))

    assert (agent.finished, agent.answer, agent.transcript, agent.usage) == (False, "", (), None)
    assert (judge.text, judge.structured) == ("", None)
    for result in (agent, judge):
        assert says in (result.error or "")
        assert "\n" not in (result.error or "")
        assert (result.fatal is None) if fatal is None else (fatal in (result.fatal or ""))
        assert result.transient is transient


def test_a_cut_answer_is_shown_and_is_none(tmp_path: Path) -> None:
    error = {"kind": "length", "status": None, "code": "max_tokens", "message": "the answer was cut at its greatest length"}

    result = read(ClaudeApi(), tmp_path, reply(text="half of", error=error))

    assert (result.finished, result.answer, [turn.content for turn in result.transcript]) == (False, "", ["half of"])


@BOTH
@pytest.mark.parametrize(
    ("printed", "raw", "error"),
    [
        (b"", {"exit_code": 0}, "ended without a reply (exit code 0)"),
        (b'{"type": "reply", "text": "cut', {"exit_code": 0}, "ended without a reply"),
        (b'{"text": "I am the reply"}\n', {"exit_code": 0}, "ended without a reply"),
        (b"", {"exit_code": 1, "stderr": "Traceback\nMemoryError\n\n"}, "(exit code 1): MemoryError"),
        (b"x", {"cause": "output", "exit_code": -9}, "answered with too much"),
    ],
)
def test_a_client_without_a_reply(api: Api, printed: bytes, raw: Any, error: str, tmp_path: Path) -> None:
    result = read(api, tmp_path, printed, **raw)

    assert (result.finished, result.timed_out, result.fatal, result.transient) == (False, False, None, False)
    assert error in (result.error or "")


def test_a_time_out(tmp_path: Path) -> None:
    result = read(ClaudeApi(), tmp_path, cause="timeout", exit_code=-2)
    judge = ClaudeApi().read_judge(output(tmp_path / "judge", cause="timeout", exit_code=-2))

    assert (result.finished, result.timed_out, result.error, result.usage) == (False, True, None, None)
    assert judge.error == "the Anthropic API gave no answer within 2 s"


def test_an_answer_at_the_last_moment_counts(tmp_path: Path) -> None:
    result = read(ClaudeApi(), tmp_path, reply(), cause="timeout", exit_code=-2)

    assert (result.finished, result.timed_out) == (True, False)


@BOTH
def test_a_verdict(api: Api, tmp_path: Path) -> None:
    verdict = {"reasoning": "It greets.", "passed": True}

    structured = api.read_judge(output(tmp_path / "one", reply(text=json.dumps(verdict), structured=verdict)))
    garbage = api.read_judge(output(tmp_path / "two", reply(text="I like boats.")))

    assert (structured.structured, structured.model, structured.error) == (verdict, "m-1", None)
    assert (garbage.structured, garbage.text, garbage.error) == (None, "I like boats.", None)
