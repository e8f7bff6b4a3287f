"""`caliper run`: pytest with the same options, unprefixed. Running specs is pytest's work."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from pytest_caliper.cli.output import say
from pytest_caliper.options import OPTIONS


def run(words: Sequence[str]) -> int:
    """Become pytest; with `--help` among the words, only print ours. Comes back for the latter alone."""
    if "-h" in words or "--help" in words:
        say(_help())
        return 0
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


def _help() -> str:
    lines = ["usage: caliper run SPEC [SPEC …] [options] [pytest options]", "", "options (pytest takes them as --caliper-NAME):"]
    for option in OPTIONS:
        name = f"--{option.name}" + (f" {option.metavar}" if option.metavar else "")
        lines.append(f"  {name:<24}{option.help}")
    lines += ["", "Everything else goes to pytest: -k, -x, -v, -n 4, --junitxml=FILE …"]
    lines += ["", "  caliper run commit.eval.yaml --k 3 --baseline", "  caliper report commit       shows the run again"]
    return "\n".join([*lines, ""])
