"""What VS Code's test panel shows of specs, and what its buttons do.

The plugin is the installed extension's own where there is one (or where CALIPER_VSCODE_PYTHON_FILES names its `python_files`), and a
stand-in that follows the same rules everywhere.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psutil
import pytest
from vscode_side import STANDIN, VARIABLE, VsCode, installed, leaves, outline
from workspace import BOUND_S, NASTY, PYTHON, Workspace, nasty_spec

SPEC = """\
tasks:
  - name: Greets people
    prompt: echo hello; touch {ran}
    assert: |
      assert "hello" in attempt.answer

  - name: Counts
    prompt: echo one; touch {ran}
    assert: assert "two" in attempt.answer

  - name: Cannot be reached
    prompt: "echo '!error the service is down'"
    assert: assert True
"""


@pytest.fixture(params=["stand-in", "installed"])
def vscode(request: pytest.FixtureRequest, workspace: Workspace) -> VsCode:
    python_files = STANDIN if request.param == "stand-in" else installed()
    if python_files is None:
        pytest.skip(f"the Python extension of VS Code is not installed here; {VARIABLE} can name its python_files")
    return VsCode(workspace, python_files)


@pytest.fixture
def demo(workspace: Workspace) -> Path:
    return workspace.spec(SPEC.format(ran=workspace.path.parent / "ran"), "sub/demo.eval.yaml")


def ids_of(told) -> list[str]:
    return [leaf["runID"] for leaf in leaves(told.tree)]


def test_the_tree_is_folder_spec_task_attempt(vscode: VsCode, demo: Path) -> None:
    vscode.args = ["--caliper-k=2"]
    tasks = [(name, ["attempt-1", "attempt-2"]) for name in ("Greets people", "Counts", "Cannot be reached")]
    told = vscode.discover()
    assert told.payloads[0]["status"] == "success", told.errors
    assert outline(told.tree) == ("project", [("sub", [("demo.eval.yaml", tasks)])])
    (folder,) = told.tree["children"]
    (spec,) = folder["children"]
    assert [spec["type_"], *{task["type_"] for task in spec["children"]}] == ["file", "class"]


def test_a_click_leads_to_the_line_of_the_task(vscode: VsCode, demo: Path) -> None:
    lines = demo.read_text().splitlines()
    shown = {leaf["id_"].split("::")[1]: (leaf["path"], int(leaf["lineno"])) for leaf in leaves(vscode.discover().tree)}
    for task, (path, line) in shown.items():
        assert path == str(demo)
        assert lines[line - 1] == f"  - name: {task}"
    assert len(shown) == 3


def test_discovery_runs_nothing_whatever_opts_in(vscode: VsCode, demo: Path) -> None:
    vscode.args = ["--caliper", "--caliper-baseline"]
    assert len(ids_of(vscode.discover())) >= 3
    assert not (vscode.workspace.path.parent / "ran").exists()
    assert not (vscode.workspace.path / "results").exists()


def test_run_all_tells_every_outcome(vscode: VsCode, demo: Path) -> None:
    vscode.workspace.ini("caliper_k = 2")
    ids = ids_of(vscode.discover())
    told = vscode.run(ids)
    assert told.results == {
        f"{demo}::{task}::attempt-{n}": outcome
        for task, outcome in (("Greets people", "success"), ("Counts", "failure"), ("Cannot be reached", "skipped"))
        for n in (1, 2)
    }
    assert set(told.results) == set(ids)
    assert told.exit_code == 0  # the script's own, whatever pytest's was


def test_a_failure_begins_with_a_link_to_the_spec(vscode: VsCode, demo: Path) -> None:
    failing = f"{demo}::Counts::attempt-1"
    told = vscode.run([failing])
    assert told.results == {failing: "failure"}
    assert "sub/demo.eval.yaml:7" in told.tracebacks[failing].splitlines()[0]


def test_run_one_runs_one(vscode: VsCode, demo: Path) -> None:
    vscode.workspace.ini("caliper_k = 3")
    one = ids_of(vscode.discover())[1]
    assert one == f"{demo}::Greets people::attempt-2"
    assert vscode.run([one]).results == {one: "success"}


def test_run_a_task_runs_its_attempts(vscode: VsCode, demo: Path) -> None:
    vscode.workspace.ini("caliper_k = 2")
    (folder,) = vscode.discover().tree["children"]
    task = folder["children"][0]["children"][0]
    ids = [leaf["runID"] for leaf in leaves(task)]
    assert vscode.run(ids).results == dict.fromkeys([f"{demo}::Greets people::attempt-{n}" for n in (1, 2)], "success")


def test_a_failing_baseline_is_no_failure(vscode: VsCode, workspace: Workspace) -> None:
    skill = workspace.path / "skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: s\ndescription: S.\n---\nSay hello.\n")
    spec = workspace.spec(
        "skill: ./skill\ntasks:\n  - {name: T, prompt: 'echo $ARM', assert: assert 'skill' in attempt.answer}\n"
    )
    vscode.args = ["--caliper-baseline", "--caliper-k=1"]
    ids = ids_of(vscode.discover())
    assert ids == [f"{spec}::T::attempt-1", f"{spec}::T::baseline-1"]
    assert vscode.run(ids).results == {ids[0]: "success", ids[1]: "skipped"}


def test_the_verdict_over_a_task_is_a_node_of_it(vscode: VsCode, workspace: Workspace) -> None:
    spec = workspace.spec("bar: 0.5\ntasks:\n  - {name: T, prompt: echo a, assert: 'assert False'}\n")
    vscode.args = ["--caliper-k=2"]
    told = vscode.discover()
    assert outline(told.tree)[1] == [("demo.eval.yaml", [("T", ["attempt-1", "attempt-2", "bar"])])]
    results = vscode.run(ids_of(told)).results
    assert results[f"{spec}::T::bar"] == "failure"
    assert set(results) == set(ids_of(told))


def test_specs_alone_opt_in_and_beside_unit_tests_they_do_not(vscode: VsCode, demo: Path) -> None:
    unit = vscode.workspace.path / "test_unit.py"
    unit.write_text("def test_unit():\n    pass\n")
    ids = ids_of(vscode.discover())
    specs = [name for name in ids if ".eval.yaml::" in name]
    assert len(specs) == len(ids) - 1
    told = vscode.run(ids)
    assert told.results == {f"{unit}::test_unit": "success"}
    assert not (vscode.workspace.path.parent / "ran").exists()
    assert "--caliper" in told.output
    assert set(vscode.run(specs).results) == set(specs)


@pytest.mark.parametrize("way", ["ini", "args"])
def test_who_opts_in_runs_both(vscode: VsCode, demo: Path, way: str) -> None:
    (vscode.workspace.path / "test_unit.py").write_text("def test_unit():\n    pass\n")
    if way == "ini":
        vscode.workspace.ini("caliper = true")
    else:
        vscode.args = ["--caliper"]
    ids = ids_of(vscode.discover())
    assert set(vscode.run(ids).results) == set(ids)


def test_a_broken_spec_is_an_error_with_its_line_and_hides_no_other(vscode: VsCode, demo: Path) -> None:
    vscode.workspace.spec("tasks:\n  - name: T\n    promt: hi\n    assert: assert True\n", "broken.eval.yaml")
    told = vscode.discover()
    trees = [payload["tests"] for payload in told.payloads if payload.get("tests")]
    assert {payload["status"] for payload in told.payloads} == {"error"}
    assert "broken.eval.yaml:3: " in told.errors
    assert "promt" in told.errors
    assert str(demo) in {leaf["path"] for tree in trees for leaf in leaves(tree)}


def test_run_all_under_xdist(vscode: VsCode, demo: Path) -> None:
    vscode.args = ["-n2", "--caliper-k=2"]
    ids = ids_of(vscode.discover())
    results = vscode.run(ids).results
    assert {name: results.get(name) for name in ids} == {
        f"{demo}::{task}::attempt-{n}": outcome
        for task, outcome in (("Greets people", "success"), ("Counts", "failure"), ("Cannot be reached", "skipped"))
        for n in (1, 2)
    }


def test_specs_of_hidden_directories_are_there_when_testpaths_names_them(vscode: VsCode, demo: Path) -> None:
    hidden = vscode.workspace.spec(nasty_spec(("T",)), ".claude/skills/x/x.eval.yaml")
    assert not [name for name in ids_of(vscode.discover()) if name.startswith(str(hidden))]
    vscode.workspace.ini("testpaths = sub .claude/skills", "caliper_k = 1")
    ids = ids_of(vscode.discover())
    assert len(ids) == 4
    assert vscode.run(ids[-1:]).results == {f"{hidden}::T::attempt-1": "success"}


def test_a_workspace_opened_by_a_link(vscode: VsCode, demo: Path) -> None:
    link = vscode.workspace.path.with_name("link")
    link.symlink_to(vscode.workspace.path)
    vscode.workspace.path = link
    ids = ids_of(vscode.discover())
    assert ids[0] == f"{link}/sub/demo.eval.yaml::Greets people::attempt-1"
    assert set(vscode.run(ids).results) == set(ids)


def test_every_name_is_found_and_runs(vscode: VsCode, workspace: Workspace) -> None:
    spec = workspace.spec(nasty_spec())
    vscode.args = ["--caliper-k=1"]
    told = vscode.discover()
    assert told.payloads[0]["status"] == "success", told.errors
    ids = ids_of(told)
    assert len(set(ids)) == len(NASTY)
    assert [int(leaf["lineno"]) for leaf in leaves(told.tree)] == list(range(2, len(NASTY) + 2))
    expected = {name: "success" if n % 2 == 0 else "failure" for n, name in enumerate(ids)}
    assert vscode.run(ids).results == expected
    for hostile in ids[:: len(ids) // 2 + 1]:
        assert vscode.run([hostile]).results == {hostile: expected[hostile]}
    assert {name.split("::")[0] for name in ids} == {str(spec)}


def test_attempts_in_python_are_below_their_function(vscode: VsCode, workspace: Workspace) -> None:
    file = workspace.path / "test_words.py"
    file.write_text(PYTHON)
    told = vscode.discover()
    names = {f"{word}-attempt-{n}": "success" if word == "a b" else "failure" for n in (1, 2) for word in ("a b", "x/y")}
    assert dict(one for one in outline(told.tree)[1][0][1] if len(one) == 2) == {"test_says": [f"[{name}]" for name in names]}
    ids = ids_of(told)
    unit = {f"{file}::test_unit": "success"}
    assert vscode.run(ids).results == unit  # nobody opted in
    vscode.args = ["--caliper"]
    expected = {f"{file}::test_says[{name}]": outcome for name, outcome in names.items()}
    assert vscode.run(ids).results == expected | unit
    one = f"{file}::test_says[x/y-attempt-2]"
    assert vscode.run([one]).results == {one: "failure"}


def test_the_stop_button_leaves_no_process(vscode: VsCode, workspace: Workspace) -> None:
    here = workspace.path.parent
    workspace.spec(f"tasks:\n  - {{name: T, prompt: 'echo $$ > {here}/agent; sleep 600', assert: assert 0}}\n")
    session = vscode.start_run(ids_of(vscode.discover())[:1])
    until = time.monotonic() + BOUND_S
    while not ((here / "agent").exists() and (here / "agent").read_text().strip()):
        assert time.monotonic() < until, "the agent never began"
        time.sleep(0.05)
    pid = int((here / "agent").read_text())
    below = psutil.Process(session.process.pid).children(recursive=True)
    assert pid in {process.pid for process in below}
    session.process.send_signal(signal.SIGTERM)
    session.end()
    _gone, alive = psutil.wait_procs(below, timeout=BOUND_S)
    assert not alive
