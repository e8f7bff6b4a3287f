"""Around pytest's run loop under `--caliper-check`: what `running.loop` and `running.ahead` do for attempts, without an agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_caliper.attempt.redaction import Redactor
from pytest_caliper.checking.harness import SolutionHarness
from pytest_caliper.checking.items import CheckItem
from pytest_caliper.checking.kinds import NUMBERS, trials
from pytest_caliper.checking.telling import NAME, Telling
from pytest_caliper.collection import AttemptItem
from pytest_caliper.contracts import AttemptPlan, Engine, Harness, Judge, Workspace
from pytest_caliper.options import spec_part
from pytest_caliper.reporting.text import printable
from pytest_caliper.running.ahead import Ahead, is_replaced
from pytest_caliper.running.preflight import Unharnessed, check
from pytest_caliper.runs.records import AttemptKey, AttemptRecord
from pytest_caliper.spec.env_refs import references
from pytest_caliper.spec.model import SpecError
from pytest_caliper.spec.names import node_name
from pytest_caliper.terminal import say

if TYPE_CHECKING:
    from pytest_caliper.collection import Attempt
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.state import State

MAX_SAID = 2_000
"""Characters of what a failed hook printed last."""
_READ = 64 * 1024
"""Bytes that are read for them: a secret that a cut goes through lies far from what is shown."""


class Checks(Ahead):
    """Runs trials as attempts run: ahead of their turn where nobody can tell, bounded, stoppable."""

    def __init__(self, state: State, items: list[AttemptItem], *, at_turn_only: bool) -> None:
        super().__init__(state, items, at_turn_only=at_turn_only)
        state.runtime.harness = SolutionHarness(state.runtime.processes)
        self.said: dict[AttemptKey, str] = {}
        """What hooks that failed had printed."""

    def _plan(self, item: Attempt, env: Mapping[str, str]) -> AttemptPlan:
        plan = super()._plan(item, env)
        return item.trial.plan(plan) if isinstance(item, CheckItem) else plan

    def _begin(self, key: AttemptKey) -> None:
        """What limits the attempts of a run does not hold here."""

    def _run(
        self, item: Attempt, plan: AttemptPlan, where: Workspace, harness: Harness | None, judge: Judge | None
    ) -> AttemptRecord:
        record = super()._run(item, plan, where, harness, judge)
        if (hook := _failed_hook(record)) is not None:
            names = (reference.name for reference in references(item.plan.spec))
            redactor = Redactor.from_environment(plan.env, names, {item.plan.project: "$PROJECT"}).for_workspace(where)
            printed = "\n".join(filter(None, (_end_of(where.root / f"{hook}.{name}") for name in ("stdout", "stderr"))))
            self.said[plan.key] = redactor.redact(printed)[-MAX_SAID:]
        return record

    def _note(self, record: AttemptRecord) -> None:
        """A failing trial stops none but those that it would meet too."""
        if record.fatal is not None:
            self.pool.pause()


def _failed_hook(record: AttemptRecord) -> str | None:
    word = (record.reason or "").partition(" ")[0]
    if record.outcome == "infra_error" and word in ("setup", "solution"):
        return word
    return None if record.cleanup_error is None else "cleanup"


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _READ))
            return file.read().decode("utf-8", "replace").strip("\n")
    except OSError:
        return ""


def keys_of(state: State, ids: Sequence[str], rootdir: Path) -> dict[str, tuple[SpecPlan, AttemptKey]]:
    """Node id -> trial, for those of `ids` that are trials: what an xdist controller knows of its workers' items."""
    known: dict[str, tuple[SpecPlan, AttemptKey]] = {}
    for prefix in dict.fromkeys(filter(None, map(spec_part, ids))):
        try:
            plan = state.open_spec(rootdir / prefix)
        except SpecError:
            continue  # the workers report it as a collection error
        for task in plan.spec.tasks:
            for trial in trials(task, ask_judge=not state.settings.no_judge):
                key = AttemptKey(spec=str(plan.spec.path), task_id=task.task_id, arm="skill", attempt=trial.number)
                known[f"{prefix}::{node_name(task.name, task.task_id)}::{trial.kind}"] = plan, key
    return {nodeid: known[nodeid] for nodeid in ids if nodeid in known}


def replaced_judges(items: Sequence[AttemptItem]) -> frozenset[AttemptKey]:
    """The trials whose judge is a fixture of somebody's."""
    return frozenset(item.key for item in items if is_replaced(item, "caliper_judge"))


def prepare(state: State, wanted: Sequence[tuple[SpecPlan, AttemptKey]], replaced: frozenset[AttemptKey] = frozenset()) -> None:
    """Say how often the judge will be asked, look for it, and try it. Raises EngineError with what is missing."""
    if state.session is None:
        return
    config, plans = state.config, dict.fromkeys(plan for plan, _ in wanted)
    config.pluginmanager.register(Telling(config, state.session), NAME)
    engines = {plan: state.runtime.engines(plan) for plan in plans}
    asked = [key for _, key in wanted if _asks_judge(key) and key not in replaced]
    if asked:
        _announce(state, Counter(engines[plan][1] for plan, key in wanted if key in asked))
    keys = [key for _, key in wanted]
    quiet = frozenset(keys) - frozenset(asked)
    found = check(engines, keys, state.runtime, Unharnessed(agent=frozenset(keys), judge=quiet))
    state.session.notes += [str(warning) for plan in plans for warning in plan.warnings]
    if asked and any(task.expect and task.solution for plan in plans for task in plan.spec.tasks):
        state.session.notes.append("the judge is not asked about solutions: they have no transcript, and each would cost a call")
    say(config, found.lines)


def _asks_judge(key: AttemptKey) -> bool:
    return key.attempt == NUMBERS["judge-says-no"]


def _announce(state: State, asked: Mapping[Engine, int]) -> None:
    """Before the first call, also in quiet sessions: it may cost money."""
    reporter = state.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    for judge, count in asked.items():
        calls = count * state.settings.judge_votes
        times = "once" if calls == 1 else f"{calls} times"
        reporter.ensure_newline()
        what = f"{judge} is asked {times} as the judge, and once before, to see that it answers"
        reporter.write_line(printable(f"caliper: no agent runs; {what}"))
