"""Puts a skill's files where an agent CLI discovers them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from pytest_caliper.contracts import EngineError, Skill


def install_skill(skill: Skill, destination: Path) -> None:
    """Copy the skill's files to `destination`: its directory for a directory, the `.md` itself for a command.

    The copy has the source's modes, writable for its owner, and is compared with the snapshot, so that every attempt of a run
    measures the same skill. Raises EngineError when a file cannot be copied or has changed since.
    """
    for relative in skill.files:
        source = skill.root / relative
        target = destination if skill.kind == "command" else destination / relative
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            target.chmod(source.stat().st_mode & 0o777 | 0o600)
            digest = f"sha256:{hashlib.sha256(target.read_bytes()).hexdigest()}"
        except OSError as error:
            raise EngineError(f"skill {skill.name!r}: cannot install {relative}: {error.strerror or error}") from error
        expected = skill.snapshot.files.get(relative, {}).get("hash", digest)
        if digest != expected:
            raise EngineError(f"skill {skill.name!r}: {source} changed while the run was under way: start the run again")
