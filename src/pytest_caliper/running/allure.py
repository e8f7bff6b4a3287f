"""Keeps out of Allure's results what workers of pytest-xdist go through without its being a test."""

from __future__ import annotations

import pytest


def leave_out_of_allure(item: pytest.Item) -> None:
    """Forget the result that allure-pytest began for an item, while its wrapper around the item is still open.

    It writes one for everything that xdist hands to a worker: a "skipped" one for idle items, and a "passed" one for bars, whose
    verdict only the session's own process knows. There is no public way to have it write none: `_cache` maps the item's id to
    that of its result, and without an entry the wrapper writes nothing (allure_pytest/listener.py, 2.13 to 2.16).
    """
    listener = item.config.pluginmanager.get_plugin("allure_listener")
    cache, logger = getattr(listener, "_cache", None), getattr(listener, "allure_logger", None)
    if cache is not None and logger is not None and (result := cache.pop(item.nodeid)) is not None:
        logger.drop_test(result)
