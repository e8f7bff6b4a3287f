"""The terminal as our reports must know it."""

from __future__ import annotations

import sys

import pytest

from pytest_caliper.reporting.terminal import Style

PROBE = "✓✗⊘✂Δ—…"


def style_of(config: pytest.Config) -> Style:
    """Width, colour and alphabet of pytest's own terminal writer, so that its precedence of --color and NO_COLOR holds."""
    writer = config.get_terminal_writer()
    encoding = getattr(getattr(writer, "_file", sys.stdout), "encoding", None) or "utf-8"
    try:
        PROBE.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        unicode = False
    else:
        unicode = True
    return Style(width=writer.fullwidth, color=writer.hasmarkup, unicode=unicode)
