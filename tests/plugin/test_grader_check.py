"""Given a spec whose checks are right or wrong, when pytest tries them, then these findings, and no agent, run file or journal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import psutil
import pytest

RIGHT = """
tasks:
  - name: Sets the port
    prompt: echo PROMPT-RAN > port
    setup: echo 1 > there
    assert: |
      from pathlib import Path
      assert Path("port").exists()
      assert Path("port").read_text() == "8080"
      assert attempt.answer == "done"
      assert attempt.files == ["port"]
      assert not attempt.commands and attempt.workdir == Path.cwd()
    solution: test -f there && printf 8080 > port; echo done
  - name: Greets
    prompt: echo hello
    expect: SAY-NO
"""


def section(result: pytest.RunResult, name: str) -> str:
    """What the FAILURES section says of one check."""
    text = result.stdout.str()
    return text.split(f"_ {name} _", 1)[1].split("\n", 1)[1].split("\n____", 1)[0]


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def left_behind(project) -> list[str]:
    known = {"conftest.py", "pytest.ini", "skill", "demo.eval.yaml", "__pycache__", "stdout", "stderr"}
    return sorted(
        path.name for path in project.path.iterdir() if path.name not in known and not path.name.startswith("runpytest")
    )


@pytest.mark.parametrize("extra", [[], ["-n2"], ["--caliper-workers=1"], ["-p", "no:terminal"]], ids=["ahead", "n2", "1", "mute"])
def test_right_checks_pass_and_nothing_is_kept(project, extra):
    project.spec(RIGHT)
    result = project.session("demo.eval.yaml", "--caliper-check", *extra)
    assert result.ret == 0
    if "no:terminal" not in extra:
        result.assert_outcomes(passed=3)
        result.stdout.fnmatch_lines(["caliper: tried 3 checks of 2 tasks: nothing is wrong with them"])
    assert left_behind(project) == []


def test_each_check_is_a_node_that_says_what_must_be_so(project):
    project.spec(RIGHT)
    result = project.session("demo.eval.yaml", "--caliper-check", "--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [
        "demo.eval.yaml::Sets the port::assert-fails",
        "demo.eval.yaml::Greets::judge-says-no",
        "demo.eval.yaml::Sets the port::solution-passes",
    ]


def test_checks_are_selected_as_any_test(project):
    project.spec(RIGHT)
    result = project.session("demo.eval.yaml::Sets the port::solution-passes", "--caliper-check")
    result.assert_outcomes(passed=1)
    result = project.session("demo.eval.yaml", "--caliper-check", "-k", "assert-fails")
    result.assert_outcomes(passed=1, deselected=2)
    assert "judge" not in result.stdout.str()


def test_the_judge_is_announced_before_it_is_asked(project):
    project.spec(RIGHT)
    result = project.session("demo.eval.yaml", "--caliper-check", "-q", "--caliper-judge-votes=3")
    result.stdout.fnmatch_lines(["caliper: no agent runs; shell-agent is asked 3 times as the judge, and once before, *"])
    result = project.session("demo.eval.yaml", "--caliper-check")
    said = [line for line in result.outlines if line.startswith("caliper: ")]
    assert "asked once" in said[0]
    assert "answers as shell-judge-1" in said[2]


def test_without_the_judge_nothing_of_it_is_needed(project, monkeypatch):
    monkeypatch.setenv("SHELL_AGENT_LOGGED_OUT", "1")
    project.spec(RIGHT)
    project.session("demo.eval.yaml", "--caliper-check", "--caliper-no-judge").assert_outcomes(passed=2)
    result = project.session("demo.eval.yaml", "--caliper-check")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*not logged in; run `shell-agent login`*"])


def test_a_missing_agent_does_not_matter(project):
    project.spec(RIGHT)
    result = project.session("demo.eval.yaml", "--caliper-check", "--caliper-model=command:/no/such/agent", "--caliper-no-judge")
    result.assert_outcomes(passed=2)


def test_variables_of_servers_are_not_needed(project):
    spec = project.spec(RIGHT)
    spec.write_text(spec.read_text() + "mcp: {tickets: {command: ./nothing, env: {TOKEN: '${CALIPER_NO_SUCH_VARIABLE}'}}}\n")
    project.session("demo.eval.yaml", "--caliper-check", "--caliper-no-judge").assert_outcomes(passed=2)


@pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["ahead", "n2"])
def test_what_is_wrong_is_told_with_file_line_and_remedy(project, extra):
    project.spec(
        """
        tasks:
          - name: Vacuous
            prompt: p
            assert: |
              assert not attempt.files
          - name: Crashing
            prompt: p
            assert: |
              # why
              assert open("port").read() == "8080"
          - name: Unsatisfiable
            prompt: p
            assert: |
              from pathlib import Path
              port = Path("port")
              assert port.exists(), "no port"
              assert int(port.read_text()) == 8080
            solution: echo 3000 > port
          - name: Too kind a judge
            prompt: p
            expect: There is a greeting.
          - name: Rambling judge
            prompt: p
            expect: SAY-GARBAGE
        """
    )
    result = project.session("demo.eval.yaml", "--caliper-check", *extra)
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=5)
    assert "demo.eval.yaml:8: vacuous: " in section(result, "Vacuous.assert-fails")
    crash = section(result, "Crashing.assert-fails")
    assert "demo.eval.yaml:13: crashing: this assert ends in FileNotFoundError" in crash
    assert "look first with `assert`" in crash
    wrong = section(result, "Unsatisfiable.solution-passes")
    assert "demo.eval.yaml:20: unsatisfiable: this assert fails on the task's own solution (assert 3000 == 8080)" in wrong
    assert "where 3000 = int('3000\\n')" in wrong
    assert "demo.eval.yaml:24: vacuous: the judge says yes" in section(result, "Too kind a judge.judge-says-no")
    rambling = section(result, "Rambling judge.judge-says-no")
    assert "demo.eval.yaml:27: judge_error: " in rambling
    assert "--caliper-judge-model" in rambling
    result.stdout.fnmatch_lines(["*tried 6 checks of 5 tasks: 5 findings (crashing, judge_error, unsatisfiable, vacuous)"])
    result.stdout.fnmatch_lines(["FAILED demo.eval.yaml::Vacuous::assert-fails - vacuous: *"])


def test_shell_that_fails_is_told_with_what_it_printed(project):
    project.spec(
        """
        tasks:
          - name: Setup
            prompt: p
            setup: echo one; echo two >&2; exit 3
            assert: assert attempt.answer
            solution: echo x
          - name: Solution
            prompt: p
            assert: assert attempt.answer
            solution: |
              echo first
              kill -9 $$
          - name: Cleanup
            prompt: p
            assert: assert attempt.answer
            cleanup: echo left; exit 1
        """
    )
    result = project.session("demo.eval.yaml", "--caliper-check", f"--caliper-output={project.path}/out/f.json")
    assert result.ret == 1
    found = json.loads((project.path / "out" / "f.json").read_text())
    assert (found["tasks"], found["checks"]) == (3, 5)
    told = {entry["fault"]: entry for entry in found["findings"]}
    assert len(told) == len(found["findings"]) == 3, "a setup that fails twice is one finding"
    assert {fault: entry["line"] for fault, entry in told.items()} == {"setup": 7, "solution": 13, "cleanup": 19}
    assert told["setup"]["detail"] == "one\ntwo"
    assert "failed with exit status 3: two" in told["setup"]["message"]
    assert "was killed by SIGKILL" in told["solution"]["message"]
    assert told["solution"]["detail"] == "first"
    assert told["cleanup"]["detail"] == "left"
    assert {entry["file"] for entry in found["findings"]} == {"demo.eval.yaml"}


def test_a_script_is_named_with_its_own_line(project):
    (project.path / "port.py").write_text("import json\n\nassert json.load(open('port.json'))\n")
    project.spec("tasks:\n  - {name: A, prompt: p, assert: ./port.py, solution: echo 0 > port.json}\n")
    result = project.session("demo.eval.yaml", "--caliper-check")
    assert "port.py:3: crashing: " in section(result, "A.assert-fails")
    assert "port.py:3: unsatisfiable: " in section(result, "A.solution-passes")


def test_secrets_and_escapes_of_shell_do_not_come_out(project, monkeypatch):
    monkeypatch.setenv("DEMO_API_KEY", "s3cr3t-value-of-somebody")
    project.spec(
        """
        tasks:
          - name: A
            prompt: p
            setup: printf '\\033[31mred %s\\n' "$DEMO_API_KEY"; exit 1
            assert: assert attempt.answer
        """
    )
    result = project.session("demo.eval.yaml", "--caliper-check", f"--caliper-output={project.path}/f.json")
    shown = result.stdout.str() + (project.path / "f.json").read_text()
    assert "s3cr3t" not in shown
    assert "[redacted:DEMO_API_KEY]" in shown
    assert "\x1b[31m" not in shown


def test_what_setup_left_running_ends(project, tmp_path):
    pid = tmp_path / "pid"
    project.spec(
        f"""
        tasks:
          - name: A
            prompt: p
            setup: sleep 1000 & echo $! > {pid}
            assert: assert attempt.answer
        """
    )
    project.session("demo.eval.yaml", "--caliper-check").assert_outcomes(passed=1)
    assert not is_alive(int(pid.read_text()))


def test_fixtures_of_the_project_apply(project):
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
import pytest
from pytest_caliper.contracts import HarnessResult, Verdict

@pytest.fixture
def caliper_workspace(caliper_workspace):
    (caliper_workspace.work / "given").write_text("by a fixture")
    return caliper_workspace

@pytest.fixture
def caliper_harness():
    raise RuntimeError("no agent is to run")

@pytest.fixture
def caliper_judge():
    def judge(plan, result, workspace):
        assert result.transcript == ()
        if plan.task.expect:
            return Verdict(autorater_passed=False, autorater_reasoning="mine")
        return Verdict(assert_passed=(workspace.work / "given").exists())
    return judge
"""
    )
    project.spec(RIGHT)
    result = project.session("demo.eval.yaml", "--caliper-check")
    result.assert_outcomes(passed=2, failed=1)  # each workspace holds what the fixture put there
    assert "vacuous" in section(result, "Sets the port.assert-fails")
    assert "as the judge" not in result.stdout.str()
    conftest.write_text(conftest.read_text().replace("assert result.transcript == ()", "raise LookupError('no judge')"))
    result = project.session("demo.eval.yaml", "--caliper-check", "-k", "assert-fails")
    assert "there is no verdict when nothing was done (the judge failed: LookupError" in section(
        result, "Sets the port.assert-fails"
    )


def test_a_broken_spec_is_a_collection_error(project):
    project.spec("tasks:\n  - {nmae: A}\n")
    result = project.session("demo.eval.yaml", "--caliper-check")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "tried" not in result.stdout.str()


def test_nothing_to_check_is_not_green(project):
    project.spec("tasks:\n  - {name: A, prompt: p, expect: There is a greeting.}\n")
    result = project.session("demo.eval.yaml", "--caliper-check", "--caliper-no-judge")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["note: demo.eval.yaml:4: there is nothing to check without the judge*"])


def test_warnings_of_the_spec_are_notes(project):
    project.spec("tasks:\n  - {name: A, prompt: p, assert: assert attempt.answer, expect: TODO}\n")
    result = project.session("demo.eval.yaml", "--caliper-check", "--caliper-no-judge")
    assert result.ret == 0
    result.stdout.fnmatch_lines(['note: *demo.eval.yaml:4: `expect` is "TODO"*'])


@pytest.mark.parametrize(
    "words",
    [
        ["--caliper-check", "--caliper-record"],
        ["--caliper-check", "--caliper-resume"],
        ["--caliper-check", "--caliper-shard=1/2"],
        ["--caliper-no-judge"],
    ],
    ids=" ".join,
)
def test_what_does_not_go_together_is_refused(project, words):
    project.spec(RIGHT)
    result = project.session("demo.eval.yaml", *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --caliper-* out" if "--caliper-check" in words else "ERROR: --caliper-no-judge belongs*"]
    )


def test_an_option_in_the_ini_file_opts_nobody_in(project):
    (project.path / "pytest.ini").write_text((project.path / "pytest.ini").read_text() + "    --caliper-check\n")
    project.spec(RIGHT)
    project.makepyfile(test_other="def test_it(): pass")
    result = project.session("test_other.py", "demo.eval.yaml")
    result.assert_outcomes(passed=1, deselected=3)


def test_other_tests_come_first_and_reruns_do_not_reach_checks(project):
    project.spec(RIGHT)
    project.makepyfile(test_other="def test_it(): pass")
    result = project.session("demo.eval.yaml", "test_other.py", "--caliper-check", "-v")
    ids = [line.split(" ")[0] for line in result.outlines if "PASSED" in line]
    assert ids[0] == "test_other.py::test_it"
    assert len(ids) == 4


@pytest.mark.parametrize("extra", [[], ["-n1"]], ids=["alone", "n1"])
def test_ctrl_c_leaves_nothing(project, extra):
    begun, pid = project.path / "begun", project.path / "pid"
    project.spec(
        f"""
        tasks:
          - name: A
            prompt: p
            setup: echo $$ > {pid}; touch {begun}; exec sleep 1000
            assert: assert attempt.answer
        """
    )
    command = [sys.executable, "-m", "pytest", "demo.eval.yaml", "--caliper-check", *extra]
    process = subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    end = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, out
    assert "Traceback" not in out
    assert not is_alive(int(pid.read_text()))


def test_a_lost_login_of_the_judge_stops_the_session(project):
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
from pytest_caliper.contracts import JudgeReply

class Forgetful(ShellAgent):
    name, aliases, asked = "forgetful", (), 0
    def read_judge(self, raw):
        Forgetful.asked += 1
        if Forgetful.asked == 1:
            return super().read_judge(raw)
        return JudgeReply(text="", error="401", fatal="log in again")

def pytest_caliper_backends(config):
    return [ShellAgent(), Forgetful()]
"""
    )
    tasks = "".join(f"  - {{name: T{n}, prompt: p, expect: A greeting number {n}.}}\n" for n in range(5))
    project.spec("tasks:\n" + tasks)
    result = project.session("demo.eval.yaml", "--caliper-check", "--caliper-judge-model=forgetful", "--caliper-workers=1")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*no judge can answer: log in again*"])
