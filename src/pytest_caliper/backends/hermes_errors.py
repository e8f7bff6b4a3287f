"""What went wrong, by Hermes's own words, and what the user can do about it (recorded from 0.19.0).

Hermes has no error codes. When its usage file says that a run failed, then what it printed in place of an answer, or gave as
`failure`, is its own text, in a fixed form for errors of the provider: `HTTP 429: ...`. Without that flag the text is the agent's
and says nothing here.
"""

from __future__ import annotations

import re

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.transcript import one_line

LOGIN_REMEDY = "run `hermes model` to choose a provider and log in, or correct its key in ~/.hermes/.env"
_BILLING_REMEDY = "the provider's account has no credit left: add some, or choose another provider with `hermes model`"
_LIMIT_REMEDY = "the account's limit is reached: run again later, or choose another provider with `hermes model`"
_MODEL_REMEDY = "the provider does not serve that model: name another one as hermes:PROVIDER/MODEL, or run `hermes model`"

_STATUS = re.compile(r"\bHTTP (\d{3})\b:?")
_CREDIT = re.compile(
    r"insufficient[_ ](quota|credits?|funds|balance)|credit balance|out of credits|payment required|billing", re.I
)
_LIMIT = re.compile(r"spend(ing)? (cap|limit)|usage limit|(daily|weekly|monthly) (limit|quota)|exceeded your current quota", re.I)
_MODEL = re.compile(
    r"model\b.*\b(does not exist|not found|is not (a valid|supported|available))|no such model|unknown model", re.I
)
_LOGGED_OUT = re.compile(r"no inference provider configured|not logged in|re-?authenticate|relogin|missing refresh_token", re.I)
_PACKAGE = re.compile(r"package is required|No module named", re.I)
_PASSING = re.compile(
    r"overloaded|rate limit|too many requests|timed? ?out|connection (error|reset|refused|aborted|dropped)|temporarily|"
    r"empty stream|upstream error|remote end closed|incomplete (chunked )?read|peer closed",
    re.I,
)
_UNKNOWN_OPTION = re.compile(r"unrecognized arguments: (\S+)")


def told_failure(text: str) -> Failure:
    """What Hermes's own `text` on a failed run means."""
    error = one_line(text) or "Hermes says that the run failed, and not why"
    found = _STATUS.search(text)
    status = int(found[1]) if found else None
    fatal = _fatal(status, text)
    passing = (status in (408, 429) or status >= 500) if status is not None else bool(_PASSING.search(text))
    return Failure(error=error, fatal=fatal, transient=fatal is None and passing)


def _fatal(status: int | None, text: str) -> str | None:
    if status is None and _PACKAGE.search(text):
        return f"{one_line(text)} (into the environment of Hermes)"
    if status == 402 or (status in (None, 400, 403, 429) and _CREDIT.search(text)):
        return _BILLING_REMEDY
    if status in (None, 400, 403, 429) and _LIMIT.search(text):
        return _LIMIT_REMEDY
    if status in (401, 403) or (status is None and _LOGGED_OUT.search(text)):
        return f"Hermes is not logged in, or its key is refused: {LOGIN_REMEDY}"
    if status == 404 or (status in (None, 400) and _MODEL.search(text)):
        return _MODEL_REMEDY
    return None


def silent_failure(exit_code: int, stderr: str) -> Failure:
    """A run that left no usage file: its last words on standard error, else its exit code."""
    lines = [line for line in stderr.split("\n") if line.strip()]
    if unknown := _UNKNOWN_OPTION.search(stderr):
        return Failure(
            error=one_line(lines[-1]), fatal=f"this version of Hermes does not know {unknown[1]}: update it with `hermes update`"
        )
    if lines:
        return Failure(error=one_line(f"exit code {exit_code}: {lines[-1]}"))
    return Failure(error=f"Hermes ended without a usage report (exit code {exit_code})")
