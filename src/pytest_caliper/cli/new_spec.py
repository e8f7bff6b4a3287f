"""`caliper new`: a spec from questions on a terminal, or from options."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from pytest_caliper.cli.asking import KINDS, Draft, ask_for_skill, ask_for_tasks, terminal_lines
from pytest_caliper.cli.output import complain, say
from pytest_caliper.cli.parsing import described

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands
    from pytest_caliper.spec.model import Diagnostic, Spec, Task
    from pytest_caliper.spec.writing import Part

_EPILOG = """\
Examples:
  caliper new                                  asks, and writes the spec beside
                                               the SKILL.md that it finds
  caliper new commit --yes                     a template to fill in
  caliper new commit --prompt "Commit this." --expect "It is marked as a fix."

Several tasks: begin each with --task NAME. It asks only on a terminal, and only
when no task is given. What it writes is valid.

Exit status: 0; 1 when the spec would have mistakes; 2 when something is missing
or there already. Nothing is written then.
Next: caliper check SPEC --no-judge, then caliper run SPEC --k 1
"""
_SUFFIXES = (".eval.yaml", ".eval.yml")
_NEARBY = ("skills/*", "*", ".claude/skills/*", ".agents/skills/*")
_MOST_SKILLS = 20
_TITLE = 60
"""Characters of a task's name that is made from its prompt."""
_TEMPLATE = """\
from pathlib import Path
assert Path("result.txt").is_file(), "TODO: what must be there afterwards"
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "new",
        description="Write a spec for a skill, from questions on a terminal or from options. Never writes over a file.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="NAME.eval.yaml is written (default: the skill's name, beside its SKILL.md)"
    )
    parser.add_argument("--skill", type=Path, metavar="PATH", help="a SKILL.md or its directory (default: the one nearby)")
    parser.add_argument("--no-skill", action="store_true", help="measure the bare agent")
    for option, metavar, text in (
        ("task", "NAME", "begin a task of this name; the options behind it are its own"),
        ("prompt", "TEXT", "what the agent is asked"),
        ("expect", "TEXT", "what must be so afterwards, for the judge"),
        ("assert", "CODE", "Python that fails when it is not so"),
        ("setup", "SHELL", "command that fills the working directory before"),
        ("solution", "SHELL", "command that does the task, for caliper check"),
    ):
        parser.add_argument(f"--{option}", dest="parts", action=_Part, metavar=metavar, help=text)
    parser.add_argument("--yes", "-y", action="store_true", help="ask nothing; without a task, write a template")
    parser.add_argument("--force", action="store_true", help="write over a spec that is there")


class _Part(argparse.Action):
    """Keeps the options of tasks in their order, as pairs of key and value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        parts = [*(getattr(namespace, self.dest) or ()), ((option_string or "").removeprefix("--"), values)]
        setattr(namespace, self.dest, parts)


class _Refused(Exception):
    """Why there is nothing to be written, in one line with the remedy."""


def run(arguments: argparse.Namespace) -> int:
    asks = sys.stdin is not None and sys.stdin.isatty() and not arguments.yes and not arguments.parts
    try:
        drafts = _drafts(arguments.parts or ())
        if not drafts and not asks and not arguments.yes:
            raise _Refused(
                "no task is given: add --prompt with --expect or --assert, or --yes for a template; on a terminal it asks"
            )
        skill = _skill(arguments, asks=asks)
        target = _target(arguments.name, skill)
        if os.path.lexists(target) and not arguments.force:
            raise _Refused(f"{target}: is there already; give another NAME, or write over it with --force")
        if asks:
            drafts = ask_for_tasks(terminal_lines())
        return _write(target, skill, drafts, force=arguments.force)
    except _Refused as error:
        complain(str(error))
    except EOFError:
        say("\n")
        complain("the answers ended too early; nothing is written")
    except KeyboardInterrupt:
        say("\n")
        complain("interrupted; nothing is written")
        raise
    except UnicodeDecodeError as error:
        complain(f"the answer is not {error.encoding}; nothing is written")
    except OSError as error:
        complain(f"{error.filename}: cannot be written: {error.strerror or error}")
    return 2


def _drafts(parts: Sequence[tuple[str, str]]) -> list[Draft]:
    """The tasks that the options describe. Raises _Refused."""
    groups: list[dict[str, str]] = []
    for key, value in parts:
        if key == "task" or not groups:
            groups.append({})
        if key in groups[-1]:
            raise _Refused(f"--{key} is given twice for one task; begin the next task with --task NAME")
        if not value.strip():
            raise _Refused(f"--{key} is blank")
        groups[-1][key] = value
    return [_draft(group) for group in groups]


def _draft(group: dict[str, str]) -> Draft:
    which = f"the task {group['task']!r}" if "task" in group else "the task"
    if "prompt" not in group:
        raise _Refused(f"{which} has no prompt: add --prompt TEXT")
    if "expect" not in group and "assert" not in group:
        raise _Refused(f"nothing decides whether {which} passed: add --expect TEXT or --assert CODE")
    return Draft(
        prompt=group["prompt"],
        name=group.get("task"),
        setup=group.get("setup"),
        expect=group.get("expect"),
        assertion=group.get("assert"),
        solution=group.get("solution"),
    )


# The skill and the file


def _skill(arguments: argparse.Namespace, *, asks: bool) -> Path | None:
    """The skill to be measured, as its user would write its path; None for the bare agent. Raises _Refused."""
    if arguments.no_skill:
        if arguments.skill is not None:
            raise _Refused("--skill and --no-skill exclude each other")
        return None
    if arguments.skill is not None:
        if not arguments.skill.exists():
            raise _Refused(f"{arguments.skill}: there is no such skill; name a SKILL.md, or the directory that holds it")
        return Path(arguments.skill)
    found = _nearby(arguments.name)
    if asks:
        return ask_for_skill(found, terminal_lines())
    if not found:
        raise _Refused("no SKILL.md here or below skills/: name it with --skill PATH, or give --no-skill for the bare agent")
    if len(found) > 1 and found[0].parent.name != _wanted(arguments.name):
        shown = ", ".join(map(str, found[:5])) + (" …" if len(found) > 5 else "")
        raise _Refused(f"several skills are here: {shown}; name one with --skill PATH")
    return found[0]


def _nearby(name: str | None) -> list[Path]:
    """The skills of this directory, that of the wanted name first."""
    if Path("SKILL.md").is_file():
        return [Path("SKILL.md")]
    found = [path for pattern in _NEARBY for path in sorted(Path().glob(f"{pattern}/SKILL.md"))]
    wanted = _wanted(name)
    return sorted(found, key=lambda path: path.parent.name != wanted)[:_MOST_SKILLS]


def _wanted(name: str | None) -> str | None:
    return None if name is None else _without_suffix(PurePath(name).name)


def _without_suffix(name: str) -> str:
    return next((name[: -len(suffix)] for suffix in _SUFFIXES if name.lower().endswith(suffix)), name)


def _target(name: str | None, skill: Path | None) -> Path:
    """The file to be written. Raises _Refused for a name that no spec has."""
    if name is None:
        return (Path() if skill is None else skill if skill.is_dir() else skill.parent) / f"{_stem(skill)}.eval.yaml"
    path = Path(name)
    if name.strip() and (name.endswith("/") or path.is_dir()):
        return path / f"{_stem(skill)}.eval.yaml"
    if path.name.lower().endswith(_SUFFIXES):
        return path
    if not name.strip() or path.suffix.lower() in {".yaml", ".yml", ".json", ".md"}:
        raise _Refused(f"{name!r} is no name for a spec: pytest finds those that end in .eval.yaml")
    return path.with_name(f"{path.name}.eval.yaml")


def _stem(skill: Path | None) -> str:
    if skill is None:
        name = Path.cwd().name
    elif skill.is_dir():
        name = Path(os.path.abspath(skill)).name  # noqa: PTH100  a link keeps its name
    else:
        name = Path(os.path.abspath(skill)).parent.name if skill.name == "SKILL.md" else skill.stem  # noqa: PTH100
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "skill"


# The spec


def _write(target: Path, skill: Path | None, drafts: Sequence[Draft], *, force: bool) -> int:
    """Write the spec when it is valid and says what was typed. -> the exit status. Raises OSError and _Refused."""
    from pytest_caliper.runs.files import written_whole
    from pytest_caliper.spec.model import SpecError
    from pytest_caliper.spec.writing import spec_text

    with _directory(target.parent):
        path = None if skill is None else _relative(skill, target.parent)
        _must_be_text(path or "", *(text for draft in drafts for text in _texts(draft)))
        head = [f"{'The bare agent' if skill is None else 'Does the skill do its job?'} caliper run {target.name} --k 3"]
        text = spec_text(head=head, skill=path, tasks=list(_parts(drafts)) if drafts else list(_template()))
        data = text.encode()
        try:
            warnings = _tried(data, target, skill, drafts)
        except SpecError as error:
            for diagnostic in error.diagnostics:
                complain(diagnostic.message)
            complain(f"{target}: the spec would have the mistakes above; nothing is written")
            return 1
        with written_whole(target.resolve() if target.is_symlink() else target, overwrite=force) as out:
            out.write(data)
    for warning in warnings:
        _line(f"{target}:{warning.line}: {warning.message} (warning)")
    count = max(1, len(drafts))
    about = "the bare agent" if skill is None else str(skill)
    _line(f"{target}: {count} task{'' if count == 1 else 's'} for {about}")
    if not drafts:
        _line(f"{target}: look for TODO: what it says is for you to decide")
    _line(f"Next: caliper check {shlex.quote(str(target))} --no-judge")
    _line(f"then: caliper run {shlex.quote(str(target))} --k 1")
    return 0


def _tried(data: bytes, target: Path, skill: Path | None, drafts: Sequence[Draft]) -> tuple[Diagnostic, ...]:
    """Our own loader's warnings about the spec to be. Raises SpecError, and _Refused when it reads something else."""
    from pytest_caliper.runs.place import project_of
    from pytest_caliper.sources import resolve_skills
    from pytest_caliper.spec.files import files_named
    from pytest_caliper.spec.loading import load_spec

    trial = target.with_name(f".new-{secrets.token_hex(8)}.eval.yaml")
    try:
        with open(trial, "xb") as out:
            out.write(data)
        spec = load_spec(trial)
        _, warnings = resolve_skills(spec, exclude=files_named(spec), project=project_of(trial, Path.cwd()))
    finally:
        trial.unlink(missing_ok=True)
    _compare(spec, skill, drafts)
    return (*spec.warnings, *warnings)


def _compare(spec: Spec, skill: Path | None, drafts: Sequence[Draft]) -> None:
    if skill is not None and not spec.skills[0].path.samefile(skill):
        raise _Refused(f"{skill}: cannot be named from there by a relative path; give a NAME beside it")
    if drafts and [_said(task) for task in spec.tasks] != [
        (draft.prompt, draft.expect, draft.setup, draft.solution) for draft in drafts
    ]:
        raise _Refused("a text holds characters that YAML cannot keep: remove control characters from it")


def _texts(draft: Draft) -> Iterator[str]:
    texts = (draft.prompt, draft.name, draft.setup, draft.expect, draft.assertion, draft.solution)
    return (text for text in texts if text is not None)


def _must_be_text(*texts: str) -> None:
    """Raises _Refused for bytes that were no UTF-8 on the command line or in a path: YAML has no word for them."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise _Refused("a text or the skill's path holds bytes that are no UTF-8: write it in UTF-8") from error


def _said(task: Task) -> tuple[str, str | None, str | None, str | None]:
    return task.prompt, task.expect, task.setup, task.solution


@contextlib.contextmanager
def _directory(directory: Path) -> Iterator[None]:
    """The directory is there; it goes away again, with those made for it, when nothing was put into it."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for place in missing:
            with contextlib.suppress(OSError):
                place.rmdir()


def _relative(skill: Path, directory: Path) -> str:
    """How a spec in `directory` names the skill: from its real place, since `..` of a link leads elsewhere."""
    place = Path(os.path.realpath(skill.parent), skill.name) if skill.name not in {"", ".."} else Path(os.path.realpath(skill))
    text = PurePath(os.path.relpath(place, os.path.realpath(directory))).as_posix()
    return text if text.startswith("../") or text in {".", ".."} else f"./{text}"


def _parts(drafts: Sequence[Draft]) -> Iterator[Part]:
    from pytest_caliper.spec.writing import Part

    names: list[str] = []
    for number, draft in enumerate(drafts, 1):
        name = draft.name or _title(draft.prompt, number, names)
        names.append(name)
        values = {
            "name": name,
            "setup": draft.setup,
            "prompt": draft.prompt,
            "expect": draft.expect,
            "assert": draft.assertion,
            "solution": draft.solution,
        }
        kept = {key: value for key, value in values.items() if value is not None}
        yield Part(values=kept, remarks=[draft.kind] if draft.kind else [])


def _title(prompt: str, number: int, taken: Sequence[str]) -> str:
    """A task's name from the beginning of its prompt, unlike those that are taken."""
    from pytest_caliper.spec.names import node_name

    words = node_name(" ".join(prompt.split()), "")
    if len(words) > _TITLE:
        words = words[:_TITLE].rsplit(" ", 1)[0]
    name = words.strip(" .,;:!?") or f"Task {number}"
    known = {node_name(other, "").casefold() for other in taken}
    return name if node_name(name, "").casefold() not in known else f"{name} {number}"


def _template() -> Iterator[Part]:
    """A task to fill in, and the two that should follow it as comments."""
    from pytest_caliper.spec.writing import Part

    for title, meaning, needed in KINDS:
        prompt = "TODO: what a user says, word for word, when the skill should act."
        values = {"name": title, "prompt": prompt, "assert": _TEMPLATE}
        remarks = [f"{title}. {meaning}", *([] if needed else ["Take the # away from the lines below."])]
        yield Part(values=values, remarks=remarks, inert=not needed)


def _line(text: str) -> None:
    from pytest_caliper.reporting.text import one_line

    say(f"{one_line(text)}\n")
