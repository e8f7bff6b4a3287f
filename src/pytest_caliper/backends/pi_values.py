"""Credentials that pi's files name instead of hold: `$NAME`, `${NAME}` and `!command` (docs/providers.md of pi 1.6).

They are resolved for the user, in the user's own HOME, before an attempt begins: in the attempt's HOME a key helper would find
neither its files nor its login.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping

from pytest_caliper.backends.environment import host_home

Run = Callable[[str, Mapping[str, str]], "str | None"]
"""Runs a shell command in the host's environment: what it printed, trimmed; None when it failed or printed nothing."""

_REFERENCE = re.compile(r"\$(?:[$!]|\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMAND_SECONDS = 60.0
"""pi itself waits 10 s; a password manager may have to ask its user first."""


def resolve(value: str, env: Mapping[str, str], *, templates: bool, run: Run) -> str | None:
    """What `value` of auth.json or models.json stands for; None when a variable is unset or the command fails.

    `templates` is the grammar of pi 0.77 and later. Before, a value was a command, the bare name of a variable, or itself.
    """
    if value.startswith("!"):
        return run(value[1:], env)
    if not templates:
        return env.get(value) or value
    if missing_names(value, env):
        return None
    return _REFERENCE.sub(lambda match: _meaning(match, env), value)


def missing_names(value: str, env: Mapping[str, str]) -> list[str]:
    """Variables that a template needs and that are unset or empty."""
    if value.startswith("!"):
        return []
    names = [name for match in _REFERENCE.finditer(value) if (name := _variable(match)) is not None]
    return [name for name in dict.fromkeys(names) if not env.get(name)]


def literal(text: str, *, templates: bool) -> str:
    """`text` written so that pi takes it as it is. ValueError for what an old pi cannot be told."""
    if not templates:
        if text.startswith("!"):
            raise ValueError("a value that begins with an exclamation mark would be run as a command")
        return text
    escaped = text.replace("$", "$$")
    return f"${escaped}" if escaped.startswith("!") else escaped


def run_command(command: str, env: Mapping[str, str]) -> str | None:
    """Run `command` by `sh` in the user's environment and home."""
    try:
        done = subprocess.run(
            ("sh", "-c", command),
            cwd=host_home(env),
            env=dict(env),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() or None if done.returncode == 0 else None


class CachedRun:
    """Runs each command once for all attempts, and again when its answer may have been renewed. Thread-safe.

    A command that fails is asked again: its user may have unlocked what it needs.
    """

    def __init__(self, run: Run = run_command, *, now: Callable[[], float] = time.monotonic, keep_s: float = 600.0) -> None:
        self._run, self._now, self._keep_s = run, now, keep_s
        self._answers: dict[tuple[str, str], tuple[float, str]] = {}
        self._lock = threading.Lock()

    def __call__(self, command: str, env: Mapping[str, str]) -> str | None:
        key = (command, str(host_home(env)))
        with self._lock:
            known = self._answers.get(key)
            if known is not None and self._now() - known[0] <= self._keep_s:
                return known[1]
            answer = self._run(command, env)
            if answer is not None:
                self._answers[key] = (self._now(), answer)
            return answer


def _variable(match: re.Match[str]) -> str | None:
    """The variable that a reference names; None for an escape, and for braces around what is no name."""
    name = match[1] if match[1] is not None else match[2]
    return name if name is not None and _NAME.fullmatch(name) else None


def _meaning(match: re.Match[str], env: Mapping[str, str]) -> str:
    if (name := _variable(match)) is not None:
        return env[name]
    return match[0][1:] if match[0] in ("$$", "$!") else match[0]
