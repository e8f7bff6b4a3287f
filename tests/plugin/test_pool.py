"""The pool alone: bounded, in order, one of a group at a time, stoppable."""

from __future__ import annotations

import threading

import pytest

from pytest_caliper.running.pool import Pool, Stopped


class Job:
    """A job that runs until it is told to end."""

    def __init__(self, log: list[str], name: str) -> None:
        self.began, self._end, self._log, self._name = threading.Event(), threading.Event(), log, name

    def __call__(self) -> str:
        self._log.append(self._name)
        self.began.set()
        assert self._end.wait(20)
        return self._name

    def end(self) -> None:
        self._end.set()


@pytest.fixture
def log() -> list[str]:
    return []


def jobs(log: list[str], names: str) -> dict[str, Job]:
    return {name: Job(log, name) for name in names}


def test_no_more_than_the_workers_and_in_order(log):
    pool: Pool[str] = Pool(2)
    all_jobs = jobs(log, "abc")
    for name, job in all_jobs.items():
        pool.submit(name, job)
    assert all_jobs["a"].began.wait(20)
    assert all_jobs["b"].began.wait(20)
    assert pool.running == ["a", "b"]
    assert not all_jobs["c"].began.is_set()
    all_jobs["a"].end()
    assert all_jobs["c"].began.wait(20)
    for job in all_jobs.values():
        job.end()
    assert [pool.result(name) for name in "abc"] == ["a", "b", "c"]
    assert pool.join(20)


def test_a_job_of_a_group_waits_for_its_sibling_and_lets_others_pass(log):
    pool: Pool[str] = Pool(4)
    all_jobs = jobs(log, "abc")
    pool.submit("a", all_jobs["a"], group="g")
    pool.submit("b", all_jobs["b"], group="g")
    pool.submit("c", all_jobs["c"])
    assert all_jobs["c"].began.wait(20)
    assert not all_jobs["b"].began.is_set()
    all_jobs["a"].end()
    assert all_jobs["b"].began.wait(20)
    for job in all_jobs.values():
        job.end()
    assert pool.result("b") == "b"


def test_what_somebody_waits_for_takes_the_next_free_place(log):
    pool: Pool[str] = Pool(1)
    all_jobs = jobs(log, "abc")
    pool.submit("a", all_jobs["a"])
    pool.submit("b", all_jobs["b"])
    pool.submit("c", all_jobs["c"], first=True)
    for job in all_jobs.values():
        job.end()
    assert pool.result("c") == "c"
    assert pool.result("b") == "b"
    assert log == ["a", "c", "b"]


def test_a_paused_pool_begins_only_what_is_asked_for(log):
    pool: Pool[str] = Pool(2)
    pool.pause()
    all_jobs = jobs(log, "ab")
    for name, job in all_jobs.items():
        pool.submit(name, job)
        job.end()
    assert log == []
    assert pool.result("b") == "b"
    assert log == ["b"]


def test_a_stopped_pool_begins_nothing_and_lets_what_runs_end(log):
    pool: Pool[str] = Pool(1)
    all_jobs = jobs(log, "ab")
    for name, job in all_jobs.items():
        pool.submit(name, job)
    assert all_jobs["a"].began.wait(20)
    pool.stop()
    all_jobs["a"].end()
    assert pool.result("a") == "a"
    with pytest.raises(Stopped):
        pool.result("b")
    with pytest.raises(Stopped):
        pool.result("never submitted")
    assert log == ["a"]


def test_an_error_is_raised_where_the_result_is_asked_for():
    pool: Pool[int] = Pool(1)
    pool.submit("x", lambda: 1 // 0)
    pool.submit("y", lambda: 7)
    with pytest.raises(ZeroDivisionError):
        pool.result("x")
    assert pool.result("y") == 7


def test_a_key_is_run_once():
    pool: Pool[int] = Pool(1)
    numbers = iter([1, 2])
    pool.submit("x", lambda: next(numbers))
    pool.submit("x", lambda: next(numbers))
    assert pool.result("x") == 1
    assert "x" in pool
    assert "y" not in pool
