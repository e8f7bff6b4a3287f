"""What the parsers of several commands share."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands


_WIDTH = 79
"""Of what is wrapped here; the options are wrapped by argparse, as wide as the terminal."""
_NEAR = 0.7


def nearest(word: str, known: Iterable[str], *, cutoff: float = _NEAR) -> str:
    """`; did you mean X?` for a word that is nearly one of `known`, else nothing."""
    close = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]}?" if close else ""


def parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """What the words say. Ends the program with 2, as argparse does, and names the option that was nearly written."""
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        name = unknown[0].partition("=")[0]
        if name.startswith("--"):
            meant = nearest(name, (word for action in parser._actions for word in action.option_strings))
            parser.error(f"there is no option {name}{meant}")
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def described(commands: Commands, name: str, *, description: str, epilog: str) -> argparse.ArgumentParser:
    """A command's parser; its `epilog` (examples, exit status, the next step) is shown as it is written."""
    return commands.add_parser(
        name,
        description=textwrap.fill(description, _WIDTH),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="directory of the saved runs (default: the nearest .caliper/results)"
    )


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    parser.add_argument("--format", "-f", choices=formats, default="text", help="how to show it (default: text)")


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help="write there, not to standard output")


def whole_number(text: str) -> int:
    """A number of at least 0. Raises argparse.ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)
