"""The agent skills that come with the package, and what putting them into a directory of skills would change there.

A record beside each installed skill holds the digests of what was written, so that a file that its user has edited is told from
one that an older version wrote.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pytest_caliper import __version__
from pytest_caliper.sources.never import is_never_installed

NAMES = ("evaluate-skill", "grill-skill")
RECORD = ".pytest-caliper.json"
_MAIN = "SKILL.md"
_MOST_BYTES = 1_000_000
"""Of a record; a longer one is none of ours."""

Files = Mapping[str, bytes]
"""A skill's files by their paths below it, with forward slashes."""
State = Literal["new", "same", "outdated", "changed", "occupied"]


class NoSkills(Exception):
    """The package lies here without its skills."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What installing one skill does to its directory."""

    name: str
    target: Path
    state: State
    """`changed`: somebody has edited it. `occupied`: something else than a directory of its own stands there."""
    write: tuple[str, ...] = ()
    """Files that are missing or older, or with force any that differ, by their paths below `target`."""
    remove: tuple[str, ...] = ()
    """Files that an older version wrote and this one no longer has."""
    changed: tuple[str, ...] = ()
    """Files with somebody's edits."""
    link: str | None = None
    """Where `target` leads, when it is a link."""


def source_of(name: str) -> Path:
    """The directory of a skill of ours: in the checkout that the package runs from, else in the package. Raises NoSkills."""
    package = Path(__file__).resolve().parents[1]
    places = [package / "_skills" / name]
    if package.parent.name == "src":
        places.insert(0, package.parents[1] / "skills" / name)
    for place in places:
        if (place / _MAIN).is_file():
            return place
    raise NoSkills(f"the skill {name} is not in {places[-1].parent}: install pytest-caliper again")


def files_of(source: Path) -> Files:
    """What of a skill is installed; its spec and recordings are not. Raises OSError."""
    found = {}
    for directory, directories, names in os.walk(source):
        directories[:] = sorted(name for name in directories if not is_never_installed(name))
        for name in sorted(names):
            path = Path(directory, name)
            if not is_never_installed(name) and name != RECORD:
                found[path.relative_to(source).as_posix()] = path.read_bytes()
    return found


def plan(name: str, files: Files, directory: Path, *, force: bool) -> Plan:
    """What installing `files` as `directory/name` takes. Changes nothing. Raises OSError for what cannot be looked at."""
    target = directory / name
    link = str(target.readlink()) if target.is_symlink() else None
    if link is not None or (target.exists() and not target.is_dir()):
        if target.is_dir() and all(_bytes(target / path) == data for path, data in files.items()):
            return Plan(name=name, target=target, state="same", link=link)
        replaced = force and link is not None
        return Plan(name=name, target=target, state="occupied", write=tuple(files) if replaced else (), link=link)
    if not target.exists():
        return Plan(name=name, target=target, state="new", write=tuple(files))
    return _update(name, files, target, force=force)


def _update(name: str, files: Files, target: Path, *, force: bool) -> Plan:
    recorded = _recorded(target)
    changed, write = [], []
    for path, data in files.items():
        there = _bytes(target / path)
        if there == data:
            continue
        missing = there is None and not os.path.lexists(target / path)
        as_written = there is not None and _digest(there) == recorded.get(path)
        if (missing or as_written) and not _through_a_link(target, path):
            write.append(path)
        else:
            changed.append(path)
    gone = [path for path, digest in recorded.items() if path not in files]
    remove = [path for path in gone if (old := _bytes(target / path)) is not None and _digest(old) == recorded[path]]
    if changed and not force:
        return Plan(name=name, target=target, state="changed", changed=tuple(changed))
    state: State = "changed" if changed else "outdated" if write or remove else "same"
    write = [path for path in files if path in {*write, *changed}]
    return Plan(name=name, target=target, state=state, write=tuple(write), remove=tuple(remove), changed=tuple(changed))


def carry_out(made: Plan, files: Files) -> None:
    """Do what a plan says. The record comes last: an interrupted installation is finished by the next. Raises OSError."""
    from pytest_caliper.runs.files import written_whole

    if not made.write and not made.remove:
        return
    if made.link is not None:
        made.target.unlink()
    for path in made.write:
        place = made.target / path
        _without_links(made.target, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(place, overwrite=True) as out:
            out.write(files[path])
    for path in made.remove:
        (made.target / path).unlink(missing_ok=True)
        _remove_empty((made.target / path).parent, made.target)
    record = {"version": __version__, "files": {path: _digest(data) for path, data in files.items()}}
    with written_whole(made.target / RECORD, overwrite=True) as out:
        out.write(json.dumps(record, indent=2).encode() + b"\n")


def _recorded(target: Path) -> Mapping[str, str]:
    """The digests of what was written last; empty where nothing sound says so."""
    data = _bytes(target / RECORD)
    if data is None or len(data) > _MOST_BYTES:
        return {}
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    files = record.get("files") if isinstance(record, dict) else None
    if not isinstance(files, dict):
        return {}
    return {path: digest for path, digest in files.items() if isinstance(digest, str) and _is_below(path)}


def _is_below(path: str) -> bool:
    return bool(path) and "\0" not in path and not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _through_a_link(target: Path, path: str) -> bool:
    return any((target / part).is_symlink() for part in _parts(path))


def _without_links(target: Path, path: str) -> None:
    """Take links out of the way, so that nothing is written to where they lead."""
    for part in reversed(_parts(path)):
        if (target / part).is_symlink():
            (target / part).unlink()


def _parts(path: str) -> list[PurePosixPath]:
    """A relative path and the directories above it, without the top."""
    return [PurePosixPath(path), *list(PurePosixPath(path).parents)[:-1]]


def _remove_empty(directory: Path, top: Path) -> None:
    while directory != top:
        with contextlib.suppress(OSError):
            directory.rmdir()
        directory = directory.parent
