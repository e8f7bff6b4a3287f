"""What went wrong, by Gemini CLI's own result and exit code, and what the user can do about it.

Only what the CLI itself says decides: the `error` of its result event, its exit code (an HTTP status modulo 256, or one of its
own numbers), the class of the error in its last report on standard error. The agent's words never do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.gemini_home import LOGIN_REMEDY
from pytest_caliper.backends.transcript import one_line

_LOGIN = f"Gemini CLI is not logged in, or its key is refused: {LOGIN_REMEDY}"
_MODEL = "this account cannot use that model: name another one as gemini:MODEL, or check GOOGLE_GEMINI_BASE_URL"
_QUOTA = "the account's quota for this model is used up: run again when it is renewed, name another model, or use another key"

_STATUSES = {status & 0xFF: status for status in (400, 401, 403, 404, 429, 499, 500, 502, 503, 504)}
"""Exit code -> HTTP status, as recorded: 401 -> 145, 429 -> 173, 500 -> 244, 503 -> 247."""
_AUTHENTICATION, _INPUT, _CONFIGURATION, _UNTRUSTED = 41, 42, 52, 55
"""The CLI's own exit codes."""
_TRANSIENT = frozenset({429, 499, 500, 502, 503, 504, 529})
_CONNECTION = re.compile(r"\[API Error: (terminated|fetch failed|exception TypeError: fetch failed|.*socket hang up|.*ECONN)")
_BAD_KEY = re.compile(r"API[ _]key (not valid|expired|not found|was reported as leaked)|API_KEY_INVALID", re.IGNORECASE)
_USED_UP = re.compile(r"exhausted your daily quota|limit:\s*0(?![\d.])|RESOURCE_EXHAUSTED.*per ?day", re.IGNORECASE)
_BUSY = re.compile(r"exhausted your capacity|capacity exceeded|MODEL_CAPACITY_EXHAUSTED|overloaded", re.IGNORECASE)
_REPORT = re.compile(r"^Error when talking to Gemini API Full report available at: .*?\.json _?(\w+): ", re.MULTILINE)
_UNKNOWN_OPTION = re.compile(r"^Unknown arguments?: (.+)$", re.MULTILINE)
_NOISE = re.compile(
    r"^(YOLO mode is enabled|Warning: |Ripgrep is not available|\[STARTUP\]|Approval mode overridden|Loaded cached|\(node:)"
)


def reported_failure(result: Mapping[str, Any], *, warning: str | None, exit_code: int, stderr: str) -> Failure | None:
    """What a `result` event says went wrong; None when it is a finished answer.

    `warning` is the last `error` event of severity `error`: an empty or blocked reply is reported there alone (from its source).
    """
    error = result.get("error")
    if result.get("status") == "success" and error is None:
        return None
    details = error if isinstance(error, Mapping) else {}
    kind, text = str(details.get("type") or ""), str(details.get("message") or warning or "")
    classes = _REPORT.findall(stderr)
    return classified(text, status=_status(text, exit_code), kind=classes[-1] if kind in ("", "unknown") and classes else kind)


def silent_failure(exit_code: int, stderr: str) -> Failure:
    """A run that printed no result: its words on standard error, without the usual noise, else its exit code."""
    if exit_code == 0:
        return Failure(error="the stream ended without a result event")
    if unknown := _UNKNOWN_OPTION.search(stderr):
        remedy = "this version of Gemini CLI does not know an option: update it with `npm install -g @google/gemini-cli`"
        return Failure(error=one_line(unknown[0]), fatal=remedy)
    lines = [line for line in stderr.split("\n") if line.strip() and not _NOISE.match(line)]
    words = lines[0] if lines else "the stream ended without a result event"
    error = one_line(f"exit code {exit_code}: {words}")
    if exit_code == _AUTHENTICATION:
        return Failure(error=error, fatal=_LOGIN)
    if exit_code in (_CONFIGURATION, _UNTRUSTED):
        return Failure(error=error, fatal=one_line(words))
    status = _STATUSES.get(exit_code)
    return Failure(error=error) if status is None else classified(words, status=status)


def classified(text: str, *, status: int | None, kind: str = "") -> Failure:
    """The failure that a message, an HTTP status and the class of an error stand for."""
    what = kind if kind not in ("", "unknown", "ApiError", "Error") else "error"
    where = f" (HTTP {status})" if status is not None else ""
    error = one_line(f"{what}{where}: {_plain(text)}" if text else f"{what}{where}")
    if kind == "FatalAuthenticationError" or status in (401, 403) or _BAD_KEY.search(text):
        return Failure(error=error, fatal=_LOGIN)
    if kind == "ModelNotFoundError" or status == 404:
        return Failure(error=error, fatal=_MODEL)
    busy = _BUSY.search(text) is not None
    if not busy and (kind == "TerminalQuotaError" or (status == 429 and _USED_UP.search(text))):
        return Failure(error=error, fatal=_QUOTA)
    passing = busy or status in _TRANSIENT or kind == "RetryableQuotaError" or _CONNECTION.match(text) is not None
    return Failure(error=error, transient=passing)


def _status(text: str, exit_code: int) -> int | None:
    """The HTTP status: of the provider's own JSON in the message where it is there, else by the exit code."""
    code = _body(text).get("code")
    return code if isinstance(code, int) and not isinstance(code, bool) else _STATUSES.get(exit_code)


def _plain(text: str) -> str:
    """The provider's own words instead of its JSON."""
    message = _body(text).get("message")
    if isinstance(message, str) and message:
        return message
    return re.sub(r"\[API Error: (.*?)\](?=\n|$)", r"\1", text, count=1, flags=re.DOTALL).split("\n", 1)[0]


def _body(text: str) -> Mapping[str, Any]:
    """`error` of the JSON in `[API Error: {...}]`; empty when there is none."""
    start = text.find("{")
    if start < 0 or not text.startswith("[API Error: "):
        return {}
    try:
        data, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError):
        return {}
    error = data.get("error") if isinstance(data, Mapping) else None
    return error if isinstance(error, Mapping) else {}
