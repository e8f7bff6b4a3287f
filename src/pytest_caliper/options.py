"""Command line and ini options, and the frozen Settings made from them."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

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


def whole_number(text: str, *, least: int = 1) -> int:
    """A number from `least` to `MOST`. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"[+-]?\d{1,18}", text.strip()) or int(text) < least:
        raise ArgumentTypeError(f"must be a whole number of at least {least}, got {text!r}")
    if int(text) > MOST:
        raise ArgumentTypeError(f"must be at most {MOST:,}, got {text!r}")
    return int(text)


def count(text: str) -> int:
    """A number from 0 to `MOST`. Raises argparse.ArgumentTypeError."""
    return whole_number(text, least=0)


def tokens(text: str) -> int:
    """A number of tokens from 1, `_` between digits allowed. Raises argparse.ArgumentTypeError."""
    digits = text.strip().replace("_", "")
    if not re.fullmatch(r"\d{1,15}", digits) or int(digits) < 1:
        raise ArgumentTypeError(f"must be a whole number of tokens of at least 1, got {text!r}")
    return int(digits)


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


def rate(text: str) -> Fraction:
    """A rate above 0 and at most 1, exact. Raises argparse.ArgumentTypeError."""
    return _rate(text, None)


def share(text: str) -> Fraction:
    """A rate from 0 to 1, exact. Raises argparse.ArgumentTypeError."""
    return _rate(text, 0)


def _rate(text: str, least: int | None) -> Fraction:
    from pytest_caliper.spec.rates import parse_rate

    try:
        return parse_rate(text, least=least)
    except ValueError as error:
        raise ArgumentTypeError(f"must be {error}, got {text!r}") from error


def policy(text: str) -> str:
    """How a bar is judged. Raises argparse.ArgumentTypeError."""
    if text not in {"point", "lower"}:
        raise ArgumentTypeError(f"must be point (the rate decides) or lower (its lower bound does), got {text!r}")
    return text


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the parts that a run is cut into, so that several machines share it."""

    index: int
    """From 1."""
    of: int

    def __str__(self) -> str:
        return f"{self.index} of {self.of}"


MOST_SHARDS = 1000


def shard(text: str) -> Shard:
    """`2/4`: the second of four. Raises argparse.ArgumentTypeError."""
    if not re.fullmatch(r"[0-9]{1,9}/[0-9]{1,9}", text):
        raise ArgumentTypeError(f"must be I/N, such as 2/4 for the second of four shards, got {text!r}")
    index, of = map(int, text.split("/"))
    if not 1 <= of <= MOST_SHARDS:
        raise ArgumentTypeError(f"there can be 1 to {MOST_SHARDS:,} shards, got {text!r}")
    if not 1 <= index <= of:
        raise ArgumentTypeError(f"the shards are numbered 1/{of} to {of}/{of}, got {text!r}")
    return Shard(index, of)


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
        name="fail-fast",
        default=0,
        parse=count,
        metavar="N",
        ini="int",
        help="Begin no more attempts of a task and arm after N times infra_error or timeout in a row; 0 never stops (default: 0)",
    ),
    Option(
        name="max-tokens",
        default=None,
        parse=tokens,
        metavar="N",
        help="Begin no more attempts when agents and judges of this session would use more than N tokens together",
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
    Option(
        name="resume",
        default=False,
        ini=None,
        help="Go on with the latest run of each named spec that did not end: only what is missing runs",
    ),
    Option(
        name="resume-from",
        default=None,
        parse=str,
        metavar="PATH",
        ini=None,
        help="Go on with this run, a journal or a run file; with a larger --caliper-k it is extended",
    ),
    Option(
        name="bar",
        default=None,
        parse=rate,
        metavar="RATE",
        help="Rate that every task must reach, such as 0.8 or 4/5; single failing attempts are then tolerated",
    ),
    Option(
        name="bar-policy",
        default=None,
        parse=policy,
        metavar="POLICY",
        help="point: the rate must reach the bar; lower: the lower end of its 95 percent interval must (default: point)",
    ),
    Option(
        name="min-coverage",
        default=0.5,
        parse=share,
        metavar="RATE",
        help="Fail when less than this share of a task's planned attempts was usable (default: 0.5)",
    ),
    Option(
        name="no-regression",
        default=None,
        parse=str,
        metavar="RUN",
        ini=None,
        help="Fail when the run is worse than this one: a run file, or latest for the latest run before",
    ),
    Option(
        name="baseline-from",
        default=None,
        parse=str,
        metavar="RUN",
        ini=None,
        help="Take the baseline from this run, a file or latest, where nothing it depends on has changed; else run it",
    ),
    Option(
        name="shard",
        default=None,
        parse=shard,
        metavar="I/N",
        ini=None,
        help="Run only the tasks of shard I of N, so that N machines share a run; `caliper merge` joins their run files",
    ),
    Option(
        name="check",
        default=False,
        ini=None,
        help="Run no agent: try whether each task's checks can tell work from no work, and whether its solution passes",
    ),
    Option(name="no-judge", default=False, ini=None, help="With --caliper-check: do not ask the judge; nothing is paid for"),
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
    typed_k: int | None = None
    """k as the command line has it."""
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
    fail_fast: int = 0
    """0: never."""
    max_tokens: int | None = None
    results: Path | None = None
    """Absolute."""
    user_customizations: bool = False
    bar: Fraction | None = None
    """Typed on the command line: goes before what a spec says."""
    ini_bar: Fraction | None = None
    bar_policy: Literal["point", "lower"] = "point"
    min_coverage: Fraction | float = 0.5
    """Exact: a half is one as a float too."""
    no_regression: Path | Literal["latest"] | None = None
    """An absolute path, or the latest run before this session."""
    baseline_from: Path | Literal["latest"] | None = None
    resume: bool = False
    resume_from: Path | None = None
    """Absolute; an existing file."""
    shard: Shard | None = None
    check: bool = False
    """Trials of the tasks' own checks take the place of attempts."""
    no_judge: bool = False
    output: Path | None = None
    """Absolute."""
    record: bool = False
    replay: bool = False

    @property
    def output_is_directory(self) -> bool:
        """Whether `output` is a directory: it is there already, or a shard is to be saved and nothing says that it is a file."""
        if self.output is None:
            return False
        return self.output.is_dir() or (self.shard is not None and self.output.suffix != ".json")


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


def refuse_misspelt(parser: pytest.Parser, words: Sequence[str]) -> None:
    """Raises pytest.UsageError for an option that begins as ours do and is nobody's, naming the one that was meant."""
    ours = [f"--caliper-{option.name}" for option in OPTIONS]
    suspects = {word.partition("=")[0] for word in words if word.startswith("--caliper-")}.difference(ours)
    if not suspects:
        return
    unknown = {word.partition("=")[0] for word in parser.parse_known_and_unknown_args(list(words))[1]}
    for name in sorted(suspects & unknown):
        from difflib import get_close_matches

        close = get_close_matches(name[10:], [option.name for option in OPTIONS], n=1, cutoff=0.7)
        meant = f"did you mean --caliper-{close[0]}?" if close else "pytest --help lists those of caliper"
        raise pytest.UsageError(f"there is no option {name}; {meant}")


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
    kept = None if results is None else (config.rootpath if from_ini else here).joinpath(results).absolute()
    if kept is not None and kept.exists() and not kept.is_dir():
        raise pytest.UsageError(f"--caliper-results {results} is no directory: name one, or a place where one can be made")
    return Settings(
        k=_or_default(said, "k"),
        typed_k=config.getoption("caliper_k"),
        baseline=bool(said["baseline"]) or said["baseline-from"] is not None,
        model=config.getoption("caliper_model"),
        ini_model=config.getini("caliper_model") or None,
        judge_model=config.getoption("caliper_judge_model"),
        ini_judge_model=config.getini("caliper_judge_model") or None,
        judge_votes=_or_default(said, "judge-votes"),
        workers=_or_default(said, "workers"),
        workers_said=said["workers"] is not None,
        timeout_s=_or_default(said, "timeout"),
        fail_fast=_or_default(said, "fail-fast"),
        max_tokens=said["max-tokens"],
        results=kept,
        bar=config.getoption("caliper_bar"),
        ini_bar=None if config.getoption("caliper_bar") is not None else said["bar"],
        bar_policy="lower" if said["bar-policy"] == "lower" else "point",
        min_coverage=_or_default(said, "min-coverage"),
        no_regression=_run_named(said, "no-regression", here),
        baseline_from=_run_named(said, "baseline-from", here),
        resume=bool(said["resume"]),
        resume_from=_resume_from(said, here),
        shard=said["shard"],
        check=_check(said),
        no_judge=bool(said["no-judge"]),
        output=None if said["output"] is None else here.joinpath(said["output"]).absolute(),
        user_customizations=bool(said["user-customizations"]),
        record=bool(said["record"]),
        replay=bool(said["replay"]),
    )


def _run_named(said: dict[str, Any], name: str, here: Path) -> Path | Literal["latest"] | None:
    """`latest`, or the absolute path of an existing file. Raises pytest.UsageError."""
    given = said[name]
    if given is None:
        return None
    if name == "baseline-from" and said["replay"]:
        raise pytest.UsageError("--caliper-baseline-from and --caliper-replay exclude each other: cassettes replay the baseline")
    if given == "latest":
        return "latest"
    path = here.joinpath(given).absolute()
    if not given.strip() or not path.is_file():
        raise pytest.UsageError(f"--caliper-{name} {given}: there is no such file; name a run file, or latest")
    return path


def _resume_from(said: dict[str, Any], here: Path) -> Path | None:
    """The file to go on with. Raises pytest.UsageError when there is none, or what it is combined with makes no sense."""
    given = said["resume-from"]
    if (said["resume"] or given is not None) and said["replay"]:
        raise pytest.UsageError("--caliper-resume and --caliper-replay exclude each other: a replay is made anew in no time")
    if given is None:
        return None
    path = here.joinpath(given).absolute()
    if not path.is_file():
        raise pytest.UsageError(f"--caliper-resume-from {given}: there is no such file; name a journal (.jsonl) or a run file")
    return path


def _check(said: dict[str, Any]) -> bool:
    """Whether checks are tried instead of agents. Raises pytest.UsageError for what only makes sense with or without them."""
    if not said["check"]:
        if said["no-judge"]:
            raise pytest.UsageError("--caliper-no-judge belongs to --caliper-check: attempts cannot do without their judge")
        return False
    for name in ("record", "replay", "resume", "resume-from", "baseline-from", "no-regression", "shard"):
        if said[name]:
            raise pytest.UsageError(f"--caliper-check runs no agent and makes no run: leave --caliper-{name} out")
    return True


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
