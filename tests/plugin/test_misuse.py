"""What goes wrong around attempts: specs in odd places, results that cannot be kept, fixtures and backends that break their word."""

from __future__ import annotations

import glob
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest
from shell_agent import read_runs

ONE = """
tasks:
  - {name: One, prompt: echo a, assert: assert attempt.answer == 'a'}
"""
JUDGED = """
tasks:
  - {name: One, prompt: echo a, expect: x}
"""


def conftest(project, more: str, instead_of: str = "") -> str:
    """Add `more` to the project's conftest, or put it in a place there. -> the whole of it."""
    path = project.path / "conftest.py"
    text = path.read_text()
    assert instead_of in text
    path.write_text(text.replace(instead_of, more) if instead_of else f"{text}\n{more}")
    return path.read_text()


def ini(project, old: str, new: str) -> None:
    path = project.path / "pytest.ini"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def runs_of(project) -> list[dict]:
    return read_runs(project.path / "results")


# --- specs outside the rootdir ------------------------------------------------------------------------------------------------


@pytest.fixture
def scattered(project, tmp_path_factory: pytest.TempPathFactory):
    """Three specs whose tasks have the same names: one in the project, two elsewhere. -> (project, the other directory)."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("near", "far"):
        (elsewhere / f"{name}.eval.yaml").write_text(ONE)
    project.spec(ONE, skill=False)
    return project, elsewhere


@pytest.mark.parametrize("extra", [(), ("-n2",)], ids=["one process", "two workers"])
@pytest.mark.parametrize("named", ["files", "directory"])
def test_attempts_of_specs_outside_the_rootdir_are_all_kept(scattered, extra, named):
    project, elsewhere = scattered
    files = [str(elsewhere / "near.eval.yaml"), str(elsewhere / "far.eval.yaml")]
    arguments = ["demo.eval.yaml", *(files if named == "files" else [str(elsewhere)])]
    result = project.session(
        *arguments, "--caliper", "--caliper-k=2", "--rootdir=.", "-c", "pytest.ini", "--junitxml=junit.xml", *extra
    )
    assert result.ret == 0, result.stdout.str()
    runs = runs_of(project)
    assert sorted(len(run["task_results"][0]["attempts"]) for run in runs) == [2, 2, 2]
    assert not any(run["run"]["partial"] or run["run"]["interrupted"] for run in runs)
    cases = [(case.get("classname"), case.get("name")) for case in ET.parse(project.path / "junit.xml").iter("testcase")]
    assert len(set(cases)) == 6, "two attempts share an id"


def test_an_attempt_outside_the_rootdir_can_be_named_by_its_id(scattered):
    project, elsewhere = scattered
    (elsewhere / "conftest.py").write_text(conftest(project, ""))
    options = ("--caliper-k=2", "--rootdir=.", "-c", "pytest.ini")
    listed = project.session(str(elsewhere), *options, "--collect-only", "-q")
    nodeid = next(line for line in listed.outlines if line.endswith("far.eval.yaml::One::attempt-2"))
    project.session(nodeid, *options).assert_outcomes(passed=1)


def test_a_directory_with_colons_in_its_name_loses_nothing_under_xdist(project):
    place = project.mkdir("a::b")
    (place / "x::y.eval.yaml").write_text(ONE)
    result = project.session("--caliper", "--caliper-k=1", "-n2")
    assert result.ret == 0, result.stdout.str()
    assert len(runs_of(project)) == 1


def test_a_record_that_nobody_announced_is_never_green(project):
    project.spec(ONE)
    conftest(
        project,
        """
import dataclasses, json, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if hasattr(report, "caliper"):
        data = json.loads(report.caliper)
        data["key"]["spec"] += "-moved"
        report.caliper = json.dumps(data)
""",
    )
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["caliper: *nobody had announced*"])


# --- results ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [(), ("-n2",)], ids=["one process", "two workers"])
def test_a_place_for_results_that_is_no_directory_is_a_usage_error_before_anything_is_paid_for(project, extra):
    (project.path / "taken").write_text("a file")
    project.spec(f"tasks:\n  - {{name: A, prompt: touch {project.path}/paid, assert: assert attempt.answer == ''}}\n", name="a")
    project.spec(ONE, name="b")
    result = project.session("a.eval.yaml", "b.eval.yaml", "--caliper-results=taken", *extra)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --caliper-results taken is no directory: *"])
    assert not (project.path / "paid").exists()


@pytest.mark.parametrize("option", ["--caliper-output", "--caliper-results"])
@pytest.mark.parametrize("place", ["demo.eval.yaml", "new.eval.yml", ""])
def test_no_option_takes_a_spec_or_nothing_for_a_place(project, option, place):
    text = project.spec(ONE).read_text()
    result = project.runpytest("demo.eval.yaml", option, place)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {option} *"])
    assert (project.path / "demo.eval.yaml").read_text() == text


def test_a_blank_line_in_the_ini_file_says_nothing(project):
    ini(project, "caliper_results = results", "caliper_results =")
    project.spec(ONE)
    project.runpytest("demo.eval.yaml").assert_outcomes(passed=3)
    assert list((project.path / ".caliper").rglob("*.json"))


@pytest.mark.parametrize("arguments", [(), ("demo.eval.yaml",)])
def test_an_ini_switch_that_is_no_switch_is_told_in_a_line(project, arguments):
    ini(project, "[pytest]", "[pytest]\ncaliper = maybe")
    project.spec(ONE)
    result = project.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: caliper in *pytest.ini: *maybe*"])
    assert "Error" not in result.stdout.str()


# --- what others print --------------------------------------------------------------------------------------------------------

HOSTILE = r"""
tasks:
  - name: Fails
    prompt: printf 'x\033[31m\033]0;title\007\342\200\256y\n'
    assert: assert False, attempt.answer
  - name: Lost
    prompt: printf '!error x\033[31m\007\342\200\256y\n'
    assert: assert attempt.answer
  - name: "Named \e[31m\u202E"
    prompt: "true"
    assert: raise ValueError(chr(27) + chr(0x202e))
"""


@pytest.mark.parametrize("extra", [(), ("-n2",)], ids=["one process", "two workers"])
def test_no_text_of_others_reaches_the_terminal_as_a_command(project, extra):
    project.spec(HOSTILE)
    result = project.session("demo.eval.yaml", "--caliper-k=1", "-rA", "-v", "--junitxml=junit.xml", *extra)
    shown = result.stdout.str() + result.stderr.str()
    assert "\\x1b[31m" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert {"\x1b", "\u202e"}.isdisjoint("".join(ET.parse(project.path / "junit.xml").getroot().itertext()))


# --- fixtures and hooks of others ---------------------------------------------------------------------------------------------

HARNESS = """
import pytest
from pytest_caliper.contracts import HarnessResult, Verdict

@pytest.fixture
def caliper_harness():
    return lambda plan, workspace: {}
"""
JUDGE = HARNESS.replace("caliper_harness", "caliper_judge").replace("plan, workspace", "plan, result, workspace")
ANSWER = "HarnessResult(answer='a', finished=True)"


@pytest.mark.parametrize(
    "given",
    [
        "None",
        "'a'",
        "HarnessResult(answer=None, finished=True)",
        "HarnessResult(answer=b'a', finished=True)",
        "HarnessResult(answer='a', finished=True, transcript=None)",
        "HarnessResult(answer='a', finished=True, transcript=['a'])",
        "HarnessResult(answer='a', finished=True, usage={'input_tokens': 1})",
        "HarnessResult(answer='a', finished=True, duration_s=float('nan'))",
        "HarnessResult(answer='a', finished=False, error=ValueError('x'))",
        "exit(0)",
        "pytest.skip('x')",
        "pytest.fail('x')",
        "1 / 0",
    ],
)
def test_a_harness_that_breaks_its_word_costs_its_attempts_and_no_more(project, given):
    conftest(project, HARNESS.format(given))
    project.spec(ONE)
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (attempt,) = runs_of(project)[0]["task_results"][0]["attempts"]
    assert attempt["outcome"] == "infra_error"
    assert attempt["reason"].startswith("the harness failed: ")


@pytest.mark.parametrize(
    "given",
    [
        "None",
        "True",
        "Verdict(assert_passed=1)",
        "Verdict(assert_passed='yes')",
        "Verdict(assert_passed=True, judge_s=float('inf'))",
        "Verdict(assert_passed=False, assert_evidence=5)",
        "exit(0)",
        "pytest.skip('x')",
    ],
)
def test_a_judge_that_breaks_its_word_gives_no_verdict(project, given):
    conftest(project, JUDGE.format(given))
    project.spec(ONE)
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (attempt,) = runs_of(project)[0]["task_results"][0]["attempts"]
    assert attempt["outcome"] == "judge_error"
    assert "the judge failed: " in attempt["reason"]


@pytest.mark.parametrize("fixture", ["caliper_workspace", "caliper_harness", "caliper_judge"])
def test_a_fixture_that_forgets_to_return_is_not_taken_for_the_standard_one(project, fixture):
    conftest(project, f"\nimport pytest\n\n@pytest.fixture\ndef {fixture}():\n    pass\n")
    project.spec(f"tasks:\n  - {{name: A, prompt: touch {project.path}/paid, assert: assert attempt.answer == ''}}\n")
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"caliper: *the fixture {fixture} gave None*"])
    assert not (project.path / "paid").exists()


OVERRIDES = {
    "caliper_workspace": "return Workspace.at(tmp_path_factory.mktemp('mine'))",
    "caliper_harness": "return lambda plan, workspace: HarnessResult(answer='mine', finished=True)",
    "caliper_judge": "return lambda plan, result, workspace: Verdict(assert_passed=False, assert_evidence='mine')",
}


@pytest.mark.parametrize(("scope", "extra"), [("function", ()), ("module", ()), ("session", ()), ("session", ("-n2",))])
@pytest.mark.parametrize("fixture", OVERRIDES)
def test_an_override_counts_for_every_attempt_whatever_its_scope(project, fixture, scope, extra):
    conftest(
        project,
        f"""
import pytest
from pytest_caliper.contracts import HarnessResult, Verdict, Workspace

@pytest.fixture(scope="{scope}")
def {fixture}(tmp_path_factory):
    {OVERRIDES[fixture]}
""",
    )
    project.spec("tasks:\n  - {name: A, prompt: pwd, assert: assert 'mine' not in attempt.answer}\n")
    project.session("demo.eval.yaml", "--caliper-k=3", *extra).assert_outcomes(failed=3)


def test_pytest_exit_in_a_harness_ends_the_session(project):
    conftest(project, HARNESS.format("pytest.exit('enough', returncode=0)"))
    project.spec(ONE)
    result = project.runpytest("demo.eval.yaml", "--caliper-k=2")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*Exit: enough*"])


BACKEND = """
class Broken(ShellAgent):
    name = "broken"
    aliases = ()

    def {}(self, *args, **kwargs):
        {}

def pytest_caliper_backends(config):
    return [ShellAgent(), Broken()]
"""


@pytest.mark.parametrize("method", ["find", "check", "refuses", "judge_command", "read_judge"])
@pytest.mark.parametrize("does", ["raise RuntimeError('boo')", "return self"])
def test_a_backend_that_breaks_its_word_is_a_usage_error(project, method, does):
    if does.startswith("return") and method in {"check", "refuses"}:
        pytest.skip("what check returns is not looked at, and anything may be a refusal")
    conftest(project, BACKEND.format(method, does))
    project.spec(JUDGED)
    result = project.runpytest("demo.eval.yaml", "--caliper-model=broken", "--caliper-judge-model=broken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR, result.stdout.str()
    result.stderr.fnmatch_lines(["ERROR: broken: its backend is broken: *"])
    assert not (project.path / "results").exists()


@pytest.mark.parametrize("answer", ["ShellAgent()", "[ShellAgent]", "[5]", "'shell'", "{}"])
def test_a_hook_that_returns_no_backends_is_a_usage_error(project, answer):
    conftest(project, answer, "[ShellAgent()]")
    project.spec(ONE)
    result = project.runpytest("demo.eval.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR, result.stdout.str()
    result.stderr.fnmatch_lines(["ERROR: a hook pytest_caliper_backends returned *"])


# --- the same attempt twice, or not at all ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["--keep-duplicates", "a plugin"])
def test_an_attempt_runs_once_however_often_it_was_collected(project, how):
    project.spec(ONE)
    arguments = ["demo.eval.yaml", "demo.eval.yaml", "--caliper-k=2"]
    if how == "a plugin":
        conftest(project, "def pytest_collection_modifyitems(items):\n    items += items\n")
    else:
        arguments.append(how)
    project.runpytest(*arguments).assert_outcomes(passed=2, deselected=2)
    (run,) = runs_of(project)
    assert len(run["task_results"][0]["attempts"]) == 2
    assert not run["run"]["partial"]


def test_setup_only_sets_up_without_an_attempt(project):
    project.spec(f"tasks:\n  - {{name: A, prompt: touch {project.path}/paid, assert: assert attempt.answer == ''}}\n")
    result = project.runpytest("demo.eval.yaml", "--setup-only")
    assert result.ret == 0, result.stdout.str()
    assert not (project.path / "paid").exists()


# --- what an agent does to its own directories --------------------------------------------------------------------------------

AWAY = {
    "removed": 'rm -rf "$PWD/.."',
    "a file": "cd ..; rm -rf work; echo x > work",
    "a link": 'cd ..; rm -rf work; ln -s "{outside}" work',
    "closed": "chmod 000 .",
}


@pytest.mark.parametrize("how", AWAY)
def test_cleanup_runs_in_a_directory_of_the_attempts_whatever_the_agent_did_to_it(project, how):
    outside = project.mkdir("outside")
    (outside / "kept").write_text("not the attempt's")
    project.spec(
        f"""
        tasks:
          - name: A
            prompt: |
              {AWAY[how].replace("{outside}", str(outside))}
            assert: assert attempt.answer == ''
            cleanup: rm -rf ./*; touch {project.path}/cleaned
        """
    )
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    (attempt,) = runs_of(project)[0]["task_results"][0]["attempts"]
    assert attempt["cleanup_error"] is None
    assert (project.path / "cleaned").exists()
    assert (outside / "kept").exists()
    assert "not the attempt's" not in str(attempt)


# --- ends ---------------------------------------------------------------------------------------------------------------------


def temporaries(base: Path) -> list[str]:
    return [name for name in os.listdir(base) if name.startswith("caliper-")]


def wait_for(condition, within_s: float = 60.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_killed_controller_of_workers_leaves_no_process_and_no_directory(project):
    temporary = project.mkdir("temporary")
    project.spec("tasks:\n  - {name: A, prompt: 'sleep 600', expect: x}\n")
    arguments = ["demo.eval.yaml", "--caliper-k=2", "-n2", "--caliper-workers=2", "--caliper-timeout=600"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=project.path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        agents = f"{temporary}/caliper-*/*/task-001-skill-*/agent.out"
        wait_for(lambda: len(glob.glob(agents)) == 2)
        assert any(name.endswith("-places") for name in temporaries(temporary))
        tree = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        process.wait()
    wait_for(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in tree))
    wait_for(lambda: not temporaries(temporary))


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "RuntimeError('x')"])
def test_what_breaks_the_end_of_the_session_does_not_cost_the_run(project, error):
    conftest(project, f"def pytest_sessionfinish():\n    raise {error}\n")
    project.spec(ONE)
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2")
    assert result.ret != 0
    (run,) = runs_of(project)
    assert len(run["task_results"][0]["attempts"]) == 2
    assert not run["run"]["interrupted"]


def test_ctrl_c_in_a_cleanup_keeps_what_the_attempt_came_to(project):
    project.spec(
        f"""
        tasks:
          - name: A
            prompt: echo a
            assert: assert attempt.answer == 'a'
            cleanup: touch {project.path}/cleaning; sleep 60
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "demo.eval.yaml", "--caliper-k=1"],
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_for((project.path / "cleaning").exists)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == pytest.ExitCode.INTERRUPTED, out.decode()
    (attempt,) = runs_of(project)[0]["task_results"][0]["attempts"]
    assert (attempt["outcome"], attempt["cleanup_error"]) == ("pass", "cleanup was interrupted")


def test_a_slip_of_the_finger_orders_nothing(project):
    project.spec("tasks:\n  - {name: A, prompt: echo a, expect: x}\n")
    result = project.session("demo.eval.yaml", "--caliper-k=99999999")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*must be at most 10,000*"])


def test_dist_each_is_refused_before_anything_is_paid_for(project):
    project.spec(f"tasks:\n  - {{name: A, prompt: touch {project.path}/paid, expect: x}}\n")
    result = project.session("demo.eval.yaml", "--caliper-k=1", "--dist=each", "--tx=2*popen")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--dist each would pay for every attempt once per worker" in result.stderr.str() + result.stdout.str()
    assert not (project.path / "paid").exists()


def test_a_cassette_that_is_no_file_is_refused(project):
    project.spec("tasks:\n  - {name: A, prompt: echo a, assert: assert attempt.answer}\n")
    place = project.path / "demo.cassettes"
    place.mkdir()
    (place / "task-001-skill-1.json").symlink_to("/dev/zero")
    result = project.session("demo.eval.yaml", "--caliper-k=1", "--caliper-replay")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*task-001-skill-1.json: not a regular file*"])
