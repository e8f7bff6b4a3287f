"""Coverage and regression: what makes a session fail besides its tests, and what only says so."""

from __future__ import annotations

import pytest

MODES = pytest.mark.parametrize("extra", [[], ["-n2"]], ids=["pool", "n2"])
LOSSY = "'test $ATTEMPT = 1 && echo yes || echo \"!error rate limited\"'"


def task(name: str, prompt: str) -> str:
    return f"  - name: {name}\n    prompt: {prompt}\n    assert: assert attempt.answer == 'yes'\n"


def four(project) -> None:
    """Four tasks of which as many attempts pass as the file `passes` says, while the spec stays the same."""
    prompt = f"'test $ATTEMPT -le $(cat {project.path}/passes) && echo yes || echo no'"
    project.spec("bar: 1/5\ntasks:\n" + "".join(task(f"T{n}", prompt) for n in range(4)))


def run(project, passes: int, *options: str):
    (project.path / "passes").write_text(str(passes))
    return project.session("demo.eval.yaml", "--caliper-k=5", *options)


# -- coverage ---------------------------------------------------------------------------------------------------------------------


@MODES
def test_coverage_below_a_half_fails_without_a_bar(project, extra):
    project.spec("tasks:\n" + task("Lossy", LOSSY) + task("Fine", "echo yes"))
    result = project.session("demo.eval.yaml", *extra)
    result.assert_outcomes(passed=4, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    sentence = "Lossy: coverage 1/3 is below 50% (--caliper-min-coverage): the rate is between 33.3% and 100.0%"
    result.stdout.fnmatch_lines([f"caliper: demo.eval.yaml: {sentence}"])
    assert sum("is below 50%" in line for line in result.outlines) == 1


@pytest.mark.parametrize(("least", "status"), [("0", 0), ("1/3", 0), ("34%", 1), ("1", 1)])
def test_the_least_coverage_is_compared_exactly(project, least, status):
    project.spec("tasks:\n" + task("Lossy", LOSSY))
    assert project.session("demo.eval.yaml", f"--caliper-min-coverage={least}").ret == status


def test_half_is_enough_for_the_default(project):
    project.spec("tasks:\n" + task("Lossy", LOSSY))
    assert project.session("demo.eval.yaml", "--caliper-k=2").ret == 0


def test_a_baseline_that_lost_attempts_is_not_gated(project):
    prompt = "'test $ARM = skill -o $ATTEMPT = 1 && echo yes || echo \"!error rate limited\"'"
    project.spec("tasks:\n" + task("A", prompt))
    result = project.session("demo.eval.yaml", "--caliper-baseline")
    assert result.ret == 0


def test_nothing_usable_is_told_once(project):
    project.spec("tasks:\n" + task("A", "echo '!error rate limited'"))
    result = project.session("demo.eval.yaml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len([line for line in result.outlines if line.startswith("caliper: demo.eval.yaml:")]) == 1


# -- regression -------------------------------------------------------------------------------------------------------------------


@MODES
def test_worse_fails_though_every_bar_is_met(project, extra):
    four(project)
    assert run(project, 5, "--caliper-no-regression=latest").ret == 0
    (first,) = (path.name for path in (project.path / "results" / "demo").glob("*.json"))
    result = run(project, 2, "--caliper-no-regression=latest", *extra)
    assert "failed" not in result.parseoutcomes()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"caliper: demo.eval.yaml: worse than {first}: Δ -60.0 pts [[]*[]]: worse (p *), over 4 tasks*"])


def test_no_evidence_passes_and_says_how_to_learn_more(project):
    four(project)
    run(project, 5)
    result = run(project, 4, "--caliper-no-regression=latest")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "note: demo.eval.yaml: not worse than *, as far as can be told: Δ -20.0 pts *: no evidence of a difference (p = *), over 4 "
            "tasks; about * more attempt* per task in both runs would tell*"
        ]
    )


def test_better_passes(project):
    four(project)
    run(project, 2)
    result = run(project, 5, "--caliper-no-regression=latest")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["note: demo.eval.yaml: not worse than *: Δ +60.0 pts *: better (p *"])


def test_the_first_run_has_nothing_to_be_worse_than(project):
    four(project)
    result = run(project, 1, "--caliper-no-regression=latest")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["note: demo.eval.yaml: there is no earlier run, so nothing can be worse than it"])


def test_a_run_can_be_named(project):
    four(project)
    run(project, 5, "--caliper-output=good.json")
    run(project, 2)
    assert run(project, 2, "--caliper-no-regression=latest").ret == 0
    result = run(project, 2, "--caliper-no-regression=good.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["caliper: demo.eval.yaml: worse than good.json: *"])


def test_a_changed_task_is_not_comparable_and_passes(project):
    four(project)
    run(project, 5)
    spec = project.path / "demo.eval.yaml"
    spec.write_text(spec.read_text().replace("echo no", "echo nope"))
    result = run(project, 2, "--caliper-no-regression=latest")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["note: demo.eval.yaml: nothing can be compared with *; not the same: T0 changed; *"])


def test_a_damaged_latest_run_is_named_and_passed_over(project):
    four(project)
    run(project, 5)
    bad = project.path / "results" / "demo" / "2999-01-01T00-00-00Z-zzzz.json"
    bad.write_text("{")
    result = run(project, 2, "--caliper-no-regression=latest")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["note: --caliper-no-regression passed over a file: *2999*", "caliper: demo.eval.yaml: worse than 20*"]
    )


def test_partial_runs_are_no_latest_run(project):
    four(project)
    run(project, 5)
    run(project, 1, "-k", "attempt-5")
    result = run(project, 2, "--caliper-no-regression=latest")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("missing.json", "*--caliper-no-regression missing.json: there is no such file; name a run file, or latest*"),
        ("", "*--caliper-no-regression : there is no such file*"),
        ("pytest.ini", "*--caliper-no-regression: *pytest.ini*is not a run file*"),
    ],
)
@MODES
def test_what_is_no_run_is_a_usage_error_before_anything_is_paid_for(project, named, words, extra):
    project.spec("tasks:\n" + task("A", f"'touch {project.path}/paid'"))
    result = project.session("demo.eval.yaml", f"--caliper-no-regression={named}", *extra)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any(words.strip("*").split("*")[0] in line for line in [*result.errlines, *result.outlines])
    assert not (project.path / "paid").exists()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_a_named_run_goes_with_one_spec(project):
    four(project)
    run(project, 5, "--caliper-output=good.json")
    project.spec("tasks:\n" + task("A", "echo yes"), name="other")
    result = project.session("demo.eval.yaml", "other.eval.yaml", "--caliper-no-regression=good.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--caliper-no-regression names one run, but several specs were selected: use latest*"])


def test_statuses_of_pytest_keep_their_meaning(project):
    """Gates turn 0 into 1, and nothing else into anything."""
    project.spec("tasks:\n" + task("Lossy", LOSSY))
    project.makepyfile(test_unit="def test_unit():\n    raise KeyboardInterrupt\n")
    result = project.session("--caliper")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert project.session("demo.eval.yaml", "-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
