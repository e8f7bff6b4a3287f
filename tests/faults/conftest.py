"""Projects whose CLI is a recording or the real one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REAL_CLI = Path(__file__).parents[1] / "real_cli"
sys.path.insert(0, str(REAL_CLI))
pytest.register_assert_rewrite("cases")

from fault_bench import Bench  # noqa: E402
from fault_clis import CLAUDE, CODEX, write_program  # noqa: E402
from fault_real import REAL, RealBench  # noqa: E402
from obtaining import obtain  # noqa: E402

RECORDED = {cli.name: cli for cli in (CLAUDE, CODEX)}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], Bench]]:
    """Make a bench of a backend and a way whose CLI answers with recordings."""
    made: list[Bench] = []

    def make(backend: str, way: str) -> Bench:
        cli = RECORDED[backend]
        path = tmp_path_factory.mktemp("fault").resolve()
        program = write_program(cli, path, path / "ledger")
        bench = Bench(path=path, backend=backend, way=way, env={cli.variable: str(program)})
        name, login = cli.login
        bench.write(f"user/{name}", json.dumps(login))
        made.append(bench)
        return bench

    yield make
    for bench in made:
        bench.clear()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], RealBench]]:
    """Make a bench of a backend and a way with the real CLI; skips where it cannot be had."""
    made: list[RealBench] = []

    def make(backend: str, way: str) -> RealBench:
        subject, install = REAL[backend]
        cli = obtain(install)
        path = tmp_path_factory.mktemp("real").resolve()
        env = cli.environment(subject.variable)
        bench = RealBench(path=path, backend=backend, way=way, env=env, subject=subject, judge_limit_s=60.0)
        made.append(bench)
        return bench

    yield make
    for bench in made:
        bench.clear()
