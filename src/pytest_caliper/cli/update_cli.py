"""`caliper update-cli`: which agent CLIs are installed, which versions are the newest, and their own way to update."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_caliper.backends.registry import builtin_backends
from pytest_caliper.cli.output import suggest
from pytest_caliper.cli.parsing import described
from pytest_caliper.contracts import Backend, EngineError

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands

TIMEOUT_S = 60.0
UPDATE_TIMEOUT_S = 900.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Updater:
    """How a CLI is updated."""

    package: str | None
    """On npm; None where the newest version cannot be asked for."""
    command: tuple[str, ...] | None
    """Its own updater, after the binary's path for `{cli}`; None where it is left to its user."""
    advice: str = ""


UPDATERS: Mapping[str, Updater] = {
    "claude-code": Updater(package="@anthropic-ai/claude-code", command=("{cli}", "update")),
    "codex": Updater(package="@openai/codex", command=("npm", "install", "--global", "@openai/codex@latest")),
    "pi": Updater(
        package="@earendil-works/pi-coding-agent",
        command=("npm", "install", "--global", "@earendil-works/pi-coding-agent@latest"),
    ),
    "gemini": Updater(package="@google/gemini-cli", command=("npm", "install", "--global", "@google/gemini-cli@latest")),
    "opencode": Updater(package="opencode-ai", command=("{cli}", "upgrade")),
    "hermes": Updater(package=None, command=None, advice="hermes updates itself: run `hermes update`"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Status:
    backend: Backend
    path: str | None
    installed: str | None
    newest: str | None
    missing: str | None
    """Why there is none, with the remedy."""


_EPILOG = """\
Examples:
  caliper update-cli --check        what is installed, and what is the newest
  caliper update-cli claude-code    update that one

Exit status: 0; 1 when an update failed; 2 for a CLI that is not known.
Next: caliper run SPEC --baseline, since another version may do otherwise
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "update-cli",
        description="Show installed and newest versions of agent CLIs, and update those that are behind by their own means.",
        epilog=_EPILOG,
    )
    parser.add_argument("backend", nargs="?", metavar="BACKEND", help="one backend, such as claude-code (default: all)")
    parser.add_argument("--check", action="store_true", help="only show, update nothing")


def run(arguments: argparse.Namespace) -> int:
    return update_cli(arguments.backend, check_only=arguments.check)


def update_cli(name: str | None, *, check_only: bool) -> int:
    """Print a line per CLI; update what is behind unless `check_only`. -> 0, 1 when an update failed, 2 for an unknown name."""
    known = {backend.name: backend for backend in builtin_backends() if backend.name in UPDATERS}
    aliases = {alias: backend.name for backend in known.values() for alias in backend.aliases}
    if name is not None and aliases.get(name, name) not in known:
        sys.stderr.write(f"caliper: {name!r} is no agent CLI that can be looked at; use one of {', '.join(sorted(known))}\n")
        return 2
    chosen = list(known.values()) if name is None else [known[aliases.get(name, name)]]
    with ThreadPoolExecutor(max_workers=8) as threads:
        found = list(threads.map(_look, chosen))
    failed, waiting = False, list[str]()
    for status in found:
        sys.stdout.write(_line(status) + "\n")
        behind = status.installed is not None and status.newest is not None and status.installed != status.newest
        if behind and not check_only:
            failed |= not _update(status)
        elif behind:
            waiting.append(status.backend.name)
    if waiting:
        suggest("caliper update-cli", *waiting[:1])
    return int(failed)


def _look(backend: Backend) -> _Status:
    try:
        cli = backend.find(os.environ)
    except EngineError as error:
        return _Status(backend=backend, path=None, installed=None, newest=_newest(backend.name), missing=str(error))
    return _Status(backend=backend, path=str(cli.path), installed=cli.version, newest=_newest(backend.name), missing=None)


def _newest(name: str) -> str | None:
    """By npm; None where npm or the registry does not answer."""
    package, npm = UPDATERS[name].package, shutil.which("npm")
    if package is None or npm is None:
        return None
    try:
        done = subprocess.run(
            (npm, "view", package, "version"),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.split()
    return lines[-1] if done.returncode == 0 and lines else None


def _line(status: _Status) -> str:
    name, advice = status.backend.name, UPDATERS[status.backend.name].advice
    newest = "newest unknown" if status.newest is None else f"newest {status.newest}"
    if status.installed is None:
        return f"{name}: not usable ({newest}): {status.missing}"
    state = f"{newest}" if status.newest != status.installed else "up to date"
    return f"{name}: {status.installed} ({state}), {status.path}" + (f"; {advice}" if advice else "")


def _update(status: _Status) -> bool:
    """Run the CLI's own updater, its output shown. -> whether it succeeded."""
    command = UPDATERS[status.backend.name].command
    if command is None or status.path is None:
        return True
    words = tuple(status.path if word == "{cli}" else word for word in command)
    sys.stdout.write(f"  updating: {' '.join(words)}\n")
    sys.stdout.flush()
    try:
        done = subprocess.run(words, timeout=UPDATE_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.stdout.write(f"  failed: {error}\n")
        return False
    if done.returncode != 0:
        sys.stdout.write(f"  failed with status {done.returncode}\n")
    return done.returncode == 0
