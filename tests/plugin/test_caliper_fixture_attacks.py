"""Faults that an adversary found in attempts in plain Python."""

from __future__ import annotations

import json
import textwrap


def outcomes(project, source: str) -> dict[str, list[str]]:
    (project.path / "test_it.py").write_text(textwrap.dedent(source))
    project.runpytest_inprocess("test_it.py", "--caliper", "--caliper-k=1")
    (path,) = (project.path / "results" / "test_it.py").rglob("*.json")
    return {task["task_name"]: [a["outcome"] for a in task["attempts"]] for task in json.loads(path.read_text())["task_results"]}


def test_a_system_exit_after_the_run_is_recorded(project):
    source = """
        def test_exits(caliper):
            caliper.run("echo hi")
            raise SystemExit(3)
    """
    assert outcomes(project, source) == {"test_exits": ["judge_error"]}


def test_a_judge_without_a_verdict_is_no_pass_though_the_test_catches_its_error(project):
    source = """
        def test_catches(caliper):
            run = caliper.run("echo hi")
            try:
                caliper.judge(run, "SAY-GARBAGE")
            except BaseException:
                pass
    """
    assert outcomes(project, source) == {"test_catches": ["judge_error"]}


def test_a_skipped_test_leaves_no_unfinished_run(project):
    source = """
        import pytest

        @pytest.mark.skip
        def test_skipped(caliper):
            caliper.run("echo hi")

        def test_runs(caliper):
            assert caliper.run("echo hi").ok
    """
    assert outcomes(project, source)["test_runs"] == ["pass"]
    assert not list((project.path / "results" / "test_it.py" / "partial").glob("*.json"))
