"""What the parsers of several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands


def described(commands: Commands, name: str, *, description: str, epilog: str) -> argparse.ArgumentParser:
    """A command's parser; its `epilog` (examples, exit status, the next step) is shown as it is written."""
    return commands.add_parser(
        name,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="the directory of the saved runs (default: the nearest .caliper/results)"
    )


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    parser.add_argument("--format", "-f", choices=formats, default="text", help="how to show it (default: text)")


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help="write there instead of to standard output")


def whole_number(text: str) -> int:
    """A number of at least 0. Raises argparse.ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)
