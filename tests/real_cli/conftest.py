"""Fixtures of the tests that drive real agent CLIs."""

from __future__ import annotations

import os
from pathlib import Path

import agents
import netns
import pytest


@pytest.fixture(scope="session")
def claude_cli() -> Path:
    """The pinned Claude Code; the test is skipped with the reason where it or a network namespace cannot be had.

    With CALIPER_REQUIRE_REAL_CLI set, as in CI, that is a failure: a layer that is skipped there tests nothing.
    """
    reason = netns.unavailable()
    path = None
    if reason is None:
        try:
            path = agents.install(*agents.CLAUDE)
        except agents.CannotInstall as error:
            reason = str(error)
    if path is None:
        if os.environ.get("CALIPER_REQUIRE_REAL_CLI"):
            pytest.fail(f"a real CLI is required here: {reason}")
        pytest.skip(f"no real CLI: {reason}")
    return path
