"""The commands of the page on sharding, run as CI would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pytest_caliper.runs.reading import load_run

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"
CONFTEST = f"import sys\nsys.path.insert(0, {str(SUPPORT)!r})\nimport shell_agent\n"
CONFTEST += "def pytest_caliper_backends(config): return [shell_agent.ShellAgent()]\n"
TASK = "  - {{name: T{0}, prompt: echo {0}, assert: assert attempt.answer}}\n"


def pipelines() -> list[dict]:
    text = (ROOT / "docs" / "sharding.md").read_text(encoding="utf-8")
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)]


def scripts(job: dict) -> list[str]:
    """The shell commands of a job but for installing: GitHub's steps or GitLab's script."""
    lines = job["script"] if "script" in job else [step["run"] for step in job["steps"] if "run" in step]
    return [line for line in lines if "install" not in line]


@pytest.fixture
def checkout(tmp_path):
    place = tmp_path / "checkout"
    (place / "evals").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / "conftest.py").write_text(CONFTEST)
    (place / "pytest.ini").write_text("[pytest]\ncaliper_model = shell-agent\ncaliper_k = 1\naddopts = -p no:cacheprovider\n")
    for name in ("one", "two"):
        (place / "evals" / f"{name}.eval.yaml").write_text("tasks:\n" + "".join(map(TASK.format, range(3))))
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, module in (("pytest", "pytest"), ("caliper", "pytest_caliper.cli")):
        (tools / name).write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -c "import {module} as m; raise SystemExit(m.main())" "$@"\n'
        )
        (tools / name).chmod(0o755)
    (tools / "pytest").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pytest "$@"\n')
    return place


@pytest.mark.parametrize("number", [0, 1], ids=["github", "gitlab"])
def test_a_pipeline_of_the_page_makes_a_run_of_all_tasks(checkout, number):
    pipeline = pipelines()[number]
    jobs = pipeline.get("jobs", pipeline)
    (evaluate,) = scripts(jobs["shard"])
    env = {**os.environ, "PATH": f"{checkout.parent / 'bin'}{os.pathsep}{os.environ['PATH']}", "CI_NODE_TOTAL": "4"}
    count = len(jobs["shard"]["strategy"]["matrix"]["shard"]) if "strategy" in jobs["shard"] else jobs["shard"]["parallel"]
    for index in range(1, count + 1):
        command = evaluate.replace("${{ matrix.shard }}", str(index))
        subprocess.run(["/bin/sh", "-ec", command], cwd=checkout, env={**env, "CI_NODE_INDEX": str(index)}, check=True)
    (join,) = scripts(jobs["merge"])
    subprocess.run(["/bin/sh", "-ec", join], cwd=checkout, env=env, check=True)
    runs = [load_run(path) for path in (checkout / "merged").iterdir()]
    assert {run.meta.spec: len(run.results) for run in runs} == {"evals/one.eval.yaml": 3, "evals/two.eval.yaml": 3}
