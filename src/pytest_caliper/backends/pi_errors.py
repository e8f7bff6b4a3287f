"""What went wrong, by what pi itself reports, and what the user can do about it.

pi puts the provider's refusal into `errorMessage` of an assistant message as `STATUS: JSON` or `STATUS JSON` (recorded), and says
what it could not even send on standard error. The agent's words never decide.
"""

from __future__ import annotations

import re

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.transcript import one_line

LOGIN_REMEDY = (
    "log in with `pi` and then /login, export the provider's key (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), "
    "or name a model of a provider you are logged in to as pi:PROVIDER/MODEL"
)
INSTALL = "npm install -g @earendil-works/pi-coding-agent"
NODE_REMEDY = "pi 1.x needs Node 22.19 or newer first on PATH: install it, or set PATH so that `node` is that one"
_LIMIT_REMEDY = "the account's limit or credit is used up: add credit, run again later, or use another key"
_MODEL_REMEDY = "pi cannot use that model: name another one as pi:PROVIDER/MODEL (`pi --list-models` lists them)"
_UPDATE_REMEDY = f"this version of pi does not know an option that is needed: update it with `{INSTALL}`"

_STATUS = re.compile(r"(\d{3})(?::|\s|$)|[\w.-]+ API error \((\d{3})\)")
"""How a refusal begins: `401: {…}`, `401 {…}`, or `openai API error (401): {…}` (recorded for four protocols)."""
_CODE = re.compile(r'"code"\s*:\s*"?(\d{3})\b')
"""Where Google's refusals, which are just JSON, have their status."""
_LIMIT = re.compile(
    r"usage.?limit|insufficient.?quota|quota exceeded|exceeded your current quota|out of budget|billing|available balance"
    r"|credit balance|insufficient balance|insufficient credits",
    re.IGNORECASE,
)
"""The words of pi's own list of refusals that do not pass by themselves (utils/retry.js), and those of providers that bill."""
_LOGIN = re.compile(
    r"No API key found|/login|authentication.?(?:failed|_error)|OAuth refresh failed"
    r"|invalid.?(?:x-)?api.?key|api.?key.?(?:not.?valid|invalid)|OAuth refresh failed|/login",
    re.IGNORECASE,
)
_MODEL = re.compile(r'Model "[^"]*" not found|model_not_found|No models match', re.IGNORECASE)
_OPTION = re.compile(r"Unknown options?: ")
_PASSES = re.compile(
    r"overloaded|rate.?limit|too many requests|timed? ?out|timeout|terminated|ended without|connection|socket|network.?error"
    r"|fetch failed|other side closed|ECONN\w+|ETIMEDOUT|EPIPE|EAI_AGAIN|getaddrinfo|unavailable",
    re.IGNORECASE,
)
_NODE = re.compile(r"enableCompileCache|SyntaxError|ERR_[A-Z_]+|requires Node")


def reported_failure(message: str, *, retried: bool = False) -> Failure:
    """A refusal in pi's own words. `retried` says that pi itself took it for one that passes."""
    text = one_line(message or "pi reported an error without a message")
    status = _status(text)
    if status == 402 or _LIMIT.search(text):
        return Failure(error=text, fatal=_LIMIT_REMEDY)
    if status in (401, 403) or (status in (None, 400) and _LOGIN.search(text)):
        return Failure(error=text, fatal=f"pi is not logged in, or its key is refused: {LOGIN_REMEDY}")
    if status == 404 or _MODEL.search(text):
        return Failure(error=text, fatal=_MODEL_REMEDY)
    passes = status is not None and (status in (408, 409, 425, 429) or status >= 500)
    return Failure(error=text, transient=retried or passes or (status is None and _PASSES.search(text) is not None))


def pending_failure(message: str) -> Failure:
    """What a run that ended while pi waited to try again had met."""
    failure = reported_failure(message, retried=True)
    return Failure(
        error=one_line(f"still retrying when it ended: {failure.error}"), fatal=failure.fatal, transient=failure.transient
    )


def silent_failure(exit_code: int, stderr: str) -> Failure:
    """A run whose stream has no end: its first words on standard error that are no warning, else its exit code."""
    lines = [line.strip() for line in stderr.split("\n") if line.strip() and not line.startswith("Warning:")]
    said = next((line for line in lines if _says_why(line)), lines[0] if lines else "")
    if exit_code == 0 or not said:
        where = "" if exit_code == 0 else f" (exit code {exit_code})"
        return Failure(error=f"the stream ended without an agent_settled event{where}")
    if _OPTION.search(said):
        return Failure(error=one_line(said), fatal=_UPDATE_REMEDY)
    if _NODE.search(stderr):
        return Failure(error=one_line(f"exit code {exit_code}: {said}"), fatal=NODE_REMEDY)
    failure = reported_failure(said.removeprefix("Error: "))
    return Failure(error=one_line(f"exit code {exit_code}: {failure.error}"), fatal=failure.fatal, transient=failure.transient)


def needs_other_node(stderr: str) -> bool:
    """Whether Node itself could not load pi (recorded: `enableCompileCache` on Node 20)."""
    return _NODE.search(stderr) is not None


def _status(text: str) -> int | None:
    match = _STATUS.match(text) or _CODE.search(text)
    return None if match is None else int(next(group for group in match.groups() if group))


def _says_why(line: str) -> bool:
    return any(pattern.search(line) for pattern in (_LOGIN, _MODEL, _OPTION, _LIMIT)) or _STATUS.match(line) is not None
