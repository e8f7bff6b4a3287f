"""Attempts in plain Python: the types of the fixture `caliper`, for annotations.

Example::

    import pytest
    from pytest_caliper.testing import Caliper

    @pytest.mark.caliper(k=5, bar=0.8, baseline=True)
    def test_commit(caliper: Caliper) -> None:
        run = caliper.run("Commit the staged change.", skill="./SKILL.md")
        assert run.ok
        assert caliper.judge(run, "The commit message says what changed and why.")
"""

from __future__ import annotations

from pytest_caliper.testing.api import AgentRun, Caliper, Judgement

__all__ = ["AgentRun", "Caliper", "Judgement"]
