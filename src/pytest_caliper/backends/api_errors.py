"""What went wrong with a model API, by the status and the code of its answer, and what the user can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_caliper.backends.api_vendors import Vendor
from pytest_caliper.backends.failure import Failure
from pytest_caliper.backends.transcript import one_line

EXTRA = "pytest-caliper[api]"
_CREDIT = frozenset({"billing_error", "insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_CREDIT_TEXT = "Your credit balance is too low"
"""Anthropic's API says this with the status and the type of any bad request: only the words tell it apart."""
_CAP_TEXT = "You have reached your specified"
"""`... API usage limits`, `... workspace API usage limits`: the same."""
_MODEL = frozenset({"model_not_found", "not_found_error"})


def reported_failure(error: Mapping[str, Any], vendor: Vendor) -> Failure:
    """What the `error` of a reply of `api_client` means."""
    kind, message = str(error.get("kind")), str(error.get("message") or "no message")
    if kind == "status":
        return _refused(error, message, vendor)
    if kind == "import":
        return Failure(error=one_line(message), fatal=f"repair it with `pip install --force-reinstall '{EXTRA}'`")
    if kind == "setup":
        remedy = f"{vendor.title} cannot be reached like this: check {vendor.base_url} and the proxy variables"
        return Failure(error=one_line(message), fatal=remedy)
    if kind == "connection":
        return Failure(error=one_line(message), transient=True)
    if kind == "reply":
        return Failure(error=one_line(f"{message}: check {vendor.base_url}"))
    return Failure(error=one_line(message))


def silent_failure(exit_code: int, stderr: str) -> Failure:
    """A client that printed no reply: its last words on standard error, else its exit code."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    words = f": {lines[-1]}" if lines else ""
    return Failure(error=one_line(f"the API client ended without a reply (exit code {exit_code}){words}"))


def _refused(error: Mapping[str, Any], message: str, vendor: Vendor) -> Failure:
    status, code = error.get("status"), str(error.get("code") or "error")
    line = one_line(f"{code} (HTTP {status}): {message}")
    if remedy := _remedy(status, code, message, vendor):
        return Failure(error=line, fatal=remedy)
    return Failure(error=line, transient=isinstance(status, int) and (status in (408, 409, 429) or status >= 500))


def _remedy(status: Any, code: str, message: str, vendor: Vendor) -> str | None:
    if message.startswith(_CAP_TEXT):
        return one_line(f"{message} Raise the limit in the console, or use another key")
    if status == 402 or code in _CREDIT or message.startswith(_CREDIT_TEXT):
        return f"the account of {vendor.keys[0]} has no credit left: add some, or use another key"
    if status == 404 or code in _MODEL:
        return f"this key has no such model: name another one as {vendor.backend}:MODEL, or check {vendor.base_url}"
    if status in (401, 403):
        return f"{vendor.title} refuses the key: export one that works as {vendor.keys[0]}, or check {vendor.base_url}"
    return None
