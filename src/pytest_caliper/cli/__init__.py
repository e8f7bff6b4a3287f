"""The thin `caliper` command."""

from __future__ import annotations

from pytest_caliper.cli.main import main

__all__ = ["main"]
