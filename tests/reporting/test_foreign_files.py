"""What reports say of a run that caliper-eval saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import run, task

from pytest_caliper.cli import main
from pytest_caliper.reporting.differing import meta_differences
from pytest_caliper.reporting.foreign import foreign_notices
from pytest_caliper.runs.reading import load_run

RECORDED = Path(__file__).parents[1] / "recordings" / "caliper_eval"


def notices(version: str, name: str = "run") -> list[str]:
    return foreign_notices(load_run(RECORDED / version / f"{name}.json"))


def test_a_run_of_ours_has_none() -> None:
    assert foreign_notices(run(task("PF"))) == []


def test_a_baseline_without_attempts() -> None:
    assert notices("0.4.0") == [
        "written by caliper-eval 0.4 to 0.7; its numbers are counted anew",
        "the file keeps no attempts of its baseline, only a mean pass@k, 100.0%: nothing is compared with it",
    ]


def test_a_task_that_only_asks_for_skills() -> None:
    assert notices("0.21.0") == [
        "written by caliper-eval 0.10 or later; its numbers are counted anew",
        "Reaches for the skill: 3 attempts without a check, only of which skills are used, the expected ones in 2 of 3; not counted",
    ]


def test_a_skill_that_was_left_out() -> None:
    assert "without greeter: left out on purpose (--ablate)" in notices("0.21.0", "ablated")


@pytest.mark.parametrize("score", [None, "1", float("nan"), 7, True, [], {}])
def test_odd_facts_are_no_numbers(score: object) -> None:
    made = replace(
        run(task("P")), meta=replace(run(task("P")).meta, foreign={"written_by": "x", "baseline": {"avg_pass_at_k": score}})
    )
    assert len(foreign_notices(made)) == 2


@pytest.mark.parametrize(
    ("before", "after", "told"), [("0.9.0", "0.21.0", True), ("0.4.0", "0.9.0", False), ("0.10.0", "0.21.0", False)]
)
def test_another_way_to_load_skills_is_named(before: str, after: str, told: bool) -> None:
    one, other = (load_run(RECORDED / version / "run.json").meta for version in (before, after))
    assert any("agents were given the skill" in found.text for found in meta_differences(one, other)) is told


def test_ours_against_an_old_run() -> None:
    old = load_run(RECORDED / "0.9.0" / "run.json").meta
    texts = [found.text for found in meta_differences(old, run(task("P")).meta)]
    assert any("caliper-eval 0.8 or 0.9 → pytest-caliper 0.1.0" in text for text in texts)
    assert any("agents were given the skill" in text for text in texts)


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0", "0.9.0", "0.10.0", "0.15.0", "0.21.0"])
@pytest.mark.parametrize("shape", ["text", "html", "md", "json", "junit"])
def test_every_report_opens_every_version(version: str, shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(RECORDED / version / "run.json"), "--format", shape]) == 0
    out = capsys.readouterr().out
    assert "Explains itself" in out
    assert "\x1b[31m" not in out


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0", "0.9.0", "0.10.0", "0.15.0", "0.21.0"])
@pytest.mark.parametrize("shape", ["text", "md", "json"])
def test_every_comparison_opens_every_version(version: str, shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(RECORDED / one / "run.json") for one in (version, "0.21.0")]
    assert main(["compare", *files, "--format", shape]) == 0
    assert "Explains itself" in capsys.readouterr().out


def test_who_judged_is_not_known_before_08(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(RECORDED / "0.4.0" / "run.json")]) == 0
    out = capsys.readouterr().out
    assert "judge unknown" in out
    assert "no judge was needed" not in out
