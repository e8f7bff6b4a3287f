"""The promises to pytest users: opting in, ids, selection, empty is never green, other fixtures and hooks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from shell_agent import read_runs

SMALL = """
tasks:
  - {name: First, prompt: echo a, assert: assert attempt.answer == 'a'}
  - {name: "Second [x]::y/z", prompt: echo b, assert: assert attempt.answer == 'b'}
"""
UNIT = "def test_unit():\n    pass\n"


def test_ids_and_order(project):
    project.spec(SMALL)
    result = project.runpytest("demo.eval.yaml", "--collect-only", "-q", "--caliper-k=2", "--caliper-baseline")
    assert [line for line in result.outlines if "::" in line] == [
        f"demo.eval.yaml::{task}::{name}-{n}"
        for n in (1, 2)
        for task in ("First", "Second (x):y-z")
        for name in ("attempt", "baseline")
    ]


def test_nobody_is_billed_by_surprise(project):
    project.spec(SMALL)
    project.makepyfile(test_unit=UNIT)
    result = project.runpytest()
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["caliper: 1 spec not run*--caliper*pytest demo.eval.yaml"])
    assert not (project.path / "results").exists()


def test_specs_nobody_opened_are_not_even_parsed(project):
    project.spec("tasks: [oops")
    project.makepyfile(test_unit=UNIT)
    result = project.runpytest()
    assert result.ret == 0


@pytest.mark.parametrize(
    ("arguments", "ini", "runs"),
    [
        ([], "", False),
        (["--caliper"], "", True),
        (["--caliper-k=1"], "", True),
        ([], "addopts = --caliper-k=1", False),
        ([], "caliper = true", True),
        (["demo.eval.yaml"], "", True),
        (["demo.eval.yaml::First"], "", True),
        (["demo.eval.yaml", "test_unit.py"], "", False),
        (["demo.eval.yaml", "test_unit.py", "--caliper"], "", True),
        (["."], "", False),
        ([], "testpaths = demo.eval.yaml", False),
    ],
)
def test_opting_in(project, arguments, ini, runs):
    project.makefile(".ini", pytest=f"[pytest]\ncaliper_model = shell-agent\n{ini}\n")
    project.spec(SMALL)
    project.makepyfile(test_unit=UNIT)
    project.runpytest(*arguments)
    assert bool(list(project.path.rglob("*.json"))) == runs


def test_opting_in_by_the_environment_does_not_count(project, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--caliper-k=1")
    project.spec(SMALL)
    assert not project.runpytest().parseoutcomes().get("passed")


def test_without_opt_in_xdist_tells_too(project):
    project.spec(SMALL)
    project.makepyfile(test_unit=UNIT)
    result = project.runpytest_subprocess("-n2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["caliper: 1 spec not run*"])


def test_specs_come_after_all_other_tests(project):
    project.spec(SMALL, name="aaa")
    project.makepyfile(test_zzz="def test_fails():\n    assert 0\n")
    result = project.runpytest("--caliper", "-x")
    result.assert_outcomes(failed=1)
    assert not [
        attempt for run in read_runs(project.path / "results") for task in run["task_results"] for attempt in task["attempts"]
    ]


def test_mistakes_are_collection_errors_on_their_lines_without_a_traceback(project):
    project.spec("tasks:\n  - nmae: A\n    prompt: x\n    expect: yes\n")
    result = project.runpytest("demo.eval.yaml")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    text = result.stdout.str()
    assert "demo.eval.yaml:4:" in text
    assert "name" in text
    assert "demo.eval.yaml:6:" in text
    assert "quote" in text
    assert "Traceback" not in text
    assert "INTERNAL" not in text


@pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "n2"])
def test_a_missing_login_is_a_usage_error_before_anything_is_paid_for(project, monkeypatch, extra):
    monkeypatch.setenv("SHELL_AGENT_LOGGED_OUT", "1")
    project.spec(f"tasks:\n  - {{name: A, prompt: touch {project.path}/paid, expect: x}}\n")
    result = project.runpytest_subprocess("demo.eval.yaml", *extra)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "shell-agent login" in result.stderr.str() + result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert not (project.path / "paid").exists()


def test_engines_are_not_asked_while_collecting_only(project, monkeypatch):
    monkeypatch.setenv("SHELL_AGENT_LOGGED_OUT", "1")
    project.spec(SMALL)
    assert project.runpytest("demo.eval.yaml", "--collect-only", "-q").ret == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--caliper-model=shel-agent"], "*shell-agent*"),
        (["--caliper-model=shell-agent:"], "*"),
        (["--caliper-record", "--caliper-replay"], "*exclude each other*"),
        (["--caliper-k=0"], "*at least 1*"),
        (["--caliper-workers=x"], "*"),
        (["--caliper-timeout=-1"], "*positive*"),
    ],
)
def test_usage_errors(project, arguments, message):
    project.spec(SMALL)
    result = project.runpytest_subprocess("demo.eval.yaml", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize("ini", ["caliper_k = many", "caliper_k = 0", "caliper_timeout = soon"])
def test_ini_mistakes_name_the_option(project, ini):
    project.makefile(".ini", pytest=f"[pytest]\ncaliper_model = shell-agent\n{ini}\n")
    project.spec(SMALL)
    result = project.runpytest_subprocess("demo.eval.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{ini.split(' ', maxsplit=1)[0]}*"])


def test_a_part_of_a_task_is_saved_as_partial_and_whole_tasks_by_name(project):
    project.spec(SMALL)
    project.runpytest_subprocess("demo.eval.yaml::First::attempt-2")
    (path,) = (project.path / "results").rglob("*.json")
    assert path.parent.name == "partial"
    result = project.runpytest_subprocess("demo.eval.yaml::First", "--caliper-k=1")
    assert result.ret == 0
    (path,) = [path for path in (project.path / "results").rglob("*.json") if path.parent.name != "partial"]
    assert json.loads(path.read_text())["run"]["selected_tasks"] == ["First"]


@pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "n2"])
def test_an_arm_without_a_usable_attempt_is_never_green(project, extra):
    project.spec(
        "tasks:\n  - {name: Sick, prompt: \"echo '!error down'\", expect: x}\n  - {name: Well, prompt: echo a, expect: x}\n"
    )
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", *extra)
    result.assert_outcomes(passed=2, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*caliper: demo.eval.yaml: Sick: no attempt was usable*down*"])


def test_an_attempt_that_is_skipped_by_a_mark_is_never_paid_and_never_green(project):
    project.makeconftest(
        (project.path / "conftest.py").read_text()
        + """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "attempt-2":
            item.add_marker(pytest.mark.skip(reason="not today"))
"""
    )
    project.spec(f"tasks:\n  - {{name: A, prompt: 'echo $ATTEMPT >> {project.path}/paid', expect: x}}\n")
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=3")
    assert sorted((project.path / "paid").read_text().split()) == ["1", "3"]
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*1 of 3 attempts never reported*"])


def test_a_fatal_error_stops_the_session(project):
    project.spec(
        f"tasks:\n  - {{name: A, prompt: \"echo x >> {project.path}/paid; echo '!fatal log in again: shell-agent login'\", expect: x}}\n"
    )
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=20", "--caliper-workers=1")
    assert len((project.path / "paid").read_text().split()) < 5
    result.stdout.fnmatch_lines(["*log in again: shell-agent login*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_a_suite_without_specs_meets_nothing_of_the_plugin(pytester):
    pytester.makepyfile(UNIT)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert "caliper" not in result.stdout.str().replace("plugins: caliper", "").replace("caliper-", "")
    assert not [path for path in pytester.path.rglob("*") if "caliper" in path.name.replace("meets_nothing_of_the_plugin", "")]


def test_importing_the_plugin_imports_nothing_heavy():
    code = "import sys, pytest_caliper.plugin; print([m for m in ('yaml', 'pydantic', 'rich', 'psutil', 'xdist') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_two_sessions_in_one_process_do_not_meet(project):
    project.spec(SMALL)
    for _ in range(2):
        project.runpytest_inprocess("demo.eval.yaml", "--caliper-k=1").assert_outcomes(passed=2)
    assert len(read_runs(project.path / "results")) == 2


def test_markers_k_and_deselect_work(project):
    project.spec(SMALL)
    project.runpytest("demo.eval.yaml", "-k", "First and attempt-1").assert_outcomes(passed=1, deselected=5)
    project.runpytest("demo.eval.yaml", "--deselect", "demo.eval.yaml::First::").assert_outcomes(passed=3, deselected=3)


def test_junit_has_every_attempt(project):
    project.spec(SMALL)
    project.runpytest("demo.eval.yaml", "--caliper-k=1", "--junitxml=out.xml")
    text = (project.path / "out.xml").read_text()
    assert 'tests="2"' in text
    assert 'name="attempt-1"' in text


@pytest.mark.parametrize("extra", [["-p", "no:terminal"], ["-p", "no:xdist"], ["-q"], ["--no-summary"], ["--color=yes"], ["-vv"]])
def test_reporting_options_change_what_is_shown_only(project, extra):
    project.spec(SMALL + "  - {name: Bad, prompt: echo c, expect: SAY-NO}\n")
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", *extra)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(read_runs(project.path / "results")) == 1
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_quiet_is_one_line_per_spec(project):
    project.spec(SMALL)
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", "-q")
    result.stdout.fnmatch_lines(["demo.eval.yaml: 100.0% [[]34.2, 100.0[]] 2/2 usable 2/2"])


def test_an_ascii_terminal_gets_ascii(project, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("PYTHONUTF8", "0")
    project.spec("tasks:\n  - {name: Bär, prompt: echo ü, expect: SAY-NO}\n")
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", "--caliper-baseline", "-v")
    assert result.ret == 1
    result.stdout.str().encode("ascii")
    assert "INTERNALERROR" not in result.stdout.str()


def test_plugins_that_rerun_get_no_attempt(project):
    project.makeconftest(
        (project.path / "conftest.py").read_text()
        + """
import pytest
from _pytest.runner import runtestprotocol

def pytest_configure(config):
    config.addinivalue_line("markers", "flaky: as rerunning plugins have it")

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.flaky(reruns=5))

def pytest_runtest_protocol(item, nextitem):
    for _ in range(3):
        runtestprotocol(item, nextitem=nextitem)
    return True

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    assert item.get_closest_marker("flaky") is None
    return (yield)
"""
    )
    project.spec(f"tasks:\n  - {{name: A, prompt: echo x >> {project.path}/paid, expect: SAY-NO}}\n")
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1").assert_outcomes(failed=1)
    assert (project.path / "paid").read_text() == "x\n"


def test_an_overridden_harness_needs_no_engine_and_asserts_need_no_judge(project, monkeypatch):
    monkeypatch.setenv("SHELL_AGENT_LOGGED_OUT", "1")
    project.makeconftest(
        (project.path / "conftest.py").read_text()
        + """
import pytest
from pytest_caliper.contracts import HarnessResult

@pytest.fixture
def caliper_harness():
    return lambda plan, workspace: HarnessResult(answer="mine", finished=True)
"""
    )
    project.spec(
        "tasks:\n  - {name: A, prompt: x, assert: assert attempt.answer == 'mine'}\n  - {name: B, prompt: x, expect: SAY-NO}\n"
    )
    project.runpytest_subprocess("demo.eval.yaml::A", "--caliper-k=1").assert_outcomes(passed=1)
    assert project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1").ret == pytest.ExitCode.USAGE_ERROR


def test_the_shim_gives_pytests_own_exit_status_and_options(project):
    project.makefile(".ini", pytest="[pytest]\ncaliper_results = results\nfilterwarnings = error\n")
    project.spec("tasks:\n  - {name: A, prompt: echo a, expect: SAY-NO}\n")
    words = ["run", "demo.eval.yaml", "--k", "2", "--model=shell-agent", "--judge-model", "shell-agent", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from pytest_caliper.cli import main; sys.exit(main())", *words],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "2 failed" in done.stdout


def test_two_spellings_of_one_spec_are_refused(project):
    project.spec(SMALL)
    (project.path / "demo.eval.yml").write_text(SMALL)
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*demo.eval.yaml:1: demo.eval.yml stands beside it*rename one*"])


def test_a_fatal_error_stops_every_worker(project):
    """Under xdist the controller stops; each worker may end the attempt it has begun and the one it was promised."""
    project.spec(
        f"tasks:\n  - {{name: A, prompt: \"echo x >> {project.path}/paid; echo '!fatal log in again: shell-agent login'\", expect: x}}\n"
    )
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=40", "-n2", "--maxschedchunk=1")
    assert len((project.path / "paid").read_text().split()) < 20
    result.stdout.fnmatch_lines(["*log in again: shell-agent login*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize("number", ["1", "3", "5"])
def test_judge_votes_must_be_odd(project, number):
    project.spec("tasks:\n  - {name: A, prompt: echo a, expect: x}\n")
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1", f"--caliper-judge-votes={number}")
    result.assert_outcomes(passed=1)
    (run,) = read_runs(project.path / "results")
    assert len(run["task_results"][0]["attempts"][0]["judge_votes"]) == (0 if number == "1" else int(number))
    assert project.runpytest_subprocess("demo.eval.yaml", "--caliper-judge-votes=2").ret == pytest.ExitCode.USAGE_ERROR
