"""Shards joined again are the run that they were cut from; what does not belong together is refused by name."""

from __future__ import annotations

import json
import random
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make_runs import SNAPSHOT, meta, record, side_file, task

from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.merging import MergeRefused, Part, by_spec, load_part, merge, with_transcripts
from pytest_caliper.runs.reading import iter_transcript, load_run
from pytest_caliper.runs.records import BaselineSource, Run, RunMeta
from pytest_caliper.runs.store import save_run, write_run

CONTRACT = {
    "spec": "sha256:1",
    "skill": "sha256:s",
    "engine": "claude-code:opus",
    "judge": "claude-code",
    "k": 2,
    "judge_votes": 1,
}
AGENT = {"model": "claude-x", "cli_version": "2.1.3"}


def ids(count: int) -> list[str]:
    return [f"task-{number:03}" for number in range(1, count + 1)]


def plan(count: int, of: int) -> dict[str, int]:
    """The tasks dealt out in turn."""
    return {task_id: number % of + 1 for number, task_id in enumerate(ids(count))}


def whole_run(directory: Path, count: int = 5, *, baseline: bool = True, **more: Any) -> Run:
    """A run whose attempts each have a transcript that names them."""
    directory.mkdir(exist_ok=True)

    def results(arm: str):
        for task_id in ids(count):
            records = []
            for attempt in (1, 2):
                name = f"{task_id}-{arm}-{attempt}"
                turns = [{"role": "user", "content": f"{name}\u2028"}, {"role": "assistant", "content": "x" * attempt}]
                place = side_file(directory / f"{name}.jsonl", *turns)
                more_of_it = {"transcript_path": place, "autorater_passed": True, "judge_model": "judge-x", **AGENT}
                records.append(record(task_id, attempt, arm=arm, **more_of_it))
            yield task(task_id, *records, arm=arm, planned=2)

    contract = {**CONTRACT, "tasks": {task_id: f"sha256:{task_id}" for task_id in ids(count)}, "baseline": baseline}
    values = {"contract": contract, "k": 2, "model": "claude-x", "judge_model": "judge-x", "baseline": baseline}
    return Run(
        meta=meta(**{**values, "cli_version": "2.1.3", "judge_prompt_hash": "sha256:p", **more}),
        results=tuple(results("skill")),
        baseline_results=tuple(results("baseline")) if baseline else None,
        skills=(SNAPSHOT,),
    )


def shard_of(whole: Run, index: int, of: int, **more: Any) -> Run:
    """What a shard of the run would have been; `more` goes to its meta."""
    dealt = plan(len(whole.meta.contract["tasks"]), of)
    mine = [task_id for task_id, shard in dealt.items() if shard == index]
    kept = tuple(result for result in whole.results if result.task_id in mine)
    values = {
        "id": f"shard{index}",
        "timestamp": f"2026-07-01T1{index % 10}:00:00Z",
        "shard": {"index": index, "of": of, "plan": "sha256:plan", "tasks": dealt},
        "selected_tasks": tuple(result.task_name for result in kept),
    }
    baseline = None if whole.baseline_results is None else tuple(r for r in whole.baseline_results if r.task_id in mine)
    return replace(whole, meta=replace(whole.meta, **{**values, **more}), results=kept, baseline_results=baseline)


def saved(run: Run, directory: Path) -> Part:
    part = load_part(save_run(run, directory))
    assert part is not None
    return part


def shards(tmp_path: Path, whole: Run, of: int, **more: Any) -> list[Part]:
    return [saved(shard_of(whole, index, of, **more), tmp_path / f"m{index}") for index in range(1, of + 1)]


def document(run: Run, path: Path) -> dict[str, Any]:
    """The run's file, but for id and time."""
    write_run(run, path)
    data = json.loads(path.read_text())
    data["run"] |= {"id": "", "timestamp": ""}
    return data


def written(parts: list[Part], path: Path, *, partial: bool = False) -> dict[str, Any]:
    with with_transcripts(merge(parts, partial=partial), parts) as run:
        return document(run, path)


# -- the whole ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("baseline", [True, False])
@pytest.mark.parametrize("of", [1, 2, 5])
def test_the_merged_file_is_that_of_the_whole_run(tmp_path, of, baseline):
    whole = whole_run(tmp_path / "sides", baseline=baseline)
    parts = shards(tmp_path, whole, of)
    random.Random(of).shuffle(parts)
    (joined,) = by_spec(parts).values()
    assert written(joined, tmp_path / "merged.json") == document(whole, tmp_path / "whole.json")
    assert (tmp_path / "merged.json").read_bytes()[:200].startswith(b'{"schema_version"')
    again = load_run(tmp_path / "merged.json")
    assert [result.task_id for result in again.results] == ids(5)
    turns = list(iter_transcript(tmp_path / "merged.json", "skill", "task-004", 2))
    assert [turn.content for turn in turns] == ["task-004-skill-2\u2028", "xx"]


@settings(max_examples=25, deadline=None)
@given(count=st.integers(1, 9), of=st.integers(1, 9), seed=st.integers(0, 99))
def test_any_cut_is_undone(tmp_path_factory, count, of, seed):
    directory = tmp_path_factory.mktemp("cut")
    whole = whole_run(directory / "sides", count)
    parts = [part for part in shards(directory, whole, of) if part.run.results]
    random.Random(seed).shuffle(parts)
    (joined,) = by_spec(parts).values()
    assert written(joined, directory / "merged.json") == document(whole, directory / "whole.json")


def test_the_id_follows_from_the_files_and_the_time_is_the_earliest(tmp_path):
    whole = whole_run(tmp_path / "sides")
    parts = shards(tmp_path, whole, 2)
    one, other = merge(parts).meta, merge(list(reversed(parts))).meta
    assert one.id == other.id
    assert one.timestamp == other.timestamp == "2026-07-01T11:00:00Z"
    assert one.shard is None
    later = saved(shard_of(whole, 2, 2, workers=9), tmp_path / "later")
    assert merge([parts[0], later]).meta.id != one.id
    assert merge([parts[0], later]).meta.workers is None


def test_times_are_compared_as_times(tmp_path):
    whole = whole_run(tmp_path / "sides")
    one = saved(shard_of(whole, 1, 2, timestamp="2026-07-01T11:00:00+02:00"), tmp_path / "a")
    two = saved(shard_of(whole, 2, 2, timestamp="2026-07-01T10:00:00Z"), tmp_path / "b")
    assert merge([one, two]).meta.timestamp == "2026-07-01T11:00:00+02:00"


def test_a_part_without_a_judge_or_a_model_does_not_hide_those_of_the_others(tmp_path):
    whole = whole_run(tmp_path / "sides", 2, baseline=False)
    failed = tuple(
        replace(r, outcome="infra_error", reason="x", model=None, cli_version=None, autorater_passed=None, judge_model=None)
        for r in whole.results[0].attempts
    )
    bare = replace(whole, results=(replace(whole.results[0], attempts=failed), whole.results[1]))
    first = shard_of(bare, 1, 2, model="opus", judge_backend=None, judge_model=None, judge_prompt_hash=None, cli_version=None)
    merged = merge([saved(first, tmp_path / "a"), saved(shard_of(bare, 2, 2), tmp_path / "b")]).meta
    assert (merged.model, merged.judge_backend, merged.judge_model) == ("claude-x", "claude-code", "judge-x")
    assert (merged.judge_prompt_hash, merged.cli_version) == ("sha256:p", "2.1.3")


def test_two_models_leave_the_one_that_was_asked_for(tmp_path):
    whole = whole_run(tmp_path / "sides", 2, baseline=False)
    other = replace(whole.results[1], attempts=tuple(replace(r, model="claude-y") for r in whole.results[1].attempts))
    parts = shards(tmp_path, replace(whole, results=(whole.results[0], other)), 2)
    assert merge(parts).meta.model == "opus"


def test_a_selection_of_tasks_stays_one(tmp_path):
    whole = whole_run(tmp_path / "sides", 4)
    fewer = replace(
        whole,
        results=tuple(result for result in whole.results if result.task_id != "task-003"),
        baseline_results=tuple(result for result in whole.baseline_results or () if result.task_id != "task-003"),
    )
    run = merge(shards(tmp_path, fewer, 2))
    assert run.meta.selected_tasks == ("Name of task-001", "Name of task-002", "Name of task-004")
    assert not run.meta.partial


def test_an_interrupted_or_partial_shard_makes_the_run_so(tmp_path):
    whole = whole_run(tmp_path / "sides", 2)
    part = saved(shard_of(whole, 1, 2), tmp_path / "a")
    assert merge([part, saved(shard_of(whole, 2, 2, interrupted=True), tmp_path / "b")]).meta.interrupted
    assert merge([part, saved(shard_of(whole, 2, 2, partial=True), tmp_path / "c")]).meta.partial


def test_lost_transcripts_stay_lost_and_empty_ones_empty(tmp_path):
    whole = whole_run(tmp_path / "sides", 2, baseline=False)
    empty = side_file(tmp_path / "empty.jsonl")
    attempts = whole.results[0].attempts
    odd = (replace(attempts[0], transcript_path=None, transcript_truncated=True), replace(attempts[1], transcript_path=empty))
    whole = replace(whole, results=(replace(whole.results[0], attempts=odd), whole.results[1]))
    data = written(shards(tmp_path, whole, 2), tmp_path / "merged.json")
    assert [entry["transcript"] for entry in data["task_results"][0]["attempts"]] == [None, []]
    assert data == document(whole, tmp_path / "whole.json")


def test_a_part_that_went_through_jq_is_read_as_well(tmp_path):
    whole = whole_run(tmp_path / "sides", 3)
    parts = shards(tmp_path, whole, 2)
    path = parts[0].path
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    again = [load_part(path), parts[1]]
    assert written(again, tmp_path / "merged.json") == document(whole, tmp_path / "whole.json")


def test_side_files_are_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    parts = shards(tmp_path, whole_run(tmp_path / "sides", 2), 2)
    joined = with_transcripts(merge(parts), parts)
    joined.__enter__()
    assert len(list((tmp_path / "temporary").rglob("*.jsonl"))) == 8
    fault = ZeroDivisionError()
    assert not joined.__exit__(ZeroDivisionError, fault, None)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_memory_does_not_grow_with_the_transcripts(tmp_path):
    whole = whole_run(tmp_path / "sides", 2, baseline=False)
    turns = [{"role": "assistant", "content": "x" * 10_000}] * 500
    for result in whole.results:
        for one in result.attempts:
            side_file(Path(str(one.transcript_path)), *turns)
    parts = shards(tmp_path, whole, 2)
    assert sum(part.path.stat().st_size for part in parts) > 15_000_000
    tracemalloc.start()
    try:
        with with_transcripts(merge(parts), parts) as run:
            write_run(run, tmp_path / "merged.json")
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_a_damaged_transcript_is_told_of(tmp_path):
    parts = shards(tmp_path, whole_run(tmp_path / "sides", 2), 2)
    parts[1].path.write_bytes(parts[1].path.read_bytes().replace(b'"role": "assistant"', b'"role": "assist', 1))
    with pytest.raises(RunFileError, match=parts[1].path.name), with_transcripts(merge(parts), parts):
        pass


# -- what is refused ------------------------------------------------------------------------------------------------------------


def contract(whole: Run, **more: Any) -> dict[str, Any]:
    return {"contract": {**whole.meta.contract, **more}}


DIFFERENT = {
    "spec": (lambda whole: contract(whole, spec="sha256:9"), "the spec differs outside its tasks"),
    "task": (
        lambda whole: contract(whole, spec="sha256:9", tasks={**whole.meta.contract["tasks"], "task-002": "sha256:9"}),
        "a task differs: task-002",
    ),
    "more tasks": (
        lambda whole: contract(whole, tasks={**whole.meta.contract["tasks"], "task-001": "sha256:9", "task-009": "sha256:9"}),
        "these tasks differ: task-001, task-009",
    ),
    "skill": (lambda whole: contract(whole, skill=None), "the skill differs"),
    "engine": (lambda whole: contract(whole, engine="codex"), "its engine is codex, not claude-code:opus"),
    "judge": (lambda whole: contract(whole, judge="codex"), "its judge is codex, not claude-code"),
    "votes": (lambda whole: contract(whole, judge_votes=3), "its number of judge votes is 3, not 1"),
    "k": (lambda whole: contract(whole, k=5), "its k is 5, not 2"),
    "baseline": (lambda whole: contract(whole, baseline=False), "it was made without --caliper-baseline"),
    "baseline of another run": (
        lambda whole: contract(whole, baseline="from 3f9c21ab"),
        "its baseline is from 3f9c21ab, not its own",
    ),
    "customizations": (lambda whole: contract(whole, user_customizations=True), "it was made with --caliper-user-customizations"),
    "what is not known here": (lambda whole: contract(whole, novelty=1), "novelty differs"),
    "pytest-caliper": (lambda _: {"pytest_caliper": "9.0"}, "it was made by pytest-caliper 9.0, not 0.1.0"),
    "replay": (lambda _: {"replay": True}, "it is a replay"),
    "prompt": (lambda _: {"judge_prompt_hash": "sha256:q"}, "its judge was asked with another prompt"),
    "number of shards": (
        lambda _: {"shard": {"index": 2, "of": 3, "plan": "sha256:plan", "tasks": plan(2, 2)}},
        "it is one of 3 shards, not 2",
    ),
    "plan": (
        lambda _: {"shard": {"index": 2, "of": 2, "plan": "sha256:other", "tasks": plan(2, 2)}},
        "its tasks were dealt out differently",
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_does_not_belong_together_is_refused_by_file_and_difference(tmp_path, case):
    change, says = DIFFERENT[case]
    whole = whole_run(tmp_path / "sides", 2)
    first = saved(shard_of(whole, 1, 2), tmp_path / "a")
    second = saved(shard_of(whole, 2, 2, **change(whole)), tmp_path / "b")
    with pytest.raises(MergeRefused) as refused:
        merge([first, second], partial=True)
    (problem,) = refused.value.problems
    assert problem.startswith(f"{second.path} does not belong to {first.path}: {says}")


def test_a_baseline_that_one_shard_lacks_is_told(tmp_path):
    whole = whole_run(tmp_path / "sides", 2)
    bare = replace(shard_of(whole, 2, 2), baseline_results=None)
    with pytest.raises(MergeRefused, match="it has no baseline"):
        merge([saved(shard_of(whole, 1, 2), tmp_path / "a"), saved(bare, tmp_path / "b")])


def test_a_baseline_of_another_run_says_nothing_of_what_ran(tmp_path):
    source = BaselineSource(id="3f9c21ab", timestamp="2026-06-01T10:00:00Z", file="x.json")
    whole = whole_run(tmp_path / "sides", 2, baseline_from=source)
    old = tuple(replace(r, attempts=tuple(replace(a, cli_version="1.0") for a in r.attempts)) for r in whole.baseline_results)
    whole = replace(whole, baseline_results=old)
    assert written(shards(tmp_path, whole, 2), tmp_path / "merged.json") == document(whole, tmp_path / "whole.json")


def test_all_differences_are_told_at_once(tmp_path):
    whole = whole_run(tmp_path / "sides", 3)
    parts = [saved(shard_of(whole, 1, 3), tmp_path / "a")]
    parts += [saved(shard_of(whole, 2, 3, replay=True, **contract(whole, k=9)), tmp_path / "b")]
    parts += [saved(shard_of(whole, 3, 3, replay=True), tmp_path / "c")]
    with pytest.raises(MergeRefused) as refused:
        merge(parts)
    assert len(refused.value.problems) == 3


def test_the_same_shard_twice_is_refused_with_both_files(tmp_path):
    whole = whole_run(tmp_path / "sides", 2)
    parts = shards(tmp_path, whole, 2)
    again = saved(shard_of(whole, 2, 2), tmp_path / "again")
    with pytest.raises(MergeRefused) as refused:
        merge([*parts, again], partial=True)
    (problem,) = refused.value.problems
    assert str(again.path) in problem
    assert str(parts[1].path) in problem
    assert "both shard 2 of 2" in problem


def test_a_task_that_belongs_to_another_shard_is_refused(tmp_path):
    whole = whole_run(tmp_path / "sides", 2)
    parts = shards(tmp_path, whole, 2)
    stray = saved(replace(shard_of(whole, 2, 2), results=whole.results), tmp_path / "stray")
    with pytest.raises(MergeRefused, match="task-001 is no task of shard 2 of 2"):
        merge([parts[0], stray])


def test_missing_shards_are_named_with_their_tasks(tmp_path):
    whole = whole_run(tmp_path / "sides", 5)
    parts = shards(tmp_path, whole, 4)
    with pytest.raises(MergeRefused) as refused:
        merge([parts[1]])
    assert refused.value.problems == (
        "evals/x.eval.yaml: shard 1 of 4 is missing, with task-001, task-005",
        "evals/x.eval.yaml: shard 3 of 4 is missing, with task-003",
        "evals/x.eval.yaml: shard 4 of 4 is missing, with task-004",
        "name all of them, or join what is there with --partial",
    )


def test_missing_shards_can_be_left_out_on_request(tmp_path):
    whole = whole_run(tmp_path / "sides", 5)
    parts = shards(tmp_path, whole, 4)
    run = merge([parts[0], parts[2]], partial=True)
    assert [result.task_id for result in run.results] == ["task-001", "task-003", "task-005"]
    assert run.meta.partial
    assert run.meta.selected_tasks == ("Name of task-001", "Name of task-003", "Name of task-005")


def test_a_shard_that_the_spec_has_no_task_in_is_not_missed(tmp_path):
    whole = whole_run(tmp_path / "sides", 2)
    parts = [part for part in shards(tmp_path, whole, 4) if part.run.results]
    assert len(parts) == 2
    assert merge(parts).meta.selected_tasks is None


def test_specs_are_kept_apart(tmp_path):
    whole = whole_run(tmp_path / "sides", 2)
    other = replace(whole, meta=replace(whole.meta, spec="evals/y.eval.yaml"))
    parts = [*shards(tmp_path / "x", whole, 2), *shards(tmp_path / "y", other, 2)]
    random.Random(1).shuffle(parts)
    specs = by_spec(parts)
    assert {spec: [part.index for part in some] for spec, some in specs.items()} == {
        "evals/x.eval.yaml": [1, 2],
        "evals/y.eval.yaml": [1, 2],
    }


@pytest.mark.parametrize(
    "shard",
    [
        None,
        {"index": 1},
        {"index": "1", "of": 2, "plan": "sha256:p", "tasks": {}},
        {"index": True, "of": 2, "plan": "sha256:p", "tasks": {}},
        {"index": 0, "of": 2, "plan": "sha256:p", "tasks": {}},
        {"index": 1, "of": 2, "plan": None, "tasks": {}},
        {"index": 1, "of": 2, "plan": "sha256:p", "tasks": {"task-001": "1"}},
        {"index": 1, "of": 2, "plan": "sha256:p", "tasks": []},
    ],
)
def test_what_is_no_shard_is_none(tmp_path, shard):
    whole = whole_run(tmp_path / "sides", 1)
    path = tmp_path / "x.json"
    write_run(replace(whole, meta=replace(whole.meta, shard=shard)), path)
    assert load_part(path) is None


def test_shards_of_a_contract_without_tasks_are_none(tmp_path):
    whole = whole_run(tmp_path / "sides", 1)
    path = tmp_path / "x.json"
    write_run(replace(shard_of(whole, 1, 1), meta=replace(shard_of(whole, 1, 1).meta, contract={})), path)
    assert load_part(path) is None


def test_shards_are_saved_apart(tmp_path):
    whole = whole_run(tmp_path / "sides", 1)
    assert save_run(shard_of(whole, 1, 1), tmp_path / "r").parent.name == "partial"
    assert isinstance(whole.meta, RunMeta)
    assert save_run(whole, tmp_path / "r").parent.name == "r"
