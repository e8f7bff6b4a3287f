"""What the judge used for one attempt: all its calls together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from judging_bench import DONE, ScriptedJudge, make_plan, make_workspace

from pytest_caliper.contracts import JudgeReply, Verdict
from pytest_caliper.judging.judge import StandardJudge
from pytest_caliper.runs.records import Usage
from pytest_caliper.spec.model import Task

FIRST = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=40)
SECOND = Usage(input_tokens=10, output_tokens=2, cache_creation_tokens=5)
BOTH = Usage(input_tokens=110, output_tokens=22, cache_read_tokens=40, cache_creation_tokens=5)
YES = JudgeReply(text='{"reasoning": "seen", "passed": true}', usage=FIRST)
GARBAGE = JudgeReply(text="I cannot say.", usage=SECOND)
SILENT = replace(YES, usage=None)


def judged(root: Path, *replies: JudgeReply, votes: int = 1) -> Verdict:
    scripted = ScriptedJudge(replies=list(replies), dir=root)
    task = Task(task_id="task-001", name="One", prompt="Do it.", line=1, expect="It is so.")
    plan = make_plan(root, tag="t/a", task=task, spec_path=root / "case.eval.yaml", judge_votes=votes)
    judge = StandardJudge(invoker=scripted, backends={"scripted": scripted}, asserts=None)  # type: ignore[arg-type, dict-item]
    return judge(plan, DONE, make_workspace(root / "a"))


@pytest.mark.parametrize(
    ("replies", "votes", "usage"),
    [
        ([YES], 1, FIRST),
        ([SILENT], 1, None),
        ([GARBAGE, YES], 1, BOTH),
        ([GARBAGE, GARBAGE], 1, Usage(input_tokens=20, output_tokens=4, cache_creation_tokens=10)),
        ([GARBAGE, SILENT], 1, SECOND),
        ([GARBAGE, JudgeReply(text="", error="it broke", usage=FIRST)], 1, BOTH),
        ([YES, SILENT, GARBAGE, SILENT], 3, BOTH),
        ([SILENT, SILENT, SILENT], 3, None),
    ],
)
def test_all_calls_count_as_far_as_they_tell(replies: list[JudgeReply], votes: int, usage: Usage | None, tmp_path: Path) -> None:
    assert judged(tmp_path, *replies, votes=votes).judge_usage == usage


def test_a_sum_keeps_unknown_fields_unknown() -> None:
    assert Usage.sum([]) is None
    assert Usage.sum([None, None]) is None
    assert Usage.sum([Usage(), Usage(output_tokens=0), None]) == Usage(output_tokens=0)
