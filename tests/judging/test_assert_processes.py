"""The processes of asserts: ended in time, wherever they hang, and never in each other's way."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from judging_bench import AssertBench, make_workspace

from pytest_caliper.contracts import Cancelled
from pytest_caliper.judging import assert_helper
from pytest_caliper.judging.assert_client import AssertOutcome, AssertRunner
from pytest_caliper.judging.assertion import compile_assertion
from pytest_caliper.process import TAG_VARIABLE, Processes

LIMIT_S = 30.0
"""A generous bound for things that take milliseconds."""


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            return text.strip()
        time.sleep(0.005)
    raise AssertionError(f"{path} was not written")


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:
            return
        time.sleep(0.005)
    raise AssertionError(f"process {pid} lives on")


@pytest.mark.parametrize("hang", ["while True: pass", "time.sleep(600)"])
def test_a_time_out_is_no_verdict_and_names_the_line(bench: AssertBench, hang: str) -> None:
    outcome = bench.run(f"import time\nprint('begun')\n{hang}", timeout_s=0.5)
    assert outcome.passed is None
    assert outcome.evidence.split("\n")[0] == "case.eval.yaml:7: the assert ran longer than 0.5 s"
    assert outcome.evidence.endswith("captured output:\nbegun")
    assert 0.4 < outcome.duration_s < LIMIT_S


def test_an_assert_that_ignores_signals_is_killed(bench: AssertBench) -> None:
    code = "import signal, time\nfor n in (signal.SIGINT, signal.SIGTERM):\n    signal.signal(n, signal.SIG_IGN)\ntime.sleep(600)"
    outcome = bench.run(code, timeout_s=0.2)
    assert outcome.passed is None
    assert "ran longer than" in outcome.evidence


def test_a_pass_that_comes_too_late_is_no_pass(bench: AssertBench) -> None:
    code = (
        "import signal, time\nsignal.signal(signal.SIGINT, lambda *_: None)\n"
        "end = time.monotonic() + 0.6\nwhile time.monotonic() < end: time.sleep(0.01)"
    )
    assert bench.run(code, timeout_s=0.2).passed is None


@pytest.mark.parametrize("ending", ["", "assert False", "os._exit(1)", "time.sleep(600)"])
def test_nothing_that_an_assert_started_survives(bench: AssertBench, tmp_path: Path, ending: str) -> None:
    pids = tmp_path / "pids"
    code = "\n".join(
        [
            "import os, subprocess, time",
            "a = subprocess.Popen(['sleep', '600'])",
            "b = subprocess.Popen(['sleep', '600'], start_new_session=True)",
            f"with open({str(pids)!r}, 'w') as f: f.write(f'{{os.getpid()}} {{a.pid}} {{b.pid}}\\n')",
            ending,
        ]
    )
    bench.run(code, timeout_s=2.0)
    for pid in pids.read_text().split():
        wait_until_gone(int(pid))


def test_what_set_up_left_running_outlives_the_assert(bench: AssertBench) -> None:
    env = {**os.environ, TAG_VARIABLE: f"{bench.processes.session_tag}/a"}
    with subprocess.Popen(["sleep", "600"], env=env, start_new_session=True) as server:
        try:
            assert bench.run("assert True").passed is True
            assert server.poll() is None
        finally:
            server.kill()


def test_output_held_by_a_grandchild_does_not_delay_the_verdict(bench: AssertBench) -> None:
    outcome = bench.run("import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\nassert 1", timeout_s=25)
    assert outcome.passed is True


def test_many_asserts_from_many_threads_keep_apart(bench: AssertBench) -> None:
    bench.write_assert("n = int(attempt.answer)\nassert n % 2 == 0, f'odd {n}'")
    plan = bench.plan()
    assert plan.task.assertion is not None
    code = compile_assertion(plan.task.assertion)
    workspace = make_workspace(plan.root)

    def one(n: int) -> AssertOutcome:
        attempt = {
            "answer": str(n),
            "tool_calls": [],
            "commands": [],
            "files": [],
            "skills": [],
            "usage": None,
            "workdir": str(workspace.work),
        }
        mine = replace(plan, tag=f"{bench.processes.session_tag}/many-{n}")
        return bench.runner.run(code, plan=mine, workspace=workspace, attempt=attempt)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(one, range(120)))
    for n, outcome in enumerate(outcomes):
        assert outcome.passed is (n % 2 == 0), outcome.evidence
        assert (f"odd {n}\n" in outcome.evidence) is (n % 2 == 1)


def test_a_helper_that_was_killed_is_replaced(own_bench: AssertBench) -> None:
    assert own_bench.run("assert True").passed is True
    first = own_bench.runner._helper
    assert first is not None
    os.kill(first.process.pid, signal.SIGKILL)
    assert own_bench.run("assert True").passed is True
    assert own_bench.runner._helper is not first


def test_an_assert_outlives_the_helper_that_forked_it(own_bench: AssertBench, tmp_path: Path) -> None:
    ready, go = tmp_path / "ready", tmp_path / "go"
    wait = f"while not os.path.exists({str(go)!r}): time.sleep(0.01)"
    code = f"import os, time\nopen({str(ready)!r}, 'w').write('x\\n')\n{wait}\nassert 2 == 3"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(own_bench.run, code)
        wait_for(ready)
        helper = own_bench.runner._helper
        assert helper is not None
        os.kill(helper.process.pid, signal.SIGKILL)
        helper.process.wait()
        go.touch()
        outcome = future.result(LIMIT_S)
    assert outcome.passed is False
    assert "assert 2 == 3" in outcome.evidence


def test_without_a_helper_asserts_run_cold(own_bench: AssertBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> assert_helper.Helper:
        raise OSError("no")

    monkeypatch.setattr(assert_helper.Helper, "start", refuse)
    assert own_bench.run("assert attempt.answer == 'done'").passed is True
    outcome = own_bench.run("print('out')\nassert {'a': 1} == {'a': 2}")
    assert outcome.passed is False
    assert outcome.evidence.startswith("case.eval.yaml:6: AssertionError: assert {'a': 1} == {'a': 2}")
    assert "Differing items" in outcome.evidence
    assert outcome.evidence.endswith("captured output:\nout")
    assert "SIGKILL" in own_bench.run("import os\nos.kill(os.getpid(), 9)").evidence
    assert "status 0" in own_bench.run("import os\nos._exit(0)").evidence
    assert own_bench.run("import time\ntime.sleep(600)", timeout_s=1.5).passed is None


def test_a_cancel_ends_running_asserts_at_once(own_bench: AssertBench, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"import os, time\nopen({str(pid_file)!r}, 'w').write(f'{{os.getpid()}}\\n')\ntime.sleep(600)"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(own_bench.run, code)
        pid = int(wait_for(pid_file))
        own_bench.processes.cancel_all()
        with pytest.raises(Cancelled):
            future.result(LIMIT_S)
    wait_until_gone(pid)
    with pytest.raises(Cancelled):
        own_bench.run("assert True")


def test_a_closed_runner_leaves_no_process(own_bench: AssertBench, tmp_path: Path) -> None:
    own_bench.run("assert True")
    helper = own_bench.runner._helper
    assert helper is not None
    own_bench.runner.close()
    own_bench.runner.close()
    assert helper.process.returncode == 0
    with pytest.raises(Cancelled):
        own_bench.run("assert True")


def test_a_helper_whose_client_is_gone_ends_with_its_children(own_bench: AssertBench, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"import os, time\nopen({str(pid_file)!r}, 'w').write(f'{{os.getpid()}}\\n')\ntime.sleep(600)"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(own_bench.run, code)
        pid = int(wait_for(pid_file))
        helper = own_bench.runner._helper
        assert helper is not None
        helper.control.close()
        wait_until_gone(pid)
        assert future.result(LIMIT_S).passed is None
    helper.process.wait(LIMIT_S)


def test_a_stopped_session_does_not_wait_for_a_helper(own_bench: AssertBench, monkeypatch: pytest.MonkeyPatch) -> None:
    own_bench.run("assert True")
    helper = own_bench.runner._helper
    assert helper is not None
    helper.process.send_signal(signal.SIGSTOP)
    try:
        timer = threading.Timer(0.3, own_bench.processes.cancel_all)
        timer.start()
        with pytest.raises(Cancelled):
            own_bench.run("assert True")
        timer.join()
    finally:
        helper.process.send_signal(signal.SIGCONT)


def test_no_descriptor_is_leaked(bench: AssertBench) -> None:
    bench.run("assert True")
    before = psutil.Process().num_fds()
    for _ in range(5):
        bench.run("assert False")
        bench.run("import os\nos._exit(1)")
    assert psutil.Process().num_fds() <= before + 1


def test_an_assert_that_has_begun_is_never_run_again(
    own_bench: AssertBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = tmp_path / "count"

    def breaks(*_: object) -> assert_helper.End:
        wait_for(count)
        raise OSError("too late to start over")

    monkeypatch.setattr(assert_helper.Call, "wait_for_end", breaks)
    with pytest.raises(OSError, match="too late"):
        own_bench.run(f"with open({str(count)!r}, 'a') as f: f.write('x\\n')")
    assert count.read_text() == "x\n"


def test_the_helper_is_not_measured_for_coverage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-cov before 7 has every Python that it reaches write a data file, which nobody would collect."""
    monkeypatch.setenv("COV_CORE_DATAFILE", str(tmp_path / ".coverage"))
    monkeypatch.setenv("COVERAGE_PROCESS_START", str(tmp_path / "coveragerc"))
    started: list[dict[str, str]] = []

    def start(env: dict[str, str], cwd: Path) -> assert_helper.Helper:
        started.append(env)
        raise OSError("no helper: the assert runs without one")

    monkeypatch.setattr(assert_helper.Helper, "start", start)
    with Processes(f"test-{uuid.uuid4().hex}") as processes:
        runner = AssertRunner(processes, os.environ)
        assert AssertBench(dir=tmp_path, processes=processes, runner=runner).run("assert True").passed
        runner.close()
    assert started
    assert all("PATH" in env for env in started)
    assert not [name for env in started for name in env if name.startswith("COV")]
