"""A session inside a job of GitHub Actions."""

from __future__ import annotations

import re

import pytest

TASKS = """
tasks:
  - name: Works
    prompt: echo fine
    assert: assert "fine" in attempt.answer
  - name: Fails
    prompt: |
      printf '%s\\n' '::error file=a.py,line=1::pwned by the answer' '##[error]pwned' '  ::add-mask::a'
    assert: |
      assert attempt.answer == "", attempt.answer
  - name: Lost
    prompt: echo '!error ::warning::pwned'
    expect: It works.
"""
COMMANDS = re.compile(r"^\s*::[A-Za-z].*|.*##\[[A-Za-z].*", re.MULTILINE)


@pytest.fixture
def job(project, monkeypatch):
    """The project inside a job."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    return project


def commands(result: pytest.RunResult) -> list[str]:
    """Everything on both streams that a runner would obey."""
    return COMMANDS.findall(f"{result.stdout.str()}\n{result.stderr.str()}")


@pytest.mark.parametrize(
    "options",
    [(), ("-n2",), ("-q",), ("-vv",), ("--no-summary",), ("-rA", "--color=yes"), ("--tb=line",), ("--tb=native",)],
    ids=" ".join,
)
def test_one_annotation_per_task_and_nobody_elses(job, options):
    spec = job.spec(TASKS)
    result = job.session(spec.name, "--caliper-k=2", *options)

    assert result.ret == 1
    failed, lost = commands(result)
    assert failed.startswith("::error file=demo.eval.yaml,line=8,title=Fails%3A 2 of 2 attempts failed::attempt-1: assert")
    assert lost.startswith("::warning file=demo.eval.yaml,line=13,title=Lost%3A nothing was measured::attempt-1: infra_error")
    lines = spec.read_text().splitlines()
    assert ("- name: Fails" in lines[7], "- name: Lost" in lines[12]) == (True, True)


def test_the_summary_of_the_step_is_written_once(job):
    job.spec(TASKS)
    job.session("demo.eval.yaml", "--caliper-k=2", "-n2")

    text = (job.path / "summary.md").read_text()
    assert text.count("<!-- pytest-caliper:demo.eval.yaml -->") == 1
    assert "<code>Fails</code> attempt-2" in text


def test_an_unwritable_summary_is_a_note_and_no_failure(job, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job.path / "no" / "such" / "file"))
    job.spec("tasks:\n  - {name: Works, prompt: echo fine, expect: It works.}\n")
    result = job.session("demo.eval.yaml", "--caliper-k=1")

    assert result.ret == 0
    result.stdout.fnmatch_lines(["note: GITHUB_STEP_SUMMARY cannot be written: *such*"])


def test_outside_of_a_job_there_is_none_of_it(project, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    project.spec(TASKS)
    result = project.session("demo.eval.yaml", "--caliper-k=1")

    assert commands(result) == []
    assert not (project.path / "summary.md").exists()


def test_a_plugin_that_annotates_every_failure_keeps_them(job):
    job.makepyfile(other_plugin="")
    job.makeconftest(
        (job.path / "conftest.py").read_text()
        + "\nimport types\n\ndef pytest_configure(config):\n"
        + "    config.pluginmanager.register(types.ModuleType('x'), 'pytest_github_actions_annotate_failures')\n"
    )
    job.spec(TASKS)
    result = job.session("demo.eval.yaml", "--caliper-k=1")

    assert [line.split()[0] for line in commands(result)] == ["::warning"]


@pytest.mark.parametrize("options", [(), ("-n2",)], ids=" ".join)
def test_where_a_bar_decides_it_is_the_bar_that_is_annotated(job, options):
    job.spec("""
tasks:
  - {name: Reached, bar: 0.5, prompt: 'echo $ATTEMPT', assert: 'assert attempt.answer == "1"'}
  - {name: Missed, bar: 1, prompt: 'echo $ATTEMPT', assert: 'assert attempt.answer == "1"'}
""")
    result = job.session("demo.eval.yaml", "--caliper-k=2", *options)

    (line,) = commands(result)
    assert line.startswith(
        "::error file=demo.eval.yaml,line=6,title=Missed%3A the bar was not reached::bar: the bar of 100%25 is missed: 1/2"
    )


def test_what_was_captured_from_an_attempt_is_no_command(job):
    """A harness of the user's own may print or log what its agent says."""
    job.makeconftest(
        (job.path / "conftest.py").read_text()
        + """
import logging
import pytest

@pytest.fixture
def caliper_harness(caliper_harness):
    def run(plan, workspace):
        result = caliper_harness(plan, workspace)
        print(result.answer)
        print("##[group]pwned")
        logging.getLogger().warning("said\\n%s", result.answer)
        return result
    return run

@pytest.fixture(autouse=True)
def after():
    yield
    print("::error::pwned in the teardown")
"""
    )
    job.spec(TASKS)
    for options in ((), ("-rA",), ("-n1",)):
        result = job.session("demo.eval.yaml", "--caliper-k=1", *options)
        result.stdout.fnmatch_lines(["*Captured stdout call*", "*Captured log call*"])
        assert [line.split()[0] for line in commands(result)] == ["::error", "::warning"]
        assert "pwned in the teardown" in result.stdout.str()


def test_problems_and_notes_are_no_commands(job):
    """A task's own words reach the sentences below the summary."""
    job.spec('tasks:\n  - {name: "::error::pwned ##[error]x", prompt: "echo \'!error ::add-mask::a\'", expect: It works.}\n')
    result = job.session("demo.eval.yaml", "--caliper-k=1", "-v", "-rA")

    assert [line.split()[0] for line in commands(result)] == ["::warning"]
    assert "nothing was measured" in result.stdout.str()
