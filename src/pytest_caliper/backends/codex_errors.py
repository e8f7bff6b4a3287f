"""What went wrong, by the words of Codex's own failed turn, and what the user can do about it.

`turn.failed` carries a message and nothing else: the sentences are the CLI's own (recorded, and from its source), around those of
the provider. Warnings and the `Reconnecting... n/m` of a turn that completes are no failures; the agent's words never decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.transcript import one_line

INSTALL = "npm install -g @openai/codex"
LOGIN_REMEDY = "run `codex login`, or set CODEX_API_KEY"
_LOGIN = f"Codex is not logged in, or its key is refused: {LOGIN_REMEDY}, or renew the key of the provider in config.toml"
_BILLING = "the OpenAI account has no credit or quota left: add some, or use another key"
_PLAN = "this ChatGPT plan does not include Codex: upgrade it, or set CODEX_API_KEY"
_MODEL = "this account cannot use that model: name another one as codex:MODEL, or check the provider in config.toml"

_RETRIED = re.compile(r"Reconnecting\.\.\. \d+/\d+ \((.*)\)", re.DOTALL)
_STATUS = re.compile(r"^(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_TRANSIENT = re.compile(
    r"^(stream disconnected before completion|Connection failed|error sending request|request timed out|timeout waiting"
    r"|Error while reading the server response|We.re currently experiencing high demand|Selected model is at capacity"
    r"|idle timeout waiting)"
)
_RENEWAL = re.compile(r"access token could not be refreshed|log out and sign in|auth\.openai\.com/oauth/token", re.IGNORECASE)
_LIMIT = re.compile(r"^You.ve (hit your usage limit|reached your workspace credit limit)")
_CREDIT = re.compile(r"^(Quota exceeded|You.re out of credits|Your workspace is out of credits)|insufficient_quota")
_UNKNOWN_MODEL = re.compile(
    r"\bmodel\b.{0,200}?(does not exist|not found|not supported|not available|unsupported|no access|not have access)"
    r"|\b(unknown|invalid|unsupported) model\b|model_not_found",
    re.IGNORECASE | re.DOTALL,
)
_MISSING_VARIABLE = re.compile(r"^Missing environment variable: `([^`]*)`")
_UNKNOWN_OPTION = re.compile(r"error: unexpected argument '([^']+)'")
_SERVERS = re.compile(r"required MCP servers failed to initialize: (.*)")
_TYPE_NAMES = re.compile(r" \[codex_\w+::\S+?\](?= error)")
_UNAUTHORIZED = re.compile(r"HTTP 401|Auth required|OAuth|mcp login", re.IGNORECASE)
_NOISE = re.compile(r"^(WARNING: proceeding|warning: |Reading (additional input|prompt) from stdin|\d{4}-\d\d-\d\dT\S+ +[A-Z]+ )")


def turn_failure(message: str) -> Failure:
    """What the message of a failed turn means."""
    text = _provider_words(message)
    match = _STATUS.match(text)
    status = int(match[1]) if match else None
    if status == 401 or _RENEWAL.search(text):
        return Failure(error=one_line(text), fatal=_LOGIN)
    fatal = _remedy(text, status)
    transient = fatal is None and (status in _TRANSIENT_STATUSES or _TRANSIENT.match(text) is not None)
    return Failure(error=one_line(text or "the turn failed without a reason"), fatal=fatal, transient=transient)


def pending_failure(message: str | None) -> Failure | None:
    """What a run that ended while it was reconnecting had met, by its last `error` event."""
    if message is None:
        return None
    match = _RETRIED.fullmatch(message.strip())
    failure = turn_failure(match[1] if match else message)
    error = one_line(f"still retrying when it ended: {failure.error}")
    return Failure(error=error, fatal=failure.fatal, transient=failure.transient)


def silent_failure(exit_code: int, stderr: str) -> Failure:
    """A run whose stream has no end: what Codex said on standard error, else its exit code."""
    if unknown := _UNKNOWN_OPTION.search(stderr):
        fatal = f"this version of Codex does not know {unknown[1]}: update it with `{INSTALL}@latest`"
        return Failure(error=one_line(unknown[0]), fatal=fatal)
    if servers := _SERVERS.findall(stderr):
        return _server_failure(servers[-1])
    lines = [line for line in stderr.split("\n") if line.strip() and not _NOISE.match(line)]
    begin = next((index for index, line in enumerate(lines) if line.lower().startswith("error")), None)
    if begin is None and exit_code != 0 and lines:
        begin = len(lines) - 1
    if begin is not None:
        return Failure(error=one_line(f"exit code {exit_code}: {' '.join(lines[begin:])}"))
    ended = "" if exit_code == 0 else f" (exit code {exit_code})"
    return Failure(error=f"the stream ended without turn.completed{ended}")


def _server_failure(reasons: str) -> Failure:
    """An MCP server that did not start. Codex names it and repeats the reason with the types of its source."""
    error = one_line(f"mcp server did not start: {_TYPE_NAMES.sub('', reasons)}", 240)
    hint = (
        "give it a token in `headers`: an attempt cannot log in by OAuth" if _UNAUTHORIZED.search(reasons) else "try it by hand"
    )
    return Failure(error=f"{error}: {hint}")


def _remedy(text: str, status: int | None) -> str | None:
    if missing := _MISSING_VARIABLE.match(text):
        return f"the provider in config.toml takes its key from {missing[1]}: export it, or log in with `codex login`"
    if _LIMIT.match(text):
        return one_line(f"the account's usage limit is reached: {text} Run again then, or set CODEX_API_KEY")
    if _CREDIT.search(text):
        return _BILLING
    if text.startswith("To use Codex with your ChatGPT plan"):
        return _PLAN
    about_model = status in (None, 400, 404) and not _TRANSIENT.match(text) and _UNKNOWN_MODEL.search(text)
    return _MODEL if about_model else None


def _provider_words(message: str) -> str:
    """The sentence in a message that is the provider's raw JSON; other messages as they are."""
    if not message.lstrip().startswith("{"):
        return message.strip()
    try:
        data: Any = json.loads(message)
    except (ValueError, RecursionError):
        return message.strip()
    error = data.get("error") if isinstance(data, Mapping) else None
    words = error.get("message") if isinstance(error, Mapping) else data.get("detail") if isinstance(data, Mapping) else None
    return words.strip() if isinstance(words, str) and words.strip() else message.strip()
