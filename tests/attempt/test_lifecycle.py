"""What is kept of an attempt is bounded, whoever's harness it was."""

from __future__ import annotations

from pytest_caliper.attempt.lifecycle import MAX_OUTPUT, MAX_TRANSCRIPT, bounded_turns
from pytest_caliper.runs.records import Turn


def test_short_turns_are_kept_as_they_are() -> None:
    turns = [Turn(role="user", content="a"), Turn(role="tool_result", tool_name="Bash", tool_output="b")]
    assert bounded_turns(turns) == (turns, False)


def test_a_long_text_is_cut_and_says_so() -> None:
    (turn,), cut = bounded_turns([Turn(role="assistant", content="x" * (MAX_OUTPUT + 5), tool_output="y" * (2 * MAX_OUTPUT))])
    assert cut
    assert turn.content.endswith("x\n[… 5 characters cut …]")
    assert turn.tool_output is not None
    assert turn.tool_output.endswith(f"[… {MAX_OUTPUT} characters cut …]")


def test_a_long_transcript_ends_early_and_says_so() -> None:
    one = Turn(role="assistant", content="x" * MAX_OUTPUT)
    kept, cut = bounded_turns([one] * (MAX_TRANSCRIPT // MAX_OUTPUT + 3))
    assert cut
    assert len(kept) == MAX_TRANSCRIPT // MAX_OUTPUT
