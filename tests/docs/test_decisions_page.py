"""The index of decisions has every page and every decision in it."""

from __future__ import annotations

import re
from pathlib import Path

DECISIONS = Path(__file__).resolve().parents[2] / "docs" / "decisions"
FRAME = {"What was asked", "Context", "Decision", "What it costs", "Consequences"}
"""Headings of a page that holds a single decision."""


def test_the_index_has_every_decision() -> None:
    index = (DECISIONS / "index.md").read_text(encoding="utf-8")
    pages = sorted(DECISIONS.glob("0*.md"))
    assert [page.name for page in pages] == re.findall(r"^- \[\d+\]\(([^)]+)\)", index, re.M)
    for page in pages:
        headings = [title for title in re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.M) if title not in FRAME]
        assert headings == re.findall(rf"^  - \[(.+)\]\({re.escape(page.name)}#", index, re.M)
