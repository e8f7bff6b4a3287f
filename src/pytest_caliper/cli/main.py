"""Find the command and let its module read the rest of the line. Only that module is imported.

A command's module has `add_parser(commands)`, which adds the parser of its own name, and `run(arguments)`, which gives the exit
status: 0; 1 when something is wrong with what was asked about; 2 when it could not be asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from pytest_caliper import __version__
from pytest_caliper.cli.output import sound_streams
from pytest_caliper.cli.parsing import nearest, parsed

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

EPILOG = """\
Examples:
  caliper validate commit.eval.yaml            are there mistakes in the spec?
  caliper run commit.eval.yaml --k 3 --baseline
  caliper report commit                        what came of it

caliper COMMAND --help tells more. pytest runs specs as well:
  pytest commit.eval.yaml --caliper-k=3 --caliper-baseline

Exit status: 0; 1 when something is wrong with what was asked about; 2 when it
could not be asked. `caliper run` and `caliper check` end with pytest's own.
Next: caliper validate SPEC
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command's name, its line in `caliper --help`, and the module that has it."""

    name: str
    help: str
    module: str


COMMANDS = (
    Command("new", "write a spec from questions or options", "new_spec"),
    Command("run", "run specs with pytest: --k 3 --baseline --model TARGET …", "run"),
    Command("validate", "check specs without running anything", "validate"),
    Command("check", "try the checks of specs before an agent is paid for", "check"),
    Command("list", "specs with their runs and latest rate; with a spec, its runs", "list_runs"),
    Command("report", "show a saved run again: text, html, md, json, junit", "report"),
    Command("compare", "two runs task by task: better, worse, or no evidence", "compare"),
    Command("history", "how a spec's rate went over its runs", "history"),
    Command("merge", "join the run files of the shards of a run", "merge"),
    Command("import", "make a spec of the skill-creator's evals.json", "import_evals"),
    Command("export", "a run as the skill-creator's benchmark.json and grading.json", "export"),
    Command("install-skill", "give your agent skills that evaluate skills", "install_skill"),
    Command("update-cli", "show installed and newest versions of agent CLIs, and update them", "update_cli"),
    Command("schema", "print the JSON Schema of the spec format, for editors", "schema"),
    Command("completion", "print the completion script for bash, zsh or fish", "completion"),
)


CANDIDATES = "__candidates"
"""What the completion scripts call; in no help."""


class CommandModule(Protocol):
    """What a module of `COMMANDS` has."""

    def add_parser(self, commands: Commands) -> object: ...

    def run(self, arguments: Any) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """The console script. -> exit status: pytest's own for `run`; 0, or 1 when something is wrong, 2 for bad usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    with sound_streams():
        if words[:1] == [CANDIDATES]:
            from pytest_caliper.cli.candidates import run

            return run(words[1:])
        command = next((command for command in COMMANDS if words[:1] == [command.name]), None)
        parser, commands = _parsers(command)
        if command is None:
            if words and not words[0].startswith("-"):
                parser.error(_no_command(words[0]))
            parser.parse_args(words)  # --help, --version, or a mistake: none of them comes back
            return 2
        module = _module(command)
        if command.name == "run":  # whatever follows is for pytest to read
            return module.run(words[1:])
        module.add_parser(commands)
        return module.run(parsed(commands.choices[command.name], words[1:]))


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command's own words, as its `--help` shows it. Raises KeyError."""
    command = {command.name: command for command in COMMANDS}[name]
    _, commands = _parsers(command)
    _module(command).add_parser(commands)
    return commands.choices[name]


def _no_command(word: str) -> str:
    from pytest_caliper.cli.finding import SPEC_SUFFIXES

    if word.lower().partition("::")[0].endswith(SPEC_SUFFIXES):
        return f"{word} is no command; it is run with: caliper run {word}"
    return f"there is no command {word}{nearest(word, (command.name for command in COMMANDS), cutoff=0.5)}"


def _module(command: Command) -> CommandModule:
    return cast("CommandModule", import_module(f"pytest_caliper.cli.{command.module}"))


def _parser() -> argparse.ArgumentParser:
    """The parser that knows every command's name and nothing of its options."""
    return _parsers(None)[0]


def _parsers(without: Command | None) -> tuple[argparse.ArgumentParser, Commands]:
    parser = argparse.ArgumentParser(
        prog="caliper",
        description="Measure how often an agent skill works.",
        epilog=EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pytest-caliper {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        if command != without:
            commands.add_parser(command.name, add_help=False, help=command.help)
    return parser, commands
