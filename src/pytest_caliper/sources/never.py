"""What is never installed with a skill, by name: what is private, what is a by-product, and what would give the answers away."""

from __future__ import annotations

import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

_NAMES = frozenset(
    {
        *(".git", ".hg", ".svn", ".jj"),
        *("node_modules", ".venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox"),
        *(".caliper", ".ds_store", "thumbs.db"),
    }
)
_PATTERNS = ("*.eval.yaml", "*.eval.yml", "evals.json", "*.cassettes", ".env*", "*.pyc", "*.pyo")
"""Specs (the skill-creator's too) and cassettes tell an agent how it is judged; `.env*` holds secrets, `.envrc` too."""


def is_never_installed(name: str) -> bool:
    """Whether a file or directory of this name stays behind, wherever it lies. Case does not matter: macOS has none."""
    folded = name.casefold()
    return folded in _NAMES or any(fnmatchcase(folded, pattern) for pattern in _PATTERNS)


def is_virtualenv(directory: Path) -> bool:
    """Whether a directory is a Python virtual environment, whatever its name."""
    return (directory / "pyvenv.cfg").is_file()


class ExcludedFiles:
    """Files and directories that a spec names, known by what they are: a link or another spelling does not hide them."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._ids: set[tuple[int, int]] = set()
        for path in paths:
            try:
                status = path.stat()
            except OSError:  # what is not there cannot be installed
                continue
            self._ids.add((status.st_dev, status.st_ino))

    def holds(self, status: os.stat_result) -> bool:
        """Whether this is the status (links followed) of an excluded file."""
        return (status.st_dev, status.st_ino) in self._ids
