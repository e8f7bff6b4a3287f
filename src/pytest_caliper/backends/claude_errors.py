"""What went wrong, by Claude Code's own structured fields, and what the user can do about it.

Only what the CLI itself says decides: the `error` word and status of its synthetic message and of the result event. The agent's
words never do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.transcript import one_line

LOGIN_REMEDY = (
    "log in with `claude` and then /login, or set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN from `claude setup-token`"
)
_REMEDIES = {
    "authentication_failed": f"Claude Code is not logged in, or its key is refused: {LOGIN_REMEDY}",
    "billing_error": "the Anthropic account has no credit left: add some, or use another key",
    "model_not_found": "this account cannot use that model: name another one as claude-code:MODEL, or check ANTHROPIC_BASE_URL",
}
_STATUS_WORDS = {401: "authentication_failed", 403: "authentication_failed", 404: "model_not_found"}
_TRANSIENT = frozenset({"rate_limit", "server_error", "overloaded"})
"""`server_error` is also what Claude Code calls a connection that was lost (recorded)."""
_UNKNOWN_OPTION = re.compile(r"error: unknown option '([^']+)'")


def reported_failure(
    result: Mapping[str, Any], *, code: str | None = None, limit: Mapping[str, Any] | None = None
) -> Failure | None:
    """What a `result` event says went wrong; None when it is a finished answer.

    `subtype` is "success" even for failures (recorded), so `is_error` and `terminal_reason` count too. `code` is the `error` word
    of the synthetic message and `limit` a refused `rate_limit_info`, where the stream had them.
    """
    reason, subtype = result.get("terminal_reason"), result.get("subtype")
    if result.get("is_error") is not True and subtype in (None, "success") and reason in (None, "completed"):
        return None
    text = str(result.get("result") or "; ".join(map(str, _errors(result))) or "")
    status = result.get("api_error_status")
    code = code or _code(status, text)
    if code == "rate_limit" and (limit is not None or text.startswith("You've hit your")):
        return Failure(error=one_line(text or "usage limit reached"), fatal=_limit_remedy(limit, text))
    what = code or next((str(word) for word in (subtype, reason) if word not in (None, "success", "completed")), "error")
    where = f" (HTTP {status})" if isinstance(status, int) else ""
    error = one_line(f"{what}{where}: {text}" if text else f"{what}{where}")
    return Failure(error=error, fatal=_REMEDIES.get(what), transient=_may_pass(what, status))


def pending_failure(retry: Mapping[str, Any] | None) -> Failure | None:
    """What a run that ended while it was retrying had met, by its last `system/api_retry` event."""
    if retry is None:
        return None
    status = retry.get("error_status")
    code = str(retry.get("error") or _code(status, "") or "error")
    where = f" (HTTP {status})" if isinstance(status, int) else ""
    error = one_line(f"{code}{where}: still retrying when it ended")
    return Failure(error=error, fatal=_REMEDIES.get(code), transient=_may_pass(code, status))


def silent_failure(exit_code: int, stderr: str) -> Failure:
    """A run that printed no result: its last words on standard error, else its exit code."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    if unknown := _UNKNOWN_OPTION.search(stderr):
        return Failure(
            error=one_line(unknown[0]),
            fatal=f"this version of Claude Code does not know {unknown[1]}: update it with `claude update`",
        )
    if exit_code == 0:
        return Failure(error="the stream ended without a result event")
    if lines:
        return Failure(error=one_line(f"exit code {exit_code}: {lines[-1]}"))
    return Failure(error=f"the stream ended without a result event (exit code {exit_code})")


def _may_pass(code: str, status: Any) -> bool:
    return code in _TRANSIENT or (isinstance(status, int) and (status == 429 or status >= 500))


def _errors(result: Mapping[str, Any]) -> list[Any]:
    errors = result.get("errors")
    return errors if isinstance(errors, list) else []


def _code(status: Any, text: str) -> str | None:
    """The `error` word for output that has none (the judge's JSON): by status, else by the CLI's fixed texts."""
    if isinstance(status, int) and status in _STATUS_WORDS:
        return _STATUS_WORDS[status]
    if text.startswith("Not logged in"):
        return "authentication_failed"
    if text.startswith("Credit balance is too low"):
        return "billing_error"
    return "rate_limit" if status == 429 else None


def _limit_remedy(limit: Mapping[str, Any] | None, text: str) -> str:
    """When to come back: the reset time of the event, else the CLI's own sentence."""
    seconds = (limit or {}).get("resetsAt")
    if isinstance(seconds, (int, float)) and 0 < seconds < 1e11:
        when = datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        kind = str((limit or {}).get("rateLimitType") or "usage").replace("_", " ")
        return f"the account's {kind} limit is reached until {when}: run again then, or use an API key"
    return one_line(f"{text or 'the usage limit is reached'}: run again later, or use an API key")
