"""`caliper schema`: the JSON Schema of the spec format, for editors."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from pytest_caliper.cli.output import say
from pytest_caliper.cli.parsing import described

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands

_EPILOG = """\
Examples:
  caliper schema > eval.schema.json

Next: for editors with a YAML language server, this first line in a spec:
  # yaml-language-server: $schema=./eval.schema.json

Exit status: 0.
"""


def add_parser(commands: Commands) -> None:
    described(
        commands,
        "schema",
        description="Print the JSON Schema of the spec format.",
        epilog=_EPILOG,
    )


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001  every command's shape
    from pytest_caliper.spec.schema import json_schema

    say(json.dumps(json_schema(), indent=2) + "\n")
    return 0
