"""`caliper install-skill`: puts the agent skills of this package where an agent CLI looks for skills."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.cli.output import complain, say
from pytest_caliper.cli.own_skills import NAMES, Files, NoSkills, Plan, carry_out, files_of, plan, source_of
from pytest_caliper.cli.parsing import described, nearest

if TYPE_CHECKING:
    from pytest_caliper.backends.customizations import Customization
    from pytest_caliper.cli.main import Commands
    from pytest_caliper.contracts import Backend

PROJECT: Mapping[str, str | None] = {
    "claude-code": ".claude/skills",
    "codex": ".agents/skills",
    "gemini": ".gemini/skills",
    "hermes": None,
    "opencode": ".opencode/skills",
    "pi": ".pi/skills",
}
"""Where each agent CLI looks for a project's skills, below its root; None for one that has no skills of a project."""
_NOTES = {"pi": "pi reads a project's skills only where the project is approved: pi --approve"}

_EPILOG = """\
Examples:
  caliper install-skill claude-code --dry-run    only tell what would be done
  caliper install-skill codex                    for you, in every project
  caliper install-skill claude-code --project    for all who work on this one

The skills are evaluate-skill (create, validate, run, list, report, compare)
and grill-skill (an interview that becomes a spec). Others install them with
their own tool: npx skills add REPOSITORY

Exit status: 0; 1 when a skill that somebody has changed stays as it is; 2 for
an agent that has no place for skills, or when nothing could be written.
Next: in a new session of the agent, ask it to evaluate a skill
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "install-skill",
        description="Put the skills evaluate-skill and grill-skill where an agent CLI looks for skills. A skill that you have "
        "changed is left alone.",
        epilog=_EPILOG,
    )
    parser.add_argument("backend", metavar="BACKEND", help=f"the agent CLI: {', '.join(PROJECT)}")
    parser.add_argument("--project", action="store_true", help="into this project instead of your own skills")
    parser.add_argument("--dry-run", action="store_true", help="tell what would be done, and write nothing")
    parser.add_argument("--force", action="store_true", help="write over skills that were changed")


def run(arguments: argparse.Namespace) -> int:
    try:
        directory = _directory(arguments.backend, project=arguments.project)
        skills = {name: files_of(source_of(name)) for name in NAMES}
        plans = [plan(name, skills[name], directory, force=arguments.force) for name in NAMES]
    except (_Refused, NoSkills) as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(f"{error.filename}: cannot be read: {error.strerror}")
        return 2
    return _install(plans, skills, dry=arguments.dry_run, project=arguments.project, name=_backend(arguments.backend).name)


class _Refused(Exception):
    """Why the skills cannot be put anywhere, with the remedy."""


def _install(plans: list[Plan], skills: Mapping[str, Files], *, dry: bool, project: bool, name: str) -> int:
    status, written = 0, False
    for made in plans:
        if not made.write and made.state in {"changed", "occupied"}:
            complain(_kept(made))
            status = 1
            continue
        if not dry:
            try:
                carry_out(made, skills[made.name])
            except OSError as error:
                complain(f"{error.filename or made.target}: cannot be written: {error.strerror or error}")
                return 2
        _tell(made, dry=dry)
        written = written or bool(made.write or made.remove)
    if project and name in _NOTES:
        _line(f"note: {_NOTES[name]}")
    if written and not dry:
        _line(f'Next: in a new session of {name}, say "Evaluate the skill in ./SKILL.md" or "Grill me about it"')
    return status


def _tell(made: Plan, *, dry: bool) -> None:
    if not made.write and not made.remove:
        where = "" if made.link is None else f", by its link to {made.link}"
        _line(f"{made.target}: up to date{where}")
        return
    instead = "" if made.link is None else f" in place of the link to {made.link}"
    done = {"write": "would write", "remove": "would remove"} if dry else {"write": "wrote", "remove": "removed"}
    if made.write:
        _line(f"{made.target}: {done['write']} {', '.join(made.write)}{instead}")
    if made.remove:
        _line(f"{made.target}: {done['remove']} {', '.join(made.remove)}, which this version no longer has")


def _kept(made: Plan) -> str:
    if made.link is not None:
        return (
            f"{made.target} is a link to {made.link}, which another program put there: left as it is; "
            "update it with that program, or put ours in its place with --force"
        )
    if made.state == "occupied":
        return f"{made.target} is no directory: left as it is; move it away and try again"
    files = ", ".join(made.changed)
    return (
        f"{made.target}: {files} was changed by somebody: left as it is; keep a copy elsewhere, then write over it with --force"
    )


def _line(text: str) -> None:
    from pytest_caliper.reporting.text import one_line

    say(f"{one_line(text)}\n")


# Where


def _directory(name: str, *, project: bool) -> Path:
    """Where the agent looks for skills. Raises _Refused for one that has no such place."""
    backend = _backend(name)
    if not project:
        return _user_directory(backend)
    below = PROJECT[backend.name]
    if below is None:
        raise _Refused(f"{backend.name} has no skills of a project: install them for yourself, without --project")
    return _project_root(Path.cwd()) / below


def _backend(name: str) -> Backend:
    from pytest_caliper.backends.registry import builtin_backends, by_name

    known = by_name(builtin_backends())
    backend = known.get(name)
    if backend is None:
        raise _Refused(f"skills are installed for {', '.join(PROJECT)}; there is no backend {name}{nearest(name, known)}")
    if backend.name not in PROJECT:
        raise _Refused(
            f"{backend.name} has no place of its own for skills; use one of {', '.join(PROJECT)}, "
            f"or copy {_place()} to where your agent looks"
        )
    return backend


def _place() -> str:
    try:
        return str(source_of(NAMES[0]).parent)
    except NoSkills:
        return "the directory skills/ of the repository"


def _user_directory(backend: Backend) -> Path:
    """The backend's own word for where its user keeps skills; what several agents share is left to `npx skills`."""
    found: tuple[Customization, ...] = getattr(backend, "customizations")(os.environ)  # noqa: B009  not every backend has it
    own = (custom for custom in found if not custom.target.startswith(".agents/"))
    return Path(os.path.abspath(next(custom.source for custom in own if Path(custom.target).name == "skills")))  # noqa: PTH100


def _project_root(here: Path) -> Path:
    """The root of the repository around a directory; the directory itself where there is none."""
    from pytest_caliper.runs.place import is_repository

    return next((directory for directory in (here, *here.parents) if is_repository(directory)), here)
