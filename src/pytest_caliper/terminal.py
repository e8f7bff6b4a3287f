"""The terminal as our reports must know it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import pytest

from pytest_caliper.reporting.terminal import Style
from pytest_caliper.reporting.text import printable


class Transient(Protocol):
    """Something on the terminal that comes and goes."""

    def away(self) -> AbstractContextManager[None]:
        """Take it away for as long as pytest writes."""


PROBE = "✓✗⊘✂Δ—…"
STATUS_LINE: pytest.StashKey[Transient] = pytest.StashKey()
"""The line below pytest's own while attempts run, where there is one."""


def style_of(config: pytest.Config) -> Style:
    """Width, colour and alphabet of pytest's own terminal writer, so that its precedence of --color and NO_COLOR holds."""
    writer = _writer(config)
    if writer is None:
        return Style(width=80, color=False, unicode=True)
    encoding = getattr(getattr(writer, "_file", sys.stdout), "encoding", None) or "utf-8"
    try:
        PROBE.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        unicode = False
    else:
        unicode = True
    return Style(width=writer.fullwidth, color=writer.hasmarkup, unicode=unicode)


def shows_progress(config: pytest.Config) -> bool:
    """Whether somebody sits before a terminal that shows how the run goes on."""
    writer = _writer(config)
    return writer is not None and writer.hasmarkup


def say(config: pytest.Config, lines: Iterable[str]) -> None:
    """Lines of ours while the session runs; main thread. Quiet sessions (`-q`) hear nothing before the end."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.get_verbosity() < 0:
        return
    status = config.stash.get(STATUS_LINE, None)
    with nullcontext() if status is None else status.away():
        for line in lines:
            reporter.ensure_newline()
            if config.get_terminal_writer().width_of_current_line:  # under xdist the reporter does not know of its own dots
                reporter.write_line("")
            reporter.write_line(printable(f"caliper: {line}"))


def _writer(config: pytest.Config) -> Any:
    """pytest's terminal writer; None with `-p no:terminal`, where asking the config for it fails."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return None if reporter is None else config.get_terminal_writer()
