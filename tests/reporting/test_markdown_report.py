"""The report as GitHub shows it: read back by a Markdown parser, so that what is claimed of hostile text is seen in the tree."""

from __future__ import annotations

import itertools
from fractions import Fraction

import builders as b
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_caliper.reporting.comparing import compare_runs
from pytest_caliper.reporting.markdown import LEAST, LIMIT, render_markdown, render_markdown_comparison
from pytest_caliper.reporting.markup import block, cell, code, html_code, marker, size
from pytest_caliper.runs.records import Bar

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HARMLESS = {"details", "/details", "summary", "/summary", "code", "/code", "sub", "/sub", "br"}
PIECES = [
    *(
        "`",
        "``",
        "```",
        "````",
        "|",
        "\\",
        "\\|",
        "\n",
        "\n\n",
        "\r",
        "\t",
        " ",
        "    ",
        "~~~",
        "---",
        "- ",
        "1. ",
        "> ",
        "=",
        "#",
    ),
    *(
        "</details>",
        "</summary>",
        "</code>",
        "</pre>",
        "<img src=x onerror=alert(1)>",
        "<script>",
        "<!--",
        "-->",
        "<",
        "&lt;",
        "&#64;",
    ),
    *("@octocat", "#1", "GH-7", "https://evil.example", "www.evil.example", "me@evil.example", "[a](http://evil.example)"),
    *("![i](http://evil.example/x.png)", "[a]: http://evil.example", "*", "_", "$x$", ":tada:", "text"),
    *("\x00", "\x1b[31m", "\u2028", "\u202e", "\ud800", "😀", "日本", "::error::x"),
]
hostile = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)


def tokens(markdown: str) -> list[Token]:
    """All tokens, those inside of others too."""
    return [inner for token in PARSER.parse(markdown) for inner in (token, *(token.children or ()))]


def prose(markdown: str) -> str:
    """What is neither code nor HTML."""
    return "\n".join(token.content for token in tokens(markdown) if token.type == "text")


def tags(markdown: str) -> list[str]:
    """Names of all HTML tags that the report makes, comments and the texts between them left out."""
    found = []
    for token in tokens(markdown):
        if token.type in {"html_block", "html_inline"} and not token.content.startswith("<!-- pytest-caliper:"):
            found += [piece.split(">")[0].strip(" /") for piece in token.content.split("<")[1:]]
    return [tag.removeprefix("/") for tag in found]


def table(markdown: str) -> list[list[str]]:
    """The cells of the report's table, as Markdown."""
    rows: list[list[str]] = []
    for token, after in zip(parsed := PARSER.parse(markdown), parsed[1:], strict=False):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in {"th_open", "td_open"}:
            rows[-1].append(after.content)
    return rows


def hostile_run(texts: list[str], **changes: object):
    text = itertools.cycle(texts)
    told = {
        name: next(text)
        for name in ("reason", "output", "assert_evidence", "autorater_reasoning", "cleanup_error", "fatal", "model")
    }
    told |= {"assert_passed": False, "autorater_passed": False, "cheat_evidence": (next(text),)}
    one = b.task("PFT", name=next(text), expect=next(text), **told)
    two = b.task("CJU-", number=2, name=next(text), **told)
    meta = {name: next(text) for name in ("spec", "id", "model", "judge_model", "cli_version", "judge_cli_version")}
    return b.run(one, two, selected_tasks=(next(text),), **meta, **changes)


# -- what it says ---------------------------------------------------------------------------------------------------------------


def test_the_answer_comes_first():
    made = b.run(b.task("PPF"), b.task("PPP", number=2, name="Two"))
    lines = render_markdown(made).splitlines()

    assert lines[0] == "<!-- pytest-caliper:evals/commit.eval.yaml -->"
    assert lines[2] == "### `evals/commit.eval.yaml`: a single run passes 83.3% of the time, 95% interval [43.6, 97.0]"
    assert lines[4] == "5/6 passed · coverage 6/6"


def test_with_a_baseline_it_says_what_the_skill_adds():
    base = tuple(b.task("FFFFF", number=n, name=f"T{n}", arm="baseline") for n in (1, 2))
    made = b.run(*(b.task("PPPPP", number=n, name=f"T{n}") for n in (1, 2)), baseline=base)
    text = render_markdown(made)

    assert "**What the skill adds:** Δ +100.0 pts [" in text
    assert "]: better with the skill (p < 0.001)" in text
    assert "skill: 10/10 passed · coverage 10/10" in text
    assert "no skill: 0/10 passed" in text
    assert [row[:2] for row in table(text)] == [
        ["Task", ""], ["`T1`", "skill"], ["", "no skill"], ["`T2`", "skill"], ["", "no skill"], ["**All tasks**", "skill"], ["", "no skill"],
    ]  # fmt: skip


def test_bars_are_told_at_the_top():
    bar = Bar(rate=Fraction(4, 5), policy="point", min_coverage=Fraction(1, 2))
    text = render_markdown(b.run(b.task("PPF", bar=bar), b.task("PPP", number=2, bar=bar), b.task("FFF", number=3)))

    assert text.splitlines()[4] == "**Bars:** 1 of 2 tasks reached theirs  "
    assert "`bar 80%: missed`" in text


def test_lost_attempts_are_told_with_what_they_could_have_changed():
    text = render_markdown(b.run(b.task("PU-")))

    assert "1/1 passed · coverage 1/3 · 1 unusable · 1 not run · **worst case** 33.3% had the lost attempts failed" in text
    assert "rate limit: 429 Too Many Requests; 1 not run" in text


def test_nothing_measured_has_no_rate():
    text = render_markdown(b.run(b.task("UUU")))

    assert "### `evals/commit.eval.yaml`: nothing was measured" in text
    assert "UNMEASURED" in text
    assert "0.0%" not in table(text)[1][2]


def test_each_failing_attempt_is_folded_with_its_reasons():
    text = render_markdown(
        b.run(b.task("PFC", expect="The message has a type.", assert_passed=False, assert_evidence="assert 1 == 2"))
    )

    assert text.count("<details>") == text.count("</details>") == 2
    assert "✗ <code>Writes a conventional commit message</code> attempt-2: <code>assert port == 8080</code></summary>" in text
    for shown in ("assert 1 == 2", "The message has a type.", "The message has no type.", "I committed the change."):
        assert f"```text\n{shown}\n```" in text
    assert "✂ <code>" in text


def test_a_passing_run_has_nothing_to_unfold():
    assert "<details>" not in render_markdown(b.run(b.task("PPP")))


def test_failures_without_the_skill_are_expected_and_not_explained():
    assert "<details>" not in render_markdown(b.run(b.task("PPP"), baseline=(b.task("FFF", arm="baseline"),)))


def test_the_end_tells_cost_engine_judge_and_versions():
    made = b.run(b.task("PPP"), cli_version="2.1.332", judge_cli_version="2.1.400")
    end = render_markdown(made).splitlines()[-1]

    for told in ("153K in / 6.0K out tokens", "1m 00s · 20s per attempt", "k=3", "`claude-code:claude-sonnet-4-5`", "`2.1.332`"):
        assert told in end
    for told in ("`judge claude-code:claude-haiku-4-5`", "`2.1.400`", "pytest-caliper `0.1.0`", "run `7f3a`"):
        assert told in end


def test_no_path_of_the_machine_is_in_it():
    assert "/root/" not in render_markdown(b.run(b.task("PFP"), saved="/root/secret/place/7f3a.json"))


# -- what it never does ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(hostile, min_size=3, max_size=9), st.booleans())
def test_hostile_text_stays_text(texts: list[str], compared: bool):
    made = hostile_run(texts)
    text = render_markdown_comparison(compare_runs(made, hostile_run(texts[::-1]))) if compared else render_markdown(made)

    assert set(tags(text)) <= HARMLESS
    assert not [token for token in tokens(text) if token.type in {"link_open", "image"}]
    for mark in ("@", "#1", "GH-", "evil", ":tada:", "$"):
        assert mark not in prose(text)
    unfolded = [token.content for token in PARSER.parse(text) if token.type == "html_block"]
    assert sum(html.startswith("<details>") for html in unfolded) == unfolded.count("</details>\n")
    assert len({len(row) for row in table(text)}) <= 1
    text.encode()


@settings(deadline=None)
@given(hostile)
def test_code_holds_the_whole_text(text: str):
    (paragraph,) = [token for token in PARSER.parse(f"a {code(text)} b") if token.type == "inline"]

    assert [child.type for child in paragraph.children or ()] == ["text", "code_inline", "text"]


@settings(deadline=None)
@given(hostile)
def test_a_cell_is_one_cell(text: str):
    rows = table(f"| a | b |\n| - | - |\n| {cell(text)} | end |\n")

    assert len(rows[1]) == 2
    assert rows[1][1] == "end"


@settings(deadline=None)
@given(hostile)
def test_a_block_ends_where_it_should(text: str):
    parsed = PARSER.parse(f"{block(text)}\n\nend\n")

    assert [token.type for token in parsed] == ["fence", "paragraph_open", "inline", "paragraph_close"]


@settings(deadline=None)
@given(hostile)
def test_html_code_makes_no_tags(text: str):
    assert html_code(text).count("<") == 2


def test_long_texts_in_a_line_are_cut_and_say_so():
    assert code("a" * 500, chars=10) == "`aaaaaaaaaa…`"
    assert code("") == "`—`"


@pytest.mark.parametrize(
    "spec", ["a.eval.yaml", "a--b.eval.yaml", "a-->b.eval.yaml", "a b.eval.yaml", "ü\ud800.eval.yaml", "-.eval.yml"]
)
def test_a_marker_is_one_html_comment_and_its_specs_own(spec):
    made = marker(spec)

    assert made.startswith("<!-- pytest-caliper:")
    assert made.endswith(" -->")
    assert "--" not in made[4:-3]
    assert made.isascii()
    assert made != marker(f"x{spec}")


# -- the limit ------------------------------------------------------------------------------------------------------------------


def test_a_large_run_fits_and_says_what_is_missing():
    tasks = [b.task("PFF" if n % 2 else "PPP", number=n, name=f"Task number {n}", output="word " * 500) for n in range(1, 301)]
    text = render_markdown(b.run(*tasks, baseline=tuple(b.task("FFF", number=n, arm="baseline") for n in range(1, 301))))

    assert LIMIT * 0.8 < size(text) <= LIMIT
    assert text.count("<details>") == text.count("</details>") > 5
    shown = len(table(text)) - 3
    assert f"_{300 - shown // 2} of 300 tasks left out here for want of room._" in text
    assert "of 300 failing attempts left out here" in text


def test_what_passed_is_left_out_first():
    passing = [b.task("PPP", number=n, name=f"Passes {n} {'x' * 150}") for n in range(1, 200)]
    text = render_markdown(b.run(*passing, b.task("FFF", number=500, name="Fails last")))

    assert "| `Fails last` |" in text
    assert "<code>Fails last</code> attempt-1" in text


def test_each_task_gets_a_reason_before_any_gets_two():
    long = {"output": "o" * 3000, "autorater_reasoning": "r" * 3000}
    text = render_markdown(b.run(*(b.task("FFF", number=n, name=f"T{n}", **long) for n in range(1, 9))), limit=45_000)

    assert [f"<code>T{n}</code> attempt-1" in text for n in range(1, 9)] == [True] * 8
    assert "left out here" in text


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(["`" * 2000, "😀" * 2000, "\ud800" * 2000, "|" * 2000, "`|\n" * 900, "<&>" * 900]), st.integers(1, 12))
def test_the_least_limit_holds_whatever_the_texts_are(text: str, count: int):
    made = hostile_run([text])
    many = b.run(*(b.task("FU-", number=n, name=text, reason=text, cleanup_error=text) for n in range(count)), spec=text)

    assert size(render_markdown(made, limit=LEAST)) <= LEAST
    assert size(render_markdown(many, limit=LEAST)) <= LEAST
    assert size(render_markdown_comparison(compare_runs(made, many), limit=LEAST)) <= LEAST


def test_a_limit_that_cannot_be_held_is_refused():
    with pytest.raises(ValueError, match="at least 16,000"):
        render_markdown(b.run(b.task("P")), limit=LEAST - 1)


# -- two runs -------------------------------------------------------------------------------------------------------------------


def test_a_comparison_begins_with_its_word():
    before = b.run(*(b.task("PPPPP", number=n, name=f"T{n}") for n in range(1, 5)), id="aaaa")
    after = b.run(*(b.task("FFFFF", number=n, name=f"T{n}") for n in range(1, 5)), id="bbbb", k=5)
    lines = render_markdown_comparison(compare_runs(before, after)).splitlines()

    assert lines[0] == "<!-- pytest-caliper:evals/commit.eval.yaml%23compare -->"
    assert lines[2] == "### `evals/commit.eval.yaml`: worse"
    assert lines[4].startswith("Δ -100.0 pts")
    assert "before: **100.0%**" in lines[5]
    assert "after: **0.0%**" in lines[6]


def test_a_comparison_names_what_is_not_comparable_unmatched_or_different():
    before = b.run(
        b.task("PPP", name="Edited", prompt="one"), b.task("PPP", number=2, name="Gone"), b.task("UUU", number=3, name="Lost")
    )
    after = b.run(
        b.task("PPF", name="Edited", prompt="two"),
        b.task("PFP", number=3, name="Lost"),
        b.task("P", number=4, name="New"),
        model="opus",
    )
    text = render_markdown_comparison(compare_runs(before, after))
    rows = {cells[0]: cells[-1] for cells in table(text)}

    assert rows["`Edited`"] == "not comparable: prompt changed"
    assert rows["`Lost`"] == "not measured on both sides"
    assert "- only before: `Gone` ✓✓✓ 100.0%" in text
    assert "- only after: `New` ✓ 100.0%" in text
    assert "the engines differ: claude-code:claude-sonnet-4-5 → claude-code:opus" in text


def test_nothing_to_compare_is_said():
    text = render_markdown_comparison(compare_runs(b.run(b.task("PPP", name="A")), b.run(b.task("PPP", name="B"))))

    assert ": nothing can be compared" in text
