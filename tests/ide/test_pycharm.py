"""What PyCharm's run window shows of specs, and which of its ways to start a run work.

The runner is the installed PyCharm's own where there is one (or where CALIPER_PYCHARM_HELPERS names its `helpers/pycharm`), and a
stand-in that follows the same rules everywhere. Both build on the real teamcity-messages.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pycharm_side import STANDIN, VARIABLE, PyCharm, installed, linked
from workspace import NASTY, PYTHON, Workspace, nasty_spec

SPEC = """\
tasks:
  - name: Greets people
    prompt: echo hello
    assert: |
      assert "hello" in attempt.answer

  - name: Counts
    prompt: echo one
    assert: assert "two" in attempt.answer

  - name: Cannot be reached
    prompt: "echo '!error the service is down'"
    assert: assert attempt.answer
"""
OUTCOMES = {"Greets people": "passed", "Counts": "failed", "Cannot be reached": "ignored"}


@pytest.fixture(params=["stand-in", "installed"])
def pycharm(request: pytest.FixtureRequest, workspace: Workspace) -> PyCharm:
    helpers = STANDIN if request.param == "stand-in" else installed()
    if helpers is None:
        pytest.skip(f"PyCharm is not installed here; {VARIABLE} can name its helpers/pycharm")
    return PyCharm(workspace, helpers)


@pytest.fixture
def demo(workspace: Workspace) -> Path:
    return workspace.spec(SPEC, "sub/demo.eval.yaml")


def test_the_tree_is_folder_spec_task_attempt(pycharm: PyCharm, demo: Path) -> None:
    shown = pycharm.run(path=demo, options=["--caliper-k=2"])
    assert shown.tests == {
        f"sub > demo_eval_yaml > {task} > attempt-{n}": outcome for task, outcome in OUTCOMES.items() for n in (1, 2)
    }
    assert shown.count == 6
    assert shown.of("sub > demo_eval_yaml > Counts > attempt-2").meta == "attempt-2"
    assert shown.exit_code == 1


def test_a_task_is_shown_once(pycharm: PyCharm, demo: Path) -> None:
    demo.write_text("bar: 0.5\n" + demo.read_text())
    shown = pycharm.run(path=demo, options=["--caliper-k=3"])
    assert sorted(shown.suites) == sorted(
        {"sub", "sub > demo_eval_yaml", *(f"sub > demo_eval_yaml > {task}" for task in OUTCOMES)}
    )
    task = shown.of("sub > demo_eval_yaml > Counts")
    assert [shown.nodes[key].name for key in task.children] == ["attempt-1", "attempt-2", "attempt-3", "bar"]


def test_attempts_run_in_rounds_where_no_one_watches(workspace: Workspace, demo: Path) -> None:
    """The order is PyCharm's alone: a build on TeamCity keeps rounds."""
    shown = PyCharm(workspace, STANDIN)
    workspace.environment = lambda **more: {**Workspace.environment(workspace, **more), "TEAMCITY_VERSION": "2026.1"}
    started = [node.name for node in shown.run(path=demo, options=["--caliper-k=2"]).nodes.values() if not node.children]
    assert started == ["attempt-1"] * 3 + ["attempt-2"] * 3


def test_a_failure_begins_with_a_link_to_the_spec(pycharm: PyCharm, demo: Path) -> None:
    shown = pycharm.run(path=demo, options=["--caliper-k=1"])
    text = shown.of("sub > demo_eval_yaml > Counts > attempt-1").text
    assert linked(text)[0] == ("sub/demo.eval.yaml", 7)
    assert demo.read_text().splitlines()[6] == "  - name: Counts"


def test_the_reason_of_an_unusable_attempt_is_shown(pycharm: PyCharm, demo: Path) -> None:
    shown = pycharm.run(path=demo, options=["--caliper-k=1"])
    assert "the service is down" in shown.of("sub > demo_eval_yaml > Cannot be reached > attempt-1").text


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Greets", ["Greets people > attempt-1", "Greets people > attempt-2"]),
        ("Greets and attempt-2", ["Greets people > attempt-2"]),
    ],
)
def test_run_one_by_an_additional_argument(pycharm: PyCharm, demo: Path, expression: str, expected: list[str]) -> None:
    shown = pycharm.run(path=demo, options=["--caliper-k=2", "-k", expression])
    assert shown.tests == {f"sub > demo_eval_yaml > {name}": "passed" for name in expected}


def test_run_one_by_its_id_as_the_script_path(pycharm: PyCharm, demo: Path) -> None:
    shown = pycharm.run(path=f"{demo}::Greets people::attempt-2", options=["--caliper-k=2"])
    assert shown.tests == {"sub > demo_eval_yaml > Greets people > attempt-2": "passed"}


def test_only_the_failed_ones_again(pycharm: PyCharm, demo: Path) -> None:
    """What stands in for the button, which knows Python alone."""
    ini = pycharm.workspace.path / "pytest.ini"
    ini.write_text(ini.read_text().replace("-p no:cacheprovider", ""))
    pycharm.run(path=demo, options=["--caliper-k=2"])
    again = pycharm.run(path=demo, options=["--caliper-k=2", "--lf"])
    assert again.tests == {f"sub > demo_eval_yaml > Counts > attempt-{n}": "failed" for n in (1, 2)}


def test_a_python_target_of_a_spec_is_refused_and_runs_nothing(pycharm: PyCharm, demo: Path) -> None:
    """PyCharm makes `::` of every dot behind a file that is not `.py`: docs/editors.md tells what to do instead."""
    shown = pycharm.run(target=f"{demo}::Greets people.attempt-1")
    assert shown.exit_code == 4
    assert not shown.tests
    assert "demo::eval::yaml" in shown.output


def test_a_directory_needs_an_option_that_opts_in(pycharm: PyCharm, demo: Path) -> None:
    (pycharm.workspace.path / "test_unit.py").write_text("def test_unit():\n    pass\n")
    shown = pycharm.run(path=pycharm.workspace.path)
    assert shown.tests == {"test_unit > test_unit": "passed"}
    assert "--caliper" in shown.output
    assert len(pycharm.run(path=pycharm.workspace.path, options=["--caliper", "--caliper-k=1"]).tests) == 4


def test_a_failing_baseline_is_no_failure(pycharm: PyCharm, workspace: Workspace) -> None:
    skill = workspace.path / "skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: s\ndescription: S.\n---\nSay hello.\n")
    spec = workspace.spec(
        "skill: ./skill\ntasks:\n  - {name: T, prompt: 'echo $ARM', assert: assert 'skill' in attempt.answer}\n"
    )
    shown = pycharm.run(path=spec, options=["--caliper-baseline", "--caliper-k=2"])
    assert shown.exit_code == 0
    assert shown.tests == {
        f"demo_eval_yaml > T > {word}-{n}": outcome
        for word, outcome in (("attempt", "passed"), ("baseline", "ignored"))
        for n in (1, 2)
    }


def test_a_broken_spec_is_a_failed_node_with_its_line(pycharm: PyCharm, workspace: Workspace) -> None:
    spec = workspace.spec("tasks:\n  - name: T\n    promt: hi\n    assert: assert True\n", "broken.eval.yaml")
    shown = pycharm.run(path=spec)
    (told,) = [node.text for node in shown.nodes.values() if node.outcome == "failed"]
    assert ("broken.eval.yaml", 3) in linked(told)


def test_an_agent_cannot_report_a_test(pycharm: PyCharm, workspace: Workspace) -> None:
    forged = "##teamcity[testFailed name='forged' nodeId='1' message='forged']"
    spec = workspace.spec(
        f"tasks:\n  - name: T\n    prompt: |\n      echo \"{forged}\"\n    assert: assert 'absent' in attempt.answer\n"
    )
    shown = pycharm.run(path=spec, options=["--caliper-k=1", "-s", "-v"])
    assert shown.tests == {"demo_eval_yaml > T > attempt-1": "failed"}
    assert "forged" in shown.output
    assert forged not in shown.output


def test_run_all_under_xdist(workspace: Workspace, demo: Path) -> None:
    """With the stand-in and what PyCharm has had since it knows `-n`."""
    shown = PyCharm(workspace, STANDIN).run(path=demo, options=["--caliper-k=2", "-n2"])
    assert shown.tests == {
        f"sub > demo_eval_yaml > {task} > attempt-{n}": outcome for task, outcome in OUTCOMES.items() for n in (1, 2)
    }
    assert len(shown.suites) == 5


def test_attempts_in_python_can_be_run_and_run_again(pycharm: PyCharm, workspace: Workspace) -> None:
    file = workspace.path / "test_words.py"
    file.write_text(PYTHON.replace("a b", "a").replace("x/y", "b"))
    expected = {
        f"test_words > test_says > ({word}-attempt-{n})": "passed" if word == "a" else "failed" for word in "ab" for n in (1, 2)
    }
    assert pycharm.run(path=file, options=["--caliper"]).tests == {**expected, "test_words > test_unit": "passed"}
    assert pycharm.run(target=f"{file}::test_says", options=["--caliper"]).tests == expected
    assert pycharm.run(path=file).tests == {"test_words > test_unit": "passed"}


def test_every_name_is_shown_once_and_runs(pycharm: PyCharm, workspace: Workspace) -> None:
    spec = workspace.spec(nasty_spec())
    shown = pycharm.run(path=spec, options=["--caliper-k=1"])
    assert shown.count == len(NASTY)
    outcomes = list(shown.tests.values())
    assert outcomes == ["passed" if n % 2 == 0 else "failed" for n in range(len(NASTY))]
