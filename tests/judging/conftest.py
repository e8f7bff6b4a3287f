from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from judging_bench import AssertBench

from pytest_caliper.judging.assert_client import AssertRunner
from pytest_caliper.process import Processes


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Processes, AssertRunner]]:
    """One helper for the tests that neither kill nor cancel it."""
    with Processes(f"test-{uuid.uuid4().hex}") as processes:
        runner = AssertRunner(processes, os.environ)
        yield processes, runner
        runner.close()


@pytest.fixture
def bench(tmp_path: Path, shared: tuple[Processes, AssertRunner]) -> AssertBench:
    return AssertBench(dir=tmp_path, processes=shared[0], runner=shared[1])


@pytest.fixture
def own_bench(tmp_path: Path) -> Iterator[AssertBench]:
    """With a helper of its own."""
    with Processes(f"test-{uuid.uuid4().hex}") as processes:
        runner = AssertRunner(processes, os.environ)
        yield AssertBench(dir=tmp_path, processes=processes, runner=runner)
        runner.close()
