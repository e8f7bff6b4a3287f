"""Command line and ini options, and the frozen Settings made from them."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SPEC_SUFFIXES = (".eval.yaml", ".eval.yml")


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One option with its ini twin. `name` is without its prefix: `k` is `--caliper-k` and `caliper_k`."""

    name: str
    default: Any
    help: str
    parse: Callable[[str], Any] | None = None
    """None for a flag."""
    metavar: str | None = None
    ini: Literal["string", "int", "float", "bool"] | None = "string"
    """The ini twin's type; None when there is none."""

    @property
    def dest(self) -> str:
        return "caliper_" + self.name.replace("-", "_")


MOST = 10_000
"""No count is larger: a slip of the finger must not order a million attempts."""


def whole_number(text: str) -> int:
    """A number from 1 to `MOST`. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"[+-]?\d{1,18}", text.strip()) or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    if int(text) > MOST:
        raise ArgumentTypeError(f"must be at most {MOST:,}, got {text!r}")
    return int(text)


def odd_number(text: str) -> int:
    """An odd number of at least 1. Raises argparse.ArgumentTypeError."""
    value = whole_number(text)
    if value % 2 == 0:
        raise ArgumentTypeError(f"must be odd, so that votes cannot tie, got {text!r}")
    return value


def seconds(text: str) -> float:
    """A positive finite number of seconds. Raises argparse.ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"must be a positive number of seconds, got {text!r}")
    return value


OPTIONS = (
    Option(name="k", default=3, parse=whole_number, metavar="N", ini="int", help="Attempts per task and arm (default: 3)"),
    Option(
        name="baseline", default=False, ini="bool", help="Run every task without the skill too, and report what the skill adds"
    ),
    Option(
        name="model",
        default=None,
        parse=str,
        metavar="TARGET",
        help="Engine under test: backend, model, or backend:model (default: claude-code)",
    ),
    Option(
        name="judge-model",
        default=None,
        parse=str,
        metavar="TARGET",
        help="Engine that grades expect: checks, as for --caliper-model (default: claude-code)",
    ),
    Option(
        name="judge-votes",
        default=1,
        parse=odd_number,
        metavar="N",
        ini="int",
        help="Ask the judge N times per attempt, an odd number; the majority decides (default: 1)",
    ),
    Option(
        name="workers",
        default=4,
        parse=whole_number,
        metavar="N",
        ini="int",
        help="Attempts that run at the same time (default: 4)",
    ),
    Option(
        name="timeout",
        default=120.0,
        parse=seconds,
        metavar="S",
        ini="float",
        help="Seconds that the agent may take for one attempt (default: 120)",
    ),
    Option(
        name="results",
        default=None,
        parse=str,
        metavar="DIR",
        help="Keep results below DIR (default: the nearest .caliper directory of the repository)",
    ),
    Option(
        name="user-customizations",
        default=False,
        ini="bool",
        help="Let agents see your own skills, memories and settings, in both arms; results then hold for your machine alone",
    ),
    Option(name="output", default=None, parse=str, metavar="PATH", ini=None, help="Also save the run file as PATH"),
    Option(
        name="record",
        default=False,
        ini=None,
        help="Keep a cassette of every attempt beside the spec, for --caliper-replay",
    ),
    Option(
        name="replay",
        default=False,
        ini=None,
        help="Re-run parsing, checks and statistics from recorded cassettes: no agent, key or network",
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What was asked for. Every value is validated; None means that nothing was said."""

    k: int = 3
    baseline: bool = False
    model: str | None = None
    """Typed on the command line: goes before what a spec says."""
    ini_model: str | None = None
    judge_model: str | None = None
    ini_judge_model: str | None = None
    judge_votes: int = 1
    workers: int = 4
    workers_said: bool = False
    """True when somebody asked for this number of workers: then it bounds xdist too."""
    timeout_s: float = 120.0
    results: Path | None = None
    """Absolute."""
    user_customizations: bool = False
    output: Path | None = None
    """Absolute."""
    record: bool = False
    replay: bool = False


def add_options(parser: pytest.Parser) -> None:
    """Register all options; costs no import beyond this module."""
    group = parser.getgroup("caliper", "evaluation of agent skills (pytest-caliper)")
    group.addoption(
        "--caliper",
        action="store_true",
        dest="caliper",
        default=False,
        help="Run the attempts of collected .eval.yaml specs (they call agents that may cost money)",
    )
    parser.addini("caliper", "Run the attempts of collected specs without --caliper", type="bool", default=False)
    for option in OPTIONS:
        flag = f"--caliper-{option.name}"
        if option.parse is None:
            group.addoption(flag, action="store_true", dest=option.dest, default=None, help=option.help)
        else:
            group.addoption(
                flag,
                action="store",
                type=option.parse,
                dest=option.dest,
                metavar=option.metavar,
                default=None,
                help=option.help,
            )
        if option.ini is not None:
            parser.addini(option.dest, option.help, type=option.ini, default=None)


def settings_of(config: pytest.Config) -> Settings:
    """The settings: command line before ini before default. Raises pytest.UsageError naming the option that is wrong."""
    said = {option.name: _value(config, option) for option in OPTIONS}
    _ini(config, "caliper")  # `opted_in` looks at it later, where a mistake could not be told in a line
    if said["record"] and said["replay"]:
        raise pytest.UsageError("--caliper-record and --caliper-replay exclude each other: record first, then replay")
    _refuse_places(said)
    here = Path(config.invocation_params.dir)
    results = said["results"]
    from_ini = results is not None and config.getoption("caliper_results") is None
    return Settings(
        k=_or_default(said, "k"),
        baseline=bool(said["baseline"]),
        model=config.getoption("caliper_model"),
        ini_model=config.getini("caliper_model") or None,
        judge_model=config.getoption("caliper_judge_model"),
        ini_judge_model=config.getini("caliper_judge_model") or None,
        judge_votes=_or_default(said, "judge-votes"),
        workers=_or_default(said, "workers"),
        workers_said=said["workers"] is not None,
        timeout_s=_or_default(said, "timeout"),
        results=None if results is None else (config.rootpath if from_ini else here).joinpath(results).absolute(),
        output=None if said["output"] is None else here.joinpath(said["output"]).absolute(),
        user_customizations=bool(said["user-customizations"]),
        record=bool(said["record"]),
        replay=bool(said["replay"]),
    )


def _value(config: pytest.Config, option: Option) -> Any:
    typed = config.getoption(option.dest)
    if typed is not None or option.ini is None:
        return typed
    try:
        value = _ini(config, option.dest)
        return value if value is None or option.parse is None else option.parse(str(value))
    except ArgumentTypeError as error:
        raise pytest.UsageError(f"{option.dest} in {config.inipath or 'the ini options'}: {error}") from error


def _ini(config: pytest.Config, name: str) -> Any:
    """The value of an ini option; None when it is not there, or blank. Raises pytest.UsageError naming the file."""
    try:
        value = config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as error:
        said = str(error).removeprefix(f"{config.inipath}: ")
        raise pytest.UsageError(f"{name} in {config.inipath or 'the ini options'}: {said}") from error
    return None if value == "" else value


def _refuse_places(said: dict[str, Any]) -> None:
    """A place that is blank (`$UNSET` in a script) or a spec (an option that has swallowed it) is nobody's wish."""
    for name in ("results", "output"):
        place = said[name]
        if place is not None and not place.strip():
            raise pytest.UsageError(f"--caliper-{name} is blank: name a place, or leave the option out")
        if place is not None and is_spec(Path(place).name):
            raise pytest.UsageError(f"--caliper-{name} {place} would be written over a spec: name another place for the results")


def _or_default(said: dict[str, Any], name: str) -> Any:
    value = said[name]
    return next(option.default for option in OPTIONS if option.name == name) if value is None else value


def is_spec(name: str) -> bool:
    """Whether a file of this name is a spec."""
    return name.endswith(SPEC_SUFFIXES)


def spec_part(nodeid: str) -> str | None:
    """The path in the node id of an attempt, relative to the rootdir or absolute; None for other items' ids."""
    found = _SPEC_PART.match(nodeid)
    return None if found is None else found[1]


_SPEC_PART = re.compile(rf"(.*?(?:{'|'.join(map(re.escape, SPEC_SUFFIXES))}))::", re.DOTALL)
"""The path may hold `::` itself."""


def opted_in(config: pytest.Config) -> bool:
    """Whether items may run, so that nobody is billed by surprise.

    True for a `--caliper…` option typed on the command line (not from addopts or the environment), for ini `caliper = true`,
    and when specs or their items are all that the command line names.
    """
    if config.getini("caliper"):
        return True
    typed = [str(arg) for arg in config.invocation_params.args]
    if any(_is_ours(arg) for arg in typed[: typed.index("--") if "--" in typed else None]):
        return True
    named = [str(arg) for arg in config.args]
    return (
        bool(named)
        and config.args_source is pytest.Config.ArgsSource.ARGS
        and all(is_spec(arg.split("::", 1)[0]) and arg in typed for arg in named)
    )


def _is_ours(arg: str) -> bool:
    name = arg.split("=", 1)[0]
    return name == "--caliper" or name.startswith("--caliper-")
