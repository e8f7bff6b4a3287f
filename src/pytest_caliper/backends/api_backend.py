"""`claude-api` and `openai-api`: the model asked once through its vendor's SDK, without an agent around it.

They have no tools and discover no skills. As engines they answer bare tasks with one completion; as judges nothing is missing.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_caliper.backends import api_client, api_reading
from pytest_caliper.backends.api_errors import EXTRA
from pytest_caliper.backends.api_vendors import ANTHROPIC, OPENAI, Vendor
from pytest_caliper.backends.environment import base_environment
from pytest_caliper.contracts import (
    AttemptPlan,
    CliInfo,
    Command,
    Engine,
    EngineError,
    HarnessResult,
    JudgeReply,
    JudgeRequest,
    RawOutput,
    Skill,
    Workspace,
)
from pytest_caliper.spec.model import McpServer

_JUDGE_TIMEOUT_S = 600.0
_MARGIN_S = 30.0
"""The SDK's limit lies behind that of the process, which alone decides what was too slow."""


class _ApiBackend:
    """A model API as a backend. Where others have a CLI, it has this Python with the vendor's SDK."""

    name: str
    aliases: tuple[str, ...]
    vendor: Vendor

    def find(self, env: Mapping[str, str]) -> CliInfo:  # noqa: ARG002
        """This Python and the SDK's version. Raises EngineError when the SDK is not installed here, or too old."""
        vendor = self.vendor
        try:
            version = importlib.metadata.version(vendor.sdk)
        except importlib.metadata.PackageNotFoundError:
            raise EngineError(f"{self.name} needs the package `{vendor.sdk}`: pip install '{EXTRA}'") from None
        if _numbers(version) < vendor.oldest:
            floor = ".".join(map(str, vendor.oldest))
            raise EngineError(f"{vendor.sdk} {version} is too old, {floor} is needed: pip install --upgrade '{EXTRA}'")
        return CliInfo(path=Path(sys.executable), version=version)

    def check(self, engine: Engine, env: Mapping[str, str]) -> None:  # noqa: ARG002
        """Raises EngineError when there is no key, or one that no header can carry."""
        name = self.vendor.key(env)
        if name is None:
            raise EngineError(f"{self.name} needs a key: export {' or '.join(self.vendor.keys)}")
        if not (env[name].isascii() and env[name].isprintable() and " " not in env[name]):
            raise EngineError(f"{name} holds blanks, line breaks or odd characters: export the key alone")

    def refuses(self, *, skills: tuple[Skill, ...], mcp: tuple[McpServer, ...]) -> str | None:
        """One line for a spec with a skill or an MCP server."""
        wanted = [f"skill {skill.name}" for skill in skills] + [f"mcp server {server.name}" for server in mcp]
        if not wanted:
            return None
        return (
            f"{self.name} asks the model once, without tools, and cannot use {', '.join(wanted)}: name an agent with "
            f"--caliper-model, such as claude-code or codex ({self.name} can be the judge)"
        )

    def agent_command(self, plan: AttemptPlan, workspace: Workspace, cli: CliInfo) -> Command:
        """One completion of the task's prompt, without a system prompt. Raises EngineError for skills and MCP servers."""
        if refused := self.refuses(skills=plan.skills, mcp=plan.mcp):
            raise EngineError(refused)
        question = {"prompt": plan.task.prompt, "system": None, "schema": None, "timeout_s": plan.timeout_s + _MARGIN_S}
        return self._command(question, plan.engine, plan.env, workspace, cli)

    def read_agent(self, raw: RawOutput, plan: AttemptPlan, workspace: Workspace) -> HarnessResult:  # noqa: ARG002
        """What the reply says; see `api_reading`. The skills reported are none, and that is known."""
        return api_reading.read_agent(raw, self.vendor)

    def judge_command(self, request: JudgeRequest, engine: Engine, env: Mapping[str, str], home: Path, cli: CliInfo) -> Command:
        """One completion with the verdict's schema, and once more without it where the server refuses schemas."""
        place = Workspace.at(home)
        for directory in (place.home, place.work, place.tmp):
            directory.mkdir(parents=True)
        question = {
            "prompt": request.prompt,
            "system": request.system,
            "schema": dict(request.schema),
            "timeout_s": _JUDGE_TIMEOUT_S,
        }
        return self._command(question, engine, env, place, cli)

    def read_judge(self, raw: RawOutput) -> JudgeReply:
        """What the reply says; see `api_reading`."""
        return api_reading.read_judge(raw, self.vendor)

    def _command(
        self, question: Mapping[str, object], engine: Engine, env: Mapping[str, str], place: Workspace, cli: CliInfo
    ) -> Command:
        """`-I` keeps the working directory, PYTHON* variables and the user's own packages out of what is imported.

        The program is copied, so that a recorded command line names nothing outside the attempt.
        """
        asked = {
            **question,
            "sdk": self.vendor.sdk,
            "model": engine.model or self.vendor.default_model,
            "path": _package_places(self.vendor.sdk),
        }
        text = json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")
        program = place.home / "api_client.py"
        program.write_bytes(Path(str(api_client.__file__)).read_bytes())
        environment = base_environment(env, place) | self.vendor.environment(env)
        return Command(argv=(str(cli.path), "-I", str(program)), cwd=place.work, env=environment, stdin=text)


class ClaudeApi(_ApiBackend):
    """The backend `claude-api`."""

    name = ANTHROPIC.backend
    aliases: tuple[str, ...] = ("anthropic",)
    vendor = ANTHROPIC


class OpenaiApi(_ApiBackend):
    """The backend `openai-api`."""

    name = OPENAI.backend
    aliases: tuple[str, ...] = ("openai",)
    vendor = OPENAI


def _numbers(version: str) -> tuple[int, ...]:
    """The first three numbers of a version: `1.55.3` of `1.55.3rc1`."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _package_places(sdk: str) -> list[str]:
    """Where this Python's packages are, the user's own among them: the client starts without those (`-I`)."""
    places = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    try:
        places.append(str(importlib.metadata.distribution(sdk).locate_file("")))
    except importlib.metadata.PackageNotFoundError:
        pass  # `find` said so
    return list(dict.fromkeys(places))
