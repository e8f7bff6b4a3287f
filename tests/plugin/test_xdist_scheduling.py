"""How attempts are handed to xdist's workers: one at a time, other tests first, longest expected first, and never lost."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from shell_agent import read_runs
from test_attempts import comparable
from xdist.scheduler import LoadScheduling

from pytest_caliper.options import Settings
from pytest_caliper.running.scheduling import AttemptScheduling
from pytest_caliper.state import SETTINGS

TESTS = [f"test_a.py::test_{n}" for n in range(6)]
TASKS = [f"a.eval.yaml::{task}::attempt-{n}" for n in (1, 2) for task in "AB"]


class Config(SimpleNamespace):
    """As much of pytest's as xdist's schedulers ask for."""

    def __init__(self, settings: Settings, **options):
        super().__init__(stash={SETTINGS: settings}, options={"maxfail": 0, "maxschedchunk": None, **options}, errors=[])
        self.hook = SimpleNamespace(pytest_collectreport=lambda report: self.errors.append(report))

    def getoption(self, name):
        return self.options[name]

    def getvalue(self, name):
        return ["2*popen"]


class Worker:
    """Keeps what it was told."""

    def __init__(self, name):
        self.gateway = SimpleNamespace(id=name)
        self.sent, self.shutting_down = [], False

    def send_runtest_some(self, indices):
        assert not self.shutting_down, "a worker that was let go hears nothing"
        self.sent.append(list(indices))

    def shutdown(self):
        self.shutting_down = True


class Distribution:
    """Knows groups, the order and which attempts have a record."""

    def __init__(self, order=None, groups=None):
        self.order, self.groups, self.records, self.refused = order, groups or {}, set(), set()
        self.scheduler = None

    def in_order(self, nodeids):
        return list(nodeids) if self.order is None else self.order(nodeids)

    def group(self, nodeid):
        return self.groups.get(nodeid)

    def knows(self, nodeid):
        return False

    def has_record(self, nodeid):
        return nodeid in self.records

    def may_begin(self, nodeid):
        return nodeid not in self.refused


class Bench:
    """A scheduler with its workers; everybody has collected `ids`."""

    def __init__(self, ids, *, workers=2, distribution=None, settings=None, start=True, **options):
        self.ids, self.distribution = list(ids), distribution or Distribution()
        self.config = Config(settings or Settings(), **options)
        self.scheduler = AttemptScheduling(self.config, None, self.distribution)
        self.workers = [Worker(f"gw{n}") for n in range(workers)]
        self.scheduler.numnodes = workers
        self.run = []
        for worker in self.workers:
            self.scheduler.add_node(worker)
        if start:
            self.start()

    def start(self):
        for worker in self.workers:
            self.scheduler.add_node_collection(worker, self.ids)
        self.scheduler.schedule()

    def held(self, worker):
        return [self.ids[index] for index in self.scheduler.node2pending[worker]]

    def end_one(self, worker):
        """The worker ends the first item that it has."""
        index = self.scheduler.node2pending[worker][0]
        self.run.append(self.ids[index])
        self.scheduler.mark_test_complete(worker, index, 1.0)

    def end_all(self):
        """Workers end what they have, in turn, until nobody has anything."""
        for _ in range(10 * len(self.ids) + 10):
            busy = [worker for worker in self.scheduler.nodes if self.held(worker)]
            if not busy:
                break
            for worker in busy:
                self.end_one(worker)
        assert self.scheduler.tests_finished
        return self.run


def test_a_worker_holds_one_attempt_and_the_idle_item():
    bench = Bench(TASKS)
    assert [worker.sent for worker in bench.workers] == [[[0, 4]], [[1, 4]]]
    bench.scheduler.mark_test_complete(bench.workers[0], 4)  # the idle item is no test
    assert bench.held(bench.workers[0]) == [TASKS[0]]
    bench.end_one(bench.workers[0])
    assert bench.workers[0].sent[-1] == [2, 4]


def test_every_item_runs_once_and_then_all_workers_go():
    bench = Bench([*TASKS, *TESTS])
    assert sorted(bench.end_all()) == sorted([*TASKS, *TESTS])
    assert all(worker.shutting_down for worker in bench.workers)


def test_other_tests_go_first_in_chunks_of_their_order():
    bench = Bench([*TASKS, *TESTS])
    assert bench.end_all()[: len(TESTS)] == TESTS
    many = Bench([*(f"test_a.py::test_{n}" for n in range(80)), *TASKS])
    assert many.workers[0].sent[0] == [*range(20), len(many.ids)]
    small = Bench([*(f"test_a.py::test_{n}" for n in range(80)), *TASKS], maxschedchunk=3)
    assert small.workers[0].sent[0] == [0, 1, 2, len(small.ids)]


def test_under_maxfail_no_attempt_begins_while_another_test_runs():
    bench = Bench([*TESTS[:1], *TASKS], maxfail=1)
    first, second = bench.workers
    assert (bench.held(first), bench.held(second)) == ([TESTS[0]], [])
    assert not second.shutting_down
    bench.end_one(first)
    assert bench.held(first)
    assert bench.held(second)
    free = Bench([*TESTS[:1], *TASKS])
    assert free.held(free.workers[1]) == [TASKS[0]]


def test_the_order_is_the_distributions():
    bench = Bench([*TESTS[:2], *TASKS], workers=1, distribution=Distribution(order=lambda nodeids: list(reversed(nodeids))))
    assert bench.end_all() == [*TESTS[:2], *reversed(TASKS)]


def test_attempts_that_would_meet_are_not_handed_out_together():
    groups = {nodeid: "A" for nodeid in TASKS if "::A::" in nodeid}
    bench = Bench(TASKS, workers=3, distribution=Distribution(groups=groups))
    held = [bench.held(worker) for worker in bench.workers]
    assert held == [[TASKS[0]], [TASKS[1]], [TASKS[3]]]  # the other one of A waits for its turn
    bench.end_one(bench.workers[1])
    assert bench.held(bench.workers[1]) == []
    assert not bench.workers[1].shutting_down
    bench.end_one(bench.workers[0])
    assert bench.held(bench.workers[0]) == [TASKS[2]]
    assert sorted(bench.end_all()) == sorted(TASKS)


def test_workers_that_were_asked_for_bound_the_attempts_not_the_tests():
    settings = Settings(workers=1, workers_said=True)
    bench = Bench([*TESTS, *TASKS], settings=settings)
    assert all(bench.held(worker) for worker in bench.workers)
    while any(nodeid in TESTS for worker in bench.workers for nodeid in bench.held(worker)):
        for worker in bench.workers:
            if bench.held(worker) and bench.held(worker)[0] in TESTS:
                bench.end_one(worker)
    assert sum(len(bench.held(worker)) for worker in bench.workers) == 1
    assert sorted(bench.end_all()) == sorted([*TESTS, *TASKS])


def test_what_was_not_handed_out_can_be_withdrawn():
    bench = Bench(TASKS)
    assert bench.scheduler.withdraw([*TASKS, "unknown"]) == TASKS[2:]
    assert bench.scheduler.withdraw(TASKS) == []
    assert not bench.scheduler.tests_finished
    assert bench.end_all() == TASKS[:2]
    assert all(worker.shutting_down for worker in bench.workers)


def test_other_tests_are_not_withdrawn():
    bench = Bench([*TESTS, *TASKS])
    assert bench.scheduler.withdraw([*TESTS, *TASKS]) == TASKS
    assert sorted(bench.end_all()) == sorted(TESTS)


def test_withdrawing_lets_the_workers_go_that_waited():
    bench = Bench(TASKS, distribution=Distribution(groups=dict.fromkeys(TASKS, "same")))
    waiting = bench.workers[1]
    assert not waiting.shutting_down
    assert bench.scheduler.withdraw(TASKS) == TASKS[1:]
    assert waiting.shutting_down
    assert not bench.workers[0].shutting_down
    bench.end_one(bench.workers[0])
    assert bench.scheduler.tests_finished


def test_refused_attempts_are_passed_over_and_nobody_waits_for_them():
    bench = Bench(TASKS)
    bench.distribution.refused |= set(TASKS[2:])
    bench.end_one(bench.workers[0])
    assert bench.workers[0].shutting_down
    assert bench.end_all() == TASKS[:2]


@pytest.mark.parametrize("left", [[], TASKS[:1]], ids=["nothing", "one"])
def test_withdrawn_before_anything_was_collected(left):
    bench = Bench(TASKS, start=False)
    gone = [nodeid for nodeid in TASKS if nodeid not in left]
    assert bench.scheduler.withdraw(gone) == sorted(gone)
    bench.start()
    assert bench.end_all() == left


def test_the_attempt_of_a_dead_worker_is_named_and_can_run_once_more():
    bench = Bench(TASKS)
    first, second = bench.workers
    assert bench.scheduler.remove_node(first) == TASKS[0]
    bench.scheduler.mark_test_pending(TASKS[0])
    bench.scheduler.mark_test_pending(TASKS[0])  # whoever else asks
    bench.end_one(second)
    assert bench.held(second) == [TASKS[0]], "it is late already"
    bench.scheduler.mark_test_pending(TASKS[0])  # it runs
    assert sorted(bench.end_all()) == sorted(TASKS)


def test_an_attempt_with_a_record_does_not_run_again():
    bench = Bench(TASKS)
    bench.distribution.records.add(TASKS[0])
    assert bench.scheduler.remove_node(bench.workers[0]) == TASKS[0]
    bench.scheduler.mark_test_pending(TASKS[0])
    assert sorted(bench.end_all()) == sorted(TASKS[1:])


def test_a_dead_worker_gives_its_other_tests_back():
    bench = Bench([f"test_a.py::test_{n}" for n in range(16)] + TASKS)
    first, second = bench.workers
    assert bench.scheduler.remove_node(first) == bench.ids[0]
    bench.scheduler.mark_test_pending(bench.ids[0])
    bench.scheduler.mark_test_pending(TASKS[0])  # waits already
    assert sorted(bench.end_all()) == sorted(bench.ids)
    assert bench.run.index(bench.ids[3]) < bench.run.index(TASKS[0])
    assert second.shutting_down


def test_a_new_worker_helps_and_one_that_collected_something_else_does_not():
    bench = Bench(TASKS)
    bench.scheduler.remove_node(bench.workers[0])
    good, other = Worker("gw2"), Worker("gw3")
    for worker, ids in ((good, TASKS), (other, TASKS[:-1])):
        bench.scheduler.add_node(worker)
        bench.scheduler.add_node_collection(worker, ids)
        bench.scheduler.schedule()
    assert bench.held(good) == [TASKS[2]]
    assert other.shutting_down
    assert other.sent == []


def test_the_last_attempts_worker_may_die_when_all_others_have_gone():
    bench = Bench(TASKS[:2])
    first, second = bench.workers
    bench.end_one(second)
    assert second.shutting_down
    assert bench.scheduler.remove_node(first) == TASKS[0]
    bench.scheduler.mark_test_pending(TASKS[0])
    assert not bench.scheduler.tests_finished
    assert second.sent == [[1, 2]]
    clone = Worker("gw2")
    bench.scheduler.add_node(clone)
    bench.scheduler.add_node_collection(clone, TASKS[:2])
    bench.scheduler.schedule()
    bench.end_one(clone)
    assert bench.scheduler.tests_finished


def test_different_collections_run_nothing():
    bench = Bench(TASKS, start=False)
    bench.scheduler.add_node_collection(bench.workers[0], TASKS)
    bench.scheduler.add_node_collection(bench.workers[1], TASKS[1:])
    bench.scheduler.schedule()
    assert [worker.sent for worker in bench.workers] == [[], []]
    assert len(bench.config.errors) == 1
    assert bench.scheduler.tests_finished


@pytest.mark.parametrize("ids", [[], TESTS, TESTS * 9], ids=["none", "few", "many"])
def test_without_attempts_it_is_xdists_own_scheduler(ids):
    ids = [f"{nodeid}-{n}" for n, nodeid in enumerate(ids)]
    bench = Bench(ids)
    plain, workers = LoadScheduling(bench.config), [Worker("gw0"), Worker("gw1")]
    plain.numnodes = 2
    for worker in workers:
        plain.add_node(worker)
    for worker in workers:
        plain.add_node_collection(worker, ids)
    plain.schedule()
    for _ in range(len(ids)):
        for mine, theirs in zip(bench.workers, workers, strict=True):
            assert mine.sent == theirs.sent
            assert mine.shutting_down == theirs.shutting_down
            assert bench.scheduler.tests_finished == plain.tests_finished
            for scheduler, worker in ((bench.scheduler, mine), (plain, theirs)):
                if scheduler.node2pending[worker]:
                    scheduler.mark_test_complete(worker, scheduler.node2pending[worker][0], 0.2)
    assert bench.scheduler.withdraw(ids) == []
    assert bench.scheduler.tests_finished


SPEC = """
tasks:
  - {name: Short, prompt: echo a, assert: assert attempt.answer}
  - {name: Long, prompt: sleep 0.8; echo a, assert: assert attempt.answer}
"""
LOG = """
import pytest, os
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid):
    if "PYTEST_XDIST_WORKER" in os.environ:
        with open({log!r}, "a") as out:
            out.write(nodeid.split("::", 1)[1] + "\\n")
"""


def logging(project):
    log = project.path / "order"
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + LOG.format(log=str(log)))

    def order():
        lines = log.read_text().splitlines()
        log.unlink()
        return lines

    return order


def test_rounds_and_the_longest_of_the_last_run_first_in_each(project):
    order = logging(project)
    project.spec(SPEC)
    project.makepyfile(test_unit="def test_one(): pass\ndef test_two(): pass")
    orders = []
    for _ in range(2):
        result = project.runpytest_subprocess("--caliper", "--caliper-k=2", "--caliper-baseline", "-n1")
        result.assert_outcomes(passed=6, xpassed=4)
        orders.append(order())
    for tasks, seen in zip((("Short", "Long"), ("Long", "Short")), orders, strict=True):
        attempts = [f"{task}::{arm}-{n}" for n in (1, 2) for task in tasks for arm in ("attempt", "baseline")]
        assert seen == ["test_one", "test_two", *attempts]


def test_a_worker_that_is_free_takes_what_another_could_not_begin(project):
    """With two items committed to each worker the quick attempts would wait behind the slow one."""
    order = logging(project)
    place = project.mkdir("place")
    project.spec(
        f"""
        tasks:
          - name: Waits
            prompt: for i in $(seq 600); do [ $(ls {place} | wc -l) = 5 ] && echo a && exit; sleep 0.1; done
            assert: assert attempt.answer
          - {{name: Quick, prompt: "echo x > \\"$PLACE/$ATTEMPT\\"; echo a", assert: assert attempt.answer}}
        """.replace("$PLACE", str(project.path / "place"))
    )
    result = project.runpytest_subprocess("demo.eval.yaml::Waits::attempt-1", "demo.eval.yaml::Quick", "--caliper-k=5", "-n2")
    result.assert_outcomes(passed=6)
    assert "Waits::attempt-1" in order()[:2]


def test_no_attempt_is_paid_for_when_another_test_fails_first(project):
    order = logging(project)
    project.spec(SPEC)
    project.makepyfile(test_unit="import time\ndef test_ok(): pass\ndef test_bad():\n    time.sleep(1)\n    assert 0")
    result = project.runpytest_subprocess("--caliper", "--caliper-k=2", "-n2", "-x")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert set(order()) == {"test_ok", "test_bad"}


def test_every_way_to_distribute_gives_the_same_run_file(project):
    project.spec(
        """
        tasks:
          - {name: Works, prompt: "echo a; echo '!tokens 5'; echo b > out.txt", assert: assert attempt.answer}
          - {name: Fails, prompt: echo a, assert: assert not attempt.answer}
          - {name: Judged, prompt: echo a, expect: SAY-NO}
          - {name: Breaks, prompt: "echo '!error overloaded'", expect: x}
        """
    )
    project.makepyfile(test_unit="import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_one(n): pass")
    runs = []
    for n, dist in enumerate(("no", "load", "worksteal", "loadscope", "loadfile", "loadgroup")):
        extra = [] if dist == "no" else ["-n2", "--dist", dist]
        result = project.runpytest_subprocess("--caliper", "--caliper-k=2", f"--caliper-results=r{n}", *extra)
        result.assert_outcomes(passed=11, failed=4, skipped=2)  # test_attempts.py does it with both arms
        runs += read_runs(project.path / f"r{n}")
    first, *others = map(comparable, runs)
    assert len(others) == 5
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    "extra", [["-p", "no:terminal"], ["--collect-only"], ["--maxfail=3"], ["-k", "nothing"], ["-k", "Short"]]
)
def test_it_lives_with_pytests_options(project, extra):
    project.spec(SPEC)
    result = project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", "-n2", *extra)
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    nothing = extra == ["-k", "nothing"]
    assert result.ret == (pytest.ExitCode.NO_TESTS_COLLECTED if nothing else pytest.ExitCode.OK)
    assert len(read_runs(project.path / "results")) == (0 if nothing or "--collect-only" in extra else 1)


def test_last_failed_runs_the_failed_attempts_alone(project):
    (project.path / "pytest.ini").write_text((project.path / "pytest.ini").read_text().replace("-p no:cacheprovider", ""))
    project.spec(
        """
        tasks:
          - {name: Works, prompt: echo a, assert: assert attempt.answer}
          - {name: Fails, prompt: echo a, assert: assert not attempt.answer}
        """
    )
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", "-n2").assert_outcomes(passed=2, failed=2)
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=2", "-n2", "--lf").assert_outcomes(failed=2)


def test_specs_outside_the_rootdir_are_ordered_too(project, tmp_path_factory):
    order = logging(project)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "far.eval.yaml").write_text(SPEC)
    for _ in range(2):
        spec = str(elsewhere / "far.eval.yaml")
        result = project.runpytest_subprocess(
            spec, f"--rootdir={project.path}", "-c", "pytest.ini", "-p", "conftest", "--caliper-k=1", "-n1"
        )
        result.assert_outcomes(passed=2)
        last = order()
    assert last == ["Long::attempt-1", "Short::attempt-1"]


def test_fixtures_of_an_attempt_are_as_wide_as_an_attempt_and_those_of_the_session_as_wide_as_a_worker(project):
    log = project.path / "fixtures"
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + f"""
import os, pytest
def note(scope):
    with open({str(log)!r}, "a") as out:
        out.write(scope + "\\n")
@pytest.fixture(autouse=True, scope="session")
def wide():
    note("session")
@pytest.fixture(autouse=True, scope="module")
def middle():
    note("module")
"""
    )
    project.spec(SPEC)
    project.runpytest_subprocess("demo.eval.yaml", "--caliper-k=3", "-n1").assert_outcomes(passed=6)
    assert sorted(log.read_text().split()) == ["module"] * 6 + ["session"]


def test_a_suite_without_opt_in_gets_xdists_own_scheduler_and_nothing_is_imported(project):
    project.makepyfile(
        test_unit="""
        import sys
        def test_imports():
            assert not [name for name in sys.modules if name.startswith("pytest_caliper.running.") and not name.endswith(".line")]
        """
    )
    conftest = project.path / "conftest.py"
    conftest.write_text(
        """
import sys, pytest
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    dsession = session.config.pluginmanager.get_plugin("dsession")
    if dsession is not None:
        print("\\nSCHEDULER", type(dsession.sched).__name__, [m for m in sys.modules if m.startswith("pytest_caliper.running.")])
"""
    )
    result = project.runpytest_subprocess("-n2", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["SCHEDULER LoadScheduling ['pytest_caliper.running.line']"])


@pytest.mark.slow_cli
def test_an_older_xdist_does_as_well(project, tmp_path_factory):
    """pyproject.toml promises 3.6; run where it can be installed."""
    place = tmp_path_factory.mktemp("older")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), "pytest-xdist==3.6.1"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("pytest-xdist 3.6.1 cannot be installed here")
    project.spec(SPEC)
    project.makepyfile(test_unit="def test_one(): pass")
    script = f"import sys; sys.path.insert(0, {str(place)!r}); import xdist, pytest; print('xdist', xdist.__version__); sys.exit(pytest.main(sys.argv[1:]))"
    result = project.run(sys.executable, "-c", script, "--caliper", "--caliper-k=2", "-n2")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["xdist 3.6.1"])
    (run,) = read_runs(project.path / "results")
    assert json.dumps(run).count('"outcome": "pass"') == 4
