from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from process_bench import Bench

from pytest_caliper.process import Processes


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Processes(f"test-{uuid.uuid4().hex}") as processes:
        yield Bench(processes=processes, dir=tmp_path)


@pytest.fixture
def bystanders() -> Iterator[list[psutil.Popen]]:
    """Processes that a test starts by itself, ended afterwards."""
    started: list[psutil.Popen] = []
    yield started
    for process in started:
        with suppress(psutil.NoSuchProcess):
            process.kill()
        process.wait()
