"""Where agents can be run."""

from __future__ import annotations

import sys


def unsupported_reason() -> str | None:
    """One line for the user when agents cannot be run on this system, naming the remedy; None when they can."""
    if sys.platform in ("win32", "cygwin"):
        return (
            "caliper runs agents on Linux and macOS; on Windows run pytest inside WSL (https://learn.microsoft.com/windows/wsl)"
        )
    return None
