"""`caliper history`: the line of a spec's runs, what changed between them, and words that chance does not explain."""

from __future__ import annotations

import json

import pytest
from builders import task


def test_runs_in_order_of_time_with_each_tasks_line(saved, caliper) -> None:
    for day, (first, second) in enumerate((("FFF", "PPP"), ("PFF", "PPP"), ("PPP", "UUU")), 1):
        saved.run("commit", task(first, name="A"), task(second, number=2, name="B"), day=day)
    told = caliper("history", "commit")
    assert told.status == 0
    assert "Trend  ▅▆█  3 complete runs, oldest first" in told.out
    assert "  A  ▁▃█  100.0%\n" in told.out
    assert "  B  ██·       —\n" in told.out
    rows = [line.split() for line in told.out.splitlines() if line.startswith("2026")]
    assert [row[0] for row in rows] == ["2026-07-01", "2026-07-02", "2026-07-03"]
    assert [row[2] for row in rows] == ["50.0%", "66.7%", "100.0%"]
    assert rows[1][-1] == "+16.7"
    # B was not measured in the last run: only A tells.
    assert rows[2][-4:] == ["3/3", "of", "6", "+66.7"]


def test_what_changed_stands_between_the_runs(saved, caliper) -> None:
    plain = {"contract": {"skill": "sha256:1", "spec": "sha256:1"}}
    saved.run("commit", task("PPP"), day=1, **plain)
    saved.run("commit", task("PPP"), day=2, **plain)
    saved.run("commit", task("PPP"), day=3, contract={"skill": "sha256:2", "spec": "sha256:1"}, model="opus")
    saved.run("commit", task("PPP"), day=4, contract={"skill": "sha256:2", "spec": "sha256:2"}, model="opus")
    lines = [line for line in caliper("history", "commit").out.splitlines() if line.startswith(("2026", "  ─"))]
    assert [line.split()[0] if line.startswith("2026") else line for line in lines] == [
        *("2026-07-01", "2026-07-02"),
        *("  ─ the engines differ: claude-code:claude-sonnet-4-5 → claude-code:opus", "  ─ the skill changed"),
        *("2026-07-03", "  ─ the spec was edited between the runs, outside what its tasks ask for and", "2026-07-04"),
    ]


def test_words_are_for_what_chance_does_not_explain(saved, caliper) -> None:
    for day, strip in enumerate(("P" * 9, "P" * 9, "F" * 9), 1):
        saved.run("commit", task(strip), day=day)
    runs = json.loads(caliper("history", "commit", "--format", "json").out)["runs"]
    assert [one["word"] for one in runs] == [None, "no evidence", "worse"]
    assert "better and worse are said against the run before" in caliper("history", "commit").out


def test_a_word_is_taken_back_where_enough_steps_were_looked_at(saved, caliper) -> None:
    """Of many steps one in twenty would be "evidence" by chance alone."""
    strips = ["PPPP", "PPFF"] + ["PPFF"] * 18
    for day, strip in enumerate(strips, 1):
        saved.run("commit", task(strip), task(strip, number=2, name="B"), day=day)
    two = json.loads(caliper("history", "commit", "--last", "20", "--format", "json").out)["runs"][1]
    assert two["since_before"]["word"] == "worse"
    assert two["since_before"]["p"] > 0.05 / 19
    assert two["word"] == "no evidence"
    assert "no evidence of a difference between any run and the one before it" in caliper("history", "commit").out


def test_tasks_that_ask_for_something_else_are_not_compared(saved, caliper) -> None:
    saved.run("commit", task("P" * 9), day=1, contract={"tasks": {"task-001": "sha256:1"}})
    saved.run("commit", task("F" * 9), day=2, contract={"tasks": {"task-001": "sha256:2"}})
    runs = json.loads(caliper("history", "commit", "--format", "json").out)["runs"]
    assert (runs[1]["since_before"], runs[1]["word"]) == (None, "no evidence")


def test_only_whole_runs_count_and_damaged_ones_are_named(saved, caliper) -> None:
    saved.run("commit", task("PPP"), day=1)
    saved.run("commit", task("F--"), day=2, partial=True)
    saved.run("commit", task("F--"), day=3, interrupted=True)
    path = saved.run("commit", task("PPP"), day=4)
    path.write_bytes(b"{")
    told = caliper("history", "commit")
    assert [line[:10] for line in told.out.splitlines() if line.startswith("2026")] == ["2026-07-01"]
    assert "one run: there is nothing to tell a trend from yet" in told.out
    assert "day-4.json" in told.err


def test_the_newest_ones_unless_all_are_asked_for(saved, caliper) -> None:
    for day in range(1, 32):
        saved.run("commit", task("P"), day=day)
    short, whole = caliper("history", "commit").out, caliper("history", "commit", "--last", "0").out
    assert "30 of 31 runs: --last 0 shows all" in short
    assert "2026-07-01" not in short
    assert "2026-07-01" in whole
    assert json.loads(caliper("history", "commit", "--last", "2", "--format", "json").out)["saved"] == 31


def test_json_has_every_tasks_rates(saved, caliper) -> None:
    saved.run("commit", task("PPP", name="gone"), day=1)
    saved.run("commit", task("PFF", name="A"), day=2)
    found = json.loads(caliper("history", "commit", "--format", "json").out)
    assert found["tasks"] == [
        {"task_name": "A", "rates": [None, pytest.approx(1 / 3)]},
        {"task_name": "gone", "rates": [1.0, None]},
    ]


def test_markdown(saved, caliper) -> None:
    saved.run("commit", task("PPP"), day=1)
    saved.run("commit", task("PPF"), day=2, backend="codex", model=None)
    lines = caliper("history", "commit", "--format", "md").out.splitlines()
    assert lines[0] == "| When (UTC) | Rate | 95% interval | Passed | Δ pts |  | Changed |"
    assert "the engines differ" in lines[3]


@pytest.mark.parametrize("words", [("nothing",), ("unfinished",)])
def test_nothing_to_show_is_status_2(saved, caliper, words) -> None:
    saved.run("commit", task("PPP"))
    saved.run("unfinished", task("P--"), interrupted=True)
    told = caliper("history", *words)
    assert (told.status, told.out) == (2, "")
    assert told.err.count("\n") == 1
