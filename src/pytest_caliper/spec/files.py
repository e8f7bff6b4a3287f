"""Paths that a spec names, and which files must never be installed with a skill."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_caliper.spec.model import Spec


def resolve(directory: Path, text: str) -> Path:
    """The path `text`, relative to `directory`. Only what stands before a `..` is followed, as the kernel does it.

    Links elsewhere are kept, so that a skill is known by the name it is linked under.
    """
    path = directory
    for part in Path(text).parts:
        path = Path(os.path.realpath(path)).parent if part == ".." else path / part
    return path


def is_file(path: Path) -> bool:
    """Like `Path.is_file`, and False, not an error, for what cannot be looked at (a name too long, a closed directory)."""
    return os.path.isfile(path)  # noqa: PTH113


def is_directory(path: Path) -> bool:
    """Like `Path.is_dir`, and False, not an error, for what cannot be looked at."""
    return os.path.isdir(path)  # noqa: PTH112


def files_named(spec: Spec) -> frozenset[Path]:
    """The spec itself, its assert scripts, and what `command:` and `args:` of its MCP servers name with `./` or `../`.

    Absolute paths, each also with its links followed; they need not exist.
    """
    named = {spec.path}
    named.update(task.assertion.path for task in spec.tasks if task.assertion is not None)
    for server in spec.mcp:
        words = (server.command or "", *server.args)
        named.update(resolve(spec.directory, word) for word in words if word.startswith(("./", "../")))
    return frozenset(named | {Path(os.path.realpath(path)) for path in named})
