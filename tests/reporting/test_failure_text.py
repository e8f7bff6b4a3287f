from __future__ import annotations

from typing import Any

from builders import record

from pytest_caliper.reporting.failures import render_failure
from pytest_caliper.reporting.style import Style
from pytest_caliper.runs.records import ChangedFile

WHERE = "evals/commit.eval.yaml:8"


def text_of(
    letter: str = "F", *, unicode: bool = True, expect: str | None = None, transcript: str | None = None, **changes: Any
) -> str:
    style = Style(width=80, color=True, unicode=unicode)
    return render_failure(record(letter, **changes), location=WHERE, expect=expect, transcript=transcript, style=style)


def test_a_failed_assert() -> None:
    text = text_of(
        reason="assert 3000 == 8080",
        assert_passed=False,
        assert_evidence=">   assert port == 8080\nE   assert 3000 == 8080",
        autorater_passed=None,
        autorater_reasoning=None,
        changed_files=(
            ChangedFile(path="app.json", change="modified", size=24),
            ChangedFile(path="old\n.txt", change="deleted", size=0),
        ),
        transcript="caliper report evals/commit.eval.yaml",
    )

    assert text == (
        "evals/commit.eval.yaml:8: assert 3000 == 8080\n"
        "\n"
        "The agent's answer:\n"
        "  I committed the change.\n"
        "\n"
        "assert, failed:\n"
        "  >   assert port == 8080\n"
        "  E   assert 3000 == 8080\n"
        "\n"
        "Changed files:\n"
        "  modified app.json (24 bytes)\n"
        "  deleted  old .txt\n"
        "\n"
        "Transcript:\n"
        "  caliper report evals/commit.eval.yaml"
    )


def test_a_failed_expect() -> None:
    text = text_of(expect="The message has\na type.")

    assert "\nexpect, failed:\n  The message has\n  a type.\n" in text
    assert text.endswith("\nThe judge's reasons:\n  The message has no type.")
    assert "assert, failed" not in text


def test_a_check_that_held_is_not_shown() -> None:
    text = text_of(assert_passed=True, assert_evidence="fine", expect="Good.")

    assert "fine" not in text
    assert "expect, failed:\n  Good." in text


def test_a_cheat() -> None:
    text = text_of("C", cheat_evidence=("cat secret.txt", "open(\x1b[1msecret.txt)"))

    assert text.startswith(f"{WHERE}: read the forbidden file secret.txt\n")
    assert "\nWhat it must not do, and did:\n  cat secret.txt\n  open(\\x1b[1msecret.txt)" in text


def test_the_first_line_is_one_line() -> None:
    assert text_of(reason="first\nsecond\x1b[2J").startswith(f"{WHERE}: first second\\x1b[2J\n\n")
    assert text_of(reason=None).startswith(f"{WHERE}: task_fail\n")


def test_answers_are_inert_bounded_and_marked_as_cut() -> None:
    text = text_of(output="\x1b[31mred\u202e [bold]x[/bold]\r\n" + "y" * 10_000)

    assert "  \\x1b[31mred\\u202e [bold]x[/bold]\n" in text
    assert "\n  [cut here: " in text
    assert len(text) < 5_000
    many = text_of(output="line\n" * 1_000)
    assert many.count("  line\n") == 40
    assert "[cut here: 4,800 more characters]" in many


def test_no_answer() -> None:
    assert "The agent's answer:\n  (none)\n" in text_of(output="")


def test_many_files_are_counted() -> None:
    files = tuple(ChangedFile(path=f"f{i}", change="added", size=1) for i in range(25))

    text = text_of(changed_files=files)

    assert "  added    f19 (1 byte)\n  and 5 more files" in text
    assert "f20" not in text


def test_cleanup_and_a_cut_transcript_are_told() -> None:
    text = text_of(cleanup_error="exit status 3", transcript="run.json", transcript_truncated=True)

    assert "\nThe task's cleanup failed too:\n  exit status 3\n" in text
    assert text.endswith("\nTranscript:\n  run.json (its end was cut off)")


def test_no_colour_whatever_the_style_and_ascii_where_it_must_be() -> None:
    text = text_of(output="naïve ✓ 日本", unicode=False)

    assert "\x1b" not in text
    assert "na\\xefve \\u2713 \\u65e5\\u672c" in text
    text.encode("ascii")


def test_lone_surrogates_can_be_written() -> None:
    text_of(output="\ud800", reason="\udcff", expect="\udfff").encode("utf-8")
