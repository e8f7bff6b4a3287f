"""Hooks that others may implement, in a conftest.py or a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_caliper.contracts import Backend
    from pytest_caliper.runs.records import AttemptRecord


@pytest.hookspec
def pytest_caliper_backends(config: pytest.Config) -> list[Backend]:  # type: ignore[empty-body]
    """Contribute backends: adapters for agent CLIs that this package does not know.

    Called once per process, when the first spec is opened. A name or alias that is taken already is a usage error.

    Example::

        def pytest_caliper_backends(config):
            return [MyAgent()]
    """


@pytest.hookspec
def pytest_caliper_record(config: pytest.Config, record: AttemptRecord) -> None:
    """See each finished attempt, once, as it is reported, in the process that writes the results (never in an xdist worker).

    The record is redacted already. What is raised here ends the session as any hook's error does.

    Example::

        def pytest_caliper_record(config, record):
            print(record.key.task_id, record.outcome)
    """
