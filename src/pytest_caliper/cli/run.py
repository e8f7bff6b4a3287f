"""`caliper run`: pytest with the same options, unprefixed. Running specs is pytest's work."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_caliper.cli.output import complain, say
from pytest_caliper.cli.parsing import described, nearest
from pytest_caliper.options import OPTIONS

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands

_EPILOG = """\
pytest's own options work too: -k, -x, -v, -n 4, --junitxml=FILE …

Examples:
  caliper run commit.eval.yaml --k 1           a first look
  caliper run commit.eval.yaml --k 3 --baseline
  caliper run evals --model codex --workers 8 -x

Exit status: pytest's own: 0 all passed, 1 something failed, 2 interrupted,
4 bad usage, 5 nothing to run.
Next: caliper report commit, caliper compare commit
"""


def run(words: Sequence[str]) -> int:
    """Become pytest; with `--help` among the words, only print ours. Comes back for the latter alone."""
    if "-h" in words or "--help" in words:
        from pytest_caliper.cli.main import parser_of

        say(parser_of("run").format_help())
        return 0
    if (mistaken := _mistaken(words)) is not None:
        complain(mistaken)
    # A fresh interpreter: pytest wants to see this package before anybody imports it. Signals and exit status stay pytest's own.
    sys.stdout.flush()
    return os.execv(sys.executable, [sys.executable, "-m", "pytest", *respelled(words)])


def respelled(words: Sequence[str]) -> list[str]:
    """`--k 3` as `--caliper-k 3`; what is no option of ours goes to pytest as it is. `--verbose` is pytest's own."""
    ours = {f"--{option.name}" for option in OPTIONS}
    out = ["--caliper"]
    for word in words:
        name, equals, value = word.partition("=")
        out.append(f"--caliper-{name[2:]}{equals}{value}" if name in ours else word)
    return out


def add_parser(commands: Commands) -> None:
    """For `--help` and completion: the words themselves are read by pytest."""
    parser = described(
        commands,
        "run",
        description="Run specs with pytest. Each option is pytest's --caliper-NAME, or ini key caliper_name; all else goes to "
        "pytest as it is.",
        epilog=_EPILOG,
    )
    parser.usage = "caliper run SPEC [SPEC ...] [options] [pytest options]"
    parser.add_argument(
        "spec", nargs="*", metavar="SPEC", help="a .eval.yaml file, one of its tasks (SPEC::TASK), or a directory"
    )
    for option in OPTIONS:
        text = (option.help[0].lower() + option.help[1:]).replace("--caliper-", "--")
        if option.parse is None:
            parser.add_argument(f"--{option.name}", action="store_true", help=text)
        else:
            parser.add_argument(f"--{option.name}", metavar=option.metavar, help=text)


def _mistaken(words: Sequence[str]) -> str | None:
    """A word that is nearly an option of ours, and what was meant; pytest reads it, and may know it from another plugin."""
    ours = [f"--{option.name}" for option in OPTIONS]
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in ours and (meant := nearest(name, ours, cutoff=0.85)):
            return f"{name} is left to pytest{meant}"
    return None
