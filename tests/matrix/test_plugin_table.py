"""The table in docs/running.md is the one that is tested."""

from __future__ import annotations

import re

from environments import REPOSITORY
from other_plugins import PLUGINS


def test_the_documented_releases_are_those_that_are_tried() -> None:
    page = (REPOSITORY / "docs" / "running.md").read_text()
    rows = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", page, re.MULTILINE)
    assert dict(rows) == {plugin.project: plugin.lowest for plugin in PLUGINS.values()}
