"""Attempts in plain Python: the fixture `caliper` and its mark, on the shell agent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

WORD = """
    import pytest

    @pytest.mark.caliper(k=3, baseline=True)
    def test_word(caliper):
        run = caliper.run("[ $ARM = skill ] && echo hello > out.txt; echo done; echo '!tokens 7'", skill="./skill")
        assert run.ok
        assert run.answer.startswith("done")
        assert (run.workdir / "out.txt").exists(), "out.txt was not written"
        assert run.files == ["out.txt"]
        assert caliper.judge(run, "It says done.")
"""


@pytest.fixture
def run(project):
    """`run(source, *arguments)` writes test_it.py and runs pytest on it."""

    def run_it(source: str, *arguments: str, asked: bool = True, apart: bool = False) -> pytest.RunResult:
        (project.path / "test_it.py").write_text(textwrap.dedent(source))
        if apart:
            return project.runpytest_subprocess("test_it.py", "--caliper", *arguments)
        return project.runpytest_inprocess("test_it.py", *(["--caliper"] if asked else []), *arguments)

    return run_it


def saved(project, name: str = "test_it.py") -> dict:
    (path,) = (project.path / "results" / name).glob("*.json")
    return json.loads(path.read_text())


def outcomes(data: dict, arm: str = "task_results") -> dict[str, list[str]]:
    return {task["task_name"]: [attempt["outcome"] for attempt in task["attempts"]] for task in data[arm]}


def test_attempts_in_both_arms_are_judged_by_the_test_and_saved(project, run):
    result = run(WORD, "-v")
    result.assert_outcomes(passed=3, xfailed=3)
    result.stdout.fnmatch_lines(["*test_word[[]attempt-1[]] PASSED*", "*test_word[[]baseline-1[]] XFAIL*"])
    result.stdout.fnmatch_lines(["*skill     ✓✓✓*", "*no skill  ✗✗✗*"])
    data = saved(project)
    assert outcomes(data) == {"test_word": ["pass"] * 3}
    assert outcomes(data, "baseline_task_results") == {"test_word": ["task_fail"] * 3}
    attempt = data["task_results"][0]["attempts"][0]
    assert attempt["usage"]["input_tokens"] == 7
    assert attempt["autorater_passed"] is True
    assert [skill["name"] for skill in data["skill_snapshots"]] == ["greeter"]
    assert data["run"]["k"] == 3
    assert data["run"]["spec"] == "test_it.py"


def test_xdist_measures_the_same(project, run):
    run(WORD).assert_outcomes(passed=3, xfailed=3)
    alone = saved(project)
    for path in (project.path / "results").rglob("*.json"):
        path.unlink()
    result = run(WORD, "-n2")
    result.assert_outcomes(passed=3, xfailed=3)
    spread = saved(project)
    assert outcomes(spread) == outcomes(alone)
    assert outcomes(spread, "baseline_task_results") == outcomes(alone, "baseline_task_results")
    assert spread["skill_snapshots"] == alone["skill_snapshots"]
    assert spread["run"]["contract"] == alone["run"]["contract"]


def test_nothing_runs_without_an_opt_in_and_what_did_not_is_counted(project, run):
    result = run(WORD + "\n    def test_plain():\n        pass\n", asked=False)
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["caliper: 1 test not run, since attempts call agents*run them with --caliper"])
    assert not (project.path / "results").exists()


def test_nothing_runs_without_an_opt_in_under_xdist_either(run):
    result = run(WORD + "\n    def test_plain():\n        pass\n", "-n1", asked=False)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["caliper: 1 test not run*"])


def test_naming_a_test_is_no_opt_in(project):
    (project.path / "test_it.py").write_text(textwrap.dedent(WORD))
    result = project.runpytest_inprocess("test_it.py::test_word")
    result.assert_outcomes(deselected=1)


def test_specs_and_tests_that_did_not_run_are_told_in_one_line(project):
    (project.path / "test_it.py").write_text(textwrap.dedent(WORD))
    project.spec("tasks:\n  - name: a\n    prompt: echo\n    assert: assert True\n")
    result = project.runpytest_inprocess()
    result.stdout.fnmatch_lines(["caliper: 1 spec and 1 test not run*with --caliper"])


PARAMETERS = """
    import pytest

    @pytest.mark.parametrize("word", ["a", "attempt-1", "x-y", "[b]", "ü"])
    @pytest.mark.parametrize("other", [1, 2])
    @pytest.mark.caliper(k=2)
    def test_word(caliper, word, other):
        assert caliper.run(f"echo '{word}'").answer.strip() == word

    @pytest.fixture(params=["p", "q"])
    def letter(request):
        return request.param

    class TestIn:
        class TestDeep:
            @pytest.mark.caliper(k=1)
            def test_letter(self, caliper, letter):
                assert caliper.run(f"echo {letter}").answer.strip() == letter
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "n2"])
def test_each_set_of_parameters_is_a_task(project, run, workers):
    result = run(PARAMETERS, *workers)
    result.assert_outcomes(passed=22)
    data = saved(project)
    expected = {
        f"test_word[{other}-{word}]": ["pass"] * 2 for word in ["a", "attempt-1", "x-y", "[b]", r"\xfc"] for other in (1, 2)
    }
    expected |= {f"TestIn::TestDeep::test_letter[{letter}]": ["pass"] for letter in "pq"}
    assert outcomes(data) == expected
    ids = [task["task_id"] for task in data["task_results"]]
    assert len(set(ids)) == len(ids)


def test_one_set_of_parameters_can_be_named(project, run):
    (project.path / "test_it.py").write_text(textwrap.dedent(PARAMETERS))
    result = project.runpytest_inprocess("--caliper", "test_it.py::TestIn::TestDeep::test_letter[p-attempt-1]")
    result.assert_outcomes(passed=1)


def test_names_that_lose_something_as_file_names_keep_their_ids_apart():
    from pytest_caliper.testing.planning import task_id

    names = [
        "test_a",
        "TestX::test_a",
        "test_a[b]",
        "test_a[b-c]",
        "test_a[b/c]",
        "test_a[b\\c]",
        "test_a[ü]",
        "test_a[" + "n" * 300 + "]",
    ]
    names += ["test_a[" + "n" * 301 + "]", "test_ä", "test_a[]", "test_a[[b]]", "test_a[b c]", "test_a[..]", "test_a[\udc80]"]
    ids = [task_id(name) for name in names]
    assert len(set(ids)) == len(names)
    for one in ids:
        assert len(one) <= 80
        assert one.isascii()
        assert not set(one) & set("/\\ :[]\0")
        assert one not in {".", ".."}


BARRED = """
    import pytest

    @pytest.mark.caliper(k=4, bar={bar!r})
    def test_often(caliper):
        run = caliper.run("[ $ATTEMPT = 2 ] || echo yes")
        assert run.answer.strip() == "yes"
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "n2"])
@pytest.mark.parametrize(("bar", "status"), [(0.75, 0), ("3/4", 0), ("80%", 1), (1, 1)])
def test_a_bar_decides_over_the_attempts(run, bar, status, workers):
    result = run(BARRED.format(bar=bar), *workers, "-v")
    assert result.ret == status
    result.assert_outcomes(passed=3 + (status == 0), failed=status, xfailed=1)
    result.stdout.fnmatch_lines([f"*test_it.py::test_often::bar*{'FAILED' if status else 'PASSED'}*"])


def test_a_bar_is_announced_right_after_the_last_attempt(run):
    result = run(
        BARRED.format(bar=0.5) + "\n    @pytest.mark.caliper(k=5)\n    def test_later(caliper):\n        caliper.run('echo')\n",
        "-v",
    )
    shown = [line for line in result.stdout.lines if "::" in line]
    bar = next(n for n, line in enumerate(shown) if "::bar" in line)
    assert bar > max(n for n, line in enumerate(shown) if "test_often[" in line)
    assert bar < max(n for n, line in enumerate(shown) if "test_later[" in line)


def test_the_command_line_goes_before_the_mark_and_the_mark_before_the_ini(project, run):
    source = """
        import pytest
        pytestmark = pytest.mark.caliper(k=2)

        def test_module(caliper):
            caliper.run("echo")

        @pytest.mark.caliper(k=1)
        def test_own(caliper):
            caliper.run("echo")
    """
    with open(project.path / "pytest.ini", "a") as file:
        file.write("\ncaliper_k = 5\n")
    run(source).assert_outcomes(passed=3)
    run(source, "--caliper-k=4").assert_outcomes(passed=8)


def test_the_option_adds_a_baseline_where_a_test_names_a_skill(run):
    source = """
        import pytest

        def test_bare(caliper):
            caliper.run("echo")

        def test_in_the_call(caliper):
            caliper.run("echo", skill="skill/SKILL.md")

        @pytest.mark.caliper(skill="skill")
        def test_in_the_mark(caliper):
            caliper.run("echo")

        @pytest.mark.caliper(skill="skill", baseline=False)
        def test_without(caliper):
            caliper.run("echo")
    """
    run(source, "--caliper-baseline", "--caliper-k=1").assert_outcomes(passed=4, xpassed=2)


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "n1"])
def test_a_skill_that_is_only_known_when_the_test_runs_is_in_the_run_file(project, run, workers):
    run(
        """
        import pathlib, pytest

        @pytest.mark.caliper(k=1, baseline=True)
        @pytest.mark.parametrize("where", ["skill"])
        def test_it(caliper, where):
            run = caliper.run("ls $HOME/skills 2>/dev/null; true", skill=pathlib.Path(where))
            assert run.answer.strip() == "greeter"
        """,
        *workers,
    ).assert_outcomes(passed=1, xfailed=1)
    assert [skill["name"] for skill in saved(project)["skill_snapshots"]] == ["greeter"]


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("k=0", "k must be a whole number from 1"),
        ("k=True", "k must be a whole number"),
        ("k='3'", "k must be a whole number"),
        ("bar=0", "bar must be above 0"),
        ("bar=1.1", "bar must be above 0"),
        ("bar=True", "bar must be above 0"),
        ("bar=[1]", "bar must be above 0"),
        ("baseline=1", "baseline must be True or False"),
        ("baselin=True", "does not know baselin: did you mean baseline?"),
        ("zzz=True", "it knows k, bar, baseline, skill"),
        ("5", "takes names only, such as k=5"),
        ("skill=7", "skill must be the path"),
        ("skill=''", "skill must be the path"),
    ],
)
def test_a_mistake_in_the_mark_is_told_with_its_place_before_anything_runs(run, mark, told):
    result = run(f"import pytest\n\n@pytest.mark.caliper({mark})\ndef test_it(caliper):\n    caliper.run('echo')\n")
    assert result.ret == 2
    result.stdout.fnmatch_lines([f"*test_it.py:3: *{told}*"])


@pytest.mark.parametrize("how", ["mark", "call"])
def test_a_skill_that_is_not_there_is_told_before_anything_runs(run, how):
    mark, call = ('skill="nowhere"', "") if how == "mark" else ("k=1", ', skill="nowhere"')
    result = run(f"import pytest\n\n@pytest.mark.caliper({mark})\ndef test_it(caliper):\n    caliper.run('echo'{call})\n")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*test_it.py:3: skill *nowhere does not exist*"])


ENDS = {
    "assertion": ("assert run.answer == 'no', 'it said otherwise'", "task_fail", "failed", "it said otherwise"),
    "fail": ("pytest.fail('not good')", "task_fail", "failed", "not good"),
    "raises": ("with pytest.raises(ValueError): pass", "task_fail", "failed", "DID NOT RAISE"),
    "judge": ("assert caliper.judge(run, 'SAY-NO')", "task_fail", "failed", "the judge says no: it did not do it"),
    "unwanted": ("assert not caliper.judge(run, 'SAY-NO')", "pass", "passed", ""),
    "twice": ("assert caliper.judge(run, 'a') and caliper.judge(run, 'b')", "pass", "passed", ""),
    "rambles": ("caliper.judge(run, 'SAY-GARBAGE')", "judge_error", "skipped", "gave no verdict"),
    "error": ("{}['key']", "judge_error", "failed", "KeyError"),
    "skip": ("pytest.skip('not today')", "judge_error", "skipped", "not today"),
    "again": ("caliper.run('echo')", "judge_error", "failed", "one attempt is one run of the agent"),
    "blank": ("caliper.judge(run, ' ')", "judge_error", "failed", "not blank"),
}


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "n1"])
@pytest.mark.parametrize("name", ENDS)
def test_how_the_test_ends_is_what_the_attempt_comes_to(project, run, name, workers):
    body, outcome, report, told = ENDS[name]
    result = run(
        f"import pytest\n\n@pytest.mark.caliper(k=1)\ndef test_it(caliper):\n    run = caliper.run('echo yes')\n    {body}\n",
        *workers,
        "-rA",
    )
    result.assert_outcomes(**{report: 1})
    assert outcomes(saved(project)) == {"test_it": [outcome]}
    if told:
        assert told in result.stdout.str()


BEFORE = {
    "never": ("pass", "never called caliper.run()", "failed"),
    "error": ("{}['key']", "failed before caliper.run(): KeyError('key')", "failed"),
    "blank": ("caliper.run('  ')", "must be a text that is not blank", "failed"),
    "no text": ("caliper.run(None)", "must be a text that is not blank", "failed"),
    "skill": ("caliper.run('echo', skill=3)", "skill must be the path", "failed"),
    "skip": ("pytest.skip('no')", "skipped before caliper.run(): no", "skipped"),
    "judge": ("caliper.judge(None, 'x')", "needs what caliper.run gave", "failed"),
}


@pytest.mark.parametrize("name", BEFORE)
def test_a_test_that_never_called_the_agent_measured_nothing(project, run, name):
    body, reason, report = BEFORE[name]
    result = run(f"import pytest\n\n@pytest.mark.caliper(k=1)\ndef test_it(caliper):\n    {body}\n")
    result.assert_outcomes(**{report: 1})
    assert result.ret == 1
    (attempt,) = saved(project)["task_results"][0]["attempts"]
    assert attempt["outcome"] == "infra_error"
    assert reason in attempt["reason"]


def test_a_failing_test_shows_its_own_lines_and_what_the_agent_said(run):
    result = run(
        "def test_it(caliper):\n    run = caliper.run('echo the answer')\n    assert run.answer == 'x'\n", "--caliper-k=1"
    )
    result.stdout.fnmatch_lines(
        [">*assert run.answer == 'x'", "E*AssertionError: assert 'the answer*", "*The agent's answer:*", "*the answer*"]
    )


def test_reading_the_test_is_a_cheat_whether_the_test_looks_or_not(project, run):
    place = project.path / "test_it.py"
    source = f"""
        def test_looks(caliper):
            run = caliper.run("echo '!read {place}'")
            assert run.ok

        def test_does_not(caliper):
            run = caliper.run("echo '!read {place}'")
            assert not caliper.judge(run, "anything")
    """
    result = run(source, "--caliper-k=1")
    result.assert_outcomes(failed=2)
    assert outcomes(saved(project)) == {"test_looks": ["cheat"], "test_does_not": ["cheat"]}


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "n1"])
def test_an_attempt_that_measured_nothing_is_unusable(project, run, workers):
    source = """
        import pytest

        @pytest.mark.caliper(k=1, baseline=True, skill="skill")
        def test_error(caliper):
            caliper.run("echo '!error the line is down'")
            raise AssertionError("never reached")

        def test_setup(caliper):
            caliper.run("echo", setup="exit 3")
    """
    result = run(source, "--caliper-k=1", "-rs", *workers)
    result.assert_outcomes(skipped=3)
    assert result.ret == 1
    assert "infra_error: the line is down" in result.stdout.str()
    assert outcomes(saved(project)) == {"test_error": ["infra_error"], "test_setup": ["infra_error"]}


def test_setup_and_cleanup_are_shell_and_the_test_may_fill_the_directory(project, run):
    run(
        """
        def test_it(caliper):
            (caliper.workdir / "given.txt").write_text("given")
            run = caliper.run("cat given.txt made.txt", setup="echo made > made.txt", cleanup=f"echo gone > {str(caliper.home)}/x")
            assert run.answer.split() == ["givenmade"]
            assert caliper.arm == "skill"
            assert caliper.attempt in (1, 2, 3)
        """
    ).assert_outcomes(passed=3)


def test_fixtures_of_the_user_are_set_up_for_each_attempt(run):
    run(
        """
        import pytest
        made = []

        @pytest.fixture
        def place(tmp_path):
            made.append(tmp_path)
            return tmp_path

        @pytest.fixture(scope="module")
        def shared():
            made.append("shared")
            return 1

        def test_it(caliper, place, shared):
            assert caliper.run(f"echo {place}").answer.strip() == str(place)

        def test_after():
            assert True

        @pytest.fixture(scope="module", autouse=True)
        def check():
            yield
            assert made.count("shared") == 1 and len(set(made)) == 4
        """
    ).assert_outcomes(passed=4)


def test_a_fixture_named_caliper_of_somebody_else_is_left_alone(run):
    run(
        """
        import pytest

        @pytest.fixture
        def caliper():
            return 7

        def test_it(caliper):
            assert caliper == 7
        """,
        asked=False,
    ).assert_outcomes(passed=1)


def test_asking_for_the_fixture_at_run_time_is_refused_with_the_remedy(run):
    result = run("def test_it(request):\n    request.getfixturevalue('caliper')\n")
    result.assert_outcomes(failed=1)
    assert "as a parameter" in result.stdout.str()


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan", "--fixtures-per-test", "--collect-only"])
def test_options_that_run_nothing_run_nothing(project, run, option):
    result = run("def test_it(caliper):\n    caliper.run('touch /nowhere/x')\n", option)
    assert result.ret == 0
    assert not (project.path / "results").exists()


def test_the_fixture_is_documented(project):
    result = project.runpytest_inprocess("--fixtures")
    result.stdout.fnmatch_lines(["caliper -- *", "*One attempt in plain Python*"])
    project.runpytest_inprocess("--markers").stdout.fnmatch_lines(["@pytest.mark.caliper(k, bar, baseline, skill): *"])


def test_a_run_that_was_interrupted_goes_on(project, run):
    source = """
        import pytest

        @pytest.mark.caliper(k=3, bar=0.5)
        def test_it(caliper):
            run = caliper.run("echo hi")
            if caliper.attempt == 2 and not __import__("os").path.exists("go-on"):
                raise KeyboardInterrupt
            assert run.answer
    """
    result = run(source, apart=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (project.path / "go-on").touch()
    result = run(source, "--caliper-resume", "-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_it[[]attempt-1[]] PASSED*", "*::bar*PASSED*"])
    assert outcomes(saved(project)) == {"test_it": ["pass"] * 3}


def test_a_changed_test_is_not_gone_on_with(project, run):
    source = (
        "import os\n\ndef test_it(caliper):\n    caliper.run('echo hi')\n    if caliper.attempt == 2: raise KeyboardInterrupt\n"
    )
    run(source, apart=True)
    result = run(source.replace("echo hi", "echo ho"), "--caliper-resume")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*cannot be resumed: the task 'test_it' changed"])


def test_recorded_attempts_replay_without_an_agent(project, run):
    run(WORD, "--caliper-record").assert_outcomes(passed=3, xfailed=3)
    assert len(list((project.path / "test_it.py.cassettes").glob("*.json"))) == 6
    source = WORD.replace("It says done.", "It says done.")
    result = run(source, "--caliper-replay")
    result.assert_outcomes(passed=3, xfailed=3)


def test_a_changed_prompt_is_not_replayed(project, run):
    run(WORD, "--caliper-record")
    result = run(WORD.replace("echo done", "echo over"), "--caliper-replay")
    result.assert_outcomes(skipped=6)
    assert "prompt" in result.stdout.str()


def test_a_second_question_is_not_recorded(run):
    source = (
        "def test_it(caliper):\n    run = caliper.run('echo')\n    assert caliper.judge(run, 'a') and caliper.judge(run, 'b')\n"
    )
    result = run(source, "--caliper-record", "--caliper-k=1")
    result.assert_outcomes(failed=1)
    assert "join the criteria" in result.stdout.str()


def test_only_failed_attempts_run_again_with_lf(run, project):
    ini = project.path / "pytest.ini"
    ini.write_text(ini.read_text().replace("-p no:cacheprovider", ""))
    source = "def test_it(caliper):\n    assert caliper.run('echo $ATTEMPT').answer.strip() != '2'\n"
    run(source).assert_outcomes(passed=2, failed=1)
    result = run(source, "--lf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 of 3 attempts of this task selected*"])


def test_exitfirst_stops_and_what_did_not_run_is_told(run):
    result = run("def test_it(caliper):\n    assert caliper.run('echo').answer == 'x'\n", "-x")
    result.assert_outcomes(failed=1)
    assert "2 of 3 attempts never reported" in result.stdout.str()


def test_a_lost_login_stops_the_session(run):
    result = run("def test_it(caliper):\n    caliper.run(\"echo '!fatal log in again'\")\n")
    assert "no attempt can work: log in again" in result.stdout.str()


def test_tokens_that_are_spent_let_no_more_attempts_begin(project, run):
    result = run("def test_it(caliper):\n    caliper.run(\"echo '!tokens 100'\")\n", "--caliper-max-tokens=150", "--caliper-k=5")
    result.assert_outcomes(passed=1, skipped=4)
    assert "tokens are used" in result.stdout.str()


def test_a_shard_keeps_the_attempts_of_a_test_together(project, run):
    seen: dict[str, set[int]] = {}
    for number in (1, 2):
        result = run(PARAMETERS, f"--caliper-shard={number}/2", "-v")
        for line in result.stdout.lines:
            if "::test_" in line and "[" in line:
                name = line.split(" ")[0].replace("attempt-2", "attempt-1")
                seen.setdefault(name, set()).add(number)
    assert all(len(numbers) == 1 for numbers in seen.values())
    assert {number for numbers in seen.values() for number in numbers} == {1, 2}


def test_harness_and_judge_can_be_replaced(project, run):
    with open(project.path / "conftest.py", "a") as file:
        file.write(
            textwrap.dedent("""
            import pytest
            from pytest_caliper.contracts import HarnessResult, Verdict

            @pytest.fixture
            def caliper_harness():
                return lambda plan, workspace: HarnessResult(answer=plan.task.prompt.upper(), finished=True)

            @pytest.fixture
            def caliper_judge():
                return lambda plan, result, workspace: Verdict(autorater_passed=plan.task.expect in result.answer, autorater_reasoning="seen")
            """)
        )
    run(
        "def test_it(caliper):\n    run = caliper.run('hello')\n    assert run.answer == 'HELLO'\n    assert caliper.judge(run, 'HELL')\n"
    ).assert_outcomes(passed=3)


def test_a_check_of_the_checks_leaves_tests_out(run):
    result = run("def test_it(caliper):\n    caliper.run('echo')\n\ndef test_plain():\n    pass\n", "--caliper-check")
    result.assert_outcomes(passed=1, deselected=3)


def test_specs_and_tests_run_side_by_side(project, run):
    project.spec("tasks:\n  - name: a\n    prompt: echo hi\n    assert: assert attempt.answer\n")
    (project.path / "test_it.py").write_text("def test_it(caliper):\n    caliper.run('echo')\n")
    result = project.runpytest_inprocess("--caliper", "-n2")
    result.assert_outcomes(passed=6)
    assert {path.parent.name for path in (project.path / "results").rglob("*.json")} == {"demo", "test_it.py"}


def test_a_stopped_session_leaves_no_agent_behind(project):
    (project.path / "test_it.py").write_text(
        "def test_it(caliper):\n    caliper.run('echo $$ > $CALIPER_TEST_PIDS; exec sleep 600')\n".replace(
            "$CALIPER_TEST_PIDS", str(project.path / "pid")
        )
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--caliper", "test_it.py"], cwd=project.path, stdout=subprocess.PIPE, text=True
    )
    pid = project.path / "pid"
    wait_for(lambda: pid.is_file() and pid.read_text().strip() != "")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2, out
    wait_for(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists() or sys.platform == "darwin")


def wait_for(true) -> None:
    import time

    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def test_the_types_hold(project):
    pytest.importorskip("mypy")
    (project.path / "typed.py").write_text(
        textwrap.dedent("""
        from pytest_caliper.testing import AgentRun, Caliper, Judgement

        def test_it(caliper: Caliper) -> None:
            run: AgentRun = caliper.run("echo", skill=["a", "b"])
            judgement: Judgement = caliper.judge(run, "x")
            ok: bool = run.ok
            answer: str = run.answer
            files: list[str] = run.files
            reasons: str = judgement.reasoning
            assert ok and answer and files and reasons
        """)
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "typed.py"], cwd=project.path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
