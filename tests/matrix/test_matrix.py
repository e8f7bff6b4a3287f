"""Other people's plugins, lowest and newest; pytest's and Python's versions: attempts come to the same everywhere.

`make test` runs two boxes, everything at its lowest and everything at its newest. `make test-all` runs each plugin alone, too, and
each pytest and Python.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from boxes import OWN_LOWEST, PLUGINS, PYTESTS, PYTHONS, Plugin
from suite import AGENTS, Ran, check_attempts, make, run
from venvs import ROOT, environment, python_of

pytestmark = pytest.mark.matrix
full = pytest.mark.matrix_full

OTHERS = {
    "rerunfailures": """
        import pathlib
        def test_flaky():
            seen = pathlib.Path(__file__).with_name("seen")
            again = seen.exists()
            seen.touch()
            assert again
    """,
    "asyncio": """
        import asyncio, pytest
        @pytest.mark.asyncio
        async def test_async():
            await asyncio.sleep(0)
    """,
    "anyio": """
        import pytest
        @pytest.fixture
        def anyio_backend():
            return "asyncio"
        @pytest.mark.anyio
        async def test_anyio():
            import anyio
            await anyio.sleep(0)
    """,
    "hypothesis": """
        from hypothesis import given, strategies
        @given(strategies.integers())
        def test_given(number):
            assert number == number
    """,
    "benchmark": """
        def test_fast(benchmark):
            assert benchmark(lambda: 1) == 1
    """,
    "syrupy": """
        import pathlib
        def test_snapshot(snapshot):
            assert isinstance(repr(snapshot), str)
    """,
}
"""Tests that need the plugin, beside the attempts."""
OTHERS["retry"] = OTHERS["rerunfailures"]


def look_html(ran: Ran) -> None:
    text = (ran.path / "report.html").read_text()
    assert "demo.eval.yaml::Fails::attempt-1" in text
    assert "test_attempts.py::test_says[a]::bar" in text


def look_json(ran: Ran) -> None:
    data = json.loads((ran.path / ".report.json").read_text())
    told = {test["nodeid"]: test["outcome"] for test in data["tests"]}
    assert told["demo.eval.yaml::Fails::attempt-1"] == "failed"
    assert told["demo.eval.yaml::Fails::baseline-1"] == "xfailed"
    assert told["demo.eval.yaml::Lost::attempt-1"] == "skipped"
    assert told["demo.eval.yaml::Passes::attempt-3"] == "passed"


def look_log(ran: Ran) -> None:
    lines = [json.loads(line) for line in (ran.path / "log.jsonl").read_text().splitlines()]
    told = {
        line["nodeid"]: line["outcome"] for line in lines if line.get("$report_type") == "TestReport" and line["when"] == "call"
    }
    assert told["demo.eval.yaml::Fails::attempt-1"] == "failed"
    assert len([nodeid for nodeid in told if "attempt-" in nodeid or "baseline-" in nodeid]) == AGENTS


def look_cov(ran: Ran) -> None:
    assert ElementTree.parse(ran.path / "coverage.xml").getroot().tag == "coverage"


def look_rerun(ran: Ran) -> None:
    assert any(nodeid.endswith("::test_flaky") for nodeid in ran.outcomes()), ran.output
    assert ran.outcomes()["test_others.py::test_flaky"] == "passed", ran.output


def look_allure(ran: Ran) -> None:
    told = [json.loads(path.read_text()) for path in (ran.path / "allure").glob("*-result.json")]
    names = {(one["name"], one["status"]) for one in told}
    assert ("attempt-1", "failed") in names
    assert ("attempt-1", "passed") in names
    assert len([one for one in told if "attempt-" in one["name"] or "baseline-" in one["name"]]) == AGENTS


def look_annotations(ran: Ran) -> None:
    assert "::error file=demo.eval.yaml,line=8::" in ran.output, ran.output  # behind pytest's progress, on its line
    assert "::error file=test_attempts.py,line=" in ran.output, ran.output


def look_benchmark(ran: Ran) -> None:
    assert json.loads((ran.path / "benchmark.json").read_text())["benchmarks"]


def look_sugar(ran: Ran) -> None:
    assert "Results" in ran.output or "passed" in ran.output


LOOKS: dict[str, Callable[[Ran], None]] = {
    "html": look_html,
    "json-report": look_json,
    "reportlog": look_log,
    "cov": look_cov,
    "rerunfailures": look_rerun,
    "retry": look_rerun,
    "sugar": look_sugar,
    "allure": look_allure,
    "github-actions-annotate-failures": look_annotations,
    "benchmark": look_benchmark,
}


def try_plugins(python: Path, path: Path, plugins: Sequence[Plugin], *options: str) -> Ran:
    """Run the suite with these plugins at work, and look at what they wrote."""
    others = "".join(dict.fromkeys(OTHERS[plugin.name] for plugin in plugins if plugin.name in OTHERS))
    make(path, others)
    given = [option for plugin in plugins for option in plugin.options]
    env = {name: value for plugin in plugins for name, value in plugin.env}
    ran = run(python, path, *given, *options, env=env)
    check_attempts(ran)
    for plugin in plugins:
        if plugin.name in LOOKS:
            LOOKS[plugin.name](ran)
    return ran


def requirement(plugin: Plugin, which: str) -> str:
    return f"{plugin.distribution}=={plugin.lowest}" if which == "lowest" else plugin.distribution


def box_of_all(which: str) -> tuple[list[str], list[Plugin]]:
    """Everything together. rerunfailures and retry exclude each other, and pytest-benchmark measures nothing under xdist."""
    plugins = [plugin for plugin in PLUGINS if plugin.name not in {"xdist", "retry"}]
    own = list(OWN_LOWEST) if which == "lowest" else []
    return [*own, *(requirement(plugin, which) for plugin in plugins)], plugins


@pytest.mark.parametrize("which", ["lowest", "newest"])
def test_all_plugins_together(which: str, tmp_path: Path) -> None:
    python = python_of("3.10") if which == "lowest" else sys.executable
    requirements, plugins = box_of_all(which)
    interpreter = environment(python, requirements)
    try_plugins(interpreter, tmp_path / "alone", plugins)
    spread = [plugin for plugin in plugins if plugin.name != "benchmark"]
    try_plugins(interpreter, tmp_path / "n2", spread, "-n2")


@full
@pytest.mark.parametrize("which", ["lowest", "newest"])
@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_each_plugin_alone(plugin: Plugin, which: str, tmp_path: Path) -> None:
    own = ["pytest==8.4.0"] if which == "lowest" else []
    interpreter = environment(sys.executable, [*own, requirement(plugin, which)])
    try_plugins(interpreter, tmp_path / "alone", [plugin])
    if plugin.name not in {"benchmark", "xdist"}:
        try_plugins(interpreter, tmp_path / "n2", [plugin], "-n2")


@full
@pytest.mark.parametrize("version", PYTESTS)
def test_each_pytest(version: str, tmp_path: Path) -> None:
    interpreter = environment(sys.executable, [f"pytest=={version}"])
    try_plugins(interpreter, tmp_path / "alone", [])
    try_plugins(interpreter, tmp_path / "n2", [], "-n2")


@full
@pytest.mark.parametrize("version", PYTHONS)
def test_each_python(version: str, tmp_path: Path) -> None:
    interpreter = environment(python_of(version), ["hypothesis"])
    try_plugins(interpreter, tmp_path / "alone", [])
    try_plugins(interpreter, tmp_path / "n2", [], "-n2")
    own = [
        "tests/spec",
        "tests/reporting",
        "tests/scoring",
        "tests/plugin/test_attempts.py",
        "tests/plugin/test_caliper_fixture.py",
    ]
    done = subprocess.run(
        [str(interpreter), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "own"), *own],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]


@full
def test_split_keeps_what_it_selects_and_says_what_it_cut(tmp_path: Path) -> None:
    interpreter = environment(sys.executable, ["pytest-split"])
    keys: list[tuple[str, str, int]] = []
    for group in (1, 2):
        path = tmp_path / str(group)
        make(path)
        ran = run(interpreter, path, "--splits=2", f"--group={group}")
        assert "pytest-split cuts through the attempts of a task" in ran.output
        agents = [json.loads(line) for line in (path / "agents.jsonl").read_text().splitlines()]
        keys += [(agent["task"], agent["arm"], agent["attempt"]) for agent in agents]
    assert len(keys) == len(set(keys)) == AGENTS


@full
def test_randomly_with_another_seed_measures_the_same(tmp_path: Path) -> None:
    (plugin,) = [plugin for plugin in PLUGINS if plugin.name == "randomly"]
    interpreter = environment(sys.executable, ["pytest-randomly"])
    for seed in ("1", "2", "3"):
        try_plugins(interpreter, tmp_path / seed, [plugin], f"--randomly-seed={seed}")


def test_the_table_of_the_documentation_is_this_one() -> None:
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| ([\w.]+) \|", page, re.MULTILINE))
    assert rows == {plugin.distribution: plugin.lowest for plugin in PLUGINS}


def test_a_box_is_told_where_the_machine_has_no_such_python() -> None:
    with pytest.raises(pytest.skip.Exception, match="no Python 3.99"):
        python_of("3.99")


def teardown_module() -> None:
    """Environments of versions that are not asked for any more take room."""
    cache = ROOT / ".cache" / "matrix"
    old = sorted((path for path in cache.glob("*") if path.is_dir() and path.name != "uv"), key=lambda path: path.stat().st_mtime)
    for path in old[:-80]:
        shutil.rmtree(path, ignore_errors=True)
