"""Given a spec with a bar, when pytest runs it, then failing attempts are tolerated and the bar's item decides."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path

import pytest
from shell_agent import read_runs

from pytest_caliper.options import Settings
from pytest_caliper.running.planning import SpecPlan
from pytest_caliper.runs.records import Bar

THREE = """
bar: 2/3
tasks:
  - {name: Always, prompt: echo yes, assert: assert attempt.answer == 'yes'}
  - {name: Mostly, prompt: 'test $ATTEMPT = 1 && echo no || echo yes', assert: assert attempt.answer == 'yes'}
  - {name: Rarely, prompt: 'test $ATTEMPT = 1 && echo yes || echo no', assert: assert attempt.answer == 'yes'}
"""
MODES = pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "n2"])


def task(name: str, prompt: str, **more: str) -> str:
    lines = [f"  - name: {name}", f"    prompt: {prompt}", "    assert: assert attempt.answer == 'yes'"]
    return "\n".join([*lines, *(f"    {key}: {value}" for key, value in more.items())]) + "\n"


def reports(result, when: str = "::") -> list[str]:
    return [line for line in result.outlines if when in line]


# -- what decides -----------------------------------------------------------------------------------------------------------------


@MODES
def test_the_bar_decides_and_failing_attempts_are_tolerated(project, extra):
    project.spec(THREE)
    result = project.session("demo.eval.yaml", "-rx", "-v", *extra)
    result.assert_outcomes(passed=8, xfailed=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "_* Rarely.bar _*",
            "demo.eval.yaml:8: the bar of 2/3 is missed: 1/3 passed, 33.3% [[]6.1, 79.2[]]",
            "  Rate:     1/3 usable attempts passed: 33.3%, 95% interval [[]6.1, 79.2[]]",
            "  Bar:      2/3, which the rate must reach (policy point)",
            "  Coverage: 3/3 planned attempts were usable, at least 50% wanted",
        ]
    )
    result.stdout.fnmatch_lines(["  bar 2/3: met", "  bar 2/3: met", "  bar 2/3: missed"], consecutive=False)
    tolerated = "tolerated: the bar of 2/3 decides (assert 'no' == 'yes')"
    result.stdout.fnmatch_lines([f"XFAIL demo.eval.yaml::Mostly::attempt-1 - {tolerated}"])
    result.stdout.no_fnmatch_line("*never*")
    result.stdout.no_fnmatch_line("*Traceback*")
    (run,) = read_runs(project.path / "results")
    asked = {"rate": "2/3", "policy": "point", "min_coverage": "1/2"}
    verdicts = [task["bar"] for task in run["task_results"]]
    assert verdicts == [{**asked, "verdict": word, "reached": word == "met"} for word in ("met", "met", "missed")]


@MODES
def test_met_bars_are_green_whatever_single_attempts_do(project, extra):
    project.spec(THREE)
    result = project.session("demo.eval.yaml", "--caliper-bar=1/3", "-q", *extra)
    result.assert_outcomes(passed=9, xfailed=3)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["demo.eval.yaml: 66.7% * 6/9 usable 9/9; bars 3/3 met"])


def test_without_a_bar_every_failing_attempt_fails(project):
    project.spec(THREE.replace("bar: 2/3\n", ""))
    result = project.runpytest("demo.eval.yaml")
    result.assert_outcomes(passed=6, failed=3)
    assert all(task["bar"] is None for task in read_runs(project.path / "results")[0]["task_results"])


def test_only_tasks_with_a_bar_are_tolerated(project):
    text = "tasks:\n" + task("Barred", "echo no", bar="1/2") + task("Plain", "echo no")
    project.spec(text)
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1")
    result.assert_outcomes(xfailed=1, failed=2)
    assert [line.split(" - ")[0] for line in reports(result, "FAILED")] == [
        "FAILED demo.eval.yaml::Plain::attempt-1",
        "FAILED demo.eval.yaml::Barred::bar",
    ]


def test_cheats_are_tolerated_as_well_and_the_baseline_has_no_bar(project):
    prompt = f"'echo \"!read {project.path}/demo.eval.yaml\"; echo yes'"
    project.spec("bar: 1/2\ntasks:\n" + task("Cheats", prompt))
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1", "--caliper-baseline", "-rx")
    result.assert_outcomes(xfailed=2, failed=1)
    result.stdout.fnmatch_lines(["XFAIL *::attempt-1 - tolerated: the bar of 50% decides (cheat: *"])
    run = read_runs(project.path / "results")[0]
    assert run["task_results"][0]["bar"]["verdict"] == "missed"
    assert run["baseline_task_results"][0]["bar"] is None


@pytest.mark.parametrize(
    ("typed", "of_task", "of_spec", "ini", "decides"),
    [
        (".1", ".2", ".3", ".4", "1/10"),
        (None, ".2", ".3", ".4", "1/5"),
        (None, None, ".3", ".4", "3/10"),
        (None, None, None, ".4", "2/5"),
        (None, None, None, None, None),
    ],
)
def test_command_line_before_task_before_spec_before_ini(project, typed, of_task, of_spec, ini, decides):
    head = "" if of_spec is None else f"bar: {of_spec}\n"
    path = project.spec(head + "tasks:\n" + task("A", "x", **({} if of_task is None else {"bar": of_task})))
    given = {"bar": typed, "ini_bar": ini}
    settings = Settings(**{name: None if value is None else Fraction(value) for name, value in given.items()}, bar_policy="lower")
    plan = SpecPlan.open(path, settings, project.path)
    wanted = None if decides is None else Bar(rate=Fraction(decides), policy="lower", min_coverage=Fraction(1, 2))
    assert plan.bar(plan.spec.tasks[0]) == wanted


def test_the_ini_file_sets_bars(project):
    ini = project.path / "pytest.ini"
    ini.write_text(ini.read_text() + "\ncaliper_bar = 50%\ncaliper_bar_policy = lower\ncaliper_min_coverage = 0\n")
    project.spec("tasks:\n" + task("A", "echo yes"))
    result = project.runpytest("demo.eval.yaml", "--caliper-k=4")
    result.assert_outcomes(passed=5)
    bar = read_runs(project.path / "results")[0]["task_results"][0]["bar"]
    assert bar == {"rate": "1/2", "policy": "lower", "min_coverage": "0", "verdict": "met", "reached": True}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--caliper-bar=80"], "*--caliper-bar: must be above 0 and at most 1, such as 0.8, 80% or 4/5, got '80'*"),
        (["--caliper-bar=0"], "*--caliper-bar: must be above 0*"),
        (["--caliper-bar-policy=wilson"], "*must be point (the rate decides) or lower (its lower bound does), got 'wilson'*"),
        (["--caliper-min-coverage=2"], "*must be at least 0 and at most 1*"),
        (["-o", "caliper_bar=2"], "*caliper_bar in *pytest.ini: must be above 0*"),
    ],
)
def test_wrong_bars_are_usage_errors(project, options, words):
    project.spec(THREE)
    result = project.runpytest("demo.eval.yaml", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([words])


# -- what cannot be told ----------------------------------------------------------------------------------------------------------


@MODES
def test_three_of_three_do_not_clear_a_lower_bound(project, extra):
    project.spec("bar: 0.8\ntasks:\n" + task("A", "echo yes"))
    result = project.session("demo.eval.yaml", "--caliper-bar-policy=lower", *extra)
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "caliper: demo.eval.yaml: 3 attempts cannot clear a lower bound of 80%, even if all pass: it takes 16",
            "demo.eval.yaml:5: the bar of 80% is not met, inconclusive: 3/3 passed, 100.0% [[]43.9, 100.0[]]; 13 more usable attempts "
            "at this rate would settle it (16 in all)",
            "  Bar:  * 80%, which the lower end of the 95% interval must reach (policy lower)",
        ]
    )


def test_sixteen_of_sixteen_do(project):
    project.spec("bar: 0.8\ntasks:\n" + task("A", "echo yes"))
    result = project.runpytest("demo.eval.yaml", "--caliper-bar-policy=lower", "--caliper-k=16")
    result.assert_outcomes(passed=17)
    result.stdout.no_fnmatch_line("*cannot clear*")


def test_no_number_of_attempts_clears_a_lower_bound_of_one(project):
    project.spec("bar: 1\ntasks:\n" + task("A", "echo yes"))
    result = project.runpytest("demo.eval.yaml", "--caliper-bar-policy=lower")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        ["caliper: demo.eval.yaml: no number of attempts clears a lower bound of 100%: take a lower bar*"]
    )


@MODES
def test_a_bar_without_a_usable_attempt_fails(project, extra):
    project.spec("bar: 0.1\ntasks:\n" + task("A", "echo '!error rate limited'"))
    result = project.session("demo.eval.yaml", *extra)
    result.assert_outcomes(skipped=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["demo.eval.yaml:5: the bar of 10% is not met: no attempt was usable"])


@MODES
def test_too_few_usable_attempts_do_not_meet_a_bar(project, extra):
    prompt = "'test $ATTEMPT = 1 && echo yes || echo \"!error rate limited\"'"
    project.spec("bar: 0.8\ntasks:\n" + task("A", prompt))
    result = project.session("demo.eval.yaml", *extra)
    result.assert_outcomes(passed=1, skipped=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*: the bar of 80% is met by too few attempts: 1/1 passed, 100.0% *, coverage 1/3 is below 50%",
            "  Lost:     2 of 3: 33.3% had they failed, 100.0% had they passed",
            "  bar 80%: met, but coverage 1/3 is below 50%",
            "caliper: demo.eval.yaml: A: coverage 1/3 is below 50%*",
        ]
    )
    again = project.session("demo.eval.yaml", "--caliper-min-coverage=1/3", *extra)
    again.assert_outcomes(passed=2, skipped=2)
    assert again.ret == 0


# -- which attempts it judges -----------------------------------------------------------------------------------------------------


def test_a_bar_that_is_not_selected_tolerates_nothing(project):
    project.spec(THREE)
    result = project.runpytest("demo.eval.yaml", "-k", "attempt-1")
    result.assert_outcomes(passed=2, failed=1, deselected=9)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@MODES
def test_a_bar_judges_the_attempts_that_were_selected_with_it(project, extra):
    project.spec(THREE)
    ids = [f"demo.eval.yaml::Mostly::{name}" for name in ("attempt-1", "attempt-2", "bar")]
    result = project.session(*ids, *extra)
    result.assert_outcomes(passed=1, xfailed=1, failed=1)
    result.stdout.fnmatch_lines(["  Partial:  2 of 3 attempts of this task were selected"])


@MODES
def test_a_bar_alone_has_nothing_to_judge_and_is_not_green(project, extra):
    project.spec(THREE)
    result = project.session("demo.eval.yaml::Mostly::bar", *extra)
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    remedy = "no attempt was selected with the bar; select the whole task: demo.eval.yaml::Mostly"
    result.stdout.fnmatch_lines([f"demo.eval.yaml:7: {remedy}"])
    assert not (project.path / "results").exists()


@MODES
def test_a_bar_without_its_attempts_among_other_tests_is_skipped(project, extra):
    project.spec(THREE)
    ids = ["demo.eval.yaml::Mostly::bar", *(f"demo.eval.yaml::Always::{name}" for name in ("attempt-1", "bar"))]
    result = project.session(*ids, "-rs", *extra)
    result.assert_outcomes(passed=2, skipped=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["SKIPPED * demo.eval.yaml:7: no attempt was selected with the bar*"])


def test_a_missed_bar_stays_a_last_failure_until_its_task_runs_again(project):
    ini = project.path / "pytest.ini"
    ini.write_text(ini.read_text().replace("-p no:cacheprovider", ""))
    project.spec(THREE)
    project.makepyfile(test_unit="def test_unit():\n    assert 0\n")
    project.session("--caliper").assert_outcomes(passed=8, xfailed=3, failed=2)
    for _ in range(2):
        project.session("--caliper", "--lf").assert_outcomes(failed=2)


def test_a_class_or_file_selects_the_bar_too(project):
    project.spec(THREE)
    project.runpytest("demo.eval.yaml::Always").assert_outcomes(passed=4)
    listed = project.runpytest("demo.eval.yaml", "--collect-only", "-q", "--caliper-k=1").outlines
    assert [line for line in listed if "::" in line] == [
        *(f"demo.eval.yaml::{name}::attempt-1" for name in ("Always", "Mostly", "Rarely")),
        *(f"demo.eval.yaml::{name}::bar" for name in ("Always", "Mostly", "Rarely")),
    ]


def test_bars_stand_at_their_tasks_in_a_tree_that_ides_can_walk(project):
    project.spec(THREE)
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
import pytest

def pytest_collection_finish(session):
    for item in session.items:
        if item.name == "bar":
            print("BAR", item.location, item.parent.name, isinstance(item.parent, pytest.Class), item.fixturenames)
"""
    )
    result = project.runpytest("demo.eval.yaml", "--collect-only", "-q", "-s")
    result.stdout.fnmatch_lines(["BAR ('demo.eval.yaml', 6, 'Mostly.bar') Mostly True []"])


def test_bars_follow_the_attempts_of_their_spec_however_items_are_shuffled(project):
    project.spec(THREE)
    project.spec(THREE, name="other")
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + "\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n")
    result = project.runpytest("demo.eval.yaml", "other.eval.yaml", "--caliper-bar=1/3", "-v", "--caliper-k=2")
    specs: dict[str, list[str]] = {}
    for line in reports(result, "%]"):
        spec, _, name = line.split(" ")[0].split("::")
        specs.setdefault(spec, []).append(name.split("-")[0])
    assert list(specs.values()) == [["attempt"] * 6 + ["bar"] * 3] * 2


def test_no_fixture_is_set_up_for_a_bar(project):
    project.spec(THREE)
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
import pytest

@pytest.fixture(autouse=True)
def counted(request):
    print("SET-UP", request.node.nodeid)
    if request.node.name == "bar":
        raise RuntimeError
"""
    )
    result = project.runpytest("demo.eval.yaml", "-s", "--caliper-bar=1/3")
    result.assert_outcomes(passed=9, xfailed=3)
    assert sum("SET-UP" in line for line in result.outlines) == 9


def test_nobody_is_billed_for_a_bar(project):
    project.spec(THREE)
    project.makepyfile(test_unit="def test_unit():\n    pass\n")
    result = project.runpytest("demo.eval.yaml", "test_unit.py")
    result.assert_outcomes(passed=1, deselected=12)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["caliper: 1 spec not run*"])


# -- stopping ---------------------------------------------------------------------------------------------------------------------


@MODES
def test_a_tolerated_failure_does_not_stop_the_session_and_a_missed_bar_does(project, extra):
    project.spec("bar: 1/2\ntasks:\n" + task("A", "'test $ATTEMPT = 1 && echo no || echo yes'"))
    result = project.session("demo.eval.yaml", "-x", "--caliper-workers=1", *extra)
    result.assert_outcomes(passed=3, xfailed=1)
    assert result.ret == 0
    project.spec("tasks:\n" + task("Later", f"'touch {project.path}/ran; echo yes'"), name="other")
    late = project.session("demo.eval.yaml", "other.eval.yaml", "--caliper-bar=1", "-x", "--caliper-k=1", *extra)
    assert late.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)  # xdist's own -x ends with 2
    assert late.parseoutcomes()["failed"] == 1
    late.stdout.fnmatch_lines(["*stopping after 1 failures*"])


@MODES
def test_attempts_that_were_not_let_begin_count_as_planned(project, extra):
    prompt = "'test $ATTEMPT = 1 && echo yes || echo \"!error rate limited\"'"
    project.spec("bar: 1/2\ntasks:\n" + task("A", prompt))
    options = ["--caliper-k=6", "--caliper-fail-fast=2", "--caliper-workers=1"]
    result = project.session("demo.eval.yaml", *options, *extra)
    result.assert_outcomes(passed=1, skipped=5, failed=1)
    result.stdout.fnmatch_lines(["*: the bar of 50% is met by too few attempts: 1/1 passed, *, coverage 1/6 is below 50%"])


def test_bars_that_were_not_reached_are_told(project):
    project.spec(THREE)
    project.makepyfile(test_unit="def test_unit():\n    assert 0\n")
    result = project.runpytest("--caliper", "-x")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["caliper: demo.eval.yaml: 3 bars never judged (Always, Mostly, Rarely)"])


STOP = """

def pytest_runtest_logreport(report):
    import os
    if report.when == "call" and os.path.exists("stop") and "attempt-1" in report.nodeid:
        os.kill(os.getpid(), 2)  # sessions that are stopped run without xdist
"""


@MODES
def test_a_resumed_run_is_judged_whole(project, extra):
    project.spec("bar: 2/3\ntasks:\n" + task("A", "'test $ATTEMPT = 1 && echo no || echo yes'"))
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + STOP)
    (project.path / "stop").touch()
    stopped = project.session("demo.eval.yaml", "--caliper-workers=1")
    assert stopped.ret == pytest.ExitCode.INTERRUPTED
    (project.path / "stop").unlink()
    result = project.session("demo.eval.yaml", "--caliper-resume", "-v", *extra)
    result.assert_outcomes(passed=3, xfailed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*A::bar PASSED*"])


@MODES
def test_a_shard_judges_its_own_tasks(project, extra):
    project.spec(THREE)
    seen: list[str] = []
    for shard in ("1/2", "2/2"):
        result = project.session("demo.eval.yaml", "--caliper-shard", shard, "-v", "--caliper-bar=1/3", *extra)
        assert result.ret == 0
        result.stdout.no_fnmatch_line("*no attempt was selected*")
        seen += [
            name for name in ("Always", "Mostly", "Rarely") if any(f"{name}::bar PASSED" in line for line in result.outlines)
        ]
    assert sorted(seen) == ["Always", "Mostly", "Rarely"]


# -- xdist and reports ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dist", ["load", "loadscope", "loadfile", "loadgroup", "worksteal"])
def test_bars_are_judged_once_however_xdist_distributes(project, dist):
    project.spec(THREE)
    result = project.session("demo.eval.yaml", "-n2", f"--dist={dist}", "-v", "--caliper-k=2", "--caliper-bar=1/2")
    result.assert_outcomes(passed=7, xfailed=2)
    assert result.ret == 0
    for name in ("Always", "Mostly", "Rarely"):
        (at,) = (n for n, line in enumerate(result.outlines) if f"{name}::bar PASSED" in line)
        ended = [n for n, line in enumerate(result.outlines) if f"{name}::attempt" in line and line.startswith("[gw")]
        assert len(ended) == 2
        assert max(ended) < at


def test_class_fixtures_around_bars_are_torn_down_in_workers(project):
    """A worker goes from a bar to an item of another task: nothing may be left of the bar's task."""
    project.spec(THREE)
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + "\nimport pytest\n@pytest.fixture(scope='class', autouse=True)\ndef per_task(request):\n    yield\n    print(request.node)\n"
    )
    result = project.session("demo.eval.yaml", "-n2", "--dist=loadscope", "--caliper-bar=1/3")
    result.assert_outcomes(passed=9, xfailed=3)


@MODES
def test_junit_has_a_case_for_each_bar(project, extra):
    project.spec(THREE)
    project.session("demo.eval.yaml", "--junitxml=junit.xml", *extra)
    root = ET.parse(project.path / "junit.xml").getroot()
    cases = {case.get("classname").rpartition(".")[2]: case for case in root.iter("testcase") if case.get("name") == "bar"}
    assert set(cases) == {"Always", "Mostly", "Rarely"}
    assert [case.find("failure") is not None for case in cases.values()] == [name == "Rarely" for name in cases]
    failure = cases["Rarely"].find("failure")
    assert failure.get("message") == "the bar of 2/3 is missed: 1/3 passed, 33.3% [6.1, 79.2]"
    suite = next(root.iter("testsuite"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("12", "1", "3")


def test_hostile_names_stay_harmless(project):
    project.spec('bar: 1\ntasks:\n  - {name: "A\\u001b[31m\\u2028B", prompt: echo no, assert: assert 0}\n')
    result = project.session("demo.eval.yaml", "--caliper-k=1", "-v", "-x")
    text = result.stdout.str()
    assert "\x1b" not in text
    assert "\u2028" not in text


def test_the_run_file_keeps_what_was_asked(project):
    path = project.spec(THREE)
    project.runpytest("demo.eval.yaml", "--caliper-bar-policy=lower", "--caliper-min-coverage=0.9", "-k", "Always")
    text = next(Path(project.path / "results").rglob("*.json")).read_text()
    bar = json.loads(text)["task_results"][0]["bar"]
    assert bar == {"rate": "2/3", "policy": "lower", "min_coverage": "9/10", "verdict": "inconclusive", "reached": False}
    assert path.exists()


RESUMED = """
bar: 0.8
tasks:
  - {{name: A, prompt: echo good, assert: assert attempt.answer == 'good'}}
  - {{name: B, bar: 0.2, prompt: 'test -e {gate} || sleep 300; echo good', assert: assert attempt.answer == 'good'}}
"""


@pytest.mark.parametrize("way", [(), ("-n2",)], ids=["pool", "n2"])
def test_bars_of_a_resumed_run_decide_though_only_what_is_missing_is_selected(project, way):
    """A's bar cannot be cleared by 3/3; selecting B alone must not make the run green."""
    gate = project.path / "gate"
    project.spec(RESUMED.format(gate=gate))
    options = ["--caliper-k=3", "--caliper-bar-policy=lower", "--caliper-workers=8"]
    session = subprocess.Popen(
        [sys.executable, "-m", "pytest", "demo.eval.yaml", *options], cwd=project.path, stdout=subprocess.DEVNULL
    )
    results = project.path / "results" / "demo"
    deadline = time.monotonic() + 60
    while not any(len(path.read_bytes().splitlines()) == 4 for path in results.glob("*.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    session.kill()
    session.wait()
    gate.touch()
    result = project.session("demo.eval.yaml::B", "--caliper-resume", *options, *way)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED demo.eval.yaml::A::bar*"])
    assert result.parseoutcomes() == {"passed": 7, "failed": 1}


@pytest.mark.parametrize("options", [["--ff"], ["-p", "reorders"]])
def test_a_bar_is_judged_after_its_attempts_whoever_reorders(project, options):
    (project.path / "reorders.py").write_text(
        "import pytest\n\n@pytest.hookimpl(wrapper=True, tryfirst=True)\ndef pytest_collection_modifyitems(items):\n"
        "    yield\n    items.reverse()\n"
    )
    project.spec(
        "bar: 0.5\ntasks:\n  - {name: A, prompt: 'test -e good && echo good', setup: 'cat %s && touch good || true', assert: assert attempt.answer == 'good'}\n"
        % (project.path / "now")
    )
    common = ["-o", "addopts=", "demo.eval.yaml"]
    assert project.runpytest_subprocess(*common).ret == 1
    (project.path / "now").touch()
    result = project.runpytest_subprocess(*common, *options)
    assert result.ret == 0, result.stdout.str()
