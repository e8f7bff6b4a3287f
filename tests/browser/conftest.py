"""One browser for all tests of this directory.

A machine without a Chromium skips them, saying so; with CALIPER_REQUIRE_BROWSER set, as in CI, that is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import chromium
import pytest


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    program = chromium.find()
    if program is None:
        reason = "no Chromium found: install `chromium`, or name one in CALIPER_CHROMIUM"
        (pytest.fail if os.environ.get("CALIPER_REQUIRE_BROWSER") else pytest.skip)(reason)
    browser = chromium.Browser(program, tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def browser(_browser: chromium.Browser) -> chromium.Browser:
    """The browser at 1280 x 900 in light colours, with nothing remembered."""
    _browser.size(1280, 900)
    _browser.prefers("light")
    _browser.script(True)
    return _browser
