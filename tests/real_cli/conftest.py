"""Fixtures of the tests that drive real agent CLIs."""

from __future__ import annotations

import sys
from pathlib import Path

import agents
import pytest
from agents import Cli
from obtaining import obtain

if "cases" not in sys.modules:  # tests/faults may have come first
    pytest.register_assert_rewrite("cases")


@pytest.fixture(scope="session")
def claude_cli() -> Path:
    """The binary of Claude Code."""
    return obtain(agents.claude).binary


@pytest.fixture(scope="session")
def codex_cli() -> Cli:
    return obtain(agents.codex)


@pytest.fixture(scope="session")
def pi_cli() -> Cli:
    return obtain(agents.pi)


@pytest.fixture(scope="session")
def gemini_cli() -> Cli:
    return obtain(agents.gemini, required=False)


@pytest.fixture(scope="session")
def opencode_cli() -> Cli:
    return obtain(agents.opencode, required=False)


@pytest.fixture(scope="session")
def hermes_cli() -> Cli:
    return obtain(agents.hermes, required=False)
