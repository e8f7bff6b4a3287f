"""What each plugin must still do, and must not do to attempts, beside `check_whole`."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from measured_suite import BARS, EXPECTED, FAIL, OF_SPEC, PASS, SKIP, XFAIL, XPASS, Done

ATTEMPTS = {nodeid: one for nodeid, one in EXPECTED.items() if not nodeid.startswith("test_unit.py")}
WORDS = {PASS: "passed", FAIL: "failed", XFAIL: "xfailed", XPASS: "xpassed", SKIP: "skipped"}


def nothing_more(done: Done) -> None:
    """Its presence is all."""


def spread(done: Done) -> None:
    assert re.search(r"2 workers \[|\[gw1\]|created: 2/2", done.stdout), done.text()


def html(done: Done) -> None:
    """The report lists every attempt under its id with its outcome. (Its data are JSON in an attribute.)"""
    from html import unescape

    page = (done.path / "report.html").read_text()
    (blob,) = re.findall(r'data-jsonblob="([^"]*)"', page)
    tests = json.loads(unescape(blob))["tests"]
    found = {name.removesuffix("::setup"): one["result"].lower() for name, rows in tests.items() for one in rows}
    assert {nodeid: found.get(nodeid) for nodeid in ATTEMPTS} == {nodeid: WORDS[one] for nodeid, one in ATTEMPTS.items()}


def json_report(done: Done) -> None:
    tests = json.loads((done.path / "report.json").read_text())["tests"]
    assert {one["nodeid"]: one["outcome"] for one in tests if one["nodeid"] in ATTEMPTS} == {
        k: WORDS[v] for k, v in ATTEMPTS.items()
    }


def reportlog(done: Done) -> None:
    lines = [json.loads(line) for line in (done.path / "report.jsonl").read_text().splitlines()]
    reports = [one for one in lines if one["$report_type"] == "TestReport"]
    calls = {one["nodeid"]: (one["outcome"], "wasxfail" in one) for one in reports if one["when"] == "call"}
    assert {nodeid: calls.get(nodeid) for nodeid in ATTEMPTS} == ATTEMPTS
    assert lines[-1]["exitstatus"] == 1


def cov(done: Done) -> None:
    """The unit tests' code is measured, and nothing of the agents or of our graders besides."""
    measured = json.loads((done.path / "coverage.json").read_text())
    assert list(measured["files"]) == ["shop.py"]
    assert measured["files"]["shop.py"]["summary"]["missing_lines"] == 1
    assert not [path.name for path in done.path.glob(".coverage.*")]


def timeout(done: Done) -> None:
    """The slow test is cut off, the attempt that takes longer is not."""
    assert re.search(r"Timeout \(?>?2\.5", done.stdout), done.text()


def randomly(done: Done) -> None:
    assert "Using --randomly-seed=" in done.stdout, done.text()


def rerunfailures(done: Done) -> None:
    """A flaky test is tried until it passes; a failing attempt has had its turn."""
    tries = Counter((nodeid, outcome) for nodeid, when, outcome, _ in done.seen if when == "call")
    assert tries["test_flaky.py::test_flaky", "rerun"] == 2, done.text()
    assert tries["test_flaky.py::test_flaky", "passed"] == 1
    assert not [nodeid for (nodeid, outcome) in tries if outcome == "rerun" and nodeid in ATTEMPTS]


def retry(done: Done) -> None:
    assert (done.path / "test_flaky.tries").read_text() == "xxx"
    last = [outcome for nodeid, when, outcome, _ in done.seen if when == "call" and nodeid == "test_flaky.py::test_flaky"][-1]
    assert last == "passed", done.text()
    assert not [nodeid for nodeid, _, outcome, _ in done.seen if outcome == "retried" and nodeid in ATTEMPTS]


def split(done: Done) -> None:
    assert "note: pytest-split cuts through the attempts of a task" in done.stdout, done.text()


def sugar(done: Done) -> None:
    assert re.search(r"\d% [▏▎▍▌▋▊▉█]", done.stdout), done.text()  # its bar, in place of pytest's letters


def allure(done: Done) -> None:
    """One result per attempt; a failing attempt is "failed" (the skill's fault), not "broken" (the test's).

    With workers, a bar's verdict is known to the session's own process alone, where Allure does not listen.
    """
    results: list[dict[str, Any]] = [json.loads(path.read_text()) for path in (done.path / "allure").glob("*-result.json")]
    found: dict[str, list[str]] = {nodeid: [] for nodeid in ATTEMPTS}
    for one in results:
        labels = {label["name"]: label["value"] for label in one["labels"]}
        file = {"greet": "greet.eval.yaml", "greet.eval": "greet.eval.yaml"}.get(labels["suite"], f"{labels['suite']}.py")
        nodeid = "::".join([file, *([labels["subSuite"]] if "subSuite" in labels else []), one["name"]])
        found.setdefault(nodeid, []).append(one["status"])
    status = {PASS: "passed", XPASS: "passed", FAIL: "failed"}
    expected = {nodeid: [status.get(one, "skipped")] for nodeid, one in ATTEMPTS.items()}
    if done.has_workers:
        expected |= {nodeid: [] for nodeid in BARS}
    assert {nodeid: ones for nodeid, ones in found.items() if nodeid in ATTEMPTS} == expected
    assert "caliper-idle" not in json.dumps(results)


def annotations(done: Done) -> None:
    """Each failing attempt is annotated once, at its task's line in the spec."""
    lines = [line for line in done.text().splitlines() if line.lstrip(".Fxs").startswith("::error")]
    of_spec = [line for line in lines if "greet.eval.yaml" in line]
    failing = [nodeid for nodeid, one in OF_SPEC.items() if one == FAIL]
    assert len(of_spec) == len(failing), done.text()
    assert all(re.search(r"file=greet\.eval\.yaml,line=\d+", line) for line in of_spec), of_spec


def benchmark(done: Done) -> None:
    """Its one benchmark is measured. (Workers of pytest-xdist measure none, by its own rule.)"""
    if not done.has_workers:
        kept = json.loads((done.path / "benchmark.json").read_text())
        assert [one["name"] for one in kept["benchmarks"]] == ["test_is_fast"]


def syrupy(done: Done) -> None:
    if not done.has_workers:  # with workers, syrupy before 5 says nothing
        assert "1 snapshot passed" in done.stdout, done.text()
    assert not list(done.path.rglob("__snapshots__/*.raw"))
