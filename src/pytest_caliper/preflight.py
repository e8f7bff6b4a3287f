"""Everything that can be known to fail is found before the first attempt is paid for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_caliper.attempt.replay import check_cassettes
from pytest_caliper.attempt.workspace import create
from pytest_caliper.contracts import Engine, EngineError, Workspace
from pytest_caliper.judging.probe import probe_judge
from pytest_caliper.process import unsupported_reason
from pytest_caliper.spec.env_refs import references

if TYPE_CHECKING:
    from pytest_caliper.planning import SpecPlan
    from pytest_caliper.runs.records import AttemptKey
    from pytest_caliper.runtime import Runtime


@dataclass(frozen=True, kw_only=True, slots=True)
class Unharnessed:
    """Attempts whose fixtures were overridden, so that no CLI of ours is asked for."""

    agent: frozenset[AttemptKey] = frozenset()
    judge: frozenset[AttemptKey] = frozenset()


NOTHING = Unharnessed()


def check(
    plans: Mapping[SpecPlan, tuple[Engine, Engine]],
    keys: list[AttemptKey],
    runtime: Runtime,
    unharnessed: Unharnessed = NOTHING,
) -> list[str]:
    """Check engines, logins, variables and cassettes of the selected attempts. -> notes for the user, a line each.

    Raises EngineError whose text names everything that is missing, a line each, with the remedies.
    """
    if reason := unsupported_reason():
        raise EngineError(reason)
    mistakes: list[str] = []
    notes: list[str] = []
    for plan, (engine, judge) in plans.items():
        mine = [key for key in keys if key.spec == str(plan.spec.path)]
        if not mine:
            continue
        if runtime.settings.replay:
            stale, told = check_cassettes(runtime.plan(plan, key, runtime.env) for key in mine)
            mistakes += stale
            notes += told
            continue
        mistakes += _unset_variables(plan, runtime)
        backend = runtime.backends[engine.backend]
        if refused := backend.refuses(skills=plan.skills, mcp=plan.spec.mcp):
            mistakes.append(f"{plan.spec.path}: {refused}")
        if engine == judge and _needs_judge(plan, mine, unharnessed):
            notes.append(f"{judge} grades its own work; --caliper-judge-model names another judge")
    if not runtime.settings.replay:
        mistakes += _engines_missing(plans, keys, unharnessed, runtime)
    if mistakes:
        raise EngineError("\n".join(dict.fromkeys(mistakes)))
    if not runtime.settings.replay:
        _probe_judges(plans, keys, unharnessed, runtime)
    return list(dict.fromkeys(notes))


def _unset_variables(plan: SpecPlan, runtime: Runtime) -> list[str]:
    return [
        f"{plan.spec.path}:{reference.line}: mcp server {reference.server!r}, {reference.key}: "
        f"the environment variable {reference.name} is not set; export it"
        for reference in references(plan.spec)
        if reference.name not in runtime.env
    ]


def _engines_missing(
    plans: Mapping[SpecPlan, tuple[Engine, Engine]], keys: list[AttemptKey], unharnessed: Unharnessed, runtime: Runtime
) -> list[str]:
    wanted: dict[Engine, None] = {}
    for plan, (engine, judge) in plans.items():
        mine = [key for key in keys if key.spec == str(plan.spec.path)]
        if any(key not in unharnessed.agent for key in mine):
            wanted[engine] = None
        if _needs_judge(plan, mine, unharnessed):
            wanted[judge] = None
    mistakes = []
    for engine in wanted:
        try:
            runtime.clis[engine.backend]
            runtime.backends[engine.backend].check(engine, runtime.env)
        except EngineError as error:
            mistakes.append(str(error))
    return mistakes


def _needs_judge(plan: SpecPlan, keys: Sequence[AttemptKey], unharnessed: Unharnessed) -> bool:
    """Whether any of a spec's selected attempts goes to the judge's CLI."""
    selected = {key.task_id for key in keys if key not in unharnessed.judge}
    return any(task.expect is not None and task.task_id in selected for task in plan.spec.tasks)


def _probe_judges(
    plans: Mapping[SpecPlan, tuple[Engine, Engine]], keys: list[AttemptKey], unharnessed: Unharnessed, runtime: Runtime
) -> None:
    """One judge call per judge that will be needed."""
    wanted = dict.fromkeys(
        judge
        for plan, (_, judge) in plans.items()
        if _needs_judge(plan, [key for key in keys if key.spec == str(plan.spec.path)], unharnessed)
    )
    for number, judge in enumerate(wanted):
        workspace = Workspace.at(runtime.root / f"probe-{number}")
        create(workspace)
        probe_judge(
            runtime.backends[judge.backend],
            judge,
            runtime.env,
            runtime.clis[judge.backend],
            runtime.processes,
            workspace.root,
        )
