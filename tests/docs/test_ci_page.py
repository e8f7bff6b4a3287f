"""The pipelines of docs/ci.md and of examples/github and examples/gitlab: valid, and their commands do what they should."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from doc_pages import ROOT, blocks
from doc_project import Project

from pytest_caliper.options import OPTIONS
from pytest_caliper.runs.reading import load_run

PAGE = ROOT / "docs" / "ci.md"
GITHUB = sorted((ROOT / "examples" / "github").glob("*.yml"))
GITLAB = sorted((ROOT / "examples" / "gitlab").glob(".*.yml"))
_KEYWORDS = {"stages", "variables", "default", "workflow", "include"}
SPEC = """\
skill: ../SKILL.md
tasks:
{tasks}"""
TASK = "  - {{name: 'Answers {0}', prompt: 'Say {0}.', assert: 'assert attempt.answer'}}\n"


def jobs_of(pipeline: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The jobs of a workflow or of a GitLab pipeline, what they extend filled in."""
    if "jobs" in pipeline:
        return dict(pipeline["jobs"])
    found = {name: job for name, job in pipeline.items() if name not in _KEYWORDS}
    return {name: {**found.get(job.get("extends", ""), {}), **job} for name, job in found.items() if name[0] != "."}


def commands(job: dict[str, Any]) -> list[str]:
    lines = [*job.get("before_script", []), *job["script"]] if "script" in job else [s["run"] for s in job["steps"] if "run" in s]
    return list(map(str, lines))


def every_pipeline() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in (*GITHUB, *GITLAB):
        yield path.relative_to(ROOT).as_posix(), yaml.safe_load(path.read_text(encoding="utf-8"))
    for block in blocks(PAGE):
        if block.tag == "yaml" and block.file is not None:
            yield str(block), yaml.safe_load(block.text)


pipelines = pytest.mark.parametrize(("where", "pipeline"), list(every_pipeline()), ids=[name for name, _ in every_pipeline()])


@pipelines
def test_options_exist_and_keys_come_from_secrets(where: str, pipeline: dict[str, Any]) -> None:
    known = {f"--caliper-{option.name}" for option in OPTIONS}
    text = yaml.safe_dump(pipeline)
    assert set(re.findall(r"--caliper-[a-z-]+", text)) <= known
    assert "pull_request_target" not in (pipeline.get(True) or {})  # `on`, which YAML reads as a boolean
    for key in re.findall(r"ANTHROPIC_API_KEY: (.*)", text):
        assert key == "${{ secrets.ANTHROPIC_API_KEY }}"


@pipelines
def test_jobs_need_jobs_that_exist(where: str, pipeline: dict[str, Any]) -> None:
    jobs = jobs_of(pipeline)
    assert jobs
    assert not {job["needs"] for job in jobs.values() if "needs" in job} - set(jobs)
    stages = pipeline.get("stages", ["evaluate"])
    assert {job["stage"] for job in jobs.values() if "stage" in job} <= set(stages)
    assert all(job.get("runs-on") or job.get("image") for job in jobs.values())


def test_the_action_gets_inputs_that_it_has() -> None:
    inputs = set(yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"])
    steps = [step for _, pipeline in every_pipeline() for job in jobs_of(pipeline).values() for step in job.get("steps", [])]
    steps += [
        step for block in blocks(PAGE) if block.tag == "yaml" for step in yaml.safe_load(block.text) if isinstance(step, dict)
    ]
    ours = [step for step in steps if step.get("uses", "").startswith("your-org/pytest-caliper")]
    assert len(ours) == 2
    assert all(set(step["with"]) <= inputs for step in ours)


class Machine:
    """A checkout on a machine of some CI: installing does nothing, the agent is the documentation's."""

    def __init__(self, place: Path) -> None:
        self.project = Project(place, PAGE)
        root = self.root = self.project.root
        (root / "evals").mkdir()
        (root / "my.eval.yaml").unlink()
        for name, count in (("my", 3), ("other", 2)):
            tasks = "".join(TASK.format(f"{name} {number}") for number in range(count))
            (root / "evals" / f"{name}.eval.yaml").write_text(SPEC.format(tasks=tasks))
        for name in ("pip", "npm"):
            tool = place / "bin" / name
            tool.write_text("#!/bin/sh\nexit 0\n")
            tool.chmod(0o755)

    def run(self, job: dict[str, Any], shard: int = 0) -> None:
        """Runs the commands of a job, as shard `shard` of its machines."""
        environment = {**self.project._environment(), "CI": "true", "CI_NODE_INDEX": str(shard), "CI_NODE_TOTAL": "4"}
        environment["AGENT"] = "an agent"
        for command in commands(job):
            line = command.replace("${{ matrix.shard }}", str(shard))
            assert "${{" not in line
            done = subprocess.run(
                ["bash", "-ec", line], cwd=self.root, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def machines_of(job: dict[str, Any]) -> int:
    return job.get("parallel") or len(job.get("strategy", {}).get("matrix", {}).get("shard", [])) or 1


@pytest.mark.parametrize("path", [path for path in (*GITHUB, *GITLAB) if "merge" in path.read_text()], ids=lambda path: path.name)
def test_shards_become_one_run_of_all_tasks(path: Path, tmp_path: Path) -> None:
    jobs = jobs_of(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert machines_of(jobs["shard"]) == 4
    for shard in range(1, 5):
        machine = Machine(tmp_path / str(shard))
        machine.run(jobs["shard"], shard)
        collected = tmp_path / "collected" / "shards"
        collected.mkdir(parents=True, exist_ok=True)
        for file in (machine.root / "shards").glob("*") if (machine.root / "shards").exists() else ():
            os.replace(file, collected / file.name)
    last = Machine(tmp_path / "last")
    place = last.root / "downloaded" if "downloaded" in str(jobs["merge"]) else last.root
    place.mkdir(exist_ok=True)
    os.replace(collected, place / "shards")
    last.run(jobs["merge"])
    runs = [load_run(file) for file in (last.root / "merged").glob("*.json")]
    assert {run.meta.spec: len(run.results) for run in runs} == {"evals/my.eval.yaml": 3, "evals/other.eval.yaml": 2}
    assert len(list((last.root / "merged").glob("*.html"))) == 2


def test_the_job_of_a_merge_request_runs(tmp_path: Path) -> None:
    (path,) = GITLAB
    machine = Machine(tmp_path)
    machine.run(jobs_of(yaml.safe_load(path.read_text(encoding="utf-8")))["skill"])
    assert (machine.root / "caliper.xml").exists()
    assert list((machine.root / ".caliper" / "results").rglob("*.json"))


def test_without_an_earlier_run_gates_on_it_say_so_and_pass(tmp_path: Path) -> None:
    assert "Without an earlier run both options say so and go on" in " ".join(PAGE.read_text(encoding="utf-8").split())
    machine = Machine(tmp_path)
    line = "pytest evals/my.eval.yaml --caliper-k=1 --caliper-no-regression=latest --caliper-baseline-from=latest"
    for _ in range(2):
        machine.run({"script": [line]})
    runs = sorted((machine.root / ".caliper" / "results").rglob("*.json"))
    assert [load_run(run).meta.baseline is not None for run in runs] == [True, True]
