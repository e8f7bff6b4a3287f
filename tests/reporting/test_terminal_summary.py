from __future__ import annotations

import subprocess
import sys

import pytest
from builders import record, run, task
from rich.cells import cell_len

from pytest_caliper.reporting.terminal import Style, render_summary
from pytest_caliper.runs.records import Run, TaskResult

NAMES = (
    "Writes a conventional commit message",
    "Splits unrelated changes into two commits",
    "Refuses to commit a file that holds a secret",
)


def arm(*strips: str, arm: str = "skill", **changes: object) -> tuple[TaskResult, ...]:
    return tuple(task(s, number=i + 1, name=NAMES[i % 3], arm=arm, **changes) for i, s in enumerate(strips))  # type: ignore[arg-type]


def shown(made: Run, *, width: int = 80, verbosity: int = 0, unicode: bool = True, color: bool = False) -> str:
    return render_summary([made], style=Style(width=width, color=color, unicode=unicode), verbosity=verbosity)


ALONE = run(*arm("PPP", "PPF", "PUP"))
COMPARED = run(*arm("PPP", "PPF", "PUP"), baseline=arm("PFF", "FFF", "PFU", arm="baseline"))
LONG = run(*arm("PPPPPFPPPPPPPPPPPPPP", "PFPPPFPPPCPPTTTPPPPP"), baseline=arm("P" * 20, "F" * 20, arm="baseline"))
ODD = run(
    task("UUU--", number=1, aborted=True),
    task("TTT", number=2, name="日本語の名前を持つ課題とても長い名前です絶対に入りません本当に"),
    task("FCJ", number=3, name="x\x1b[31mred\u202e [red]evil[/red] :smile:\n👩‍💻 party"),
    task("P--", number=4, usage=None),
    task("PPP", number=5, name="w" * 300),
    baseline=(task("---", arm="baseline"), task("PPP", number=2, arm="baseline"), task("F--", number=4, arm="baseline")),
    interrupted=True,
    partial=True,
    selected_tasks=("a", "b\x1b[2J"),
)


def test_a_skill_alone() -> None:
    assert shown(ALONE) == (
        "evals/commit.eval.yaml\n"
        "k=3 · engine claude-code:claude-sonnet-4-5 · judge claude-code:claude-haiku-4-5\n"
        "\n"
        "  Attempts    Rate   95% interval  Status   Tokens    Wall\n"
        "task-001 Writes a conventional commit message\n"
        "  ✓✓✓       100.0%  [43.9, 100.0]  PASS       159K  1m 00s\n"
        "task-002 Splits unrelated changes into two commits\n"
        "  ✓✓✗        66.7%   [20.8, 93.9]  PARTIAL    159K  1m 00s\n"
        "task-003 Refuses to commit a file that holds a secret\n"
        "  ✓⊘✓       100.0%  [34.2, 100.0]  PASS       159K  1m 00s\n"
        "  1 of 3 lost: 66.7% had it failed, 100.0% had it passed (infra_error: rate\n"
        "    limit: 429 Too Many Requests)\n"
        "──────────────────────────────────────────────────────────\n"
        "All tasks (mean of the tasks' rates)\n"
        "  7/8        88.9%   [53.7, 98.2]             477K  3m 00s\n"
        "  ✓ pass  ✗ fail  ⊘ unusable\n"
        "\n"
        "Attempts    7/8 passed · coverage 8/9 · 1 unusable\n"
        "Flawless    1 of 3 tasks passed every attempt\n"
        "Worst case  77.8% had the lost attempts failed, 88.9% had they passed\n"
        "Tokens      459K in / 18K out\n"
        "Wall        3m 00s · 20s per attempt\n"
        "⊘ unusable spend: 53K tokens, 20s (1 attempt, not counted in the average)\n"
        "Saved       .caliper/results/evals/commit/2026-11-20T10-00-00Z-7f3a.json\n"
    )


def test_skill_and_baseline() -> None:
    text = shown(COMPARED)

    assert (
        "            Attempts    Rate   95% interval  Status   Tokens    Wall  Δ pts\n"
        "task-001 Writes a conventional commit message\n"
        "  skill     ✓✓✓       100.0%  [43.9, 100.0]  PASS       159K  1m 00s  +66.7\n"
        "  no skill  ✓✗✗        33.3%    [6.1, 79.2]  PARTIAL    159K  1m 00s\n"
    ) in text
    assert (
        "All tasks (mean of the tasks' rates)\n"
        "  skill     7/8        88.9%   [53.7, 98.2]             477K  3m 00s  +61.1\n"
        "  no skill  2/8        27.8%    [8.3, 62.0]             477K  3m 00s\n"
    ) in text
    assert "Skill       Δ +61.1 pts [+12.0, +82.7]: better with the skill (p = 0.020)\n" in text
    assert "            no skill  2/8 passed · coverage 8/9 · 1 unusable\n" in text
    assert "⊘ unusable spend: 106K tokens, 40s (2 attempts, not counted in the average)\n" in text


def test_names_stand_beside_their_rows_where_there_is_room() -> None:
    assert (
        "task-002 Splits unrelated changes into two commits     ✓✓✗        66.7%   [20.8, 93.9]  PARTIAL    159K  1m 00s\n"
    ) in shown(ALONE, width=120)


def test_only_long_names_are_shortened() -> None:
    text = shown(run(task("PPP", name="w" * 300), task("PPF", number=2, name="short")), width=100)

    assert f"task-001 {'w' * 32}…  ✓✓✓       100.0%  [43.9, 100.0]  PASS       159K  1m 00s\n" in text
    assert "task-002 short" in text


@pytest.mark.parametrize("width", [40, 50, 60, 79, 80, 81, 100, 120, 200])
@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("verbosity", [0, 1, 2])
@pytest.mark.parametrize("made", [ALONE, COMPARED, LONG, ODD], ids=["alone", "compared", "long", "odd"])
def test_no_line_is_wider_than_the_terminal_and_no_number_cut(made: Run, verbosity: int, unicode: bool, width: int) -> None:
    text = shown(made, width=width, unicode=unicode, verbosity=verbosity)

    assert max(cell_len(line) for line in text.split("\n") if line != made.saved) <= width
    assert all(line == line.rstrip() for line in text.split("\n"))
    rows = [line for line in text.split("\n") if not line.startswith("task-")]
    assert not any("…" in line and "more characters" not in line for line in rows)
    if made is COMPARED:
        for number in ("100.0%", "[43.9, 100.0]", "[34.2, 100.0]", "159K", "1m 00s", "+66.7", "PARTIAL"):
            assert number in text


@pytest.mark.parametrize("made", [ALONE, COMPARED, LONG, ODD], ids=["alone", "compared", "long", "odd"])
@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_ascii_terminals_get_ascii(made: Run, verbosity: int) -> None:
    text = shown(made, unicode=False, verbosity=verbosity)

    text.encode("ascii")
    if made is COMPARED and verbosity >= 0:
        assert "  skill     PUP       100.0%" in text
        assert "P pass  F fail  U unusable" in text
        assert "Diff +61.1 pts" in text


@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_hostile_names_are_inert(verbosity: int) -> None:
    text = shown(ODD, verbosity=verbosity)

    assert "\x1b" not in text
    assert "\u202e" not in text
    if verbosity >= 0:
        assert "task-003 x\\x1b[31mred\\u202e [red]evil[/red] :smile: 👩‍💻 party\n" in text
        assert "b\\x1b[2J" in text


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[" not in shown(COMPARED)
    coloured = shown(COMPARED, color=True)
    assert "\x1b[32mbetter with the skill\x1b[0m" in coloured
    assert "\x1b[31m✗\x1b[0m" in coloured


def test_the_environment_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, coloured = shown(COMPARED), shown(COMPARED, color=True)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert shown(COMPARED, color=True) == coloured
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert shown(COMPARED) == plain


def test_long_strips_are_broken_rather_than_numbers() -> None:
    text = shown(LONG)

    assert "  skill     ✓✓✓✓✓✗✓✓✓✓   95.0%" in text
    assert "\n            ✓✓✓✓✓✓✓✓✓✓\n" in text
    assert "✓✓✓✓✓✗✓✓✓✓✓✓✓✓✓✓✓✓✓✓" in shown(LONG, width=120)


def test_the_marks_of_every_outcome() -> None:
    text = shown(run(task("PFCTUJ-")))

    assert "✓✗✂⊘⊘⊘·" in text
    assert "✓ pass  ✗ fail  ⊘ unusable  ✂ cheat  · not run" in text


def test_one_task_is_not_summed_up() -> None:
    assert "All tasks" not in shown(run(task("PPF")))


def test_no_legend_where_the_marks_speak_for_themselves() -> None:
    assert "✓ pass" not in shown(run(task("PPF")))


def test_unknown_usage_is_a_dash() -> None:
    text = shown(run(task("PPP", usage=None)))

    assert "PASS         —  1m 00s\n" in text
    assert "Tokens      —\n" in text


def test_usage_that_not_every_attempt_told_is_a_minimum() -> None:
    half = task("PP", attempts=(record(), record(attempt=2, usage=None)))
    text = shown(run(half))

    assert "53K+" in text
    assert "Tokens      51K in / 2.0K out (at least: not every attempt told)\n" in text


def test_an_unmeasured_task_has_no_rate() -> None:
    text = shown(run(task("TTT"), task("PPP", number=2)))

    assert "  ⊘⊘⊘            —              —  UNMEASURED" in text
    assert "  3 of 3 lost (timeout: no answer within 120 s)\n" in text
    assert "100.0%  [43.9, 100.0]" in text
    assert "Worst case  50.0% had the lost attempts failed, 100.0% had they passed\n" in text


def test_nothing_measured_at_all() -> None:
    text = shown(run(task("UUU"), baseline=(task("UUU", arm="baseline"),)))

    assert "0/0 passed · coverage 0/3 · 3 unusable" in text
    assert "Skill       Δ — no task was measured with and without the skill\n" in text


def test_an_aborted_task_says_what_did_not_run() -> None:
    text = shown(run(task("FUUU--", aborted=True)))

    assert "✗⊘⊘⊘··" in text
    assert "ABORTED" in text
    assert "5 of 6 lost: 0.0% had they failed, 83.3% had they passed" in text
    assert "2 not run)" in text.replace("\n    ", " ")


def test_no_bounds_without_losses() -> None:
    text = shown(run(task("PPF")))

    assert "lost" not in text
    assert "Worst case" not in text
    assert "unusable" not in text


def test_a_single_task_is_flagged_only_when_it_stands_out() -> None:
    made = run(
        task("P" * 8), task("PPF", number=2), baseline=(task("F" * 8, arm="baseline"), task("PPP", number=2, arm="baseline"))
    )
    lines = shown(made).split("\n")

    assert lines[5].endswith("+100.0")
    assert lines[6].endswith("better")
    assert lines[8].endswith("-33.3")
    assert not lines[9].endswith("worse")


def test_no_evidence_says_how_many_more_would_tell() -> None:
    made = run(*arm("PPF", "PPF", "PFP"), baseline=arm("PFF", "FPF", "FFP", arm="baseline"))
    text = " ".join(shown(made).split())

    assert "no evidence of a difference (p = 0.23); about 9 more attempts per task and arm would tell" in text


def test_a_tiny_difference_is_said_to_be_out_of_reach() -> None:
    made = run(*arm("PF" * 50, "PF" * 50), baseline=arm("PF" * 50, "PF" * 49 + "FF", arm="baseline"))

    assert "a difference this small takes over 200 attempts per task and arm to tell" in " ".join(shown(made).split())


def test_equal_arms_ask_for_nothing() -> None:
    made = run(*arm("PPF"), baseline=arm("PPF", arm="baseline"))

    assert "Skill       Δ 0.0 pts [-53.3, +53.3]: no evidence of a difference (p = 1.00)\n" in shown(made)


def test_a_difference_over_fewer_tasks_says_so() -> None:
    made = run(*arm("PPPP", "PPPP"), baseline=(task("FFFF", arm="baseline"), task("UUUU", number=2, arm="baseline")))

    assert "over the 1 of 2 tasks measured in both arms" in " ".join(shown(made).split())


def test_verbose_adds_chances_and_reasons() -> None:
    text = shown(COMPARED, verbosity=1)

    assert "  skill: pass@3 96.3%, pass^3 29.6% (plug-in); pass@2 100.0%, pass^2 33.3%\n    (unbiased)\n" in text
    assert "  ✓ attempt-1   judge: yes: The message follows the convention.\n" in text
    assert "  ✗ baseline-2  judge: no: The message has no type.\n" in text
    assert "  ⊘ attempt-2   infra_error: rate limit: 429 Too Many Requests\n" in text
    assert "pass@3" not in shown(COMPARED)
    assert "attempt-1" not in shown(COMPARED)


def test_verbose_with_many_attempts_tells_some_sizes_only() -> None:
    text = " ".join(shown(LONG, verbosity=1, width=200).split())

    assert "pass@20 100.0%, pass^20 35.8% (plug-in); pass@2 100.0%, pass^2 90.0%; pass@3" in text
    assert "pass@10 100.0%, pass^10 50.0% (unbiased)" in text
    assert "pass@7" not in text


def test_long_reasons_are_cut_and_marked_until_all_is_asked_for() -> None:
    made = run(task("F", autorater_reasoning="because " * 100))
    text = " ".join(shown(made, verbosity=1).split())

    assert "more characters)" in text
    assert text.count("because") < 60
    assert shown(made, verbosity=2).count("because") == 100


def test_a_failed_cleanup_is_always_told() -> None:
    assert "! cleanup failed in attempt-1: rm: no such file" in shown(run(task("P", cleanup_error="rm: no such file")))


def test_a_partial_run_counts_the_attempts_selected() -> None:
    made = run(*arm("P", "PPP"), baseline=(task("F", arm="baseline"), task("FFF", number=2, arm="baseline")), partial=True, k=3)
    text = shown(made)

    assert "! partial: attempts were left out; saved apart, never taken for the latest run\n" in text
    assert text.count("2 of 6 attempts of this task selected") == 1
    assert "6 of 6" not in text


def test_an_arm_that_was_not_selected_is_not_unmeasured() -> None:
    text = shown(run(task("P"), baseline=(task("", arm="baseline"),), partial=True, k=3))

    assert "UNMEASURED" not in text
    assert "lost" not in text


def test_an_interrupted_run_says_so() -> None:
    text = shown(run(task("P--"), interrupted=True))

    assert "! interrupted: 1 of 3 planned attempts ran\n" in text
    assert "2 of 3 lost: 33.3% had they failed, 100.0% had they passed (2 not run)" in text


def test_selected_tasks_and_remedies_are_told_once() -> None:
    text = shown(run(task("UU", fatal="log in with `claude login`"), selected_tasks=("Writes\nit",)))

    assert "! only 1 task selected: Writes it\n" in text
    assert text.count("! stopped: log in with `claude login`\n") == 1


def test_the_title_tells_who_judged() -> None:
    own = run(task("P"), judge_model="claude-sonnet-4-5")
    none = run(task("P", judge_model=None), judge_backend=None, judge_model=None, model=None)
    lost = run(task("UU", autorater_passed=None), judge_model=None)

    assert "judge claude-code:claude-sonnet-4-5 (the engine under test)" in shown(own, width=200)
    assert "engine claude-code (claude-sonnet-4-5) · no judge was needed" in shown(none)
    assert "no judge ran" in shown(run(task("U"), judge_backend=None, judge_model=None))
    assert "judge claude-code (gave no verdict)" in shown(lost)


def test_where_it_was_saved() -> None:
    long_path = f"results/{'x' * 65}.json"

    assert "Saved       nowhere\n" in shown(run(task("P"), saved=None))
    assert f"Saved\n{long_path}\n" in shown(run(task("P"), saved=long_path))


def test_quiet_is_one_line_per_spec() -> None:
    assert shown(run(*arm("PPP", "PPF")), verbosity=-1) == "evals/commit.eval.yaml: 83.3% [43.6, 97.0] 5/6 usable 6/6\n"
    assert shown(run(task("UU")), verbosity=-1) == "evals/commit.eval.yaml: — 0/0 usable 0/2\n"
    assert shown(COMPARED, verbosity=-1) == (
        "evals/commit.eval.yaml: 88.9% [53.7, 98.2] 7/8 usable 8/9; no skill 27.8% [8.3, 62.0] 2/8 usable 8/9; "
        "Δ +61.1 pts better\n"
    )
    assert shown(run(task("P"), partial=True, interrupted=True), verbosity=-1).endswith("; partial; interrupted\n")


def test_several_runs_are_parted_by_a_blank_line() -> None:
    style = Style(width=80, color=False, unicode=True)

    assert render_summary([], style=style, verbosity=0) == ""
    assert render_summary([ALONE, COMPARED], style=style, verbosity=0) == f"{shown(ALONE)}\n{shown(COMPARED)}"
    assert render_summary([ALONE, COMPARED], style=style, verbosity=-1).count("\n") == 2


def test_a_run_without_tasks() -> None:
    text = shown(run())

    assert "0/0 passed · coverage 0/0" in text
    assert "Rate" not in text


def test_rich_is_imported_only_for_a_full_summary() -> None:
    code = "import sys, pytest_caliper.reporting.terminal, pytest_caliper.reporting.failures; print('rich' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"
