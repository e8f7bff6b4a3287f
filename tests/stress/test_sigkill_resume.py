"""A few of the kills of `sigkill.py`, for every run of the tests; the script itself makes hundreds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import sigkill

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds survivors in /proc")


@pytest.mark.parametrize("way", [("--caliper-workers=4",), ("-n2",)], ids=["pool", "n2"])
def test_nothing_is_lost_or_run_twice_or_left(way):
    assert sigkill.rounds(5, 11, *way) >= 1
