"""Asserts in real processes: what a pass, a failure and no verdict look like."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from judging_bench import AssertBench, make_workspace

from pytest_caliper.contracts import HarnessResult
from pytest_caliper.judging.assert_client import MAX_EVIDENCE, AssertOutcome
from pytest_caliper.runs.records import ChangedFile, Turn, Usage


def first(outcome: AssertOutcome) -> str:
    return outcome.evidence.split("\n")[0]


def test_a_passing_assert_has_no_evidence(bench: AssertBench) -> None:
    outcome = bench.run("print('seen')\nassert 1 + 1 == 2")
    assert (outcome.passed, outcome.evidence) == (True, "")
    assert outcome.duration_s > 0


def test_a_failure_shows_the_values_and_the_lines_of_the_yaml(bench: AssertBench) -> None:
    bench.write_spec(
        "# ä spec\n"
        "tasks:\n"
        "  - name: Port\n"
        "    prompt: 'U+2028 \u2028 is no line here'\n"
        "    assert: |\n"
        "\n"
        "      config = {'port': 3000}\n"
        "      # ü\n"
        "      assert config['port'] == 8080\n"
    )
    outcome = bench.run()
    assert outcome.passed is False
    assert outcome.evidence == "case.eval.yaml:9: AssertionError: assert 3000 == 8080\n> assert config['port'] == 8080"


def test_a_one_line_assert_keeps_its_line(bench: AssertBench) -> None:
    bench.write_spec("tasks:\n  - name: One\n    prompt: x\n    assert: assert len('hello') == 4\n")
    outcome = bench.run()
    assert first(outcome) == "case.eval.yaml:4: AssertionError: assert 5 == 4"
    assert "where 5 = len('hello')" in outcome.evidence


def test_crlf_lines_count_the_same(bench: AssertBench) -> None:
    bench.write_spec("tasks:\r\n  - name: One\r\n    prompt: x\r\n    assert: |\r\n      a = 1\r\n      assert a == 2\r\n")
    assert first(bench.run()) == "case.eval.yaml:6: AssertionError: assert 1 == 2"


def test_comparisons_show_a_diff(bench: AssertBench) -> None:
    outcome = bench.run("assert {'a': 1, 'b': '100 %'} == {'a': 2, 'b': '100 %'}")
    assert "Differing items" in outcome.evidence
    assert "{'a': 1} != {'a': 2}" in outcome.evidence


def test_huge_comparisons_are_a_quick_failure(bench: AssertBench) -> None:
    code = "import random\na = [random.random() for _ in range(60_000)]\nassert a == list(reversed(a))"
    outcome = bench.run(code, timeout_s=20)
    assert outcome.passed is False
    assert len(outcome.evidence.encode()) <= MAX_EVIDENCE


def test_the_calls_that_led_to_a_failure_are_shown(bench: AssertBench) -> None:
    outcome = bench.run("def check(n):\n    assert n == 2\n\ncheck(1)")
    assert outcome.evidence.split("\n") == [
        "case.eval.yaml:6: AssertionError: assert 1 == 2",
        "case.eval.yaml:8",
        "> check(1)",
        "case.eval.yaml:6 in check",
        "> assert n == 2",
    ]


def test_a_failure_in_an_imported_module_names_the_line_of_the_spec(bench: AssertBench) -> None:
    bench.write_assert("import port_checks\nport_checks.is_open(1)")
    (bench.spec.parent / "port_checks.py").write_text("def is_open(n):\n    assert n == 2, 'closed'\n")
    outcome = bench.run()
    assert outcome.passed is False
    assert first(outcome) == "case.eval.yaml:6: AssertionError: closed"
    assert "port_checks.py:2 in is_open\n> assert n == 2, 'closed'" in outcome.evidence


def test_pytest_fail_and_raises_are_failures(bench: AssertBench) -> None:
    code = "import pytest\nwith pytest.raises(ValueError):\n    int('7')"
    outcome = bench.run(code)
    assert outcome.passed is False
    assert "DID NOT RAISE" in first(outcome)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("{}['port']", "case.eval.yaml:5: KeyError: 'port'"),
        ("import no_such_module_here", "case.eval.yaml:5: ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("import sys\nsys.exit(0)", "case.eval.yaml:6: SystemExit: 0"),
        ("raise KeyboardInterrupt", "case.eval.yaml:5: KeyboardInterrupt"),
        ("import pytest\npytest.skip('later')", "case.eval.yaml:6: Skipped: later"),
        ("def f():\n    f()\nf()", "case.eval.yaml:6: RecursionError: maximum recursion depth exceeded"),
        ("import os\nos._exit(0)", "case.eval.yaml: the assert's process exited with status 0 before the assert had ended"),
        ("import os\nos._exit(7)", "case.eval.yaml: the assert's process exited with status 7 before the assert had ended"),
        (
            "import os\nos.kill(os.getpid(), 9)",
            "case.eval.yaml: the assert's process was killed by SIGKILL before the assert had ended",
        ),
        (
            "import faulthandler\nfaulthandler._sigsegv()",
            "case.eval.yaml:6: the assert's process was killed by SIGSEGV before the assert had ended",
        ),
    ],
)
def test_what_is_neither_a_pass_nor_a_failure_is_no_verdict(bench: AssertBench, code: str, said: str) -> None:
    outcome = bench.run(code)
    assert outcome.passed is None
    assert first(outcome).startswith(said)


def test_an_exception_that_cannot_be_shown(bench: AssertBench) -> None:
    code = "class Odd(AssertionError):\n    def __str__(self):\n        raise SystemExit(3)\n\nraise Odd"
    outcome = bench.run(code)
    assert outcome.passed is False
    assert first(outcome) == "case.eval.yaml:9: Odd: <its text cannot be shown: SystemExit>"


def test_odd_characters_in_messages_survive(bench: AssertBench) -> None:
    outcome = bench.run(r"raise AssertionError('a\udc80b\u2028c\x1b[31m')")
    assert outcome.passed is False
    assert first(outcome) == "case.eval.yaml:5: AssertionError: a\\udc80b\u2028c\x1b[31m"
    outcome.evidence.encode()


def test_huge_messages_are_cut_and_say_so(bench: AssertBench) -> None:
    outcome = bench.run("raise AssertionError('head' + 'x' * 3_000_000 + 'tail')")
    assert len(outcome.evidence.encode()) <= MAX_EVIDENCE
    assert first(outcome).startswith("case.eval.yaml:5: AssertionError: head")
    assert "bytes cut" in outcome.evidence
    assert "tail" in outcome.evidence


def test_output_follows_the_evidence(bench: AssertBench) -> None:
    code = "import os, sys\nprint('one')\nsys.stderr.write('two\\n')\nos.system('echo three')\nassert False"
    outcome = bench.run(code)
    assert outcome.evidence.endswith("captured output:\none\ntwo\nthree")


def test_endless_output_is_bounded_and_keeps_its_end(bench: AssertBench) -> None:
    outcome = bench.run("for n in range(300_000):\n    print('line', n)\nassert False")
    assert outcome.passed is False
    assert len(outcome.evidence.encode()) <= MAX_EVIDENCE
    assert "captured output:\nline 0\n" in outcome.evidence
    assert outcome.evidence.endswith("line 299999")


def test_closed_and_replaced_streams_do_not_matter(bench: AssertBench) -> None:
    assert bench.run("import sys\nsys.stdout.close()\nsys.stderr = None").passed is True


def test_a_fork_that_falls_through_says_nothing(bench: AssertBench) -> None:
    code = "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n    assert False, 'parent'"
    outcome = bench.run(code)
    assert outcome.passed is False
    assert "parent" in first(outcome)


def test_where_and_with_what_an_assert_runs(bench: AssertBench) -> None:
    code = "\n".join(
        [
            "import os, pathlib, sys, tempfile",
            "work = pathlib.Path.cwd()",
            "root = work.parent",
            "assert os.environ['CALIPER_WORKDIR'] == str(work)",
            "assert pathlib.Path(os.environ['CALIPER_SPEC_DIR'], 'case.eval.yaml').is_file()",
            "assert __file__ == os.path.join(os.environ['CALIPER_SPEC_DIR'], 'case.eval.yaml')",
            "assert __name__ == 'caliper_assert'",
            "assert sys.path[0] == os.environ['CALIPER_SPEC_DIR']",
            "assert pathlib.Path.home() == root / 'home'",
            "assert tempfile.gettempdir() == str(root / 'tmp')",
            "assert os.environ['CALIPER_TAG'].endswith('/a/assert')",
            "assert os.environ['HOST_SECRET'] == 'host'",
            "assert sys.stdin.read() == ''",
            "assert os.getsid(0) == os.getpid()",
            "assert not [m for m in sys.modules if m.startswith('pytest_caliper.') and '.judging' not in m and '.runs' not in m]",
        ]
    )
    outcome = bench.run(code)
    assert outcome.passed is True, outcome.evidence


def test_extra_path_comes_first(bench: AssertBench) -> None:
    bin_dir = bench.dir / "project" / "bin"
    bin_dir.mkdir(parents=True)
    tool = bin_dir / "ls"
    tool.write_text("#!/bin/sh\necho ours\n")
    tool.chmod(0o755)
    bench.write_spec(
        "sandbox:\n  extra_path: [./bin]\ntasks:\n  - name: One\n    prompt: x\n    assert: |\n"
        "      import subprocess\n      assert subprocess.check_output(['ls'], text=True) == 'ours\\n'\n"
    )
    outcome = bench.run()
    assert outcome.passed is True, outcome.evidence


def test_what_the_host_can_import_an_assert_can(own_bench: AssertBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "only_here.py").write_text("VALUE = 3\n")
    monkeypatch.syspath_prepend(library)
    assert str(library) in sys.path
    before = own_bench.run("import only_here\nassert only_here.VALUE == 3")
    assert before.passed is None  # the search path is that of the runner's birth: other tests cannot leak into it
    own_bench.runner = type(own_bench.runner)(own_bench.processes, os.environ)
    try:
        assert own_bench.run("import only_here\nassert only_here.VALUE == 3").passed is True
    finally:
        own_bench.runner.close()


def test_one_assert_leaves_nothing_for_the_next(bench: AssertBench) -> None:
    code = "import json, os, sys\nassert not hasattr(json, 'spoiled')\njson.spoiled = True\nos.environ['SPOILED'] = 'x'"
    assert bench.run(code).passed is True
    assert bench.run(code + "\nsys.path.clear()").passed is True


def test_a_script_runs_top_to_bottom_and_is_not_main(bench: AssertBench) -> None:
    bench.write_spec("tasks:\n  - name: One\n    prompt: x\n    assert: ./checks/verify.py\n")
    script = bench.spec.parent / "checks" / "verify.py"
    script.parent.mkdir()
    (script.parent / "beside.py").write_text("LIMIT = 3\n")
    script.write_text(
        '"""Verifies."""\nfrom __future__ import annotations\nimport beside\n\ndef test_never_called():\n    assert False\n\n'
        "if __name__ == '__main__':\n    raise SystemExit(1)\nassert beside.LIMIT == 4\n"
    )
    outcome = bench.run()
    assert outcome.passed is False
    assert first(outcome) == "checks/verify.py:10: AssertionError: assert 3 == 4"
    assert outcome.evidence.endswith("> assert beside.LIMIT == 4")


def test_attempt_is_available(bench: AssertBench) -> None:
    result = HarnessResult(
        answer="Done: ü",
        finished=True,
        transcript=(
            Turn(role="assistant", content="I will look."),
            Turn(role="tool_use", tool_name="Bash", tool_input={"command": "git status"}),
            Turn(role="tool_result", tool_name="Bash", tool_output="clean"),
            Turn(role="tool_use", tool_name="mcp__echo__echo", tool_input={"text": "hi", "n": [1]}),
        ),
        usage=Usage(input_tokens=3, output_tokens=4),
        skills_used=("greet",),
        changed_files=(ChangedFile(path="out/a.txt", change="added", size=1, text="a"),),
    )
    code = "\n".join(
        [
            "assert attempt.answer == 'Done: ü'",
            "assert [call.name for call in attempt.tool_calls] == ['Bash', 'mcp__echo__echo']",
            "assert attempt.tool_calls[0].output == 'clean'",
            "assert attempt.tool_calls[1].input == {'text': 'hi', 'n': [1]}",
            "assert attempt.tool_calls[1].output is None",
            "assert attempt.commands == ['git status']",
            "assert attempt.files == ['out/a.txt']",
            "assert attempt.skills == ['greet']",
            "assert attempt.usage.input_tokens == 3",
            "assert attempt.usage.cache_read_tokens is None",
            "assert attempt.usage.total_tokens == 7",
            "assert not (attempt.workdir / 'out').exists()",
            "try:",
            "    attempt.answer = 'x'",
            "except AttributeError:",
            "    pass",
            "else:",
            "    assert False, 'it can be changed'",
        ]
    )
    outcome = bench.run(code, result=result)
    assert outcome.passed is True, outcome.evidence


def test_a_vanished_workspace_is_no_verdict(bench: AssertBench) -> None:
    bench.write_assert("assert True")
    plan = bench.plan("gone")
    workspace = make_workspace(plan.root)
    workspace.work.rmdir()
    outcome = bench.runner.run(b"", plan=plan, workspace=workspace, attempt={})
    assert outcome.passed is None
    assert "FileNotFoundError" in first(outcome)


def test_code_that_is_no_code_is_no_verdict(bench: AssertBench) -> None:
    bench.write_assert("assert True")
    plan = bench.plan()
    outcome = bench.runner.run(b"nonsense", plan=plan, workspace=make_workspace(plan.root), attempt={})
    assert outcome.passed is None


def test_evidence_says_the_same_wherever_objects_lie(bench: AssertBench) -> None:
    outcomes = [bench.run(f"kept = [object() for _ in range({n})]\nthing = object()\nassert thing is None") for n in (1, 999)]
    assert all("<object object at 0x…>" in outcome.evidence for outcome in outcomes)
