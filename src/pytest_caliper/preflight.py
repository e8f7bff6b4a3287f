"""Everything that can be known to fail is found before the first attempt is paid for."""

from __future__ import annotations

from collections.abc import Mapping
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


def check(plans: Mapping[SpecPlan, tuple[Engine, Engine]], keys: list[AttemptKey], runtime: Runtime) -> list[str]:
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
        selected = {key.task_id for key in mine}
        if engine == judge and any(task.expect and task.task_id in selected for task in plan.spec.tasks):
            notes.append(f"{judge} grades its own work; --caliper-judge-model names another judge")
    if not runtime.settings.replay:
        mistakes += _engines_missing(plans, runtime)
    if mistakes:
        raise EngineError("\n".join(dict.fromkeys(mistakes)))
    if not runtime.settings.replay:
        _probe_judges(plans, keys, runtime)
    return list(dict.fromkeys(notes))


def _unset_variables(plan: SpecPlan, runtime: Runtime) -> list[str]:
    return [
        f"{plan.spec.path}:{reference.line}: mcp server {reference.server!r}, {reference.key}: "
        f"the environment variable {reference.name} is not set; export it"
        for reference in references(plan.spec)
        if reference.name not in runtime.env
    ]


def _engines_missing(plans: Mapping[SpecPlan, tuple[Engine, Engine]], runtime: Runtime) -> list[str]:
    wanted = dict.fromkeys(engine for plan, pair in plans.items() for engine in (pair if _needs_judge(plan) else pair[:1]))
    mistakes = []
    for engine in wanted:
        try:
            runtime.clis[engine.backend]
            runtime.backends[engine.backend].check(engine, runtime.env)
        except EngineError as error:
            mistakes.append(str(error))
    return mistakes


def _needs_judge(plan: SpecPlan) -> bool:
    return any(task.expect is not None for task in plan.spec.tasks)


def _probe_judges(plans: Mapping[SpecPlan, tuple[Engine, Engine]], keys: list[AttemptKey], runtime: Runtime) -> None:
    """One judge call per judge that will be needed."""
    graded = {key.spec for key in keys}
    wanted = dict.fromkeys(judge for plan, (_, judge) in plans.items() if str(plan.spec.path) in graded and _needs_judge(plan))
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
