"""`--caliper-fail-fast` and `--caliper-max-tokens`: what begins no more, what is said of it, and that nothing measured is lost."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell_agent import read_runs

from pytest_caliper.running.line import AFTER_ALL, NEVER, NOT_ALONE, Listener
from pytest_caliper.running.stopping import Stopping
from pytest_caliper.runs.records import AttemptKey, AttemptRecord, Usage

WAYS = pytest.mark.parametrize("way", [(), ("-n2",), ("-n2", "--dist=worksteal")], ids=["pool", "n2", "worksteal"])


def record(
    attempt: int, outcome: str = "pass", *, arm: str = "skill", task: str = "task-001", tokens=None, judge=None
) -> AttemptRecord:
    return AttemptRecord(
        key=AttemptKey(spec="/s", task_id=task, arm=arm, attempt=attempt),
        task_name=task,
        outcome=outcome,
        reason=None,
        output="",
        duration_seconds=1.0,
        started=0.0,
        wall_seconds=1.0,
        usage=None if tokens is None else Usage(input_tokens=tokens),
        judge_usage=None if judge is None else Usage(output_tokens=judge),
    )


@pytest.mark.parametrize(
    ("outcomes", "limit", "stops_after"),
    [
        (["infra_error", "timeout"], 2, 2),
        (["infra_error", "pass", "timeout"], 2, None),
        (["infra_error", "judge_error", "infra_error"], 2, None),
        (["timeout"], 1, 1),
        (["task_fail"] * 5, 1, None),
        (["infra_error"] * 5, 0, None),
        (["pass", "infra_error", "infra_error", "infra_error"], 3, 4),
    ],
)
def test_consecutive_losses_of_one_arm(outcomes, limit, stops_after):
    stopping = Stopping(fail_fast=limit, max_tokens=None)
    for n, outcome in enumerate(outcomes, 1):
        assert stopping.begins(record(n).key) is None
        stopping.ended(record(n, outcome))
        refused = stopping.refused([record(9).key])
        assert bool(refused) == (stops_after is not None and n >= stops_after)
    assert not stopping.refused([record(1, arm="baseline").key, record(1, task="task-002").key])


def test_tokens_of_judges_count_and_pairs_are_finished():
    stopping = Stopping(fail_fast=0, max_tokens=100)
    assert stopping.begins(record(1).key) is None
    stopping.ended(record(1, tokens=30, judge=25))
    assert stopping.tokens == 55
    assert "55 of 100 tokens" in stopping.begins(record(2).key)
    assert stopping.begins(record(1, arm="baseline").key) is None, "half a pair tells nothing"
    assert stopping.begins(record(3, arm="baseline").key) is not None


def test_a_worker_finishes_the_pairs_it_has_begun_without_being_told():
    line = Listener(None, [(NEVER, ["a1", "b1"]), (NOT_ALONE, ["a2", "b3"])])
    assert line.leaves_out("a1", 1)
    assert line.leaves_out("a2", 2)
    assert not line.leaves_out("b2", 2)
    assert not line.leaves_out("a2", 2), "its other half has begun"
    assert line.leaves_out("b1", 1), "an arm that is aborted finishes nothing"
    line._hear((AFTER_ALL, ["b3"]))
    assert not line.leaves_out("b3", 3)
    line._hear((NEVER, ["a3"]))
    assert line.leaves_out("a3", 3)
    assert not line.stops
    line._hear("stop")
    assert line.stops


@given(st.lists(st.integers(0, 400), min_size=1, max_size=60), st.integers(1, 3000), st.integers(1, 8))
def test_the_total_is_passed_by_what_runs_at_most(tokens, limit, workers):
    """However attempts differ: when one is refused, another of the mean size would have passed the limit."""
    stopping = Stopping(fail_fast=0, max_tokens=limit)
    running: list[AttemptRecord] = []
    used: list[int] = []
    for n, amount in enumerate(tokens, 1):
        if len(running) == workers:
            ended = running.pop(0)
            stopping.ended(ended)
            used.append(ended.usage.total_tokens)
        if stopping.begins(record(n).key) is not None:
            mean = sum(used) / len(used)
            assert sum(used) + mean * (len(running) + 1) > limit
            return
        running.append(record(n, tokens=amount))
    assert not stopping.spent


@WAYS
def test_the_rest_of_an_arm_is_aborted(project, way):
    project.spec(
        """
    tasks:
      - {name: Broken, prompt: 'echo Broken >> $SPEC_LEDGER; exit 3', assert: assert True}
      - {name: Fine, prompt: 'echo a', assert: assert attempt.answer == 'a'}
    """.replace("$SPEC_LEDGER", str(project.path / "ledger"))
    )
    k = 20
    result = project.runpytest_subprocess(
        "demo.eval.yaml", f"--caliper-k={k}", "--caliper-fail-fast=2", "--caliper-workers=2", "-v", *way
    )
    assert result.ret == 1
    (run,) = read_runs(project.path)
    broken, fine = run["task_results"]
    assert 2 <= len(broken["attempts"]) <= 4, "what ran when the limit was reached finishes, nothing else begins"
    assert (project.path / "ledger").read_text().count("Broken") == len(broken["attempts"])
    assert (broken["aborted"], broken["planned"], broken["score"]) == (True, k, None)
    assert (fine["aborted"], len(fine["attempts"])) == (False, k)
    assert not run["run"]["interrupted"]
    left = k - len(broken["attempts"])
    result.stdout.fnmatch_lines(
        [
            "*ABORTED*",
            f"caliper: demo.eval.yaml: Broken: {left} planned attempts did not run: "
            "aborted: infra_error came 2 times in a row (--caliper-fail-fast 2)",
        ]
    )
    assert sum(result.parseoutcomes().values()) == 2 * k, "every planned attempt is accounted for"


@WAYS
def test_no_more_tokens(project, way):
    project.spec("""
    tasks:
      - {name: T, prompt: 'echo "!tokens 99"; echo a', assert: assert attempt.answer == 'a'}
    """)
    result = project.runpytest_subprocess(
        "demo.eval.yaml", "--caliper-k=20", "--caliper-baseline", "--caliper-max-tokens=1_000", "--caliper-workers=2", *way
    )
    assert result.ret == 1
    (run,) = read_runs(project.path)
    skill, base = (run[arm][0] for arm in ("task_results", "baseline_task_results"))
    numbers = [[attempt["attempt"] for attempt in arm["attempts"]] for arm in (skill, base)]
    assert numbers[0] == numbers[1], "a pair was begun and not finished"
    assert 4 <= len(numbers[0]) <= 6
    assert skill["aborted"]
    assert base["aborted"]
    assert run["run"]["interrupted"], "half of a run must never be the latest one"
    result.stdout.fnmatch_lines(
        ["caliper: demo.eval.yaml: * planned attempts did not run: not begun: * of 1,000 tokens are used*"]
    )


MEETING = """
import os, pathlib, time, pytest, shell_agent
place = pathlib.Path({place!r})

def wait(name):
    end = time.monotonic() + 100
    while not (place / name).exists():
        assert time.monotonic() < end, name
        time.sleep(0.02)

make = shell_agent.ShellAgent.agent_command
def with_place(self, plan, workspace, cli):
    command = make(self, plan, workspace, cli)
    command.env["PLACE"] = str(place)
    return command
shell_agent.ShellAgent.agent_command = with_place

if "PYTEST_XDIST_WORKER" in os.environ:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logstart(nodeid):
        if "PYTEST_XDIST_WORKER_COUNT" in os.environ and nodeid.endswith({held!r}):
            wait("told")  # so that the controller cannot have heard that it begins
        return (yield)
else:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(report):
        if report.when != "call" or not report.nodeid.endswith({first!r}):
            return (yield)
        (place / "told").touch()
        wait({begun!r})
        try:
            return (yield)
        finally:
            (place / "said").touch()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logstart(nodeid):
        result = yield
        if nodeid.endswith({held!r}):
            (place / "heard").touch()
        return result
"""
MET = """tasks:
  - name: T
    prompt: |
      touch $PLACE/$ARM-$ATTEMPT
      case $ARM-$ATTEMPT in {waits}) while [ ! -e $PLACE/{until} ]; do sleep 0.02; done ;; esac
      case $ARM-$ATTEMPT in {spends}) echo "!tokens 999" ;; *) echo "!tokens 99" ;; esac
      echo a
    assert: assert attempt.answer == 'a'
"""


@pytest.mark.parametrize(
    ("workers", "first", "held", "waits", "until", "kept"),
    [
        # One worker has begun the second pair when it hears that nothing more begins: it finishes it.
        (1, "::baseline-1", "::attempt-2", "skill-2", "said", [1, 2]),
        # One has begun the second half of the second pair; the other waits for what the controller makes of that.
        (2, "::attempt-1", "::baseline-2", "baseline-1", "heard", [1, 2]),
    ],
)
def test_a_pair_that_began_unheard_is_finished(project, workers, first, held, waits, until, kept):
    place = project.mkdir("place")
    begun, spends = (nodeid[2:].replace("attempt", "skill") for nodeid in (held, first))
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + MEETING.format(place=str(place), first=first, held=held, begun=begun))
    project.spec(MET.format(waits=waits, until=until, spends=spends))
    result = project.runpytest_subprocess(
        "demo.eval.yaml",
        "--caliper-k=3",
        "--caliper-baseline",
        "--caliper-max-tokens=500",
        f"-n{workers}",
        "--dist=worksteal",
    )
    assert result.ret == 1
    (run,) = read_runs(project.path / "results")
    numbers = [sorted(a["attempt"] for a in run[arm][0]["attempts"]) for arm in ("task_results", "baseline_task_results")]
    assert numbers == [kept, kept]
    assert run["run"]["interrupted"]
    result.stdout.fnmatch_lines(["caliper: demo.eval.yaml: * planned attempts did not run: not begun: *tokens are used*"])
    assert sum(result.parseoutcomes().values()) == 6, "every planned attempt is accounted for"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--caliper-fail-fast=-1"], "at least 0"),
        (["--caliper-fail-fast=x"], "at least 0"),
        (["--caliper-max-tokens=0"], "at least 1"),
        (["--caliper-max-tokens=1e6"], "whole number of tokens"),
    ],
)
def test_bad_numbers(project, arguments, says):
    project.spec("tasks:\n  - {name: T, prompt: 'echo a', assert: assert True}\n")
    result = project.runpytest("demo.eval.yaml", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{says}*"])


def test_limits_from_the_ini_file(project):
    (project.path / "pytest.ini").write_text(
        (project.path / "pytest.ini").read_text() + "\ncaliper_fail_fast = 1\ncaliper_max_tokens = 1_000\n"
    )
    project.spec("tasks:\n  - {name: T, prompt: 'exit 3', assert: assert True}\n")
    project.runpytest("demo.eval.yaml", "--caliper-k=4", "--caliper-workers=1")
    (run,) = read_runs(project.path)
    assert len(run["task_results"][0]["attempts"]) == 1


def test_two_specs_of_one_name_in_two_directories_do_not_share_a_count():
    stopping = Stopping(fail_fast=1, max_tokens=None)
    stopping.ended(record(1, "timeout"))
    keys = [AttemptKey(spec=spec, task_id="task-001", arm="skill", attempt=2) for spec in ("/s", "/t")]
    assert list(stopping.refused(keys)) == keys[:1]


def test_cancelled_attempts_do_not_count_as_running():
    stopping = Stopping(fail_fast=0, max_tokens=100)
    stopping.ended(record(1, tokens=40))
    for n in itertools.count(2):
        if n > 50:
            break
        assert stopping.begins(record(n).key) is None
        stopping.cancelled(record(n).key)


def test_a_run_without_tokens_is_gone_on_with(project):
    project.spec("""
    tasks:
      - {name: T, prompt: 'echo "!tokens 99"; echo a', assert: assert attempt.answer == 'a'}
    """)
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=8", "--caliper-max-tokens=500", "--caliper-workers=1")
    (first,) = read_runs(project.path)
    assert len(first["task_results"][0]["attempts"]) < 8
    second = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=8", "--caliper-resume")
    assert second.ret == 0
    (whole,) = read_runs(project.path)
    assert (len(whole["task_results"][0]["attempts"]), whole["run"]["interrupted"]) == (8, False)


def test_junit_of_a_saved_run_has_what_was_not_let_begin(project):
    from pytest_caliper.reporting.junit import render_junit
    from pytest_caliper.runs.reading import load_run

    project.spec("tasks:\n  - {name: T, prompt: 'exit 3', assert: assert True}\n")
    project.runpytest_subprocess(
        "demo.eval.yaml", "--caliper-k=5", "--caliper-fail-fast=2", "--caliper-workers=1", "--junitxml=j.xml"
    )
    (file,) = (project.path / "results" / "demo").glob("*.json")
    saved, told = render_junit(load_run(file)), (project.path / "j.xml").read_text()
    assert saved.count("<testcase") == told.count("<testcase") == 5
