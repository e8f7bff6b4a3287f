"""The Hermes backend against the real CLI and a scripted model."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from agents import Cli
from cases import CASES, Bench, check, failed, fine
from subjects import HERMES

pytestmark = [pytest.mark.real_cli, pytest.mark.slow_cli]

SUBJECT = replace(HERMES, lists_skills=True, judge_tools=frozenset({"todo"}))


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, hermes_cli: Cli, tmp_path: Path) -> None:
    check(name, SUBJECT, hermes_cli, tmp_path)
