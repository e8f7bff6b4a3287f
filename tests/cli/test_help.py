"""`--help` of every command: it says what each word is for, its examples work, and it fits a terminal of 80 columns."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.cli import main
from pytest_caliper.cli.main import COMMANDS, parser_of
from pytest_caliper.cli.run import respelled
from pytest_caliper.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
NAMES = [command.name for command in COMMANDS]
every_command = pytest.mark.parametrize("name", NAMES)


def help_of(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    return parser_of(name).format_help()


def examples(text: str) -> list[list[str]]:
    """The commands below `Examples:`, as a shell reads them, without what is said of them and what a shell does with them."""
    part = text.partition("Examples:\n")[2].partition("\n\n")[0]
    lines = [re.split(r" {2,}", line.strip())[0] for line in part.splitlines() if re.match(r"  \S", line)]
    found = []
    for line in lines:
        command = re.sub(r'^(?:eval "\$\(|source <\()(.*?)\)"?$', r"\1", line)
        found.append(shlex.split(command.partition(" > ")[0]))
    return found


@every_command
def test_every_word_of_a_command_is_explained(name: str) -> None:
    for action in parser_of(name)._actions:
        assert action.help, action
        assert action.help != argparse.SUPPRESS
        takes_a_value = action.nargs != 0
        assert not takes_a_value or action.metavar or action.choices, f"{action.dest} has no metavar"


@every_command
def test_help_says_what_when_and_what_next(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = help_of(name, monkeypatch)
    for part in ("usage: caliper " + name, "Examples:\n", "Exit status:", "\nNext: "):
        assert part in text, part
    assert examples(text)


@pytest.mark.parametrize("name", [*NAMES, None])
def test_help_fits_eighty_columns(name: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ["--help"] if name is None else [name, "--help"]
    with suppress(SystemExit):
        main(words)
    out = capsys.readouterr().out
    assert out
    assert [line for line in out.splitlines() if len(line) > 80] == []


@every_command
def test_examples_are_read_by_the_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in examples(help_of(name, monkeypatch)):
        assert words[:2] == ["caliper", name], words
        if name == "run":  # pytest reads it
            assert set(words) >= {word for word in words[2:] if word.startswith("--")}
            assert [word for word in respelled(words[2:]) if word.startswith("--caliper")]
            continue
        _, unknown = parser_of(name).parse_known_args(words[2:])
        assert unknown == []


def test_the_page_has_every_command() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `caliper ([\w-]+)", page, re.M)
    assert sorted(documented) == sorted(NAMES)


def test_every_option_of_pytest_has_a_text_and_fits() -> None:
    env = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"], env=env, capture_output=True, text=True, check=True, timeout=120
    )
    group = done.stdout.partition("evaluation of agent skills (pytest-caliper):\n")[2].partition("\n\n")[0]
    entries = re.split(r"^  (?=--)", group, flags=re.M)[1:]
    assert len(entries) == len(OPTIONS) + 1
    assert all(re.match(r"--caliper\S*\s+\S", entry) for entry in entries)
    assert max(map(len, group.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["repot", "x"], "there is no command repot; did you mean report?"),
        (["comapre"], "did you mean compare?"),
        (["commit.eval.yaml"], "it is run with: caliper run commit.eval.yaml"),
        (["commit.eval.yaml::Task"], "it is run with: caliper run commit.eval.yaml::Task"),
        (["zzzzz"], "there is no command zzzzz\n"),
        (["report", "x", "--fromat", "md"], "there is no option --fromat; did you mean --format?"),
        (["list", "--lst=3"], "there is no option --lst; did you mean --last?"),
        (["list", "a", "b"], "unrecognized arguments: b"),
        (["report", "x", "--format", "hmtl"], "invalid choice"),
    ],
)
def test_a_slip_is_told_with_what_was_meant(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_slip_in_an_option_of_run_is_told_before_pytest_reads_it(monkeypatch: pytest.MonkeyPatch, caliper: Any) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: 0)
    told = caliper("run", "a.eval.yaml", "--basline", "--cov-report=term")
    assert told.err == "caliper: --basline is left to pytest; did you mean --baseline?\n"
    assert caliper("run", "a.eval.yaml", "--baseline", "-k", "x", "--junitxml=f").err == ""


def test_help_is_a_command_too(caliper: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "list"], ["help"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith("usage: caliper")
    assert caliper("help", "run").out.startswith("usage: caliper run SPEC")


# -- the next step --------------------------------------------------------------------------------------------------------------


def sit_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both streams are a terminal, and nothing says that this is CI."""
    monkeypatch.delenv("CI", raising=False)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)


def two_runs(saved: Any) -> None:
    sys.path.append(str(ROOT / "tests" / "reporting"))
    from builders import task

    saved.run("commit", task("PPF"), day=1)
    saved.run("commit", task("PPP"), day=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list"], "next: caliper report commit\n"),
        (["list", "commit"], "next: caliper compare commit\n"),
        (["report", "commit"], "next: caliper compare commit\n"),
        (["report", "commit~1"], "next: caliper report 'commit~1' --format html --output report.html\n"),
        (["compare", "commit"], "next: caliper report commit\n"),
        (["history", "commit"], "next: caliper compare commit\n"),
        (["list", "--format", "json"], ""),
        (["report", "commit", "--format", "md"], ""),
        (["report", "commit", "--output", "out.txt"], ""),
        (["completion", "zsh"], "next: echo 'source <(caliper completion zsh)' >> ~/.zshrc\n"),
    ],
)
def test_each_command_ends_with_the_next_one(
    words: list[str], said: str, saved: Any, caliper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_runs(saved)
    sit_at_a_terminal(monkeypatch)
    assert caliper(*words).err == said


def test_a_valid_spec_is_checked_next_and_another_place_is_named_again(
    saved: Any, caliper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_runs(saved)
    sit_at_a_terminal(monkeypatch)
    (saved.root / "my spec.eval.yaml").write_text("tasks:\n  - {name: A, prompt: x, expect: y}\n")
    assert caliper("validate", "my spec.eval.yaml").err == "next: caliper check 'my spec.eval.yaml'\n"
    (saved.root / "bad.eval.yaml").write_text("tasks: 1\n")
    assert caliper("validate", "bad.eval.yaml").err == ""
    told = caliper("list", "commit", "--results", ".caliper/results")
    assert told.err == "next: caliper compare commit --results .caliper/results\n"


def test_nothing_is_suggested_in_ci(saved: Any, caliper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(saved)
    sit_at_a_terminal(monkeypatch)
    monkeypatch.setenv("CI", "true")
    assert caliper("list").err == ""


def test_nothing_is_suggested_in_a_pipe(saved: Any, caliper: Any) -> None:
    two_runs(saved)
    assert caliper("list").err == ""
