"""Credentials that pi's files name: variables and commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_caliper.backends.pi_values import CachedRun, literal, missing_names, resolve, run_command

ENV = {"KEY": "k-1", "OTHER": "o-2", "EMPTY": ""}


def never(command: str, env: Mapping[str, str]) -> str | None:
    raise AssertionError(f"{command} must not run with {env}")


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("sk-plain", "sk-plain"),
        ("$KEY", "k-1"),
        ("${KEY}", "k-1"),
        ("Bearer ${KEY}-$OTHER", "Bearer k-1-o-2"),
        ("$$KEY", "$KEY"),
        ("$!KEY", "!KEY"),
        ("a$", "a$"),
        ("${", "${"),
        ("${not a name}", "${not a name}"),
        ("$1", "$1"),
        ("KEY", "KEY"),
        ("$UNSET", None),
        ("$EMPTY", None),
        ("x${UNSET}y", None),
    ],
)
def test_a_template(value: str, meant: str | None) -> None:
    assert resolve(value, ENV, templates=True, run=never) == meant


@pytest.mark.parametrize(("value", "meant"), [("KEY", "k-1"), ("sk-plain", "sk-plain"), ("$KEY", "$KEY"), ("EMPTY", "EMPTY")])
def test_a_value_of_an_old_pi(value: str, meant: str) -> None:
    assert resolve(value, ENV, templates=False, run=never) == meant


@pytest.mark.parametrize("templates", [True, False])
def test_a_command_prints_the_value(templates: bool) -> None:
    assert (
        resolve("!print $KEY", ENV, templates=templates, run=lambda command, env: f"{command}|{env['KEY']}") == "print $KEY|k-1"
    )


@pytest.mark.parametrize("text", ["plain", "$KEY", "a$$b", "!rm -rf", "!$KEY", "${KEY}", "$!", "$"])
def test_a_literal_means_itself(text: str) -> None:
    assert resolve(literal(text, templates=True), ENV, templates=True, run=never) == text


def test_an_old_pi_cannot_be_told_an_exclamation_mark() -> None:
    assert literal("$KEY", templates=False) == "$KEY"
    with pytest.raises(ValueError, match="would be run as a command"):
        literal("!x", templates=False)


def test_missing_names() -> None:
    assert missing_names("$UNSET ${EMPTY} $KEY $UNSET $$UNSEEN", ENV) == ["UNSET", "EMPTY"]
    assert missing_names("!echo $UNSET", ENV) == []


def test_a_command_runs_in_the_users_home_and_environment(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "WORD": "secret"}
    (tmp_path / "key").write_text("from-file\n\n")

    assert run_command("cat key", env) == "from-file"
    assert run_command('printf "%s" "$HOME/$WORD"', env) == f"{tmp_path}/secret"
    assert run_command("echo x; exit 3", env) is None
    assert run_command("true", env) is None


def test_a_command_runs_once_until_its_answer_is_old() -> None:
    calls: list[str] = []
    answers: dict[str, str | None] = {"a": "1", "b": None}
    clock = [0.0]

    def run(command: str, env: Mapping[str, str]) -> str | None:
        calls.append(command)
        return answers[command]

    cached = CachedRun(run, now=lambda: clock[0], keep_s=10)
    home = {"HOME": "/home/a"}

    assert [cached("a", home), cached("a", home), cached("b", home), cached("b", home)] == ["1", "1", None, None]
    assert calls == ["a", "b", "b"]
    cached("a", {"HOME": "/home/b"})
    clock[0] = 11.0
    cached("a", home)
    assert calls == ["a", "b", "b", "a", "a"]
