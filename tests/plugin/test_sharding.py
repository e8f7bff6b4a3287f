"""`--caliper-shard I/N`: every task in exactly one shard, whole, on every machine alike."""

from __future__ import annotations

import itertools
import json
import re

import pytest
import yaml  # noqa: F401  its C part cannot be imported anew by each run in this process
from hypothesis import given
from hypothesis import strategies as st
from shell_agent import read_runs

from pytest_caliper.running.sharding import deal

XDIST = pytest.mark.parametrize("xdist", [[], ["-n2"]], ids=["alone", "xdist"])


def tasks(*names: str, seconds: float = 0) -> str:
    lines = [f"  - {{name: {name}, prompt: 'sleep {seconds}; echo {name}', assert: assert attempt.answer}}" for name in names]
    return "\n".join(["tasks:", *lines, ""])


def run(project, *arguments: str, status: int = 0):
    start = project.runpytest_subprocess if "-n2" in arguments else project.runpytest
    result = start("--caliper-k=2", *arguments)
    assert result.ret == status, result.stdout.str() + result.stderr.str()
    return result


def shard_runs(project) -> list[dict]:
    """All shards' run files of the project."""
    return [one for one in read_runs(project.path) if one.get("run", {}).get("shard")]


def task_names(data: dict) -> list[str]:
    return [task["task_name"] for task in data["task_results"]]


# -- dealing out ----------------------------------------------------------------------------------------------------------------

WEIGHTS = st.dictionaries(st.text(max_size=3), st.integers(1, 10**7), max_size=40)


def loads(weights: dict[str, int], dealt: dict[str, int], shards: int) -> list[int]:
    return [sum(weights[key] for key in weights if dealt[key] == shard) for shard in range(1, shards + 1)]


@given(WEIGHTS, st.integers(1, 50))
def test_each_task_in_exactly_one_shard_and_none_empty_while_another_has_two(weights, shards):
    dealt = deal(weights, shards)
    assert list(dealt) == list(weights)
    assert set(dealt.values()) <= set(range(1, shards + 1))
    assert len(set(dealt.values())) == min(shards, len(weights))


@given(WEIGHTS, st.integers(1, 50))
def test_no_shard_can_hand_over_a_task_and_gain(weights, shards):
    """Graham's bound for any list: the heaviest shard was lightest before it got its last task."""
    dealt = deal(weights, shards)
    heaviest = max(loads(weights, dealt, shards))
    if weights:
        assert heaviest * shards <= sum(weights.values()) + (shards - 1) * max(weights.values())


@given(st.lists(st.integers(1, 60), min_size=1, max_size=7), st.integers(1, 3))
def test_the_heaviest_shard_has_at_most_a_third_more_than_in_the_best_cut(values, shards):
    weights = {str(n): value for n, value in enumerate(values)}
    heaviest = max(loads(weights, deal(weights, shards), shards))
    cuts = itertools.product(range(1, shards + 1), repeat=len(values))
    best = min(max(loads(weights, dict(zip(weights, cut, strict=True)), shards)) for cut in cuts)
    assert heaviest * 3 * shards <= best * (4 * shards - 1)


@given(WEIGHTS, st.integers(1, 9))
def test_dealing_again_deals_the_same(weights, shards):
    assert deal(weights, shards) == deal(dict(weights), shards)


# -- the option -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2", "must be I/N"),
        ("0/4", "the shards are numbered 1/4 to 4/4"),
        ("5/4", "the shards are numbered 1/4 to 4/4"),
        ("1/0", "there can be 1 to 1,000 shards"),
        ("1/1001", "there can be 1 to 1,000 shards"),
        ("-1/4", "must be I/N"),
        (" 1/4", "must be I/N"),
        ("١/٤", "must be I/N"),
        ("1/4/4", "must be I/N"),
        ("1/9999999999999999999", "must be I/N"),
        ("", "must be I/N"),
    ],
)
def test_what_is_no_shard_is_refused_with_a_reason(project, text, says):
    result = project.runpytest(f"--caliper-shard={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert says in result.stderr.str()


# -- shards of a run ------------------------------------------------------------------------------------------------------------


@XDIST
def test_shards_have_every_task_of_all_specs_once_with_all_arms_and_attempts(project, xdist):
    project.spec(tasks("A", "B", "C"), "one")
    project.spec(tasks("D", "E"), "two")
    for index in (1, 2, 3):
        result = run(project, f"--caliper-shard={index}/3", "--caliper-baseline", *xdist)
        result.stdout.fnmatch_lines([f"*shard {index} of 3*"])
    found = shard_runs(project)
    assert sorted(name for data in found for name in task_names(data)) == ["A", "B", "C", "D", "E"]
    for data in found:
        for arm in (data["task_results"], data["baseline_task_results"]):
            assert [[entry["attempt"] for entry in task["attempts"]] for task in arm] == [[1, 2]] * len(arm)
            assert len(arm) == len(data["task_results"])
        assert not data["run"]["partial"]
        shard = data["run"]["shard"]
        assert shard["of"] == 3
        mine = [task for task, index in shard["tasks"].items() if index == shard["index"]]
        assert mine == [task["task_id"] for task in data["task_results"]]
        assert list(shard["tasks"]) == list(data["run"]["contract"]["tasks"])
    assert len({data["run"]["shard"]["plan"] for data in found}) == 1


def test_xdist_and_the_order_of_arguments_change_nothing(project):
    project.spec(tasks("A", "B", "C"), "one")
    project.spec(tasks("D", "E"), "two")
    run(project, "--caliper-shard=1/2", "one.eval.yaml", "two.eval.yaml")
    run(project, "--caliper-shard=1/2", "-n2", "two.eval.yaml", "one.eval.yaml")
    alone, again = ([d for d in shard_runs(project) if d["run"]["spec"] == f"{s}.eval.yaml"] for s in ("one", "two"))
    for first, second in (alone, again):
        assert task_names(first) == task_names(second)
        assert first["run"]["shard"] == second["run"]["shard"]


def test_a_shard_is_never_the_latest_run(project):
    project.spec(tasks("A", "B"))
    run(project, "--caliper-shard=1/1")
    assert [path.parent.name for path in (project.path / "results").rglob("*.json")] == ["partial"]


def test_the_last_run_decides_how_tasks_are_dealt_out(project):
    """One long task and four short ones: the long one stands alone."""
    long = "  - {name: Long, prompt: 'sleep 1.5; echo x', assert: assert attempt.answer}\n"
    text = tasks("A", "B", "C", "D") + long
    project.spec(text)
    run(project)
    for index in (1, 2):
        run(project, f"--caliper-shard={index}/2")
    assert sorted((task_names(data) for data in shard_runs(project)), key=len) == [["Long"], ["A", "B", "C", "D"]]


def test_the_cut_does_not_depend_on_what_is_selected(project):
    project.spec(tasks("First", "Second", "Third", "Fourth"))
    for index in (1, 2):
        run(project, f"--caliper-shard={index}/2", "-k", "not Fourth")
    assert sorted(task_names(data) for data in shard_runs(project)) == [["First", "Third"], ["Second"]]
    assert len({data["run"]["shard"]["plan"] for data in shard_runs(project)}) == 1


def test_collect_only_shows_the_shard(project):
    project.spec(tasks("A", "B", "C"))
    result = project.runpytest("--collect-only", "-q", "--caliper-shard=2/2", "--caliper-k=1")
    assert [line for line in result.outlines if "::" in line] == ["demo.eval.yaml::B::attempt-1"]


@XDIST
def test_bars_are_in_the_shard_of_their_task(project, xdist):
    project.spec(tasks("A", "B", "C"))
    for index, attempts in ((1, 4), (2, 2)):
        result = run(project, f"--caliper-shard={index}/2", "--caliper-bar=0.5", *xdist)
        result.assert_outcomes(passed=attempts + attempts // 2)
    listed = project.runpytest("--collect-only", "-q", "--caliper-shard=2/2", "--caliper-bar=0.5").outlines
    assert [line for line in listed if line.endswith("::bar")] == ["demo.eval.yaml::B::bar"]


@XDIST
def test_a_shard_without_a_task_says_so_and_is_green(project, xdist):
    project.spec(tasks("A"))
    result = run(project, "--caliper-shard=3/3", *xdist)
    result.stdout.fnmatch_lines(["*shard 3 of 3 holds no task: there is only 1*"])
    assert shard_runs(project) == []


@XDIST
def test_no_spec_at_all_is_not_green(project, xdist):
    run(project, "--caliper-shard=3/3", *xdist, status=5)


@XDIST
def test_a_selection_that_leaves_a_shard_nothing_keeps_pytests_status(project, xdist):
    project.spec(tasks("First", "Second"))
    run(project, "--caliper-shard=2/2", "-k", "First", *xdist, status=5)


@XDIST
def test_other_tests_run_in_every_shard(project, xdist):
    project.spec(tasks("A"))
    project.makepyfile(test_unit="def test_unit(): pass")
    run(project, "--caliper-shard=1/2", *xdist).assert_outcomes(passed=3)
    run(project, "--caliper-shard=2/2", *xdist).assert_outcomes(passed=1)


def test_a_spec_with_a_mistake_is_told_of_in_every_shard(project):
    project.spec(tasks("A", "B"))
    project.spec("tasks: [oops", "broken")
    for index in (1, 2):
        result = run(project, f"--caliper-shard={index}/2", status=2)
        result.stdout.fnmatch_lines(["*broken.eval.yaml*"])


@XDIST
def test_specs_that_only_collection_finds_are_dealt_out_by_name(project, xdist):
    """A conftest may collect what no rule of pytest's leads to."""
    hidden = project.mkdir("node_modules")
    project.spec(tasks(*"ABCDEFGH"))
    (project.path / "demo.eval.yaml").rename(hidden / "demo.eval.yaml")
    (hidden / "demo.eval.yaml").write_text((hidden / "demo.eval.yaml").read_text().replace("./skill", "../skill"))
    for index in (1, 2):
        run(project, f"--caliper-shard={index}/2", "-o", "norecursedirs=nothing", *xdist)
    assert sorted(name for data in shard_runs(project) for name in task_names(data)) == list("ABCDEFGH")


@XDIST
def test_nobody_is_billed_for_a_shard_in_addopts(project, xdist):
    project.spec("tasks: [oops")
    project.makepyfile(test_unit="def test_unit(): pass")
    result = project.runpytest_subprocess("-o", "addopts=--caliper-shard=1/2", *xdist)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["caliper: 1 spec not run*"])


# -- where files go -------------------------------------------------------------------------------------------------------------


def test_output_of_a_shard_is_a_directory_that_is_made(project):
    project.spec(tasks("A"), "one")
    project.spec(tasks("B"), "two")
    run(project, "--caliper-shard=1/1", "--caliper-output=out/shards")
    copies = sorted((project.path / "out" / "shards").iterdir())
    assert [json.loads(copy.read_text())["run"]["shard"]["index"] for copy in copies] == [1, 1]
    assert {copy.name for copy in copies} == {path.name for path in (project.path / "results").rglob("*.json")}


def test_output_called_a_file_is_one_and_takes_one_spec(project):
    project.spec(tasks("A"), "one")
    run(project, "--caliper-shard=1/1", "--caliper-output=shard.json")
    assert json.loads((project.path / "shard.json").read_text())["run"]["shard"]["index"] == 1
    project.spec(tasks("B"), "two")
    result = run(project, "--caliper-shard=1/1", "--caliper-output=shard.json", status=4)
    assert "several specs" in result.stderr.str()


def test_a_quiet_session_names_its_shard(project):
    project.spec(tasks("A"))
    result = run(project, "--caliper-shard=1/1", "-q")
    assert any(re.search(r"^demo\.eval\.yaml: .*; shard 1 of 1$", line) for line in result.outlines)


def test_pytest_split_beside_attempts_is_warned_of(project):
    project.spec(tasks("A"))
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + "\ndef pytest_addoption(parser): parser.addoption('--splits', type=int)\n")
    result = run(project, "--caliper", "--splits=2")
    result.stdout.fnmatch_lines(["note: pytest-split cuts through the attempts of a task*--caliper-shard*"])


# -- resumed shards -------------------------------------------------------------------------------------------------------------

STUMBLES = """
tasks:
  - {name: First, prompt: echo a, assert: assert attempt.answer}
  - {name: Second, prompt: echo b, assert: assert attempt.answer}
  - name: Third
    prompt: echo c
    assert: assert attempt.answer == 'd'
  - {name: Fourth, prompt: echo d, assert: assert attempt.answer}
"""


@XDIST
def test_a_shard_that_was_stopped_is_resumed_and_merged(project, xdist, monkeypatch):
    from pytest_caliper.cli import main
    from pytest_caliper.runs.names import latest_run
    from pytest_caliper.runs.reading import load_run

    project.spec(STUMBLES)
    run(project, "--caliper-shard=2/2", *xdist)
    start = project.runpytest_subprocess
    start("--caliper-k=2", "--caliper-shard=1/2", "-x", "--caliper-workers=1", *xdist)
    stopped, _ = sorted(shard_runs(project), key=lambda data: data["run"]["shard"]["index"])
    assert stopped["run"]["interrupted"]
    run(project, "--caliper-shard=1/2", "--caliper-resume", *xdist, status=1)
    resumed, other = sorted(shard_runs(project), key=lambda data: data["run"]["shard"]["index"])
    assert not resumed["run"]["interrupted"]
    assert resumed["run"]["shard"] == stopped["run"]["shard"]
    assert resumed["run"]["shard"]["plan"] == other["run"]["shard"]["plan"]
    monkeypatch.chdir(project.path)
    assert main(["merge", "results", "--results", "results"]) == 0
    merged = latest_run(project.path / "results" / "demo")
    assert merged is not None
    results = load_run(merged).results
    assert [(result.task_name, result.successes, result.usable) for result in results] == [
        ("First", 2, 2),
        ("Second", 2, 2),
        ("Third", 0, 2),
        ("Fourth", 2, 2),
    ]


def test_another_shard_does_not_go_on_with_this_one(project):
    project.spec(STUMBLES)
    project.runpytest_subprocess("--caliper-k=2", "--caliper-shard=1/2", "-x", "--caliper-workers=1")
    result = run(project, "--caliper-shard=2/2", "--caliper-resume", status=4)
    assert "selection of attempts" in result.stderr.str()
