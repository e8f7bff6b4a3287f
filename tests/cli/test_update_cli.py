"""`caliper update-cli` against programs that say what the real ones say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_caliper.cli import main

NPM = """#!/bin/sh
case "$2" in
  @anthropic-ai/claude-code) echo 2.1.332 ;;
  *) echo "npm error 404" >&2; exit 1 ;;
esac
"""


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with npm and the usual shell alone."""
    for name in list(os.environ):
        if name.endswith("_CLI_PATH"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    program(tmp_path / "npm", NPM)
    return tmp_path


def claude(bin_dir: Path, version: str, update: str = "exit 0") -> None:
    program(
        bin_dir / "claude",
        f'#!/bin/sh\nif [ "$1" = update ]; then touch {bin_dir}/updated; {update}; fi\necho "{version} (Claude Code)"\n',
    )


def test_a_cli_that_is_behind_is_updated_by_its_own_command(bin_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    claude(bin_dir, "2.1.197")
    assert main(["update-cli", "claude"]) == 0
    assert f"claude-code: 2.1.197 (newest 2.1.332), {bin_dir}/claude" in capfd.readouterr().out
    assert (bin_dir / "updated").exists()


def test_check_changes_nothing(bin_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    claude(bin_dir, "2.1.197")
    assert main(["update-cli", "claude-code", "--check"]) == 0
    assert "newest 2.1.332" in capfd.readouterr().out
    assert not (bin_dir / "updated").exists()


def test_what_is_up_to_date_is_left_alone(bin_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    claude(bin_dir, "2.1.332")
    assert main(["update-cli", "claude"]) == 0
    assert "claude-code: 2.1.332 (up to date)" in capfd.readouterr().out
    assert not (bin_dir / "updated").exists()


def test_a_failed_update_is_told(bin_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    claude(bin_dir, "2.1.197", update="exit 7")
    assert main(["update-cli", "claude"]) == 1
    assert "failed with status 7" in capfd.readouterr().out


def test_without_npm_the_newest_version_is_unknown(bin_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    claude(bin_dir, "2.1.197")
    program(bin_dir / "npm", "#!/bin/sh\nexit 1\n")
    assert main(["update-cli", "claude"]) == 0
    assert "claude-code: 2.1.197 (newest unknown)" in capfd.readouterr().out
    assert not (bin_dir / "updated").exists()


def test_a_cli_that_is_missing_is_told_with_the_remedy(bin_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["update-cli", "claude"]) == 0
    assert "claude-code: not usable (newest 2.1.332): " in capfd.readouterr().out


def test_an_unknown_backend_is_bad_usage(bin_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["update-cli", "clod"]) == 2
    assert "'clod' is no agent CLI" in capfd.readouterr().err
