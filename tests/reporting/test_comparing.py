"""Two sides: what is matched, what may be compared, what is said of the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import run, task

from pytest_caliper.reporting.comparing import RunComparison, baseline_comparison, compare_runs
from pytest_caliper.reporting.comparison import render_comparison
from pytest_caliper.reporting.comparison_json import comparison_json
from pytest_caliper.reporting.style import Style
from pytest_caliper.runs.records import SkillSnapshot
from pytest_caliper.scoring import compare_arms, compare_tasks

WIDE = Style(width=120, color=False, unicode=True)
DAYS = ({"id": "a", "timestamp": "2026-07-01T10:00:00Z"}, {"id": "b", "timestamp": "2026-07-02T10:00:00Z"})


def two(
    before: tuple[Any, ...], after: tuple[Any, ...], one: dict[str, Any] | None = None, other: dict[str, Any] | None = None
) -> RunComparison:
    """Two runs, a day apart; `one` and `other` are fields of their heads."""
    return compare_runs(run(*before, **{**DAYS[0], **(one or {})}), run(*after, **{**DAYS[1], **(other or {})}))


def kinds(comparison: RunComparison) -> list[str]:
    return [difference.kind for difference in comparison.differences]


def sentences(comparison: RunComparison) -> str:
    return "\n".join(difference.text for difference in comparison.differences)


def test_tasks_are_matched_by_name_whatever_their_order_and_number() -> None:
    found = two(
        (task("PPP", number=1, name="A"), task("FFF", number=2, name="B"), task("PPP", number=3, name="gone")),
        (task("FFF", number=1, name="B"), task("PPF", number=2, name="A"), task("PPP", number=3, name="new")),
    )
    assert [(one.name, one.before_rate, one.after_rate) for one in found.tasks] == [("B", 0, 0), ("A", 1, pytest.approx(2 / 3))]
    assert [result.task_name for result in found.unmatched_before] == ["gone"]
    assert [result.task_name for result in found.unmatched_after] == ["new"]
    assert found.comparison == compare_arms([(0, 3, 0, 3), (3, 3, 2, 3)])


def test_two_tasks_of_one_name_meet_in_their_order() -> None:
    found = two((task("PP", number=1, name="A"), task("FF", number=2, name="A")), (task("PF", number=1, name="A"),))
    assert [(one.before.task_id, one.after.task_id) for one in found.tasks] == [("task-001", "task-001")]
    assert [result.task_id for result in found.unmatched_before] == ["task-002"]


def test_an_unmeasured_side_is_no_regression_and_leaves_the_headline() -> None:
    found = two(
        (task("PPP", number=1, name="A"), task("PPP", number=2, name="B")),
        (task("UUT", number=1, name="A"), task("PPP", number=2, name="B")),
    )
    assert [one.name for one in found.unmeasured] == ["A"]
    assert not found.has_regression
    assert found.comparison is not None
    assert (found.comparison.tasks, found.comparison.delta) == (1, 0)
    assert (found.after.figures.usable, found.after.figures.planned, found.after.compared.planned) == (3, 6, 3)


def test_any_rate_below_is_a_regression_but_no_word_without_evidence() -> None:
    found = two((task("PPP"),), (task("PPF"),))
    (only,) = found.tasks
    assert found.has_regression
    assert only.regression
    assert only.change is not None
    assert only.change.word is None
    assert found.comparison is not None
    assert found.comparison.word == "no evidence"


def test_tasks_are_flagged_by_boschloo_and_holm_over_those_compared() -> None:
    pairs = [("P" * 9, "F" * 9), ("PPP", "PPF"), ("PFP", "PFP")]
    found = two(
        tuple(task(strip, number=i, name=str(i)) for i, (strip, _) in enumerate(pairs)),
        tuple(task(strip, number=i, name=str(i)) for i, (_, strip) in enumerate(pairs)),
    )
    assert [one.change for one in found.tasks] == compare_tasks([(9, 9, 0, 9), (3, 3, 2, 3), (2, 3, 2, 3)])
    assert [one.change and one.change.word for one in found.tasks] == ["worse", None, None]


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"prompt": "Commit that."}, ("prompt",)),
        ({"expect": "a subject"}, ("expect",)),
        ({"assert_": "assert True"}, ("assert",)),
        ({"prompt": "Commit that.", "assert_": "assert 1"}, ("prompt", "assert")),
        ({}, ()),
    ],
)
def test_a_task_that_asks_for_something_else_is_not_comparable(changes: dict[str, Any], changed: tuple[str, ...]) -> None:
    found = two((task("PPP"),), (task("FFF", **changes),))
    (only,) = found.tasks
    assert only.changed == changed
    assert only.comparable is not bool(changed)
    assert only.regression is not bool(changed)
    assert found.has_regression is not bool(changed)
    assert (found.comparison is None) == bool(changed)


def test_hashes_decide_before_texts_do() -> None:
    old, new = {"contract": {"tasks": {"task-001": "sha256:1"}}}, {"contract": {"tasks": {"task-001": "sha256:2"}}}
    assert two((task("PPP"),), (task("PPP"),), old, new).tasks[0].changed == ("setup or cleanup",)
    # Secrets are replaced in texts, not in what the hashes are taken over.
    assert two((task("PPP", prompt="say x"),), (task("PPP", prompt="say [redacted:X]"),), old, old).tasks[0].changed == ()
    without = two((task("PPP", prompt=""),), (task("PPP", prompt=""),), old, new)
    assert without.tasks[0].changed == ("task",)


def test_a_file_that_does_not_say_what_was_asked_is_compared_with_a_word_of_doubt() -> None:
    found = two((task("PPP", prompt=""),), (task("PPP"),))
    assert found.tasks[0].comparable
    assert kinds(found) == ["unverified"]
    assert "is not known for Writes a conventional commit message" in sentences(found)


@pytest.mark.parametrize(
    ("one", "other", "kind", "words"),
    [
        ({"k": 3}, {"k": 5}, "k", "k=3 → k=5"),
        ({"backend": "codex"}, {}, "engine", "codex:claude-sonnet-4-5 → claude-code:claude-sonnet-4-5"),
        ({"model": "opus"}, {}, "engine", "claude-code:opus → claude-code:claude-sonnet-4-5"),
        ({"cli_version": "2.1.0"}, {"cli_version": "2.2.0"}, "cli", "2.1.0 → 2.2.0"),
        ({"judge_backend": None, "judge_model": None}, {}, "judge", "none ran → claude-code:claude-haiku-4-5"),
        ({"judge_cli_version": "1"}, {"judge_cli_version": "2"}, "judge_cli", "1 → 2"),
        ({"judge_prompt_hash": "x"}, {"judge_prompt_hash": "y"}, "judge_prompt", "another prompt"),
        ({"contract": {"judge_votes": 3}}, {}, "judge_votes", "3 → 1"),
        ({"spec": "a.eval.yaml"}, {"spec": "b.eval.yaml"}, "spec", "a.eval.yaml → b.eval.yaml"),
        ({"contract": {"spec": "1"}}, {"contract": {"spec": "2"}}, "spec", "edited between the runs, outside"),
        ({"contract": {"spec": "1", "tasks": {"x": "1"}}}, {"contract": {"spec": "2", "tasks": {}}}, "spec", "in its tasks"),
        ({"pytest_caliper": ""}, {}, "version", "another program → pytest-caliper 0.1.0"),
        ({"user_customizations": True}, {}, "customizations", "only the first run loaded"),
        ({}, {"user_customizations": True}, "customizations", "only the second run loaded"),
        ({"replay": True}, {}, "replay", "the first run was replayed"),
        ({}, {"partial": True}, "partial", "the second run is partial"),
        ({}, {"interrupted": True}, "interrupted", "the second run was interrupted: 3 of 3 planned attempts ran"),
        ({"selected_tasks": ("A",)}, {}, "selection", "the first run ran only 1 selected task"),
        ({"timestamp": "2026-07-03T10:00:00Z"}, {}, "order", "the first run is the newer one"),
        ({"id": "b", "timestamp": DAYS[1]["timestamp"]}, {}, "same", "both are the same run"),
    ],
)
def test_each_difference_is_named_in_a_sentence(one: dict[str, Any], other: dict[str, Any], kind: str, words: str) -> None:
    found = two((task("PPP"),), (task("PPP"),), one, other)
    assert kinds(found) == [kind]
    assert words in sentences(found)


def test_nothing_is_named_where_nothing_differs_or_a_file_does_not_tell() -> None:
    assert two((task("PPP"),), (task("FFF"),)).differences == ()
    assert (
        two((task("PPP"),), (task("FFF"),), {"cli_version": "1", "judge_prompt_hash": "x", "contract": {"spec": "1"}}).differences
        == ()
    )


def snapshot(name: str = "greeter", **files: str) -> SkillSnapshot:
    kept = {path.replace("_", "."): {"content": text, "hash": f"sha256:{text}"} for path, text in files.items()}
    return SkillSnapshot(name=name, path=f"skills/{name}", kind="directory", files=kept)


def skill_sentence(before: tuple[SkillSnapshot, ...], after: tuple[SkillSnapshot, ...]) -> str:
    one, other = (replace(run(task("PPP"), **day), skills=skills) for day, skills in zip(DAYS, (before, after), strict=True))
    return sentences(compare_runs(one, other))


def test_the_skills_changed_files_are_named() -> None:
    before, after = snapshot(SKILL_md="1", gone_md="1"), snapshot(SKILL_md="2", new_md="1")
    assert skill_sentence((before,), (after,)) == "the skill differs: greeter (SKILL.md changed, new.md added, gone.md gone)"
    assert skill_sentence((before,), (before,)) == ""
    assert skill_sentence((), (before,)) == "the skills differ: none → greeter"
    assert skill_sentence((before,), (before, snapshot("other"))) == "the skill differs: other only in the second run"


def test_what_a_file_says_reaches_the_terminal_harmless() -> None:
    found = two(
        (task("PPP", name="A\x1b[2J\n::error::x"),), (task("PPP", name="A\x1b[2J\n::error::x"),), {"backend": "c\x1b[31m\nodex"}
    )
    text = render_comparison(found, style=WIDE, verbosity=2)
    assert "\x1b" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())


def test_lost_attempts_leave_bounds_of_the_difference() -> None:
    found = two((task("PPU"),), (task("PFF"),))
    assert found.delta_bounds is not None
    # before 2/3 to 3/3, after 1/3: nothing was lost there.
    assert found.delta_bounds == (pytest.approx(-2 / 3), pytest.approx(-1 / 3))
    assert two((task("PPP"),), (task("PFF"),)).delta_bounds is None


def test_tokens_and_times_are_differences_and_never_a_regression() -> None:
    cheap, dear = task("PPP"), task("PPP", usage=None)
    assert two((cheap,), (task("PPPP"),)).token_delta == 53_000
    assert two((cheap,), (task("PPPP"),)).wall_delta_s == 20.0
    unknown = two((cheap,), (dear,))
    assert unknown.token_delta is None
    assert not unknown.has_regression


def test_the_arms_of_a_run_are_a_comparison() -> None:
    one = run(task("PPP"), baseline=(task("FFF", arm="baseline"),))
    found = baseline_comparison(one)
    assert found is not None
    assert (found.before.label, found.after.label) == ("no skill", "with skill")
    assert found.differences == ()
    assert found.comparison == compare_arms([(0, 3, 3, 3)])
    assert baseline_comparison(run(task("PPP"))) is None


def test_the_arms_do_not_say_that_they_are_the_same_run_and_a_run_beside_itself_does() -> None:
    one = run(task("PPP"), baseline=(task("FFF", arm="baseline"),), contract={"tasks": {"task-001": "x"}})
    arms = baseline_comparison(one)
    assert arms is not None
    assert kinds(arms) == []
    assert kinds(compare_runs(one, one)) == ["same"]


# -- as JSON --------------------------------------------------------------------------------------------------------------------

THEIRS = {
    *(
        "a",
        "b",
        "a_label",
        "b_label",
        "matched",
        "unmatched_a",
        "unmatched_b",
        "a_matched_avg",
        "b_matched_avg",
        "aggregate_delta",
    ),
    *("has_regression", "k_mismatch", "spec_mismatch", "warnings", "a_usage", "b_usage", "token_delta", "wall_delta"),
}
THEIR_USAGE = {
    *(
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_creation_tokens",
        "wall_seconds",
        "attempts",
        "tokens_reported",
    ),
    *("unusable_tokens", "unusable_wall_seconds", "unusable_attempts", "total_tokens", "prompt_tokens"),
}


def test_json_keeps_the_fields_of_caliper_eval_and_their_values() -> None:
    """The values are what caliper-eval 0.9.0 printed for these two runs."""
    found = comparison_json(
        two(
            (
                task("PPP", number=1, name="A"),
                task("PFF", number=2, name="B"),
                task("UUU", number=3, name="C"),
                task("PPP", number=4, name="D"),
            ),
            (
                task("PPF", number=1, name="A"),
                task("PPP", number=2, name="B"),
                task("PPP", number=3, name="C"),
                task("PP", number=5, name="E"),
            ),
        )
    )
    assert found.keys() >= THEIRS
    assert found["a_usage"].keys() >= THEIR_USAGE
    first, second, third = found["matched"]
    assert (first["a_score"], first["b_score"], first["regression"]) == (1.0, pytest.approx(2 / 3), True)
    assert first["delta"] == pytest.approx(-1 / 3)
    assert first["b_outcomes"] == ["pass", "pass", "task_fail"]
    assert (second["delta"], second["regression"]) == (pytest.approx(2 / 3), False)
    assert (third["a_score"], third["b_score"], third["delta"], third["regression"]) == (None, 1.0, None, False)
    assert (found["unmatched_a"], found["unmatched_b"]) == (["D"], ["E"])
    assert (found["a_matched_avg"], found["b_matched_avg"]) == (pytest.approx(2 / 3), pytest.approx(5 / 6))
    assert (found["aggregate_delta"], found["has_regression"]) == (pytest.approx(1 / 6), True)
    assert (found["k_mismatch"], found["spec_mismatch"], found["warnings"]) == (False, False, [])
    assert (found["token_delta"], found["wall_delta"]) == (-53_000, -20.0)
    assert (
        found["a_usage"] | {"total_tokens": 636_000, "unusable_tokens": 159_000, "unusable_wall_seconds": 60.0}
        == found["a_usage"]
    )
    assert (found["a_label"], found["b_label"]) == (None, None)
    assert found["verdict"] == "no evidence"


def test_json_has_the_worst_case_beside_every_rate_that_has_one() -> None:
    found = comparison_json(two((task("PPU"),), (task("PFF"),)))
    assert found["a_figures"]["coverage"] == pytest.approx(2 / 3)
    assert found["a_figures"]["worst_case"] == [pytest.approx(2 / 3), 1.0]
    assert found["matched"][0]["a_counts"]["worst_case"] == [pytest.approx(2 / 3), 1.0]
    assert found["b_figures"]["worst_case"] is None
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [((), ()), ((task("PPP"),), ()), ((task("---"),), (task("UUU"),)), ((task("PPP"),), (task("PPP", prompt="x"),))],
)
def test_there_may_be_nothing_to_compare(before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    found = two(before, after)
    assert found.comparison is None
    assert comparison_json(found)["verdict"] is None
    assert "no task is comparable" in render_comparison(found, style=WIDE, verbosity=1)


# -- as text --------------------------------------------------------------------------------------------------------------------


def test_rows_read_before_after() -> None:
    text = render_comparison(two((task("PPP"),), (task("PPF"),)), style=WIDE, verbosity=0)
    assert "✓✓✓ → ✓✓✗  100.0% →  66.7%  -33.3" in text
    assert "no evidence of a difference (p = 0.69)" in text
    assert "Lower rates     Writes a conventional commit message" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_wider_than_the_terminal(width: int, unicode: bool) -> None:
    long = "A task with a name that is a good deal longer than any terminal would ever want it to be"
    found = two(
        (task("PPU" * 6, name=long), task("P", number=2, name="gone")), (task("P" * 30, name=long, prompt="x"),), {"k": 7}, {}
    )
    text = render_comparison(found, style=Style(width=width, color=False, unicode=unicode), verbosity=1)
    assert max(map(len, text.splitlines())) <= width
    assert unicode or text.isascii()


def test_many_attempts_are_counted_instead_of_drawn() -> None:
    text = render_comparison(two((task("P" * 30),), (task("PF" * 15),)), style=WIDE, verbosity=0)
    assert "30/30 → 15/30" in text
    assert "worse" in text
