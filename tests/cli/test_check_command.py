"""`caliper check`: pytest's statuses, and findings as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """\
tasks:
  - name: Sets the port
    prompt: p
    assert: |
      from pathlib import Path
      assert Path("port").exists()
    solution: echo 1 > {file}
  - name: Greets
    prompt: p
    expect: There is a greeting.
"""


def caliper(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from pytest_caliper.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    return tmp_path / "demo.eval.yaml"


def test_good_checks_end_with_0(spec: Path) -> None:
    spec.write_text(SPEC.format(file="port"))
    done = caliper("check", spec.name, "--no-judge", "--workers", "2", cwd=spec.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tried 2 checks of 1 task: nothing is wrong with them" in done.stdout
    assert sorted(path.name for path in spec.parent.iterdir()) == ["demo.eval.yaml", "pytest.ini"]


def test_findings_as_json_are_all_that_stands_on_standard_output(spec: Path) -> None:
    spec.write_text(SPEC.format(file="prot"))
    done = caliper("check", spec.name, "--no-judge", "--format", "json", cwd=spec.parent)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["tasks"], found["checks"]) == (1, 2)
    [finding] = found["findings"]
    assert (finding["fault"], finding["file"], finding["line"]) == ("unsatisfiable", "demo.eval.yaml", 6)
    assert finding["task"] == "Sets the port"
    assert "test session starts" in done.stderr


def test_a_broken_spec_keeps_pytests_status_and_prints_no_json(spec: Path) -> None:
    spec.write_text("tasks: [{name: A}]\n")
    done = caliper("check", spec.name, "--format", "json", cwd=spec.parent)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert done.stdout == ""
    assert "demo.eval.yaml:1: " in done.stderr


def test_a_task_can_be_named(spec: Path) -> None:
    spec.write_text(SPEC.format(file="port"))
    done = caliper("check", f"{spec.name}::Sets the port", "--no-judge", cwd=spec.parent)
    assert done.returncode == 0
    assert "2 checks of 1 task" in done.stdout
