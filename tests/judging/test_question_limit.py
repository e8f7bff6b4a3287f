"""A judge whose CLI takes short prompts only gets shorter questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging_bench import make_plan

from pytest_caliper.backends.claude_code import ClaudeCode
from pytest_caliper.backends.hermes import Hermes
from pytest_caliper.contracts import Backend, HarnessResult, JudgeRequest, RawOutput, Workspace
from pytest_caliper.judging.autorater import rate
from pytest_caliper.judging.prompt import PROMPT_LIMIT
from pytest_caliper.runs.records import ChangedFile, Turn
from pytest_caliper.spec.model import Task


class Listening:
    """An invoker that keeps the questions and answers nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sizes: list[int] = []

    def judge(self, backend: Backend, plan: object, workspace: Workspace, request: JudgeRequest) -> RawOutput:
        self.sizes.append(len(f"{request.system}\n\n{request.prompt}".encode()))
        out = self.root / "judge.out"
        out.write_text("")
        return RawOutput(argv=("x",), stdout=out, stderr="", exit_code=0, cause="exit", duration_s=0.0)


@pytest.mark.parametrize(
    ("backend", "least", "most"), [(Hermes(), 60_000, 122_880), (ClaudeCode(), 123_000, PROMPT_LIMIT + 8_000)]
)
def test_a_question_is_as_long_as_its_judge_takes(backend: Backend, least: int, most: int, tmp_path: Path) -> None:
    long = "é\u2028x" * 100_000
    turns = tuple(Turn(role="tool_result", tool_name="t", tool_output=long) for _ in range(9))
    files = tuple(ChangedFile(path=f"{n}.txt", change="added", size=9, text=long) for n in range(9))
    result = HarnessResult(answer=long, finished=True, transcript=turns, changed_files=files)
    invoker = Listening(tmp_path)
    task = Task(task_id="task-001", name="One", prompt=long, line=0, expect=long)
    plan = make_plan(tmp_path, tag="t/1", task=task, spec_path=tmp_path / "x.eval.yaml")

    rate(invoker, backend, plan, Workspace.at(tmp_path), result)

    assert invoker.sizes
    assert [size for size in invoker.sizes if not least <= size <= most] == []
