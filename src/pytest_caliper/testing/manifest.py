"""How xdist's controller, which collects nothing, gets to know the tests in Python that its workers collected.

A worker says it on its line to the controller (`running.line`), before it tells its node ids: both go over one connection, in
order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.running.planning import Place
from pytest_caliper.running.resuming import spec_nodeid
from pytest_caliper.runs.records import AttemptKey
from pytest_caliper.spec.model import SpecError
from pytest_caliper.testing.marker import Marked
from pytest_caliper.testing.planning import Asked, FilePlan, file_plan
from pytest_caliper.testing.source import Source

if TYPE_CHECKING:
    from pytest_caliper.state import State


def manifest(config: pytest.Config, plans: Iterable[FilePlan]) -> str:
    """What a controller needs to plan the same: ASCII, since execnet takes exact builtins only."""
    return json.dumps([_file(config, plan) for plan in plans], ensure_ascii=True)


def _file(config: pytest.Config, plan: FilePlan) -> dict[str, Any]:
    return {
        "path": spec_nodeid(config, plan.spec.path),
        "whole_file": plan.whole_file,
        "tests": [
            {
                "name": asked.name,
                "source": asdict(asked.source),
                "k": asked.k,
                "arms": asked.arms,
                "marked": {
                    "k": asked.marked.k,
                    "bar": None if asked.marked.bar is None else str(asked.marked.bar),
                    "baseline": asked.marked.baseline,
                    "skills": asked.marked.skills,
                },
            }
            for asked in plan.asked.values()
        ],
        "places": [
            [key.task_id, key.arm, key.attempt, place.nodeid, place.name, list(place.location)]
            for key, place in plan.places.items()
        ],
    }


def plans_from(state: State, said: str) -> list[FilePlan]:
    """The plans of a manifest, with this process's own paths. Raises pytest.UsageError for a skill that is not here."""
    plans, wrong = [], []
    for told in json.loads(said):
        path = state.config.rootpath / told["path"]
        places = {
            AttemptKey(spec=str(path), task_id=task, arm=arm, attempt=attempt): Place(
                nodeid=nodeid, name=name, location=(location[0], location[1], location[2])
            )
            for task, arm, attempt, nodeid, name, location in told["places"]
        }
        try:
            plans.append(_plan(state, path, told, places))
        except (SpecError, OSError) as error:
            wrong.append(str(error))
    if wrong:
        raise pytest.UsageError("\n".join(wrong))
    return plans


def _plan(state: State, path: Path, told: Mapping[str, Any], places: Mapping[AttemptKey, Place]) -> FilePlan:
    return file_plan(
        path,
        [_asked(test) for test in told["tests"]],
        settings=state.settings,
        rootdir=state.config.rootpath,
        whole_file=told["whole_file"],
        places=places,
    )


def _asked(test: Mapping[str, Any]) -> Asked:
    source, marked = dict(test["source"]), test["marked"]
    return Asked(
        name=test["name"],
        source=Source(**source | {"criteria": tuple(source["criteria"]), "skills": tuple(source["skills"])}),
        marked=Marked(
            k=marked["k"],
            bar=None if marked["bar"] is None else Fraction(marked["bar"]),
            baseline=marked["baseline"],
            skills=tuple(marked["skills"]),
        ),
        k=test["k"],
        arms=tuple(test["arms"]),
    )
