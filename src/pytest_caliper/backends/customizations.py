"""The user's own setup in an attempt, on request: skills, memories, rules, settings. Never MCP servers, never sessions."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_caliper.contracts import EngineError


@dataclass(frozen=True, kw_only=True, slots=True)
class Customization:
    """One file or directory of the user's that an agent CLI reads."""

    source: Path
    """On the host; need not exist."""
    target: str
    """Relative to the attempt's home."""
    replaces: bool = False
    """True where the attempt has a shortened copy of the same file."""


def carry_customizations(customizations: Iterable[Customization], home: Path) -> None:
    """Copy them below an attempt's `home`.

    What the attempt has already goes first, unless `replaces`: the skill under test is never exchanged for the user's copy of it.
    Links are followed, so that the attempt cannot write into the user's files. Raises EngineError for what cannot be copied.
    """
    for custom in customizations:
        for path in _files(custom.source):
            relative = path.relative_to(custom.source)
            target = home / custom.target / relative
            if target.exists() and not custom.replaces:
                continue
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
                target.chmod(path.stat().st_mode & 0o700 | 0o600)
            except OSError as error:
                raise EngineError(f"--caliper-user-customizations: {path} cannot be copied: {error.strerror or error}") from error


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return (path,)
    return (entry for entry in sorted(path.rglob("*")) if entry.is_file()) if path.is_dir() else ()
