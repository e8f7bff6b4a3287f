"""`caliper completion`: the scripts, sourced in the shells that are here."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.cli.completion import INSTALL, all_commands
from pytest_caliper.cli.main import COMMANDS

sys.path.append(str(Path(__file__).parents[1] / "reporting"))

from builders import task

PROGRAM = Path(sys.executable).with_name("caliper")
SHELLS = tuple(INSTALL)


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


@pytest.fixture
def place(saved: Any, caliper: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two saved runs of `evals/commit`, a spec, another file, and the scripts."""
    saved.run("evals/commit", task("PPF"), day=1)
    saved.run("evals/commit", task("PPP"), day=2)
    (saved.root / "alone.eval.yaml").write_text("")
    (saved.root / "alone.txt").write_text("")
    (saved.root / "some dir").mkdir()
    for shell in SHELLS:
        (saved.root / f"caliper.{shell}").write_text(caliper("completion", shell).out)
    monkeypatch.setenv("PATH", f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}")
    return Path(saved.root)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_name_every_command_and_long_option(shell: str, caliper: Any) -> None:
    script = caliper("completion", shell).out
    for command in all_commands():
        assert command.name in script
        for flag in command.flags:
            for name in flag.names:
                assert (name[2:] if shell == "fish" else name) in script
            for word in () if flag.value is None else flag.value.words:
                assert word in script


def test_every_command_has_its_words_told_apart() -> None:
    commands = {command.name: command for command in all_commands()}
    assert list(commands) == [command.name for command in COMMANDS]
    kinds = {name: None if c.argument is None else c.argument.kind for name, c in commands.items()}
    expected = {"run": "spec", "validate": "spec", "list": "saved", "report": "run", "compare": "run", "schema": None}
    assert kinds.items() >= expected.items()
    flags = {name: flag for flag in commands["run"].flags for name in flag.names}
    assert "claude-code" in flags["--model"].value.words
    assert flags["--no-regression"].value.words == ("latest",)
    assert flags["--baseline"].value is None
    assert flags["--results"].value.kind == "directory"


@pytest.mark.parametrize(
    ("words", "status", "out"),
    [
        (["saved"], 0, "evals/commit\n"),
        (["run"], 0, "evals/commit\nevals/commit~1\nday-2\nday-1\n"),
        (["else"], 2, ""),
        ([], 2, ""),
    ],
)
@pytest.mark.usefixtures("place")
def test_candidates(words: list[str], status: int, out: str, caliper: Any) -> None:
    told = caliper("__candidates", *words)
    assert (told.status, told.out) == (status, out)


def test_nothing_saved_is_no_candidate_and_no_complaint(saved: Any, caliper: Any) -> None:
    told = caliper("__candidates", "run")
    assert (told.status, told.out, told.err) == (0, "", "")


def test_candidates_import_nothing_slow(place: Path) -> None:
    code = (
        "import sys; from pytest_caliper.cli import main; main(['__candidates', 'run']);"
        "slow = {'pytest', 'pydantic', 'yaml', 'rich'} & set(sys.modules); assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", code], cwd=place, check=True, timeout=60)


# -- bash -----------------------------------------------------------------------------------------------------------------------

CASES = [
    (["caliper", "rep"], {"report"}),
    (["caliper", "report", "--format", ""], {"text", "html", "md", "json", "junit"}),
    (["caliper", "report", "--format", "=", "ht"], {"html"}),
    (["caliper", "report", "--fo"], {"--format"}),
    (["caliper", "run", "--bas"], {"--baseline", "--baseline-from"}),
    (["caliper", "run", "--model", "cod"], {"codex"}),
    (["caliper", "run", "al"], {"alone.eval.yaml"}),
    (["caliper", "run", "--k", ""], set()),
    (["caliper", "run", "--results", "so"], {"some dir"}),
    (["caliper", "list", "ev"], {"evals/commit"}),
    (["caliper", "report", "ev"], {"evals/commit", "evals/commit~1"}),
    (["caliper", "compare", "evals/commit", "day"], {"day-1", "day-2"}),
    (["caliper", "completion", ""], {"bash", "zsh", "fish"}),
    (["caliper", "compare", "alone.t"], {"alone.txt"}),
]


@needs("bash")
def test_bash_takes_the_script(place: Path) -> None:
    done = subprocess.run(
        ["bash", "--norc", "-c", "source caliper.bash && complete -p caliper"],
        check=True,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("complete -F _caliper caliper\n", "")


@needs("bash")
@pytest.mark.parametrize(("words", "expected"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_bash_completes(words: list[str], expected: set[str], place: Path) -> None:
    code = 'source caliper.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _caliper caliper; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", code, "bash", *words], cwd=place, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    assert set(filter(None, done.stdout.split("\n"))) == expected


# -- fish -----------------------------------------------------------------------------------------------------------------------


@needs("fish")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("caliper rep", {"report"}),
        ("caliper report --format ", {"text", "html", "md", "json", "junit"}),
        ("caliper run --bas", {"--baseline", "--baseline-from"}),
        ("caliper run --model cod", {"codex"}),
        ("caliper list ev", {"evals/commit"}),
        ("caliper report evals/c", {"evals/commit", "evals/commit~1"}),
        ("caliper completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_fish_completes(line: str, expected: set[str], place: Path) -> None:
    env = {**os.environ, "HOME": str(place), "XDG_CONFIG_HOME": str(place / "config")}
    done = subprocess.run(
        ["fish", "--no-config", "-c", "source caliper.fish; complete -C $argv[1]", line],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert {offered.partition("\t")[0] for offered in done.stdout.splitlines()} == expected


# -- zsh ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def zsh(place: Path) -> Any:
    """Types a line into an interactive zsh, presses Tab, and gives what the line is then."""
    setup = (
        "autoload -Uz compinit; compinit -u -D; source caliper.zsh; bindkey '^I' complete-word; "
        "keep() { print -r -- \"$BUFFER\" > buffer; BUFFER=; mv buffer kept; }; zle -N keep; bindkey '^X' keep; : > ready\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        env = {**os.environ, "TERM": "dumb", "HOME": str(place), "HISTFILE": ""}
        os.chdir(place)
        os.execvpe("zsh", ["zsh", "-f", "-i"], env)

    def until(there: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not there():
            assert time.monotonic() < end, "zsh does not answer"
            if select.select([terminal], [], [], 0.05)[0]:
                os.read(terminal, 65536)

    def complete(line: str) -> str:
        kept = place / "kept"
        os.write(terminal, f"{line}\t\x18".encode())
        until(kept.exists)
        text = kept.read_text()
        kept.unlink()
        return text.rstrip("\n")

    os.write(terminal, setup.encode())
    until((place / "ready").exists)
    yield complete
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)


@needs("zsh")
def test_zsh_completes(zsh: Callable[[str], str]) -> None:
    cases = {
        "caliper rep": "caliper report ",
        "caliper report --format h": "caliper report --format html ",
        "caliper report --format=ht": "caliper report --format=html ",
        "caliper run --model cod": "caliper run --model codex ",
        "caliper run al": "caliper run alone.eval.yaml ",
        "caliper run --no-reg": "caliper run --no-regression=",
        "caliper list ev": "caliper list evals/commit ",
        "caliper report evals/commit~": r"caliper report evals/commit\~1 ",
        "caliper completion f": "caliper completion fish ",
    }
    assert {line: zsh(line) for line in cases} == cases
