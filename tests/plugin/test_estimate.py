"""What a run says before its first attempt: how much it is and, as far as earlier runs tell, how long and for how many tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_caliper.running.makespan import Job, about, makespan

SPEC = """
tasks:
  - {name: One, prompt: "echo '!tokens 1000'; echo a", expect: x}
  - {name: Two, prompt: "echo '!tokens 3000'; echo a", assert: "assert attempt.answer"}
"""


def said(result: pytest.RunResult) -> list[str]:
    """The lines of ours before the first attempt, but for those on engines."""
    lines = [line.removeprefix("caliper: ") for line in result.outlines if line.startswith("caliper: ")]
    return [line for line in lines if not line.startswith(("shell-agent", "judge shell-agent"))]


def stretch(project: pytest.Pytester, seconds: float, name: str = "demo", day: str = "2026-11-30") -> None:
    """Make the saved runs of a spec those of another day, with attempts of so many seconds."""
    for path in sorted((project.path / "results" / name).glob("*.json")):
        text = path.read_text().replace('"wall_seconds": ', '"wall_seconds_before": ')
        run = json.loads(text)
        for result in (*run["task_results"], *(run["baseline_task_results"] or ())):
            for attempt in result["attempts"]:
                attempt["wall_seconds"] = seconds
        run["run"]["timestamp"] = f"{day}T10:00:00Z"
        path.unlink()
        path.with_name(f"{day}T10-00-00Z-{run['run']['id']}.json").write_text(json.dumps(run))


def test_a_first_run_says_how_much_and_that_no_more_is_known(project):
    project.spec(SPEC)
    result = project.runpytest("demo.eval.yaml", "--caliper-k=2", "--caliper-baseline", "--caliper-timeout=300")
    assert said(result) == [
        "8 attempts (2 tasks x 2 x skill and baseline), up to 4 judge calls",
        "no earlier run tells time or tokens; time-outs allow about 10 min",
    ]


@pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "n2"])
def test_the_run_before_tells_how_long_and_how_many_tokens(project, extra):
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    stretch(project, 60.0)
    result = project.runpytest("demo.eval.yaml", "--caliper-k=3", "--caliper-workers=2", *extra)
    assert said(result) == [
        "6 attempts (2 tasks x 3), up to 3 judge calls",
        "about 3 min with 2 workers and 12K tokens, by the run of 2026-11-30",
    ]


def test_what_never_ran_is_said_to_be_unknown(project):
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    stretch(project, 60.0)
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1", "--caliper-baseline")
    assert said(result) == [
        "4 attempts (2 tasks x 1 x skill and baseline), up to 2 judge calls",
        "2 of them: about 1 min with 4 workers and 4.0K tokens, as on 2026-11-30",
        "2 never ran with this engine, so that is all that is known",
    ]


def test_a_run_of_one_task_after_one_of_all_hides_nothing(project):
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    stretch(project, 60.0, day="2026-11-28")
    project.runpytest("demo.eval.yaml", "--caliper-k=1", "-k", "One")
    assert said(project.runpytest("demo.eval.yaml", "--caliper-k=1"))[1:] == [
        f"about 1 min with 2 workers and 4.0K tokens, by the runs of 2026-11-28 to {today(project)}"
    ]


def today(project: pytest.Pytester) -> str:
    newest = sorted(path.name for path in (project.path / "results" / "demo").glob("*.json"))[-1]
    return newest[:10]


def test_another_engine_tells_nothing(project):
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1", "--caliper-model=shell-agent:other")
    assert said(result)[1:] == ["no earlier run tells time or tokens; time-outs allow about 2 min"]


def test_tokens_that_nobody_told_are_unknown(project):
    project.spec("tasks:\n  - {name: One, prompt: echo a, expect: x}\n")
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    stretch(project, 60.0)
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1")
    assert said(result) == [
        "1 attempt, up to 1 judge call",
        "about 1 min with 1 worker, tokens unknown, by the run of 2026-11-30",
    ]


def test_a_limit_that_will_not_do_is_told(project):
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    stretch(project, 60.0)
    lines = said(project.runpytest("demo.eval.yaml", "--caliper-k=2", "--caliper-max-tokens=5000"))
    assert lines[2] == "that is more than --caliper-max-tokens 5,000: not all of them will begin"
    lines = said(project.runpytest("demo.eval.yaml", "--caliper-k=1", "--caliper-max-tokens=500_000"))
    assert len(lines) == 2


def test_attempts_that_wait_for_their_turn_are_not_taken_to_run_together(project):
    project.makeconftest(
        (project.path / "conftest.py").read_text() + "\nimport pytest\n@pytest.fixture(autouse=True)\ndef mine():\n    yield\n"
    )
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    stretch(project, 60.0)
    assert said(project.runpytest("demo.eval.yaml", "--caliper-k=3"))[1].startswith("about 6 min with ")


def test_votes_are_counted_and_shared_paths_run_one_at_a_time(project, tmp_path):
    project.spec(f"tasks:\n  - {{name: One, prompt: 'touch {tmp_path}/x; echo a', expect: x}}\n")
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    stretch(project, 60.0)
    lines = said(project.runpytest("demo.eval.yaml", "--caliper-k=3", "--caliper-judge-votes=3"))
    assert lines[0] == "3 attempts (1 task x 3), up to 9 judge calls"
    assert lines[1].startswith("about 3 min with ")


@pytest.mark.parametrize("extra", [["-q"], ["--caliper-replay"], ["--collect-only"]])
def test_who_pays_nothing_or_wants_quiet_hears_nothing(project, extra):
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1", "--caliper-record")
    result = project.runpytest("demo.eval.yaml", "--caliper-k=1", *extra)
    assert said(result) == []


def test_a_damaged_file_is_passed_over(project):
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    stretch(project, 60.0)
    for name in ("2026-12-30T10-00-00Z-aaaa.json", "2026-12-31T10-00-00Z-bbbb.json"):
        Path(project.path, "results", "demo", name).write_text('{"schema_version": 1, "run": {')
    assert said(project.runpytest("demo.eval.yaml", "--caliper-k=1"))[1].endswith("by the run of 2026-11-30")


def test_only_what_is_missing_counts_when_a_run_is_resumed(project):
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-k=1")
    (saved,) = (project.path / "results" / "demo").glob("*.json")
    result = project.runpytest("demo.eval.yaml", "--caliper-k=3", f"--caliper-resume-from={saved}")
    assert said(result)[0] == "4 attempts (2 tasks x 2), up to 2 judge calls"


# -- the numbers ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "workers", "running", "seconds"),
    [
        ([], 4, [], 0.0),
        ([Job(3.0)], 4, [], 3.0),
        ([Job(3.0), Job(2.0), Job(2.0)], 2, [], 4.0),
        ([Job(1.0), Job(1.0), Job(10.0)], 2, [], 11.0),  # a sum over workers would say 6
        ([Job(2.0, "a"), Job(2.0, "a"), Job(1.0)], 4, [], 4.0),
        ([Job(2.0, "a"), Job(2.0, "a"), Job(1.0)], 1, [], 5.0),
        ([Job(5.0)], 1, [Job(2.0)], 7.0),
        ([Job(5.0, "a")], 4, [Job(2.0, "a")], 7.0),
        ([], 1, [Job(2.0), Job(3.0)], 3.0),
    ],
)
def test_makespan(jobs, workers, running, seconds):
    assert makespan(jobs, workers, running) == seconds


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from([None, "a", "b"])), max_size=20), st.integers(1, 5))
def test_makespan_lies_between_its_bounds(pairs, workers):
    jobs = [Job(seconds, group) for seconds, group in pairs]
    total = sum(job.seconds for job in jobs)
    groups = [sum(job.seconds for job in jobs if job.group == group) for group in ("a", "b")]
    least = max([0.0, total / workers, *groups, *(job.seconds for job in jobs)])
    found = makespan(jobs, workers)
    assert least - 1e-6 <= found <= total + 1e-6
    assert makespan(jobs, 1) == pytest.approx(total)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "under 10 s"),
        (9.9, "under 10 s"),
        (12.0, "about 10 s"),
        (54.0, "about 55 s"),
        (55.0, "about 1 min"),
        (89.0, "about 1 min"),
        (91.0, "about 2 min"),
        (99 * 60.0, "about 99 min"),
        (100 * 60.0, "about 1 h 40 min"),
        (7190.0, "about 2 h"),
        (36000.0, "about 10 h"),
    ],
)
def test_rough_times(seconds, words):
    assert about(seconds) == words
