"""Cutting a run by task, so that several machines share it.

The controller deals out the tasks of all specs that the command line leads to, before anything is collected or selected, so that
every machine with the same files and the same last runs cuts alike. xdist workers are told the outcome.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_caliper.collection import BarItem, attempt_of
from pytest_caliper.options import Shard
from pytest_caliper.running.named_specs import named_specs
from pytest_caliper.running.order import last_seconds
from pytest_caliper.running.resuming import spec_nodeid
from pytest_caliper.spec.model import SpecError

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SpecPlan
    from pytest_caliper.state import State

T = TypeVar("T", bound=Hashable)

USUAL_S = 1.0
"""Expected seconds of an attempt when no task of any spec was ever run."""


def deal(weights: Mapping[T, int], shards: int) -> dict[T, int]:
    """Each key -> its shard, from 1: the heaviest first, each to the shard that has least.

    Longest processing time first: the heaviest shard has at most 4/3 - 1/(3 shards) of what the best cut would give it
    (Graham 1969, "Bounds on multiprocessing timing anomalies", theorem 2). Equals go by the order of the
    mapping, to the first such shard.
    """
    loads = [(0, shard) for shard in range(1, shards + 1)]  # a heap as it stands
    dealt = {}
    for key in sorted(weights, key=lambda key: -weights[key]):
        load, shard = loads[0]
        dealt[key] = shard
        heapq.heapreplace(loads, (load + weights[key], shard))
    return {key: dealt[key] for key in weights}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """How all tasks are dealt out, and which shard is ours."""

    shard: Shard
    dealt: Mapping[str, Mapping[str, int]]
    """Node id of a spec -> task id -> shard."""
    plan: str
    """`sha256:` over the specs and `dealt`: machines that agree on it have each task exactly once."""

    def shard_of(self, spec: str, task_id: str) -> int:
        """The shard of a task; `spec` is its spec's node id. One that only pytest's collection finds goes by its name."""
        known = self.dealt.get(spec, {}).get(task_id)
        if known is not None:
            return known
        return int(hashlib.sha256(f"{spec}\0{task_id}".encode("utf-8", "surrogatepass")).hexdigest(), 16) % self.shard.of + 1

    def holds_nothing(self) -> bool:
        """Whether there are tasks and this shard has none of them."""
        return bool(self.dealt) and not any(self.shard.index in tasks.values() for tasks in self.dealt.values())

    def holds_nothing_text(self) -> str:
        """The sentence for that case."""
        count = sum(map(len, self.dealt.values()))
        return f"shard {self.shard} holds no task: there {'is' if count == 1 else 'are'} only {count:,}"

    def of_run(self, config: pytest.Config, plan: SpecPlan) -> dict[str, Any]:
        """`shard` of the run of one spec, as RunMeta has it."""
        spec = spec_nodeid(config, plan.spec.path)
        tasks = {task.task_id: self.shard_of(spec, task.task_id) for task in plan.spec.tasks}
        return {"index": self.shard.index, "of": self.shard.of, "plan": self.plan, "tasks": tasks}

    def to_json(self) -> dict[str, Any]:
        """For xdist workers."""
        return {"index": self.shard.index, "of": self.shard.of, "dealt": self.dealt, "plan": self.plan}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cut:
        return cls(shard=Shard(data["index"], data["of"]), dealt=data["dealt"], plan=data["plan"])


def make_cut(state: State, shard: Shard) -> Cut:
    """Deal out the tasks of all specs that the command line leads to. Specs with mistakes have none: collection tells of them."""
    plans: dict[str, SpecPlan] = {}
    for path in named_specs(state.config):
        with contextlib.suppress(SpecError):
            plans[spec_nodeid(state.config, path)] = state.open_spec(path)
    plans = dict(sorted(plans.items()))  # the order of arguments must not matter
    shards = deal(_weights(plans), shard.of)
    dealt = {spec: {task.task_id: shards[spec, task.task_id] for task in plan.spec.tasks} for spec, plan in plans.items()}
    lines = [f"{shard.of} shards"]
    for spec, plan in plans.items():
        lines += [f"{spec}\0{plan.spec.digest}\0{task_id}\0{number}" for task_id, number in dealt[spec].items()]
    digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
    return Cut(shard=shard, dealt=dealt, plan=f"sha256:{digest}")


def _weights(plans: Mapping[str, SpecPlan]) -> dict[tuple[str, str], int]:
    """(node id of the spec, task id) -> milliseconds that all attempts of the task are expected to take.

    From the last run of each spec; a task without one is expected to take what the others take on average.
    """
    seconds = {(spec, task_id): mean for spec, plan in plans.items() for task_id, mean in last_seconds(plan).items()}
    usual = sum(seconds.values()) / len(seconds) if seconds else USUAL_S
    return {
        (spec, task.task_id): max(1, round(1000 * seconds.get((spec, task.task_id), usual))) * len(list(plan.keys(task)))
        for spec, plan in plans.items()
        for task in plan.spec.tasks
    }


def leave_other_shards(config: pytest.Config, items: list[pytest.Item], cut: Cut) -> None:
    """Deselect the attempts and bars of tasks that belong to other shards; other tests stay in all of them."""
    others = [
        item
        for item in items
        if (one := item if isinstance(item, BarItem) else attempt_of(item)) is not None
        and cut.shard_of(spec_nodeid(config, one.plan.spec.path), one.task.task_id) != cut.shard.index
    ]
    if others:
        gone = set(others)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=others)
