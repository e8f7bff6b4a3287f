"""What an invocation of pi amounts to: an attempt's result, or the judge's reply.

pi exits with 0 on every refusal of the provider (recorded), so its last assistant message and its end marker decide.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.pi_errors import pending_failure, reported_failure, silent_failure
from pytest_caliper.backends.pi_mcp import namespace, server_of
from pytest_caliper.backends.pi_stream import PiStream, ToolCall, read_stream
from pytest_caliper.backends.transcript import Bounds, cut, plain
from pytest_caliper.contracts import AttemptPlan, HarnessResult, JudgeReply, RawOutput, Workspace

SETTLES = (0, 80, 4)
"""The first version that says when nothing follows; before it, the last `agent_end` and exit code 0 have to do."""

_ANSWER_CHARACTERS = 1_000_000
_RESOURCE_TOOLS = frozenset({"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"})


def read_agent(raw: RawOutput, plan: AttemptPlan, workspace: Workspace, *, bounds: Bounds | None = None) -> HarnessResult:
    """The attempt's result. `duration_s` and `cli_version` are `raw`'s."""
    names = tuple(server.name for server in plan.mcp)
    stream = read_stream(raw.stdout, prompt=plan.task.prompt, servers=names, bounds=bounds)
    finished = _finished(stream, raw)
    failure = None if finished else _failure(stream, raw)
    answer = plain(stream.answer) if finished else ""
    return HarnessResult(
        answer=cut(answer, _ANSWER_CHARACTERS),
        finished=finished,
        transcript=stream.transcript.turns(),
        usage=stream.usage,
        model=stream.model,
        error=failure.error if failure is not None else _missing_servers(stream, names),
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        timed_out=raw.cause == "timeout" and not finished,
        duration_s=raw.duration_s,
        cli_version=raw.cli_version,
        skills_reported=_skills_reported(stream, plan),
        skills_used=_skills_used(stream, plan, workspace),
        mcp_reported=_servers_reported(stream, names),
        transcript_truncated=stream.transcript.truncated or stream.faults.too_long > 0 or len(answer) > _ANSWER_CHARACTERS,
    )


def read_judge(raw: RawOutput) -> JudgeReply:
    """The reply: the text of the last message, as pi has no structured output."""
    stream = read_stream(raw.stdout)
    failure = None if _finished(stream, raw) else _failure(stream, raw) or _too_slow(raw)
    return JudgeReply(
        text="" if failure is not None else plain(stream.answer),
        model=stream.model,
        error=None if failure is None else failure.error,
        fatal=None if failure is None else failure.fatal,
        transient=failure is not None and failure.transient,
        cli_version=raw.cli_version,
        duration_s=raw.duration_s,
        usage=stream.usage,
    )


def version_numbers(version: str | None) -> tuple[int, ...]:
    """`1.6.0` -> (1, 6, 0); what is no version is newer than all."""
    parts = (version or "").split("-")[0].split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdigit() for part in parts) else (1_000,)


def _finished(stream: PiStream, raw: RawOutput) -> bool:
    """Whether the last message is a finished answer and pi said that nothing follows."""
    if stream.last is None or stream.last.get("stopReason") != "stop":
        return False
    if stream.settled is None and version_numbers(raw.cli_version) < SETTLES:
        return stream.ended and raw.exit_code == 0
    return stream.settled is True


def _failure(stream: PiStream, raw: RawOutput) -> Failure | None:
    """What failed; None for a time-out that met no error of the provider."""
    if raw.cause == "timeout":
        return None if stream.retrying is None else pending_failure(stream.retrying)
    if raw.cause == "output":
        return Failure(error=f"pi printed too much ({raw.stdout.stat().st_size / 2**20:.0f} MB on standard output alone)")
    reason = (stream.last or {}).get("stopReason")
    if stream.last is not None and reason == "error":
        return reported_failure(str(stream.last.get("errorMessage") or ""), retried=stream.retried)
    if stream.settled is not None and reason == "length":
        return Failure(error="the model's answer was cut at its output limit: raise `maxTokens` of the model in pi's models.json")
    if stream.settled is not None:
        return Failure(error=f"pi ended without a final answer (last message: {reason or 'none'})")
    return silent_failure(raw.exit_code, raw.stderr)


def _too_slow(raw: RawOutput) -> Failure:
    return Failure(error=f"the judge gave no answer within {raw.duration_s:.0f} s")


def _skills_reported(stream: PiStream, plan: AttemptPlan) -> tuple[str, ...] | None:
    """The skills that pi told the model of.

    A skill with `disable-model-invocation` is there and not told of: then the list says nothing about it, and None is returned.
    """
    if stream.listed is None or any(skill.name not in stream.listed and _hides(skill.snapshot.files) for skill in plan.skills):
        return None
    return tuple(stream.listed)


def _hides(files: Mapping[str, Any]) -> bool:
    text = str(files.get("SKILL.md", {}).get("content", ""))
    head = text.partition("\n---")[0]
    return any(line.replace(" ", "").startswith("disable-model-invocation:true") for line in head.split("\n"))


def _skills_used(stream: PiStream, plan: AttemptPlan, workspace: Workspace) -> tuple[str, ...]:
    """Skills that were activated: by `/skill:NAME`, or by reading the SKILL.md, with the tool for it or in a shell."""
    directory = workspace.home / ".pi" / "agent" / "skills"
    places = {skill.name: str(directory / skill.name / "SKILL.md") for skill in plan.skills} | (stream.listed or {})
    used = [*stream.expanded]
    for call in stream.calls:
        used += [name for name, place in places.items() if not call.is_error and _opens(call, place, workspace)]
    return tuple(dict.fromkeys(used))


def _opens(call: ToolCall, place: str, workspace: Workspace) -> bool:
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
    if call.name == "read" and isinstance(path := arguments.get("path"), str):
        return path == place or _real(path.removeprefix("@"), workspace) == _real(place, workspace)
    if call.name == "bash" and isinstance(command := arguments.get("command"), str):
        return place in command or f"~/{os.path.relpath(place, workspace.home)}" in command
    return False


def _real(path: str, workspace: Workspace) -> str:
    """`path` as pi resolves it: `~` is the attempt's home, and what is relative starts at its working directory."""
    if path == "~" or path.startswith("~/"):
        path = str(workspace.home) + path[1:]
    try:
        return os.path.realpath(Path(workspace.work, path))
    except (OSError, ValueError):  # a null character, or a loop of links
        return path


def _servers_reported(stream: PiStream, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """`name:connected` for a server whose tools the model was given, else its exposure or `no tools`; None from an old pi."""
    if stream.listed is None:
        return None
    state = dict.fromkeys(names, "no tools")
    known = {namespace(name): name for name in names}
    state |= {known.get(name, name): exposure for name, exposure in stream.exposed.items()}
    for tool in stream.tools:
        if tool.startswith("mcp__"):
            server = server_of(tool, names) or tool.removeprefix("mcp__").partition("__")[0]
            state[server] = "connected"
    return tuple(f"{name}:{what}" for name, what in state.items())


def _missing_servers(stream: PiStream, names: tuple[str, ...]) -> str | None:
    """One line when the model never got the tools of a server of the spec: pi goes on without it and says nothing (recorded)."""
    reported = _servers_reported(stream, names) or ()
    missing = [name for name in names if f"{name}:no tools" in reported]
    if not missing or _RESOURCE_TOOLS.intersection(stream.tools):  # a server may have resources alone
        return None
    return f"mcp server gave no tools within 10 s: {', '.join(missing)}: try its command in a shell"
