"""`--caliper-baseline-from`: a saved baseline is taken where nothing it depends on has changed, else it runs and says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_caliper.runs.reading import iter_transcript, load_run

MODES = pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "n2"])
SPEC = """
tasks:
  - name: Needs it
    prompt: test $ARM = skill && echo yes || echo no
    assert: assert attempt.answer == 'yes'
  - name: Judged
    prompt: echo yes
    expect: The answer says yes.
"""
CHANGING = """
import os

class Changing(ShellAgent):
    def find(self, env):
        return CliInfo(path=Path("/bin/sh"), version=said("version"))

    def read_agent(self, raw, plan, workspace):
        return replace(super().read_agent(raw, plan, workspace), model=said("model"))

from dataclasses import replace
from pathlib import Path
from pytest_caliper.contracts import CliInfo

def said(name):
    file = Path(__file__).parent / name
    return file.read_text() if file.exists() else "1.0"

def pytest_caliper_backends(config):
    return [Changing()]
"""


@pytest.fixture
def measured(project):
    """A project with one run of three attempts per arm."""
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + CHANGING)
    project.spec(SPEC)
    project.runpytest("demo.eval.yaml", "--caliper-baseline").assert_outcomes(passed=6, xfailed=3, xpassed=3)
    (project.first,) = runs(project)
    return project


def runs(project) -> list[Path]:
    return sorted((project.path / "results" / "demo").glob("*.json"))


def again(project, *options: str):
    run = project.session
    return run("demo.eval.yaml", "--caliper-baseline-from=latest", *options)


def told(result) -> str:
    """The note on the baseline, which is said before the run too."""
    (note,) = (line for line in result.outlines if line.startswith("note: demo.eval.yaml: the baseline"))
    assert note.replace("note: ", "caliper: ") in result.outlines
    return note


@MODES
def test_the_saved_arm_is_taken_and_no_attempt_of_it_runs(measured, extra):
    result = again(measured, "--caliper-k=2", "--caliper-output=new.json", *extra)
    result.assert_outcomes(passed=4)
    assert result.ret == 0
    assert f"the baseline is that of {measured.first.name}: all that it depends on is the same, 3 attempts" in told(result)
    first, new = (json.loads(path.read_text()) for path in (measured.first, measured.path / "new.json"))
    assert new["run"]["baseline"] == first["run"]["id"]
    assert new["run"]["baseline_from"]["file"] == f"results/demo/{measured.first.name}"
    assert new["baseline_task_results"] == first["baseline_task_results"], "with transcripts and all"
    assert new["baseline_task_results"][0]["attempts"][0]["transcript"][0]["role"] == "user"
    assert new["run"]["partial"] is False
    result.stdout.fnmatch_lines([f"! the baseline is that of run {first['run']['id']} of *", "Skill *Δ +50.0 pts*"])
    assert not list((measured.path / "results").rglob("*.parts")), "side files are gone once the run is saved"
    run = load_run(measured.path / "new.json")
    assert run.meta.baseline is True
    assert run.meta.baseline_from is not None
    assert [turn.role for turn in iter_transcript(measured.path / "new.json", "baseline", "task-001", 2)] == ["user", "assistant"]


def test_a_run_that_took_its_baseline_over_is_no_source_of_its_own(measured):
    again(measured)
    again(measured, "--caliper-output=third.json").assert_outcomes(passed=6)
    third = json.loads((measured.path / "third.json").read_text())
    assert third["run"]["baseline"] == json.loads(measured.first.read_text())["run"]["id"]


def test_tasks_may_move_and_the_spec_may_change_around_them(measured):
    spec = measured.path / "demo.eval.yaml"
    head, first, second = spec.read_text().partition("  - name: Needs it")[0], *SPEC.split("  - name: ")[1:]
    spec.write_text(f"# a comment\nbar: 1/2\n{head}  - name: {second}\n  - name: {first}")
    result = again(measured, "--caliper-output=new.json")
    result.assert_outcomes(passed=8)
    names = [
        (task["task_id"], task["task_name"])
        for task in json.loads((measured.path / "new.json").read_text())["baseline_task_results"]
    ]
    assert names == [("task-001", "Judged"), ("task-002", "Needs it")]
    outcomes = load_run(measured.path / "new.json").baseline_results
    assert outcomes is not None
    assert [result.successes for result in outcomes] == [3, 0]
    assert all(list(iter_transcript(measured.path / "new.json", "baseline", task_id, 3)) for task_id, _ in names)


def test_the_skill_may_change(measured):
    (measured.path / "skill" / "SKILL.md").write_text("---\nname: greeter\ndescription: Greets.\n---\nShout hello.\n")
    again(measured).assert_outcomes(passed=6)


def test_whole_tasks_may_be_selected(measured):
    result = again(measured, "-k", "Judged", "--caliper-output=new.json")
    result.assert_outcomes(passed=3, deselected=3)
    assert [task["task_name"] for task in json.loads((measured.path / "new.json").read_text())["baseline_task_results"]] == [
        "Judged"
    ]


@pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "n2"])
def test_what_differs_is_told_and_the_baseline_runs(measured, extra):
    spec = measured.path / "demo.eval.yaml"
    spec.write_text(spec.read_text().replace("says yes.", "says yes, and no more."))
    result = again(measured, "--caliper-k=1", "--caliper-timeout=60", *extra)
    result.assert_outcomes(passed=2, xfailed=1, xpassed=1)
    reasons = "1 task changed or new ('Judged'); the time-out was 120 s, now it is 60 s"
    assert told(result).endswith(f"the baseline of {measured.first.name} does not fit, so it runs: {reasons}")


def change_spec(text: str):
    def change(project) -> list[str]:
        spec = project.path / "demo.eval.yaml"
        spec.write_text(spec.read_text() + text)
        return []

    return change


def write(name: str, text: str):
    def change(project) -> list[str]:
        (project.path / name).write_text(text)
        return []

    return change


def edit_run(old: str, new: str):
    def change(project) -> list[str]:
        text = project.first.read_text()
        assert old in text
        project.first.write_text(text.replace(old, new))
        return []

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (change_spec("sandbox: {forbidden_files: [secret]}\n"), "mcp: or sandbox: of the spec changed"),
        (change_spec("  - {name: New, prompt: echo, assert: assert attempt.answer == ''}\n"), "1 task changed or new ('New')"),
        (write("version", "2.0"), "shell-agent was 1.0, now it is 2.0; as the judge, shell-agent was 1.0, now it is 2.0"),
        (lambda project: ["--caliper-judge-votes=3"], "the judge was asked 1 times, now 3"),
        (lambda project: ["--caliper-model=shell-agent:x"], "the engine was shell-agent, now it is shell-agent:x"),
        (lambda project: ["--caliper-judge-model=shell:y"], "the judge was shell-agent, now it is shell-agent:y"),
        (lambda project: ["--caliper-user-customizations"], "your own skills and settings were loaded, which may have changed"),
        (edit_run('"pytest_caliper": "', '"pytest_caliper": "0.0.'), "it was made by pytest-caliper 0.0.*, this is *"),
        (edit_run('"replay": false', '"replay": true'), "it was replayed from cassettes"),
        (edit_run('"judge_prompt_hash": "', '"judge_prompt_hash": "x'), "the judge's instructions changed"),
        (edit_run('"outcome": "task_fail"', '"outcome": "timeout"'), "1 task without a usable attempt there ('Needs it')"),
        (edit_run('"contract": {', '"contract_": {'), "it does not say what it was made under"),
    ],
)
def test_everything_that_a_baseline_depends_on(measured, change, reason):
    result = again(measured, "--caliper-k=1", "--caliper-output=new.json", *change(measured))
    assert json.loads((measured.path / "new.json").read_text())["run"]["baseline"] is True, "it was measured in this run"
    result.stdout.fnmatch_lines([f"note: demo.eval.yaml: the baseline of * does not fit, so it runs: {reason}"])


def test_the_judge_does_not_matter_where_nothing_is_judged(project):
    project.spec(SPEC.partition("  - name: Judged")[0])
    project.runpytest("demo.eval.yaml", "--caliper-baseline", "--caliper-k=1")
    project.runpytest("demo.eval.yaml", "--caliper-baseline-from=latest", "--caliper-judge-votes=3").assert_outcomes(passed=3)


def test_another_model_behind_the_same_name_is_found_out_afterwards(measured):
    (measured.path / "model").write_text("2.0")
    result = again(measured, "--caliper-output=new.json")
    result.assert_outcomes(passed=6)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "caliper: demo.eval.yaml: the baseline of * does not fit: the model was 1.0 there and is 2.0 here; it is left out, run it again "
            "with --caliper-baseline"
        ]
    )
    new = json.loads((measured.path / "new.json").read_text())
    assert new["run"]["baseline"] is False
    assert new["baseline_task_results"] is None


@MODES
def test_without_an_earlier_baseline_it_runs(project, extra):
    project.spec(SPEC)
    project.session("demo.eval.yaml", "--caliper-k=1")
    result = project.session("demo.eval.yaml", "--caliper-baseline-from=latest", "--caliper-k=1", *extra)
    result.assert_outcomes(passed=2, xfailed=1, xpassed=1)
    result.stdout.fnmatch_lines(["note: demo.eval.yaml: there is no earlier run with a baseline, so it runs"])


def test_the_latest_run_is_the_latest_with_a_baseline_that_can_be_read(measured):
    measured.runpytest("demo.eval.yaml", "--caliper-k=1")
    (measured.first.parent / "2999-01-01T00-00-00Z-zzzz.json").write_text("{")
    again(measured).assert_outcomes(passed=6)


def test_a_file_can_be_named(measured):
    copy = measured.path / "base.json"
    copy.write_text(measured.first.read_text())
    measured.first.unlink()
    result = measured.runpytest("demo.eval.yaml", "--caliper-baseline-from=base.json", "--caliper-output=new.json")
    result.assert_outcomes(passed=6)
    assert json.loads((measured.path / "new.json").read_text())["run"]["baseline_from"]["file"] == "base.json"


def test_the_run_it_was_taken_from_may_go_meanwhile(measured):
    spec = measured.path / "demo.eval.yaml"
    conftest = measured.path / "conftest.py"
    conftest.write_text(
        conftest.read_text() + f"\ndef pytest_runtest_logstart():\n    Path({str(measured.first)!r}).unlink(missing_ok=True)\n"
    )
    assert spec.exists()
    result = again(measured, "--caliper-output=new.json")
    result.assert_outcomes(passed=6)
    new = json.loads((measured.path / "new.json").read_text())
    assert len(new["baseline_task_results"][0]["attempts"][0]["transcript"]) == 2


@MODES
def test_what_is_no_run_is_a_usage_error_before_anything_is_paid_for(project, extra):
    project.spec(f"tasks:\n  - {{name: A, prompt: touch {project.path}/paid, assert: assert attempt.answer}}\n")
    for named, words in (("missing.json", "there is no such file"), ("pytest.ini", "is not a run file")):
        result = project.session("demo.eval.yaml", f"--caliper-baseline-from={named}", *extra)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert any("--caliper-baseline-from" in line and words in line for line in [*result.errlines, *result.outlines])
        assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert not (project.path / "paid").exists()


def test_a_file_serves_one_spec_and_no_replay(measured):
    measured.spec(SPEC, name="other")
    name = f"--caliper-baseline-from={measured.first}"
    for arguments, words in (
        (["demo.eval.yaml", "other.eval.yaml", name], "names one run, but several specs were selected: use latest"),
        (["demo.eval.yaml", "--caliper-baseline-from=latest", "--caliper-replay"], "exclude each other"),
    ):
        result = measured.session(*arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*--caliper-baseline-from*{words}*"])


def test_without_a_skill_there_is_nothing_to_leave_out(project):
    project.spec("tasks:\n  - {name: A, prompt: echo a, assert: assert attempt.answer == 'a'}\n", skill=False)
    result = project.runpytest("demo.eval.yaml", "--caliper-baseline-from=latest")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["note: demo.eval.yaml: there is no skill to leave out, so there is no baseline"])


def test_listing_and_running_name_the_same_items(measured):
    listed = measured.session("demo.eval.yaml", "--caliper-baseline-from=latest", "--collect-only", "-q")
    assert [line.rpartition("::")[2] for line in listed.outlines if "::" in line] == [f"attempt-{n}" for n in (1, 1, 2, 2, 3, 3)]


def test_a_resumed_run_keeps_the_baseline_it_took(measured):
    conftest = measured.path / "conftest.py"
    before = conftest.read_text()
    conftest.write_text(
        before + "\ndef pytest_runtest_logreport(report):\n    if report.when == 'call':\n        os.kill(os.getpid(), 2)\n"
    )
    stopped = measured.session("demo.eval.yaml", "--caliper-baseline-from=latest", "--caliper-workers=1")
    assert stopped.ret == pytest.ExitCode.INTERRUPTED
    conftest.write_text(before)
    refused = measured.session("demo.eval.yaml", "--caliper-resume")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*it takes its baseline from *, now it has no baseline*"])
    result = again(measured, "--caliper-resume", "--caliper-output=new.json")
    result.assert_outcomes(passed=6)
    assert result.ret == 0
    new = json.loads((measured.path / "new.json").read_text())
    assert [task["successes"] for task in new["baseline_task_results"]] == [0, 3]
