"""A session of the measured suite, in the environment of a box."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import environments
import pytest
from environments import Box
from measured_suite import Done, run_suite, write_suite
from other_plugins import PLUGINS, Plugin

Session = Callable[..., Done]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """`session(box, plugins, *arguments)` runs the suite with these plugins switched on, and those of the box beside them."""

    def run(box: Box, plugins: Mapping[str, Plugin], *arguments: str) -> Done:
        python = environments.python_of(box)
        files, env, options = {}, {}, []
        present = [plugin for plugin in PLUGINS.values() if box.has(plugin.project)]
        ini = [line for plugin in present for line in plugin.always]
        filters = [line for plugin in present for line in plugin.filters]
        for plugin in plugins.values():
            files.update(plugin.files)
            env.update(plugin.env)
            ini += plugin.ini
            options += plugin.options
        path = write_suite(tmp_path.resolve() / f"suite-{len(list(tmp_path.iterdir()))}", files, ini, filters)
        return run_suite(python, path, *options, *arguments, env=env)

    return run
