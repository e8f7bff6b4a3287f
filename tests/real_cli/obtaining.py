"""Gets a pinned CLI for a test, which is skipped where it cannot be had."""

from __future__ import annotations

import os
from collections.abc import Callable

import agents
import netns
import pytest
from agents import Cli


def obtain(install: Callable[[], Cli], *, required: bool = True) -> Cli:
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
