"""Where skills come from, what of them is installed, and what never is."""

from __future__ import annotations

from pytest_caliper.sources.skills import resolve_skill, resolve_skills

__all__ = ["resolve_skill", "resolve_skills"]
