"""What an agent, a hook or a judge sees of the host's environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_caliper.backends.environment import base_environment, host_home
from pytest_caliper.contracts import Workspace

PLACE = Workspace.at(Path("/attempt"))


def test_nothing_but_the_private_directories_and_a_path_come_of_an_empty_environment() -> None:
    assert base_environment({"HOME": "/nowhere"}, PLACE) == {
        "PATH": os.defpath,
        "HOME": "/attempt/home",
        "TMPDIR": "/attempt/tmp",
        "CALIPER_WORKDIR": "/attempt/work",
    }


@pytest.mark.parametrize(
    "name",
    [
        *("LANG", "LC_ALL", "TERM", "TZ", "SHELL", "USER", "LOGNAME", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "CI"),
    ],
)
def test_what_passes_through(name: str) -> None:
    assert base_environment({name: "value"}, PLACE)[name] == "value"


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PYTHONPATH", "PYTEST_CURRENT_TEST"),
        *(
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "CLAUDECODE",
            "CLAUDE_CONFIG_DIR",
            "CALIPER_SPEC_DIR",
            "SSH_AUTH_SOCK",
            "PATHS",
            "pATH",
        ),
    ],
)
def test_what_stays_outside(name: str) -> None:
    assert name not in base_environment({name: "value", "HOME": "/nowhere"}, PLACE)


def test_extra_path_comes_first_in_order() -> None:
    env = base_environment({"PATH": "/usr/bin:/bin"}, PLACE, extra_path=[Path("/spec/a b"), Path("/spec/c")])

    assert env["PATH"] == "/spec/a b:/spec/c:/usr/bin:/bin"


def test_the_specs_directory_is_told_only_when_it_is_given() -> None:
    assert "CALIPER_SPEC_DIR" not in base_environment({}, PLACE)
    assert base_environment({}, PLACE, spec_dir=Path("/spec"))["CALIPER_SPEC_DIR"] == "/spec"


def test_passed_patterns_let_more_through() -> None:
    host = {"AWS_REGION": "eu", "AWSOME": "no", "ONE": "1", "ONES": "2"}

    assert set(base_environment(host, PLACE, passed=("AWS_*", "ONE"))) & set(host) == {"AWS_REGION", "ONE"}


def test_version_managers_still_find_their_programs(tmp_path: Path) -> None:
    """HOME is replaced; without its root a shim of rustup or volta on PATH would find nothing."""
    (tmp_path / ".rustup").mkdir()
    (tmp_path / "elsewhere").mkdir()

    env = base_environment({"HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path / "elsewhere"), "NVM_DIR": "/missing"}, PLACE)

    assert env["RUSTUP_HOME"] == str(tmp_path / ".rustup")
    assert env["PYENV_ROOT"] == str(tmp_path / "elsewhere")
    assert {"NVM_DIR", "VOLTA_HOME"}.isdisjoint(env)


def test_the_hosts_mapping_is_not_changed() -> None:
    host = {"PATH": "/bin", "HOME": "/home/u"}

    base_environment(host, PLACE, extra_path=[Path("/x")])

    assert host == {"PATH": "/bin", "HOME": "/home/u"}


def test_the_home_is_that_of_the_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/process")

    assert host_home({"HOME": "/given"}) == Path("/given")
