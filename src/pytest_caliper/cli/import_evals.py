"""`caliper import`: a spec out of the skill-creator's `evals.json`."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_caliper.cli.output import complain, say
from pytest_caliper.cli.parsing import described

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands
    from pytest_caliper.spec.evals_json import Eval, Evals
    from pytest_caliper.spec.writing import Part

_EPILOG = """\
Examples:
  caliper import my-skill/evals/evals.json
  caliper import evals.json --output commit.eval.yaml --force

The first writes my-skill/evals/my-skill.eval.yaml and says what could not be
carried over.

Exit status: 0; 1 when there is nothing that a spec could be made of; 2 when
nothing could be read or written.
Next: caliper validate SPEC, then caliper run SPEC
"""
_SUFFIXES = (".eval.yaml", ".eval.yml")
_ALL_HOLD = "All of these hold:"


def add_parser(commands: Commands) -> None:
    parser = described(
        commands, "import", description="Make a spec out of an evals.json as the skill-creator skill has it.", epilog=_EPILOG
    )
    parser.add_argument("evals", type=Path, metavar="FILE", help="an evals.json")
    parser.add_argument("--output", "-o", type=Path, metavar="SPEC", help="the .eval.yaml to write (default: beside evals.json)")
    parser.add_argument("--force", action="store_true", help="write over a spec that is there")


def run(arguments: argparse.Namespace) -> int:
    from pytest_caliper.spec.evals_json import EvalsError, read_evals

    try:
        evals = read_evals(arguments.evals)
    except OSError as error:
        complain(f"{arguments.evals}: cannot be read: {error.strerror}")
        return 2
    except EvalsError as error:
        complain(f"{arguments.evals}: {error}")
        return 2
    target: Path = arguments.output or arguments.evals.with_name(f"{_file_stem(evals)}.eval.yaml")
    if not target.name.lower().endswith(_SUFFIXES):
        complain(f"{target}: a spec's name ends in .eval.yaml, or pytest does not find it")
        return 2
    if target.exists() and not arguments.force:
        complain(f"{target}: is there already; name another one with -o, or write over it with --force")
        return 2
    if not any(_is_checked(one) for one in evals.evals):
        _tell_left_out(evals, arguments.evals)
        complain(f"{arguments.evals}: no eval has a prompt and something that decides whether it passed; nothing is written")
        return 1
    return _write(evals, arguments.evals, target, force=arguments.force)


def _file_stem(evals: Evals) -> str:
    return re.sub(r"[^\w.-]+", "-", evals.skill_name or "").strip(".-") or "skill"


def _is_checked(one: Eval) -> bool:
    return bool(one.expected_output or one.expectations)


def _write(evals: Evals, source: Path, target: Path, *, force: bool) -> int:
    from pytest_caliper.runs.files import written_whole
    from pytest_caliper.spec.model import SpecError

    text = _spec(evals, source, target)
    try:
        _validate(text, target.parent)
        with written_whole(target, overwrite=force) as out:
            out.write(text.encode())
    except SpecError as error:
        for diagnostic in error.diagnostics:
            complain(f"{target}:{diagnostic.line}: {diagnostic.message}")
        complain(f"{source}: the spec made of it would have the mistakes above; nothing is written")
        return 1
    except OSError as error:
        complain(f"{target}: cannot be written: {error.strerror}")
        return 2
    count = sum(map(_is_checked, evals.evals))
    _line(f"{target}: {count} task{'' if count == 1 else 's'} from {source}")
    _tell_left_out(evals, source)
    if "# TODO: " in text:
        _line(f"{target}: look for TODO: what it says is for you to decide")
    _line(f"Next: caliper validate {shlex.quote(str(target))}")
    return 0


def _validate(text: str, directory: Path) -> None:
    """Raises SpecError for what our own loader would refuse, OSError when the directory cannot be written to."""
    from pytest_caliper.spec.loading import load_spec

    descriptor, name = tempfile.mkstemp(prefix=".import-", suffix=".eval.yaml", dir=directory)
    try:
        with open(descriptor, "wb") as out:
            out.write(text.encode())
        load_spec(Path(name))
    finally:
        Path(name).unlink()


def _tell_left_out(evals: Evals, source: Path) -> None:
    for left in evals.left_out:
        _line(f"not carried over: {left}")
    for one in evals.evals:
        if not _is_checked(one):
            _line(f"not carried over: {one.label}: has neither expected_output nor expectations")
    if evals.triggers:
        what = f"{evals.triggers} trigger eval{'' if evals.triggers == 1 else 's'} of {source}"
        _line(f"not carried over: {what}: specs have no `activates:` yet; docs/interop.md shows an assert for it")


def _line(text: str) -> None:
    from pytest_caliper.reporting.text import one_line

    say(f"{one_line(text)}\n")


# The spec


def _spec(evals: Evals, source: Path, target: Path) -> str:
    from pytest_caliper.spec.writing import spec_text

    skill = _skill(source, target.parent)
    head = [f"Made of {source.name} by `caliper import`."]
    if skill is None:
        head.append(
            f"TODO: no SKILL.md at or above {source.name}: name the skill with `skill: PATH`, or keep none for the bare agent."
        )
    places = [*dict.fromkeys([_root(source), source.parent])]
    return spec_text(head=head, skill=skill, tasks=[_task(one, places, target.parent) for one in evals.evals])


def _root(source: Path) -> Path:
    """The directory of the skill, which the paths in its evals.json are relative to."""
    here = Path(os.path.abspath(source)).parent  # noqa: PTH100  links stay
    for directory in (here, here.parent):
        if (directory / "SKILL.md").is_file():
            return directory
    return here.parent if here.name == "evals" else here


def _skill(source: Path, directory: Path) -> str | None:
    root = _root(source)
    return _relative(root / "SKILL.md", directory) if (root / "SKILL.md").is_file() else None


def _relative(path: Path, directory: Path) -> str:
    text = PurePath(os.path.relpath(path, directory)).as_posix()
    return text if text.startswith("../") else f"./{text}"


def _task(one: Eval, places: Sequence[Path], directory: Path) -> Part:
    from pytest_caliper.spec.writing import Part

    remarks = []
    setup, missing, outside = _setup(one, places, directory)
    remarks += [
        f"TODO: {path} was not found: until it is there, setup fails and every attempt is an infra_error." for path in missing
    ]
    remarks += [
        f"TODO: {path} lies outside the skill, so it is not copied: put a copy beside the spec if the agent may see it."
        for path in outside
    ]
    values = {"name": one.name, **({"setup": setup} if setup else {}), "prompt": one.prompt}
    if not _is_checked(one):
        remarks.append(f"TODO: {one.label} does not say what is right: add `expect:` or `assert:`, then take the # away.")
        return Part(values=values, remarks=remarks, inert=True)
    return Part(values={**values, "expect": _expect(one)}, remarks=remarks)


def _expect(one: Eval) -> str:
    if not one.expectations:
        return one.expected_output or ""
    listed = "".join(f"- {' '.join(text.split())}\n" for text in one.expectations)
    before = f"{one.expected_output.strip()}\n\n" if one.expected_output else ""
    return f"{before}{_ALL_HOLD}\n{listed}"


def _is_below(path: Path, place: Path) -> bool:
    return path.resolve().is_relative_to(place.resolve())


def _setup(one: Eval, places: Sequence[Path], directory: Path) -> tuple[str, list[str], list[str]]:
    """The commands that put the eval's files where its prompt looks for them, the files that are not there, and those that no
    agent was meant to see: elsewhere on this machine."""
    commands, missing, outside = [], [], []
    names = [PurePath(path).name for path in one.files]
    for path in one.files:
        inside = not PurePath(path).is_absolute() and ".." not in PurePath(path).parts
        if not inside and not any(_is_below(place / path, place) for place in (*places, directory)):
            outside.append(path)
            continue
        found = next((place / path for place in places if (place / path).exists()), None)
        if found is None:
            missing.append(path)
        keep = inside and (path in one.prompt or names.count(PurePath(path).name) > 1)
        parent = PurePath(path).parent.as_posix() if keep else "."
        if parent != ".":
            commands.append(f"mkdir -p {shlex.quote('./' + parent)}")
        origin = _relative(found or places[0] / path, directory).removeprefix("./")
        commands.append(f'cp -R "$CALIPER_SPEC_DIR"/{shlex.quote(origin)} {shlex.quote("./" + parent) if keep else "."}')
    if len(commands) > 1:
        commands.insert(0, "set -e")
    return "\n".join(dict.fromkeys(commands)) + ("\n" if len(commands) > 1 else ""), missing, outside
