"""What was asked of a task, and where a baseline came from, in the run file and back."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from make_runs import record, run, task

from pytest_caliper.runs.reading import RunFileError, load_meta, load_run
from pytest_caliper.runs.records import Bar, BaselineSource
from pytest_caliper.runs.store import save_run

BAR = Bar(rate=Fraction(4, 5), policy="lower", min_coverage=Fraction(1, 2))


def test_a_bar_comes_back_and_its_verdict_is_only_written(tmp_path: Path) -> None:
    path = save_run(run(replace(task("task-001", record()), bar=BAR)), tmp_path)
    data = json.loads(path.read_text())
    assert data["task_results"][0]["bar"] == {
        "rate": "4/5",
        "policy": "lower",
        "min_coverage": "1/2",
        "verdict": "inconclusive",
        "reached": False,
    }
    data["task_results"][0]["bar"]["verdict"] = "met"
    path.write_text(json.dumps(data))
    assert load_run(path).results[0].bar == BAR


def test_files_without_bars_can_be_read(tmp_path: Path) -> None:
    path = save_run(run(), tmp_path)
    data = json.loads(path.read_text())
    assert data["task_results"][0].pop("bar") is None
    path.write_text(json.dumps(data))
    assert load_run(path).results[0].bar is None


@pytest.mark.parametrize(
    "bar",
    [
        {"rate": "4/0", "policy": "point"},
        {"rate": 0.8, "policy": "point"},
        {"rate": "4/5", "policy": "x"},
        {"policy": "point"},
        "4/5",
    ],
)
def test_a_damaged_bar_is_told(tmp_path: Path, bar: object) -> None:
    path = save_run(run(), tmp_path)
    data = json.loads(path.read_text())
    data["task_results"][0]["bar"] = bar
    path.write_text(json.dumps(data))
    with pytest.raises(RunFileError, match="is not a run file"):
        load_run(path)


def test_the_source_of_a_baseline_comes_back(tmp_path: Path) -> None:
    source = BaselineSource(id="abc", timestamp="2026-01-01T00:00:00+00:00", file="results/x.json")
    path = save_run(run(baseline=[task("task-001", record(arm="baseline"), arm="baseline")], baseline_from=source), tmp_path)
    told = json.loads(path.read_text())["run"]
    assert told["baseline"] == "abc"
    assert told["baseline_from"] == {"id": "abc", "timestamp": "2026-01-01T00:00:00+00:00", "file": "results/x.json"}
    for meta in (load_run(path).meta, load_meta(path)):
        assert meta.baseline is True
        assert meta.baseline_from == source


def test_a_baseline_of_its_own_has_no_source(tmp_path: Path) -> None:
    path = save_run(run(baseline=[task("task-001", record(arm="baseline"), arm="baseline")]), tmp_path)
    assert json.loads(path.read_text())["run"]["baseline"] is True
    assert load_meta(path).baseline_from is None
