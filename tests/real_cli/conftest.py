"""Fixtures of the tests that drive real agent CLIs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import agents
import netns
import pytest
from agents import Cli

pytest.register_assert_rewrite("cases")


def _obtain(install: Callable[[], Cli], *, required: bool = True) -> Cli:
    """The pinned CLI; the test is skipped with the reason where it or a network namespace cannot be had.

    With CALIPER_REQUIRE_REAL_CLI set, as in CI, that is a failure for those that are `required`: a layer that is skipped there
    tests nothing.
    """
    reason = netns.unavailable()
    if reason is None:
        try:
            return install()
        except agents.CannotInstall as error:
            reason = str(error)
    if required and os.environ.get("CALIPER_REQUIRE_REAL_CLI"):
        pytest.fail(f"a real CLI is required here: {reason}")
    pytest.skip(f"no real CLI: {reason}")


@pytest.fixture(scope="session")
def claude_cli() -> Path:
    """The binary of Claude Code."""
    return _obtain(agents.claude).binary


@pytest.fixture(scope="session")
def codex_cli() -> Cli:
    return _obtain(agents.codex)


@pytest.fixture(scope="session")
def pi_cli() -> Cli:
    return _obtain(agents.pi)


@pytest.fixture(scope="session")
def gemini_cli() -> Cli:
    return _obtain(agents.gemini, required=False)


@pytest.fixture(scope="session")
def opencode_cli() -> Cli:
    return _obtain(agents.opencode, required=False)


@pytest.fixture(scope="session")
def hermes_cli() -> Cli:
    return _obtain(agents.hermes, required=False)
