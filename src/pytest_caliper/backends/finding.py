"""Finds the program of an agent CLI and asks it for its version, without touching anything of the user's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_caliper.backends.environment import base_environment
from pytest_caliper.contracts import CliInfo, EngineError, Workspace

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)\S*")
_ANSWER_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A CLI as it is looked for."""

    title: str
    """For people: `Gemini CLI`."""
    program: str
    """Its name on PATH."""
    variable: str
    """The environment variable that forces a binary."""
    oldest: tuple[int, int, int]
    """The first version that will do."""
    install: str
    """The command that installs it, and updates it unless there is another one."""
    update: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """What it must be told so that asking for its version does nothing else."""
    explain: Callable[[str], str | None] = lambda stderr: None  # noqa: ARG005
    """The remedy for a program that failed with this on standard error; None where it has none of its own."""


def find_cli(wanted: Wanted, env: Mapping[str, str]) -> CliInfo:
    """The program that `env` names or has on PATH. Raises EngineError: not there, does not start, or too old."""
    path = find_program(wanted, env)
    printed = _version_output(wanted, path, env)
    match = _VERSION.search(printed)
    if match is None:
        raise EngineError(f"{path} --version printed no version: is it {wanted.title}? Otherwise {_remedy(wanted)}")
    if tuple(map(int, match.groups())) < wanted.oldest:
        floor, update = ".".join(map(str, wanted.oldest)), wanted.update or wanted.install
        raise EngineError(f"{wanted.title} {match[0]} ({path}) is too old, {floor} is needed: update it with `{update}`")
    return CliInfo(path=path, version=match[0])


def find_program(wanted: Wanted, env: Mapping[str, str]) -> Path:
    """Where the program is. Raises EngineError when it is nowhere, or the one that is forced cannot be run."""
    forced = env.get(wanted.variable)
    if forced:
        path = Path(forced).expanduser()
        if not path.is_file() or not os.access(path, os.X_OK):
            raise EngineError(f"{wanted.variable} is {forced}, which is no executable file: correct it, or unset it to use PATH")
        return path.absolute()
    found = shutil.which(wanted.program, path=env.get("PATH") or os.defpath)
    if found is None:
        raise EngineError(f"{wanted.title} is not installed: there is no `{wanted.program}` on PATH: {_remedy(wanted)}")
    return Path(found).absolute()


def _version_output(wanted: Wanted, path: Path, env: Mapping[str, str]) -> str:
    """What `--version` prints, asked in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="caliper-version-", ignore_cleanup_errors=True) as directory:
        place = Workspace.at(Path(directory))
        for needed in (place.home, place.work, place.tmp):
            needed.mkdir()
        try:
            done = subprocess.run(
                (str(path), "--version"),
                cwd=place.work,
                env={**base_environment(env, place), **wanted.environment},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_ANSWER_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(f"{path} does not start ({error}): {_remedy(wanted)}") from error
    if done.returncode != 0:
        stderr = done.stderr.decode("utf-8", "replace")
        words = stderr.strip().split("\n", 1)[0]
        remedy = wanted.explain(stderr) or _remedy(wanted)
        raise EngineError(f"{path} --version failed with exit code {done.returncode} ({words}): {remedy}")
    return (done.stdout if done.stdout.strip() else done.stderr).decode("utf-8", "replace")


def _remedy(wanted: Wanted) -> str:
    return f"install it with `{wanted.install}`, or name the binary in {wanted.variable}"
