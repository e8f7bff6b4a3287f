"""The backend of the page on extending is that of examples/custom-backend, it is as short as it says, and it works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import ROOT, blocks

from pytest_caliper.contracts import Backend
from pytest_caliper.runs.reading import load_run

PAGE = ROOT / "docs" / "extending.md"
EXAMPLE = ROOT / "examples" / "custom-backend"


def backend() -> str:
    (text,) = (block.text for block in blocks(PAGE) if block.tag == "python" and "class MyAgent" in block.text)
    return text


def test_page_and_example_are_the_same() -> None:
    assert backend() == (EXAMPLE / "conftest.py").read_text(encoding="utf-8")


def test_it_is_as_short_as_the_page_says() -> None:
    (said,) = re.findall(r"fewer than (\d+) lines", PAGE.read_text(encoding="utf-8"))
    lines = [line for line in backend().splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) < int(said)


def test_the_table_has_every_method() -> None:
    told = re.findall(r"^\| `(\w+)` \| (?:once|per)", PAGE.read_text(encoding="utf-8"), re.M)
    assert set(told) == {name for name in vars(Backend) if not name.startswith("_")} - set(Backend.__annotations__)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns(".*", "__pycache__")))


def run(example: Path, *options: str, path: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CALIPER", "MY_AGENT"))}
    env |= {"PATH": path or f"{example / 'bin'}{os.pathsep}{env['PATH']}", "COLUMNS": "120", "PYTHONUTF8": "1", **variables}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "greeting.eval.yaml", *options]
    return subprocess.run(command, cwd=example, env=env, capture_output=True, encoding="utf-8", check=False)


def test_agent_and_judge_work_and_the_readme_shows_it(example: Path) -> None:
    done = run(example, "--caliper-k=3", "--caliper-baseline", "--caliper-output=run.json", MY_AGENT_KEY="any")
    assert done.returncode == 0, done.stdout
    (shown,) = re.findall(r"```text\n(.*?)```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.S)
    assert all(line.rstrip() in done.stdout for line in shown.splitlines())
    saved = load_run(example / "run.json")
    records = saved.results[0].attempts
    assert [record.outcome for record in records] == ["pass"] * 3
    assert all(record.autorater_reasoning == "It greets." for record in records)
    assert all(record.usage is not None and record.usage.output_tokens == 6 for record in records)


def test_what_it_records_replays_without_it(example: Path) -> None:
    assert run(example, "--caliper-k=1", "--caliper-record", MY_AGENT_KEY="any").returncode == 0
    assert run(example, "--caliper-k=1", "--caliper-replay", path=os.defpath).returncode == 0


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("exit 3", "my-agent ended with status 3 and no answer"),
        ("kill -9 $$", "my-agent ended with status"),
        ("""echo '{"type": "error", "text": "the model is asleep"}'""", "the model is asleep"),
        ("""printf '{"type": "answer", "te'""", "my-agent ended with status 0 and no answer"),
        ("exec sleep 60", "timeout"),
    ],
    ids=["status", "killed", "error", "cut", "time-out"],
)
def test_an_agent_that_breaks_is_no_failure_of_the_skill(example: Path, body: str, told: str) -> None:
    judge = (example / "bin" / "my-agent").rename(example / "bin" / "my-judge")
    agent = f'#!/bin/sh\nprompt=$(cat)\ncase "$prompt" in *"grade one"*) printf %s "$prompt" | "{judge}"; exit;; esac\n{body}\n'
    (example / "bin" / "my-agent").write_text(agent)
    (example / "bin" / "my-agent").chmod(0o755)
    done = run(example, "--caliper-k=1", "--caliper-timeout=2", "-rs", MY_AGENT_KEY="any")
    assert done.returncode == 1, done.stdout
    assert "nothing was measured" in done.stdout
    assert told in done.stdout


def test_it_says_what_is_missing(example: Path) -> None:
    assert "my-agent has no key: set MY_AGENT_KEY" in run(example).stderr
    assert "my-agent is not installed" in run(example, path=os.defpath, MY_AGENT_KEY="any").stderr
