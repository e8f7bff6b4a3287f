"""What the xdist controller knows of attempts that run in its workers: which they are, what became of them, how to stop them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.announcing import announce, recount
from pytest_caliper.reports import tell_refused
from pytest_caliper.running.crashes import Crashes, Lost, mute, tidy_scopes
from pytest_caliper.running.line import AFTER_ALL, INPUT, LEFT_OUT, NEVER, NOT_ALONE, STOP
from pytest_caliper.running.resuming import Known, report_known
from pytest_caliper.state import STATE, state_of

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.running.scheduling import AttemptScheduling
    from pytest_caliper.runs.records import AttemptKey, AttemptRecord

DISTRIBUTION: pytest.StashKey[Distribution] = pytest.StashKey()


class Distribution:
    """One per controller whose session may run attempts; a plugin object."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.scheduler: AttemptScheduling | None = None
        """None for xdist's other ways to distribute."""
        self._known: dict[str, Known] = {}
        """By the ids that workers tell. The keys are the controller's own: a worker elsewhere knows the spec by another path."""
        self._lines: dict[Any, Any] = {}
        self._crashes = Crashes()
        self._begun: dict[str, float] = {}
        self._stopping = False
        self._tests_told: list[str] = []
        """The tests in Python that workers collected, as they said it; all say the same."""
        self.collected = 0
        """Items that a worker told; all tell the same."""
        self._left_out: dict[str, str] = {}
        """Node id -> why workers were told not to begin it; one may have begun it before it heard."""
        self._after_all: set[str] = set()
        """Those of them that may be begun again, since a worker had begun the other half of the pair before it heard."""

    def connect(self, node: Any) -> None:
        """Lay the line to a worker that is about to be started."""
        self._lines[node] = node.workerinput[INPUT] = line = node.gateway.newchannel()
        line.setcallback(self._tests_told.append)
        node.workerinput[LEFT_OUT] = [
            (NEVER, list(self._crashes.all_given_up)),
            *_told(self._left_out.keys() - self._after_all, self._aborted),
        ]

    @property
    def tests_told(self) -> str | None:
        """`testing.manifest` of the first worker that said it; None when there are no tests in Python that ask for attempts."""
        return next(iter(self._tests_told), None)

    def key_of(self, nodeid: str) -> AttemptKey | None:
        """The attempt of this id; None when it is none."""
        known = self._known.get(nodeid)
        return None if known is None else known.key

    def knows(self, nodeid: str) -> bool:
        """Whether the id is an attempt's."""
        return nodeid in self._known

    def learn(self, keys: Mapping[str, AttemptKey], plans: Mapping[Path, SpecPlan]) -> None:
        """Get to know the attempts of the opened specs by their node ids."""
        tasks = {(str(path), task.task_id): task for path, plan in plans.items() for task in plan.spec.tasks}
        for nodeid, key in keys.items():
            task = tasks[key.spec, key.task_id]
            self._known[nodeid] = Known(config=self.config, plan=plans[Path(key.spec)], task=task, key=key)

    def in_order(self, nodeids: Sequence[str]) -> list[str]:
        """The ids as they are to run; ids that are no attempt's come last."""
        from pytest_caliper.running.order import rounds

        id_of = {self._known[nodeid].key: nodeid for nodeid in nodeids if nodeid in self._known}
        attempts = rounds([self._known[nodeid] for nodeid in id_of.values()])
        return [id_of[known.key] for known in attempts] + [nodeid for nodeid in nodeids if nodeid not in self._known]

    def group(self, nodeid: str) -> Hashable | None:
        """What attempts share that must not run at the same time; None when it may meet all others."""
        known = self._known.get(nodeid)
        if known is None or not known.plan.shares_paths(known.task):
            return None
        return known.key.spec, known.key.task_id

    def withdraw(self, nodeids: Iterable[str]) -> list[str]:
        """Keep attempts from running that no worker has been given yet. -> which; call it in the main thread.

        Nothing can be withdrawn from xdist's own schedulers (`--dist` other than `load`).
        """
        return [] if self.scheduler is None else self.scheduler.withdraw(nodeids)

    def may_begin(self, nodeid: str) -> bool:
        """Whether the attempt may be given to a worker now. One that may not is reported as refused."""
        known = self._known.get(nodeid)
        reason = None if known is None else state_of(self.config).stopping.begins(known.key)
        if known is not None and reason is not None and not self._crashes.times(nodeid):  # else it is told as lost, at the end
            self._refuse(known, reason)
        return reason is None

    def _refuse(self, known: Known, reason: str) -> None:
        session = state_of(self.config).session
        if session is not None:
            session.refused(known.key, reason)
        announce(
            self.config,
            nodeid=known.nodeid,
            location=known.location,
            outcome="skipped",
            finish=lambda report: tell_refused(known, reason, report),
        )

    def _leave_out(self) -> None:
        """With xdist's own schedulers workers hold what they will run: they are told what not to begin."""
        state = state_of(self.config)
        if self.scheduler is not None or not state.stopping.limits or state.session is None:
            return
        open_ = {
            known.key: nodeid
            for nodeid, known in self._known.items()
            if nodeid not in self._begun and nodeid not in self._left_out
        }
        refused = state.stopping.refused(key for key in open_ if state.session.lacks(key))
        if refused:
            self._left_out |= {open_[key]: reason for key, reason in refused.items()}
            self._tell(_told([open_[key] for key in refused], self._aborted))

    def _aborted(self, nodeid: str) -> bool:
        return state_of(self.config).stopping.aborted(self._known[nodeid].key)

    def _has_begun(self, key: AttemptKey) -> None:
        """Of a pair that has begun the other half is not left out, unless its arm is aborted."""
        state_of(self.config).stopping.has_begun(key)
        halves = [
            nodeid
            for nodeid in self._left_out.keys() - self._begun.keys() - self._after_all
            if self._known[nodeid].key.pair == key.pair and not self._aborted(nodeid)
        ]
        if halves:
            self._after_all.update(halves)
            self._tell([(AFTER_ALL, halves)])

    def _tell(self, messages: Iterable[tuple[str, list[str]]]) -> None:
        for message in messages:
            for line in self._lines.values():
                _say(line, message)

    def has_record(self, nodeid: str) -> bool:
        """Whether it is known what became of the attempt."""
        known = self._known.get(nodeid)
        session = state_of(self.config).session
        return known is not None and session is not None and session.has(known.key)

    def arrived(self, report: pytest.TestReport, record: AttemptRecord) -> AttemptRecord:
        """A worker's record as the controller keeps it: under its own key, with the transcript that came along."""
        from pytest_caliper.running.carrying import unpack

        known = self._known.get(report.nodeid)
        if known is None or not hasattr(report, "worker_id"):  # made here
            return record
        record = replace(record, key=known.key, retries=record.retries + self._crashes.times(report.nodeid))
        return unpack(report, record, known.plan.transcripts(state_of(self.config).session_id), report.worker_id)

    def stop(self) -> None:
        """Have the attempts under way cancelled, in all workers, within seconds. Doing it again changes nothing."""
        if not self._stopping:
            self._stopping = True
            for line in self._lines.values():
                _say(line, STOP)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """When the loop has ended, in whatever way, nothing goes on, and lost attempts that did not run again are told."""
        try:
            return (yield)
        finally:
            self.stop()
            for nodeid, reason in self._left_out.items():
                if nodeid not in self._begun:
                    self._refuse(self._known[nodeid], reason)
            for lost in self._crashes.waiting():
                if not self.has_record(lost.nodeid):
                    self._crashes.give_up(lost.nodeid)
                    report_known(self.config, lost.known.plan, [lost.record(self._crashes.workers(lost.nodeid))])

    def late_records(self) -> None:
        """Keep what had ended in workers when the loop was interrupted, and was not looked at any more."""
        dsession = self.config.pluginmanager.get_plugin("dsession")
        state = self.config.stash.get(STATE, None)
        if dsession is None or state is None or state.session is None:
            return
        from pytest_caliper.runs.records import AttemptRecord

        while True:
            try:
                name, said = dsession.queue.get_nowait()
            except Empty:
                return
            report: Any = said.get("rep") if name == "testreport" else None
            text = getattr(report, "caliper", None)
            if text is not None and report.when == "call":
                state.session.finished(self.arrived(report, AttemptRecord.from_json(json.loads(text))))

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A worker begins an item."""
        if (session := self.config.pluginmanager.get_plugin("session")) is not None:
            recount(session, self.collected)
        self._begun[nodeid] = time.time()
        if self.scheduler is None and (known := self._known.get(nodeid)) is not None:
            self._has_begun(known.key)

    @pytest.hookimpl(specname="pytest_runtest_logreport", tryfirst=True)
    def pytest_caliper_tests_stay_single(self, report: pytest.TestReport) -> None:
        """What a second run of a lost attempt reports belongs to the test that began before: JUnit files tell tests apart by
        worker. What a worker still reports of an attempt that was given up is nothing to be told."""
        if self._crashes.given_up(report.nodeid) and hasattr(report, "worker_id"):
            mute(report)
        elif (node := self._crashes.first_node(report.nodeid)) is not None:
            report.node = node  # type: ignore[attr-defined]

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self) -> None:
        """The session may be about to stop for this report: `-x`, `--maxfail`, a lost login."""
        self._leave_out()
        manager = self.config.pluginmanager
        session, dsession = manager.get_plugin("session"), manager.get_plugin("dsession")
        if (
            getattr(dsession, "shouldstop", False)
            or getattr(session, "shouldfail", False)
            or getattr(session, "shouldstop", False)
        ):
            self.stop()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker ended, by itself or not. One that wants the session to stop, or that was interrupted, stops the others."""
        said = getattr(node, "workeroutput", None) or {}
        if said.get("exitstatus") == pytest.ExitCode.INTERRUPTED or said.get("shouldstop") or said.get("shouldfail"):
            self.stop()
        self._lines.pop(node, None)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        """A worker died while it ran an item: an attempt of ours runs once more, on another worker."""
        if crashitem not in self._known:
            tidy_scopes(sched, self._crashes.all_given_up)
            return
        gathering = self.config.pluginmanager.get_plugin("caliper-session")
        if gathering is not None:
            gathering.pytest_runtest_logfinish(crashitem)  # the heartbeat must not go on about it
        lost, before = self._lost(crashitem, report), self._crashes.times(crashitem)
        report.location = lost.known.location
        if self.has_record(crashitem):
            lost.after_its_end(report)
        elif self._stopping:
            lost.with_the_session(report)
        elif before == 0:
            self._crashes.add(lost)
            mute(report)
            self._note(f"{crashitem}: the xdist worker {lost.worker} died while it ran the attempt")
            with suppress(NotImplementedError):  # --dist loadscope and its kin run it again by themselves, without end
                sched.mark_test_pending(crashitem)
        else:
            self._crashes.add(lost)
            self._crashes.give_up(crashitem)
            self._tell([(NEVER, [crashitem])])
            lost.for_good(report, self._crashes.workers(crashitem))
        tidy_scopes(sched, self._crashes.all_given_up)

    def _lost(self, nodeid: str, report: Any) -> Lost:
        now = time.time()
        begun = self._begun.get(nodeid, now)
        node = getattr(report, "node", None)
        return Lost(
            nodeid=nodeid,
            known=self._known[nodeid],
            worker="?" if node is None else str(node.gateway.id),
            node=node,
            started=begun,
            seconds=max(0.0, now - begun),
        )

    def _note(self, sentence: str) -> None:
        session = state_of(self.config).session
        if session is not None:
            session.notes.append(sentence)


def distribution_of(config: pytest.Config) -> Distribution:
    """The controller's, made when the first worker is about to be started."""
    if DISTRIBUTION not in config.stash:
        config.stash[DISTRIBUTION] = Distribution(config)
        config.pluginmanager.register(config.stash[DISTRIBUTION], "caliper-distribution")
    return config.stash[DISTRIBUTION]


def _told(nodeids: Iterable[str], aborted: Callable[[str], bool]) -> list[tuple[str, list[str]]]:
    """What workers are told of attempts that are refused: those of an aborted arm never begin, the others finish their pairs."""
    said: dict[str, list[str]] = {NEVER: [], NOT_ALONE: []}
    for nodeid in nodeids:
        said[NEVER if aborted(nodeid) else NOT_ALONE].append(nodeid)
    return [(verb, ids) for verb, ids in said.items() if ids]


def _say(line: Any, message: object) -> None:
    """A worker that is gone hears nothing, and need not."""
    with suppress(OSError):
        line.send(message)
