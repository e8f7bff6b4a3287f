"""Given a spec, when pytest runs it, then these items, outcomes and this run file."""

from __future__ import annotations

import json

import psutil
import pytest
from shell_agent import read_runs

MIXED = """
tasks:
  - name: Works
    prompt: echo hello > out.txt; echo done; echo '!tokens 1200'
    assert: |
      from pathlib import Path
      assert Path("out.txt").read_text().strip() == "hello"
      assert attempt.answer == "done"
      assert attempt.files == ["out.txt"]
  - name: Fails by its assert
    prompt: echo 3000 > port; echo ok
    assert: |
      port = int(open("port").read())
      assert port == 8080
  - name: Judge says no
    prompt: echo ok
    expect: SAY-NO
  - name: Judge rambles
    prompt: echo ok
    expect: SAY-GARBAGE
  - name: Breaks
    prompt: echo '!error rate limited (429)'
    expect: it works
  - name: Cheats
    prompt: echo "!read $SPEC"; echo ok
    expect: it works
"""


def outcomes(run: dict, arm: str = "task_results") -> dict[str, list[str]]:
    return {task["task_name"]: [attempt["outcome"] for attempt in task["attempts"]] for task in run[arm]}


EXPECTED = {
    "Works": ["pass", "pass"],
    "Fails by its assert": ["task_fail", "task_fail"],
    "Judge says no": ["task_fail", "task_fail"],
    "Judge rambles": ["judge_error", "judge_error"],
    "Breaks": ["infra_error", "infra_error"],
    "Cheats": ["cheat", "cheat"],
}


def mixed(project) -> None:
    project.spec(MIXED.replace("$SPEC", str(project.path / "demo.eval.yaml")))


@pytest.mark.parametrize("extra", [["--caliper-workers=1"], ["--caliper-workers=4"], ["-n2"]], ids=["1", "4", "n2"])
def test_outcomes_are_told_in_pytests_words_and_saved(project, extra):
    mixed(project)
    result = project.session("demo.eval.yaml", "--caliper-k=2", *extra)
    result.assert_outcomes(passed=2, failed=6, skipped=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (run,) = read_runs(project.path / "results")
    assert outcomes(run) == EXPECTED
    assert run["run"]["model"] == "shell-1"
    assert run["run"]["judge_model"] == "shell-judge-1"
    assert run["run"]["interrupted"] is False
    works = run["task_results"][0]["attempts"][0]
    assert works["usage"]["input_tokens"] == 1200
    assert works["changed_files"][0]["path"] == "out.txt"
    assert works["transcript"][0]["role"] == "user"
    assert not list((project.path / "results").rglob("*.jsonl")), "journal and side files are gone once the run is saved"


def comparable(run: dict) -> dict:
    """A run file without ids, times and worker settings."""
    for name in ("id", "timestamp", "workers"):
        run["run"].pop(name)
    for task in run["task_results"] + (run["baseline_task_results"] or []):
        for attempt in task["attempts"]:
            for name in ("started", "wall_seconds", "duration_seconds", "durations"):
                attempt.pop(name, None)
    return json.loads(json.dumps(run))


def test_the_run_file_is_the_same_however_many_run_at_once(project):
    mixed(project)
    for n, extra in enumerate((["--caliper-workers=1"], ["--caliper-workers=4"], ["-n2"])):
        project.session("demo.eval.yaml", "--caliper-k=2", "--caliper-baseline", f"--caliper-results=r{n}", *extra)
    one, four, xdist = (comparable(read_runs(project.path / f"r{n}")[0]) for n in range(3))
    assert one == four
    assert one == xdist


def test_a_failure_shows_values_on_the_specs_own_line(project):
    mixed(project)
    result = project.session("demo.eval.yaml::Fails by its assert::attempt-1")
    result.stdout.fnmatch_lines(
        ["demo.eval.yaml:12: assert 3000 == 8080", "*demo.eval.yaml:16: AssertionError: assert 3000 == 8080"]
    )
    result.stdout.fnmatch_lines(["FAILED demo.eval.yaml::Fails by its assert::attempt-1 - assert 3000 == 8080"])
    assert "Traceback" not in result.stdout.str()


def test_the_skill_is_installed_in_its_arm_only(project):
    project.spec(
        """
        tasks:
          - name: Sees the skill
            prompt: cat "$HOME/skills/greeter/SKILL.md" | grep -q hello && echo yes || echo no
            assert: assert attempt.answer == "yes"
        """
    )
    result = project.session("demo.eval.yaml", "--caliper-k=3", "--caliper-baseline")
    result.assert_outcomes(passed=3, xfailed=3)
    (run,) = read_runs(project.path / "results")
    assert outcomes(run) == {"Sees the skill": ["pass"] * 3}
    assert outcomes(run, "baseline_task_results") == {"Sees the skill": ["task_fail"] * 3}
    assert run["run"]["baseline"] is True
    assert run["skill_snapshot"]["files"]["SKILL.md"]["content"].startswith("---\nname: greeter")
    result.stdout.fnmatch_lines(["*+100.0*"])


def test_a_baseline_success_is_xpassed_and_never_strict(project):
    project.makefile(".ini", pytest="[pytest]\ncaliper_model = shell-agent\nxfail_strict = true\n")
    project.spec("tasks:\n  - {name: Easy, prompt: echo yes, assert: assert attempt.answer == 'yes'}\n")
    result = project.session("demo.eval.yaml", "--caliper-k=1", "--caliper-baseline")
    result.assert_outcomes(passed=1, xpassed=1)
    assert result.ret == 0


def test_setup_and_cleanup_surround_the_attempt(project):
    project.spec(
        f"""
        tasks:
          - name: With hooks
            setup: echo input > in.txt; echo $CALIPER_SPEC_DIR > where
            prompt: cat in.txt
            cleanup: cp in.txt {project.path}/cleaned; exit 3
            assert: |
              assert attempt.answer == "input"
              assert open("where").read().strip() == {str(project.path)!r}
        """
    )
    result = project.session("demo.eval.yaml", "--caliper-k=1")
    result.assert_outcomes(passed=1)
    assert (project.path / "cleaned").read_text() == "input\n"
    (run,) = read_runs(project.path / "results")
    assert "3" in run["task_results"][0]["attempts"][0]["cleanup_error"]


def test_a_failing_setup_is_infra_error_and_costs_no_agent(project):
    project.spec("tasks:\n  - {name: Broken, setup: 'echo no disk >&2; exit 9', prompt: touch ran, expect: x}\n")
    result = project.session("demo.eval.yaml", "--caliper-k=1")
    result.assert_outcomes(skipped=1)
    assert result.ret == 1
    (run,) = read_runs(project.path / "results")
    attempt = run["task_results"][0]["attempts"][0]
    assert attempt["outcome"] == "infra_error"
    assert "no disk" in attempt["reason"]
    assert attempt["durations"]["agent"] is None


def test_what_setup_started_lives_as_long_as_the_attempt(project):
    project.spec(
        """
        tasks:
          - name: Server
            setup: |
              (while :; do [ -e ping ] && touch pong; sleep 0.05; done) >/dev/null 2>&1 &
              echo $! > pid
            prompt: "touch ping; for i in $(seq 200); do [ -e pong ] && break; sleep 0.05; done; cat pid"
            assert: |
              import os
              assert os.path.exists("pong")
              os.kill(int(attempt.answer), 0)
        """
    )
    result = project.session("demo.eval.yaml", "--caliper-k=1")
    result.assert_outcomes(passed=1)
    (run,) = read_runs(project.path / "results")
    pid = int(run["task_results"][0]["attempts"][0]["output"])
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_time_out_is_unusable_and_leaves_nothing(project):
    project.spec("tasks:\n  - {name: Hangs, prompt: 'echo $$ > pid; echo half; sleep 100', expect: x}\n")
    result = project.session("demo.eval.yaml", "--caliper-k=1", "--caliper-timeout=0.5")
    result.assert_outcomes(skipped=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*Hangs: no attempt was usable*"])
    (run,) = read_runs(project.path / "results")
    assert run["task_results"][0]["attempts"][0]["outcome"] == "timeout"


def test_secrets_and_private_paths_never_reach_the_run_file(project, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "hunter2-hunter2-hunter2")
    project.spec('tasks:\n  - {name: Leaks, prompt: "echo hunter2-hunter2-hunter2; pwd; echo $HOME", expect: SAY-NO}\n')
    result = project.session("demo.eval.yaml", "--caliper-k=1", "-v")
    text = next((project.path / "results").rglob("*.json")).read_text()
    assert "hunter2" not in text + result.stdout.str()
    assert "[redacted:MY_API_KEY]" in text
    assert "$WORK" in text
    assert "$HOME" in text
    assert "/caliper-" not in text


def test_hostile_answers_are_shown_inert(project):
    project.spec(
        "tasks:\n  - {name: Hostile, prompt: \"printf '\\\\033[31mred\\\\342\\\\200\\\\256 [bold]x'\", expect: SAY-NO}\n"
    )
    result = project.session("demo.eval.yaml", "--caliper-k=1", "--color=no")
    assert "\x1b" not in result.stdout.str()
    assert "\u202e" not in result.stdout.str()
    assert "[bold]x" in result.stdout.str()


def test_output_saves_a_copy_and_needs_one_spec(project):
    project.spec("tasks:\n  - {name: A, prompt: echo a, expect: x}\n")
    project.spec("tasks:\n  - {name: B, prompt: echo b, expect: x}\n", name="other")
    result = project.session("demo.eval.yaml", "--caliper-k=1", "--caliper-output=deep/copy.json")
    assert result.ret == 0
    assert json.loads((project.path / "deep" / "copy.json").read_text())["run"]["k"] == 1
    result = project.session("demo.eval.yaml", "other.eval.yaml", "--caliper-output=copy.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --caliper-output names one file*"])


def test_an_assert_only_run_has_no_judge_model(project):
    project.spec("tasks:\n  - {name: A, prompt: echo a, assert: assert attempt.answer == 'a'}\n")
    project.session("demo.eval.yaml", "--caliper-k=1")
    (run,) = read_runs(project.path / "results")
    assert run["run"]["judge_model"] is None
    assert run["run"]["judge_backend"] is None


@pytest.mark.parametrize(
    "text", ['"import json\\nx = 1\\nassert x == 2\\n"', "'import json\n\n      x = 1\n\n      assert x == 2'"]
)
def test_an_assert_whose_lines_do_not_stand_in_the_file_is_told_at_its_beginning(project, text):
    spec = project.spec(
        f"tasks:\n  - name: A\n    prompt: echo hi\n    assert: {text}\n  - {{name: B, prompt: echo other, expect: x}}\n",
        skill=False,
    )
    line = next(n for n, shown in enumerate(spec.read_text().split("\n"), 1) if "assert:" in shown)
    result = project.runpytest("demo.eval.yaml::A", "--caliper-k=1")
    result.stdout.fnmatch_lines([f"*demo.eval.yaml:{line}: AssertionError: assert 1 == 2*"])
    assert "> prompt: echo other" not in result.stdout.str()
