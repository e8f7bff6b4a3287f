"""Tries the judge once, before the first attempt is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_caliper.contracts import Backend, Cancelled, CliInfo, Engine, EngineError, JudgeReply, JudgeRequest, RawOutput
from pytest_caliper.judging.autorater import ASKS, read_reply
from pytest_caliper.judging.bounding import first_line
from pytest_caliper.judging.prompt import ask_again, probe_request
from pytest_caliper.judging.verdict import NoVerdict, parse_verdict
from pytest_caliper.process import Processes

PROBE_TIMEOUT_S = 120.0
_STDERR_BYTES = 8_000
_REMEDY = "try it with that CLI itself, or name another with --caliper-judge-model"


def probe_judge(
    backend: Backend, engine: Engine, env: Mapping[str, str], cli: CliInfo, processes: Processes, root: Path
) -> JudgeReply:
    """The reply of the judge to a question whose answer is yes. Writes below `root`, which need not exist.

    Raises EngineError with one line and the remedy when the judge fails, cannot be read or says no. Raises Cancelled.
    """
    request, reason = probe_request(), ""
    for _ in range(ASKS):
        reply = read_reply(backend, _ask(backend, request, engine, env, cli, processes, root))
        if reply.fatal is not None:
            failure = first_line(reply.error or "")
            raise EngineError(f"judge {engine}: {f'{failure}; ' if failure else ''}{first_line(reply.fatal)}")
        if reply.error is not None:
            raise EngineError(f"judge {engine} failed on a first question: {first_line(reply.error)}; {_REMEDY}")
        try:
            verdict = parse_verdict(reply.text, reply.structured)
        except NoVerdict as why:
            reason = str(why)
            request = ask_again(request, reason)
            continue
        if not verdict.passed:
            raise EngineError(
                f"judge {engine} said no to a question whose answer is yes: name another with --caliper-judge-model"
            )
        return reply
    raise EngineError(f"judge {engine} gives no verdict that can be read ({reason}): name another with --caliper-judge-model")


def _ask(
    backend: Backend,
    request: JudgeRequest,
    engine: Engine,
    env: Mapping[str, str],
    cli: CliInfo,
    processes: Processes,
    root: Path,
) -> RawOutput:
    home = root / f"judge-{request.number}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    stdout, stderr = home.with_suffix(".stdout"), home.with_suffix(".stderr")
    command = backend.judge_command(request, engine, env, home, cli)
    tag = f"{processes.session_tag}/judge-probe"
    try:
        ended = processes.run(command, stdout=stdout, stderr=stderr, timeout_s=PROBE_TIMEOUT_S, tag=tag)
    except OSError as error:
        raise EngineError(f"judge {engine}: {cli.path} cannot be started ({error.strerror or error}); {_REMEDY}") from error
    if ended.cause == "cancelled":
        raise Cancelled
    return RawOutput(
        argv=command.argv,
        stdout=stdout,
        stderr=stderr.read_bytes()[-_STDERR_BYTES:].decode("utf-8", "replace"),
        exit_code=ended.returncode,
        cause=ended.cause,
        duration_s=ended.duration_s,
        cli_version=cli.version,
    )
