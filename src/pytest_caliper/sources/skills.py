"""From what a spec names to skills that can be installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_caliper.contracts import Skill
from pytest_caliper.sources import git
from pytest_caliper.sources.frontmatter import is_skill_name, skill_name
from pytest_caliper.sources.never import ExcludedFiles
from pytest_caliper.sources.selection import MAX_BYTES, SelectionError, select
from pytest_caliper.sources.snapshot import take_snapshot
from pytest_caliper.spec.model import Diagnostic, SkillRef, Spec, SpecError

SKILL_FILE = "SKILL.md"


def resolve_skills(spec: Spec, *, exclude: frozenset[Path], project: Path) -> tuple[tuple[Skill, ...], tuple[Diagnostic, ...]]:
    """-> (the spec's skills in its order, warnings). `exclude` are absolute files that the spec names.

    Raises SpecError with every skill that cannot be installed, and for two that would be installed under one name.
    """
    skills: list[Skill] = []
    warnings: list[Diagnostic] = []
    mistakes: list[Diagnostic] = []
    lines: dict[str, int] = {}
    for ref in spec.skills:
        try:
            skill, said = resolve_skill(ref, exclude=exclude, project=project, spec_path=spec.path)
        except SpecError as error:
            mistakes.extend(error.diagnostics)
            continue
        folded = skill.name.casefold()
        if folded in lines:
            message = f"a second skill named {skill.name!r} (the first: line {lines[folded]}); rename one or remove it"
            mistakes.append(Diagnostic(path=spec.path, line=ref.line, message=message))
        lines.setdefault(folded, ref.line)
        skills.append(skill)
        warnings.extend(said)
    if mistakes:
        raise SpecError(tuple(mistakes))
    return tuple(skills), tuple(warnings)


def resolve_skill(
    ref: SkillRef, *, exclude: frozenset[Path], project: Path, spec_path: Path
) -> tuple[Skill, tuple[Diagnostic, ...]]:
    """The skill that a spec names, and warnings about it. Raises SpecError at the reference's line."""
    warnings: list[Diagnostic] = []

    def diagnostic(message: str) -> Diagnostic:
        return Diagnostic(path=spec_path, line=ref.line, message=message)

    try:
        source = _locate(ref.path)
        name = _name(source, lambda message: warnings.append(diagnostic(message)))
        files = _files(source, {*exclude, spec_path}, lambda message: warnings.append(diagnostic(message)))
        snapshot = take_snapshot(name=name, kind=source.kind, root=source.root, main=source.main, files=files, project=project)
    except _Refused as error:
        raise SpecError((diagnostic(str(error)),)) from error
    except OSError as error:
        raise SpecError((diagnostic(f"skill {ref.path.name} cannot be read: {error.strerror}"),)) from error
    return Skill(name=name, root=source.root, kind=source.kind, files=files, snapshot=snapshot), tuple(warnings)


class _Refused(Exception):
    """The skill cannot be installed. The text is the diagnostic's message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    root: Path
    """Real path: no link in it."""
    main: str
    """`SKILL.md`, or the command's file."""
    kind: Literal["directory", "command"]
    label: str
    """The name of what the spec points to, for a skill without a name of its own."""


def _locate(path: Path) -> _Source:
    if path.is_dir():
        return _directory(path)
    if not path.exists():
        raise _Refused(f"skill {path} does not exist; check the path")
    if path.name.lower() == SKILL_FILE.lower():
        return _directory(path.parent)
    if not path.is_file() or path.suffix.lower() != ".md":
        raise _Refused(f"skill {path.name} is neither a {SKILL_FILE}, nor a directory with one, nor a command's .md file")
    root = path.parent.resolve()
    if path.is_symlink() and path.resolve().parent != root:
        raise _Refused(f"the link {path.name} leads out of its directory; name the file itself")
    return _Source(root=root, main=path.name, kind="command", label=path.stem)


def _directory(path: Path) -> _Source:
    root = path.resolve()
    names = os.listdir(root)  # noqa: PTH208  the names as they are written, also where case does not matter
    if SKILL_FILE not in names:
        other = next((name for name in sorted(names) if name.lower() == SKILL_FILE.lower()), None)
        if other is not None:
            raise _Refused(f"skill directory {root.name} has {other}; agents look for {SKILL_FILE}: rename it")
        raise _Refused(f"skill directory {root.name} holds no {SKILL_FILE}")
    label = root.name if path.name in {"", "."} or ".." in path.parts else path.name
    return _Source(root=root, main=SKILL_FILE, kind="directory", label=label)


def _name(source: _Source, warn: Callable[[str], None]) -> str:
    if source.kind == "command":
        return source.label
    main = source.root / source.main
    if not main.is_file():
        raise _Refused(f"{source.label}/{SKILL_FILE} is no file")
    try:
        name = skill_name(main.read_bytes())
    except ValueError as error:
        raise _Refused(f"{source.label}/{SKILL_FILE} {error}") from error
    if name is not None:
        return name
    if not source.label:
        raise _Refused(f"{SKILL_FILE} has no `name:`, and its directory has no name to use; add `name:` to its frontmatter")
    also = "" if is_skill_name(source.label) else ", which is no Agent Skill name: some agents will not load it"
    warn(f"{source.label}/{SKILL_FILE} has no `name:` in its frontmatter; installed as {source.label!r}{also}; add a name")
    return source.label


def _files(source: _Source, exclude: set[Path], warn: Callable[[str], None]) -> tuple[str, ...]:
    if source.kind == "command":
        if (size := (source.root / source.main).stat().st_size) > MAX_BYTES:
            raise _Refused(f"command {source.main} has {size:,} bytes, the limit is {MAX_BYTES:,}")
        return (source.main,)
    try:
        chosen = select(source.root, exclude=ExcludedFiles(exclude), ignored=_ignored(source, warn), keep=source.main)
    except SelectionError as error:
        raise _Refused(f"skill {source.label}: {error}") from error
    return tuple(entry.path for entry in chosen)


def _ignored(source: _Source, warn: Callable[[str], None]) -> frozenset[str]:
    if not git.in_repository(source.root):
        return frozenset()
    try:
        ignored = git.ignored_files(source.root)
        if source.main not in ignored:
            return ignored
        if not git.is_ignored(source.root):
            return ignored
    except git.GitError as error:
        warn(f"skill {source.label}: git-ignored files are installed too, because git could not name them ({error})")
        return frozenset()
    warn(f"skill {source.label}: git ignores the whole directory, so its rules say nothing about what to leave out")
    return frozenset()
