"""`caliper completion`: a script that teaches a shell the commands, their options and what may follow them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_caliper.cli.output import say, suggest
from pytest_caliper.cli.parsing import described

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands

Kind = Literal["spec", "saved", "run", "file", "directory", "words", "unknown"]

_EPILOG = """\
Examples:
  eval "$(caliper completion bash)"    in ~/.bashrc
  source <(caliper completion zsh)     in ~/.zshrc, after compinit
  caliper completion fish > ~/.config/fish/completions/caliper.fish

Commands, options and their values are in the script, so completing them starts
no program; names of saved runs are looked up when they are asked for. After an
update of pytest-caliper make the script anew. pytest's options: argcomplete,
https://docs.pytest.org/en/stable/how-to/bash-completion.html

Exit status: 0.
Next: start a new shell, and press Tab after `caliper `
"""
INSTALL = {
    "bash": """echo 'eval "$(caliper completion bash)"' >> ~/.bashrc""",
    "zsh": "echo 'source <(caliper completion zsh)' >> ~/.zshrc",
    "fish": "caliper completion fish > ~/.config/fish/completions/caliper.fish",
}
_KINDS: dict[str, Kind] = {
    "SPEC": "spec",
    "RUN": "run",
    "A": "run",
    "B": "run",
    "FILE": "file",
    "FILES": "file",
    "PATH": "file",
    "DIR": "directory",
}
_SAVED = ("list", "history")
"""Commands whose SPEC is one with saved runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """What may stand for an argument."""

    name: str
    kind: Kind
    words: tuple[str, ...] = ()
    """All that may stand there, or what may stand there beside files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """An option."""

    names: tuple[str, ...]
    help: str
    value: Value | None
    """None when none follows."""
    repeatable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """A command and what may follow it."""

    name: str
    help: str
    flags: tuple[Flag, ...]
    argument: Value | None
    """What its arguments without a dash are; None when it has none."""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "completion",
        description="Print a script with which a shell completes caliper's commands, options, specs and runs.",
        epilog=_EPILOG,
    )
    parser.add_argument("shell", choices=tuple(INSTALL), metavar="SHELL", help="bash, zsh or fish")


def run(arguments: argparse.Namespace) -> int:
    from pytest_caliper.cli import completion_scripts

    render = {"bash": completion_scripts.bash, "zsh": completion_scripts.zsh, "fish": completion_scripts.fish}
    say(render[arguments.shell](all_commands()))
    suggest(INSTALL[arguments.shell])
    return 0


def all_commands() -> list[Completed]:
    """Every command as its own parser has it."""
    from pytest_caliper.cli.main import COMMANDS, parser_of

    return [_completed(command.name, command.help, parser_of(command.name)) for command in COMMANDS]


def _completed(name: str, text: str, parser: argparse.ArgumentParser) -> Completed:
    arguments = [action for action in parser._actions if not action.option_strings]
    return Completed(
        name=name,
        help=text,
        flags=tuple(_flags(name, parser)),
        argument=_value(name, arguments[0]) if arguments else None,
    )


def _flags(command: str, parser: argparse.ArgumentParser) -> Iterator[Flag]:
    for action in parser._actions:
        if action.option_strings:
            yield Flag(
                names=tuple(sorted(action.option_strings, key=len)),
                help=action.help or "",
                value=None if action.nargs == 0 else _value(command, action),
                repeatable=type(action).__name__ == "_CountAction",
            )


def _value(command: str, action: argparse.Action) -> Value:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        return Value(name=name, kind="words", words=tuple(map(str, action.choices)))
    if name in {"TARGET", "BACKEND"}:
        return Value(name=name, kind="words", words=_backends())
    if name == "POLICY":
        return Value(name=name, kind="words", words=("point", "lower"))
    if command == "run" and name == "RUN":  # pytest takes these: a file, or this word
        return Value(name=name, kind="file", words=("latest",))
    if command in _SAVED and name == "SPEC":
        return Value(name=name, kind="saved")
    return Value(name=name, kind=_KINDS.get(name, "unknown"))


def _backends() -> tuple[str, ...]:
    from pytest_caliper.backends.registry import builtin_backends

    return tuple(sorted(backend.name for backend in builtin_backends()))
