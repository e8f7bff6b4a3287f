"""The page on migrating names every flag, command and key of the real caliper-eval 0.21, and of the versions that it is about."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NoReturn

import foreign
import pytest

from pytest_caliper.cli.main import COMMANDS
from pytest_caliper.options import OPTIONS

pytestmark = pytest.mark.interop

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
_KEYS = """
import inspect, json
from caliper.schema import spec
found = set()
for thing in vars(spec).values():
    if inspect.isclass(thing) and thing.__module__ == spec.__name__ and hasattr(thing, "model_fields"):
        found |= {field.alias or name for name, field in thing.model_fields.items()}
print(json.dumps(sorted(found)))
"""


def cannot(error: foreign.NoIndex) -> NoReturn:
    if os.environ.get("CALIPER_REQUIRE_REAL_CLI"):
        pytest.fail(f"the real caliper-eval is required here: {error}")
    pytest.skip(f"no caliper-eval: {error}")


def told(section: str) -> set[str]:
    """The code in the first column of the tables of a section, word by word."""
    (text,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    cells = [row.split("|")[1] for row in text.splitlines() if row.startswith("| ")]
    return {word for cell in cells for code in re.findall(r"`([^`]+)`", cell) for word in code.split()}


@cache
def helped(version: str, *words: str, home: Path) -> str:
    try:
        return foreign.caliper(version, *words, "--help", cwd=home, home=home).stdout
    except foreign.NoIndex as error:
        cannot(error)


def flags(text: str) -> set[str]:
    """The options of a help text, long and short; the first on its line, and what stands beside it."""
    pairs = re.findall(r"^\W*(--[a-z-]+)(?:\W+(--no-[a-z-]+|-[a-z]\b))?", text, re.M)
    return {flag for pair in pairs for flag in pair if flag}


@pytest.mark.parametrize("version", foreign.VERSIONS)
def test_every_flag_of_its_run_command_is_told(version: str, tmp_path: Path) -> None:
    found = flags(helped(version, "run", home=tmp_path))
    assert {"--k", "--model", "-m", "--verbose", "-v", "--timeout"} <= found
    assert found <= told("Flags of `caliper run`")


@pytest.mark.parametrize("version", foreign.VERSIONS)
def test_every_key_of_its_specs_is_told(version: str) -> None:
    try:
        python = foreign.python_of(version)
    except foreign.NoIndex as error:
        cannot(error)
    done = subprocess.run([python, "-c", _KEYS], capture_output=True, text=True, check=True)
    keys = set(json.loads(done.stdout))
    assert {"tasks", "prompt", "assert", "sandbox"} <= keys
    words = {part for word in told("Keys of a spec") for part in word.strip(",").split(".")}
    assert keys <= words


def test_nothing_is_told_that_no_version_has(tmp_path: Path) -> None:
    offered = set().union(*(flags(helped(version, "run", home=tmp_path)) for version in foreign.VERSIONS))
    assert {word for word in told("Flags of `caliper run`") if word.startswith("-")} <= offered


def test_every_command_of_0_21_is_told_with_its_flags(tmp_path: Path) -> None:
    text = helped("0.21.0", home=tmp_path)
    commands = set(re.findall(r"^│ ([a-z-]+) +[A-Z]", text, re.M))
    assert {"run", "report", "compare", "list", "validate", "login", "logout"} == commands
    assert commands <= told("Commands")
    for command in ("report", "compare"):
        here = told("Commands") | told("Flags of `caliper run`")
        short = {"-f"}  # of --format
        assert flags(helped("0.21.0", command, home=tmp_path)) - short <= here


def test_what_stands_for_it_here_exists() -> None:
    ours = {f"--caliper-{option.name}" for option in OPTIONS}
    rows = [row.split("|")[2] for row in PAGE.splitlines() if row.startswith("| `--")]
    named = {flag for cell in rows for flag in re.findall(r"--caliper-[a-z-]+", cell)}
    assert len(named) > 8
    assert named <= ours
    (section,) = re.findall(r"^## Commands\n(.*?)(?=^## )", PAGE, re.M | re.S)
    second = [row.split("|")[2] for row in section.splitlines() if row.startswith("| `")]
    assert {word for cell in second for word in re.findall(r"`caliper ([a-z-]+)", cell)} <= {command.name for command in COMMANDS}
