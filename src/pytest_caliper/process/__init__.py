"""One child process: spawned, bounded, stopped, and cleared up to the last grandchild."""

from __future__ import annotations

from pytest_caliper.process.monitor import Cause, Watched
from pytest_caliper.process.platform import unsupported_reason
from pytest_caliper.process.processes import Ended, Processes
from pytest_caliper.process.table import TAG_VARIABLE

__all__ = ["TAG_VARIABLE", "Cause", "Ended", "Processes", "Watched", "unsupported_reason"]
