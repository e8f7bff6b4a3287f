"""How the program of an agent CLI is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_caliper.backends.finding import Wanted, find_cli
from pytest_caliper.contracts import CliInfo, EngineError

WANTED = Wanted(
    title="The Agent",
    program="agent",
    variable="AGENT_CLI_PATH",
    oldest=(1, 18, 0),
    install="npm install -g agent",
    environment={"AGENT_QUIET": "1"},
)


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("printed", ["1.18.0", "1.18.33", "agent 2.0.0-beta.1", "10.2.3"])
def test_the_cli_is_found_on_path(printed: str, tmp_path: Path) -> None:
    path = program(tmp_path / "bin/agent", f"echo '{printed}'")

    found = find_cli(WANTED, {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})

    assert found == CliInfo(path=path, version=printed.rsplit(maxsplit=1)[-1])


def test_a_forced_binary_wins(tmp_path: Path) -> None:
    program(tmp_path / "bin/agent", "echo 1.19.0")
    forced = program(tmp_path / "other/my agent", "echo 1.20.0")

    found = find_cli(WANTED, {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "AGENT_CLI_PATH": str(forced)})

    assert found == CliInfo(path=forced, version="1.20.0")


@pytest.mark.parametrize("mode", [None, 0o644, "directory"])
def test_a_forced_binary_that_cannot_run_is_an_error(mode: Any, tmp_path: Path) -> None:
    path = tmp_path / "agent"
    if mode == "directory":
        path.mkdir()
    elif mode is not None:
        program(path, "echo 1.18.0").chmod(mode)

    with pytest.raises(EngineError, match=r"AGENT_CLI_PATH is .*, which is no executable file"):
        find_cli(WANTED, {"PATH": "/usr/bin:/bin", "AGENT_CLI_PATH": str(path)})


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 1.17.9", r"The Agent 1\.17\.9 .* is too old, 1\.18\.0 is needed: update it with `npm install -g agent`"),
        ("echo hello", "printed no version"),
        ("echo; echo broken >&2; exit 3", r"failed with exit code 3 \(broken\)"),
    ],
)
def test_a_cli_that_will_not_do(script: str, says: str, tmp_path: Path) -> None:
    program(tmp_path / "agent", script)

    with pytest.raises(EngineError, match=says):
        find_cli(WANTED, {"PATH": f"{tmp_path}:/usr/bin:/bin"})


def test_a_missing_cli_is_told_how_to_be_installed(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"not installed: .*`npm install -g agent`, or name the binary in AGENT_CLI_PATH"):
        find_cli(WANTED, {"PATH": str(tmp_path)})


def test_a_file_of_another_machine_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "agent"
    path.write_bytes(b"\x7fELF not for here")
    path.chmod(0o755)

    with pytest.raises(EngineError, match="does not start"):
        find_cli(WANTED, {"PATH": str(tmp_path)})


def test_asking_for_the_version_touches_no_home_of_the_users(tmp_path: Path) -> None:
    program(tmp_path / "bin/agent", 'touch "$HOME/touched"; echo "1.18.5 quiet=$AGENT_QUIET $SECRET"')
    (tmp_path / "user").mkdir()

    found = find_cli(WANTED, {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path / "user"), "SECRET": "s"})

    assert found.version == "1.18.5"
    assert list((tmp_path / "user").iterdir()) == []
