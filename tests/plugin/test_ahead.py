"""Attempts run ahead of their turn only where nobody can see it, and stop when the session stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from shell_agent import read_runs

MEET = """
tasks:
  - name: Meet
    prompt: |
      touch {dir}/here-$ATTEMPT
      for i in $(seq 400); do [ $(ls {dir} | grep -c here-) -ge {count} ] && break; sleep 0.05; done
      ls {dir} | grep -c here-
    assert: assert int(attempt.answer) >= {count}
"""
"""Passes only if `count` attempts run at the same time."""
ALONE = """
tasks:
  - name: Alone
    prompt: mkdir {dir}/lock || echo met; sleep 0.2; rmdir {dir}/lock; echo "$SEEN"
    assert: |
      assert "met" not in attempt.answer
"""
"""Passes only if no two attempts run at the same time."""


def conftest(project, text: str) -> None:
    path = project.path / "conftest.py"
    path.write_text(f"{path.read_text()}\n{text}")


def meeting(project, count: int) -> Path:
    place = project.mkdir("place")
    project.spec(MEET.format(dir=os.path.relpath(place, project.path), count=count).replace("place", str(place)))
    return place


def pass_env(project) -> None:
    """Let the shell agent see SEEN, so that a spec can tell when its environment was read."""
    conftest(
        project,
        """
import shell_agent
_original = shell_agent.ShellAgent.agent_command
def _with_seen(self, plan, workspace, cli):
    command = _original(self, plan, workspace, cli)
    command.env["SEEN"] = plan.env.get("SEEN", "")
    return command
shell_agent.ShellAgent.agent_command = _with_seen
""",
    )


def test_attempts_run_at_the_same_time(project):
    # A path outside the root would make them run one after another: the place is told by the environment.
    place = project.mkdir("place")
    pass_env(project)
    project.spec(MEET.replace("{dir}", '"$SEEN"').replace("{count}", "3"))
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=3", "--caliper-workers=3", **env(SEEN=place))
    result.assert_outcomes(passed=3)


def env(**variables) -> dict:
    os.environ.update({name: str(value) for name, value in variables.items()})
    return {}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    monkeypatch.setenv("SEEN", "")


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n@pytest.fixture(autouse=True)\ndef between(monkeypatch):\n    monkeypatch.setenv('SEEN', 'yes')\n",
        "import os\ndef pytest_runtest_setup(item):\n    os.environ['SEEN'] = 'yes'\n",
        "import pytest, os\n@pytest.fixture(autouse=True, scope='module')\ndef between():\n    os.environ['SEEN'] = 'yes'\n",
        "import pytest, os\n@pytest.fixture(autouse=True, scope='session')\ndef between():\n    os.environ['SEEN'] = 'yes'\n",
    ],
    ids=["function fixture", "hook", "module fixture", "session fixture"],
)
def test_every_attempt_sees_what_fixtures_and_hooks_did(project, text):
    pass_env(project)
    conftest(project, text)
    project.spec("tasks:\n  - {name: Sees, prompt: 'echo \"$SEEN\"', assert: assert attempt.answer == 'yes'}\n")
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=4")
    result.assert_outcomes(passed=4)


def test_what_made_attempts_wait_is_named(project):
    conftest(project, "import pytest\n@pytest.fixture(autouse=True)\ndef stands_between():\n    pass\n")
    project.spec("tasks:\n  - {name: A, prompt: echo a, expect: x}\n")
    result = project.runpytest_subprocess("demo.eval.yaml")
    result.stdout.fnmatch_lines(
        ["note: attempts ran one after another because of the function fixture stands_between*conftest.py:*"]
    )


def test_other_tests_do_not_leak_into_attempts(project):
    pass_env(project)
    project.makepyfile(
        test_unit="""
        import os, time
        def test_leaks(monkeypatch, tmp_path):
            monkeypatch.setenv("SEEN", "leaked")
            monkeypatch.chdir(tmp_path)
            time.sleep(1)
        """
    )
    project.spec("tasks:\n  - name: Clean\n    prompt: echo \"<$SEEN>\"\n    assert: assert attempt.answer == '<>'\n")
    project.runpytest_subprocess("--caliper", "--caliper-k=4").assert_outcomes(passed=5)


def test_an_overridden_harness_judge_and_workspace_are_used(project):
    conftest(
        project,
        """
import pytest
from pytest_caliper.contracts import HarnessResult, Verdict

@pytest.fixture
def caliper_workspace(caliper_workspace):
    (caliper_workspace.work / "given.txt").write_text("given")
    return caliper_workspace

@pytest.fixture
def caliper_harness():
    def run(plan, workspace):
        return HarnessResult(answer=(workspace.work / "given.txt").read_text(), finished=True, duration_s=1.5)
    return run

@pytest.fixture
def caliper_judge():
    def judge(plan, result, workspace):
        return Verdict(autorater_passed=result.answer == "given", autorater_reasoning="mine", judge_model="me")
    return judge
""",
    )
    project.spec("tasks:\n  - {name: A, prompt: ignored, expect: x}\n")
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2").assert_outcomes(passed=2)
    (run,) = read_runs(project.path / "results")
    attempt = run["task_results"][0]["attempts"][0]
    assert attempt["output"] == "given"
    assert attempt["autorater_reasoning"] == "mine"
    assert attempt["duration_seconds"] == 1.5


def test_a_harness_that_breaks_is_that_attempts_fault_alone(project):
    conftest(
        project,
        "import pytest\n@pytest.fixture\ndef caliper_harness():\n    def run(plan, workspace):\n        1 / 0\n    return run\n",
    )
    project.spec("tasks:\n  - {name: A, prompt: x, expect: x}\n")
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=1")
    result.assert_outcomes(skipped=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the harness failed: ZeroDivisionError*"])


def test_records_are_seen_by_the_hook_once_each(project):
    conftest(
        project,
        """
def pytest_caliper_record(config, record):
    with open(config.rootpath / "seen", "a") as out:
        out.write(f"{record.key.arm}-{record.key.attempt} {record.outcome}\\n")
""",
    )
    project.spec("tasks:\n  - {name: A, prompt: echo a, expect: x}\n")
    for extra in ([], ["-n2"]):
        project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", "--caliper-baseline", *extra)
        seen = (project.path / "seen").read_text().split("\n")
        assert sorted(filter(None, seen)) == ["baseline-1 pass", "baseline-2 pass", "skill-1 pass", "skill-2 pass"]
        (project.path / "seen").unlink()


def test_a_task_with_a_path_outside_runs_one_attempt_at_a_time(project):
    place = project.mkdir("place")
    project.spec(ALONE.replace("{dir}", str(place)))
    for extra in (["--caliper-workers=4"], ["-n2"]):
        result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", "--caliper-baseline", *extra)
        result.assert_outcomes(passed=2, xpassed=2)


def test_pdb_and_trace_run_at_their_turn(project):
    place = project.mkdir("place")
    pass_env(project)
    project.spec(ALONE.replace("{dir}", '"$SEEN"'))
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=3", "--pdb", **env(SEEN=place))
    result.assert_outcomes(passed=3)


def test_setup_show_and_collect_only_pay_for_nothing(project):
    project.spec(f"tasks:\n  - {{name: A, prompt: touch {project.path}/paid, expect: x}}\n")
    for option in ("--setup-only", "--setup-plan", "--collect-only"):
        project.runpytest_subprocess("demo.eval.yaml", option)
        assert not (project.path / "paid").exists(), option


STUBBORN = """
tasks:
  - name: Stubborn
    prompt: |
      echo $$ >> {dir}/pids
      trap '' INT TERM
      setsid sh -c "echo \\$\\$ >> {dir}/pids; trap '' INT TERM; while :; do sleep 0.1; done" &
      while :; do sleep 0.1; done
    expect: x
    cleanup: touch {dir}/cleaned-$$
"""


def pids_of(place: Path) -> list[int]:
    try:
        return [int(line) for line in (place / "pids").read_text().split()]
    except FileNotFoundError:
        return []


def living(pids: list[int]) -> list[int]:
    out = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                out.append(pid)
        except psutil.NoSuchProcess:
            continue
    return out


def wait_for(condition, within_s: float = 60.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.fixture
def stubborn(project):
    """A running pytest with three attempts under way that heed no polite signal."""
    place = project.mkdir("place")
    for name in ("one", "two", "three"):
        project.spec(STUBBORN.replace("{dir}", str(place)), name=name)
    started: list[subprocess.Popen] = []

    def start(*extra: str) -> tuple[subprocess.Popen, Path]:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "one.eval.yaml", "two.eval.yaml", "three.eval.yaml", "--caliper-k=1", *extra],
            cwd=project.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(process)
        wait_for(lambda: len(pids_of(place)) >= 6)
        return process, place

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_leave_nothing_and_clean_up(stubborn, number):
    process, place = stubborn()
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, out.decode()
    assert living(pids_of(place)) == []
    assert len(list(place.glob("cleaned-*"))) == 3
    assert b"3 of 3" not in out or b"never reported" in out


def test_ctrl_c_twice_is_at_once(stubborn):
    process, place = stubborn()
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)  # somebody impatient; whatever has happened by then, the end is the same
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    wait_for(lambda: not living(pids_of(place)))


def test_killing_pytest_kills_its_agents_and_removes_its_directories(stubborn):
    process, place = stubborn()
    tree = [child for child in psutil.Process(process.pid).children(recursive=True)]
    roots = {os.readlink(f"/proc/{pid}/cwd") for pid in pids_of(place)} if os.path.isdir("/proc") else set()
    process.kill()
    process.wait()
    wait_for(lambda: not living(pids_of(place)))
    wait_for(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in tree))
    wait_for(lambda: not any(os.path.exists(root) for root in roots))


def test_exitfirst_stops_what_runs(project):
    place = project.mkdir("place")
    (project.path / "a.eval.yaml").write_text("tasks:\n  - {name: Fails, prompt: 'sleep 1; echo a', expect: SAY-NO}\n")
    project.spec(STUBBORN.replace("{dir}", str(place)), name="b")
    result = project.runpytest_subprocess("a.eval.yaml", "b.eval.yaml", "--caliper-k=1", "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert living(pids_of(place)) == []
    result.stdout.fnmatch_lines(["*b.eval.yaml: 1 of 1 attempts never reported*"])


def test_what_had_ended_is_kept_when_pytest_is_killed(project):
    place = project.mkdir("place")
    project.spec(
        f"""
        tasks:
          - {{name: Quick, prompt: echo quick answer, expect: x}}
          - {{name: Slow, prompt: touch {place}/running; sleep 100, expect: x}}
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "demo.eval.yaml", "--caliper-k=1"],
        cwd=project.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: (place / "running").exists())
    wait_for(lambda: any("quick answer" in path.read_text() for path in (project.path / "results" / "demo").glob("*.jsonl")))
    process.kill()
    process.wait()
    from pytest_caliper.runs.journal import read_journal

    (journal,) = (project.path / "results" / "demo").glob("*.jsonl")
    header, records = read_journal(journal)
    assert [record.output for record in records] == ["quick answer"]
    assert header["contract"]["tasks"].keys() == {"task-001", "task-002"}
    assert Path(records[0].transcript_path).exists()


def test_rounds_first_and_the_longest_of_the_last_run_first_in_each(project):
    log = project.path / "order"
    conftest(
        project,
        f"""
import shell_agent
_command = shell_agent.ShellAgent.agent_command
def _logged(self, plan, workspace, cli):
    with open({str(log)!r}, "a") as out:
        out.write(f"{{plan.task.name}}-{{plan.arm}}-{{plan.key.attempt}} ")
    return _command(self, plan, workspace, cli)
shell_agent.ShellAgent.agent_command = _logged
""",
    )
    project.spec(
        """
        tasks:
          - {name: Short, prompt: echo a, assert: assert attempt.answer}
          - {name: Long, prompt: sleep 0.8; echo a, assert: assert attempt.answer}
        """
    )
    orders = []
    for _ in range(2):
        project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", "--caliper-baseline", "--caliper-workers=1")
        orders.append(log.read_text().split())
        log.unlink()
    by_file = [f"{task}-{arm}-{n}" for n in (1, 2) for task in ("Short", "Long") for arm in ("skill", "baseline")]
    by_time = [f"{task}-{arm}-{n}" for n in (1, 2) for task in ("Long", "Short") for arm in ("skill", "baseline")]
    assert orders == [by_file, by_time]


def test_workers_that_were_asked_for_bound_xdist_too(project):
    place = project.mkdir("place")
    pass_env(project)
    project.spec(ALONE.replace("{dir}", '"$SEEN"'))  # no path in the prompt: nothing but the bound keeps them apart
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=4", "-n2", "--caliper-workers=1", **env(SEEN=place))
    result.assert_outcomes(passed=4)
