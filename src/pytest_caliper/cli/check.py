"""`caliper check`: whether a spec's own checks can tell work from no work. pytest does it, as `--caliper-check`."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.cli.output import say
from pytest_caliper.cli.parsing import described

if TYPE_CHECKING:
    from pytest_caliper.cli.main import Commands

_EPILOG = """\
Examples:
  caliper check commit.eval.yaml --no-judge    costs nothing
  caliper check commit.eval.yaml               asks the judge once per expect:
                                               and once to see that it answers
  caliper check "commit.eval.yaml::Writes a message"

With pytest's own options: pytest commit.eval.yaml --caliper-check -n 2

Exit status: 0; 1 when something is wrong with a check; pytest's other statuses
keep their meaning.
Next: caliper run commit.eval.yaml --k 1
"""


def add_parser(commands: Commands) -> None:
    parser = described(
        commands,
        "check",
        description="Try a spec's own checks before an agent is paid for: each assert: must fail where nothing was done, and "
        "pass after the task's solution:; the judge must say no to an attempt that did nothing.",
        epilog=_EPILOG,
    )
    parser.add_argument("spec", nargs="+", metavar="SPEC", help="a .eval.yaml file, or one of its tasks: SPEC::TASK")
    parser.add_argument("--judge-model", metavar="TARGET", help="engine that grades expect: (default: claude-code)")
    parser.add_argument("--no-judge", action="store_true", help="do not ask the judge, so that nothing is paid for")
    parser.add_argument("--workers", metavar="N", help="checks that run at the same time (default: 4)")
    formats = "json: the findings on standard output, all else on standard error (default: text)"
    parser.add_argument("--format", choices=("text", "json"), default="text", help=formats)


def run(arguments: argparse.Namespace) -> int:
    """Become pytest; for JSON, wait for it. -> its exit status."""
    words = ["--caliper-check", *arguments.spec]
    for name in ("judge_model", "workers"):
        if (value := getattr(arguments, name)) is not None:
            words.append(f"--caliper-{name.replace('_', '-')}={value}")
    if arguments.no_judge:
        words.append("--caliper-no-judge")
    command = [sys.executable, "-m", "pytest", *words]
    if arguments.format == "json":
        return _json(command)
    sys.stdout.flush()
    return os.execv(sys.executable, command)


def _json(command: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="caliper-findings-") as directory:
        findings = Path(directory, "findings.json")
        status = _ended([*command, f"--caliper-output={findings}"])
        if findings.exists():
            say(findings.read_text(encoding="ascii"))
    return status


def _ended(command: Sequence[str]) -> int:
    """The exit status of a pytest that writes to standard error. Ctrl-C reaches it by itself; it takes its time to clear up."""
    sys.stderr.flush()
    process = subprocess.Popen(command, stdout=2)
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
    finally:
        signal.signal(signal.SIGTERM, before)
