from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import builders as b
import pytest

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import arm_figures
from pytest_caliper.reporting.html import write_html, write_html_comparison
from pytest_caliper.reporting.html.attempts import call_summary, turn_json
from pytest_caliper.reporting.html.markup import Markup, element, escaped, script_json
from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.records import AttemptRecord, Bar, ChangedFile, Durations, Run, TaskResult, Turn
from pytest_caliper.runs.store import save_run

HOSTILE = (
    "</script></style></textarea></title></pre><script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
    "<!--<script> --> ]]> &lt;b&gt; \" ' ` ${x} {{body}} \x1b[31mred\x1b]0;t\x07 \u202egpj.exe\u2069 \x00 \u2028 \u2029 \ud800 \x85"
)
VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """The page as a browser's parser sees it: start tags with their attributes, text by the element it stands in."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.open: list[str] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def of(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag and all(attrs.get(k) == v for k, v in wanted.items())]

    def classed(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for _, attrs in self.tags if name in (attrs.get("class") or "").split()]

    def blocks(self) -> list[dict[str, Any]]:
        """The attempts' data, in order."""
        return [
            json.loads(text) for text in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', self.source, re.S)
        ]

    def block(self, key: str) -> dict[str, Any]:
        (link,) = self.of("a", id=key)
        (text,) = re.findall(rf'<script type="application/json" id="{link["data-block"]}">(.*?)</script>', self.source, re.S)
        return dict(json.loads(text))

    def visible(self) -> str:
        hidden = {"script", "style", "title"}
        return re.sub(r"\s+", " ", " ".join(text for where, text in self.texts if not hidden.intersection(where)))


def saved(run: Run, directory: Path, turns: Sequence[Mapping[str, Any]] = ()) -> Path:
    directory.mkdir(exist_ok=True)
    side = directory / "turns.jsonl"
    side.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="ascii")

    def kept(results: tuple[TaskResult, ...] | None) -> Any:
        if results is None:
            return None
        return tuple(
            replace(result, attempts=tuple(replace(r, transcript_path=str(side)) for r in result.attempts)) for result in results
        )

    return save_run(replace(run, results=kept(run.results), baseline_results=kept(run.baseline_results)), directory)


def page(run: Run, directory: Path, turns: Sequence[Mapping[str, Any]] = ()) -> Page:
    out = io.StringIO()
    write_html(saved(run, directory, turns), out)
    return Page(out.getvalue())


def policy(found: Page) -> str:
    (meta,) = [attrs for attrs in found.of("meta") if attrs.get("http-equiv") == "Content-Security-Policy"]
    return str(meta["content"])


BOTH = b.run(
    b.task("PFPF", name="Writes a message"),
    b.task("PPCU", number=2, name="Names the break"),
    b.task("PP--", number=3, name="Says why"),
    baseline=(
        b.task("FFFF", name="Writes a message", arm="baseline"),
        b.task("PFFT", number=2, name="Names the break", arm="baseline"),
        b.task("PP--", number=3, name="Says why", arm="baseline"),
    ),
)


def test_the_page_is_whole_and_loads_nothing(tmp_path: Path) -> None:
    found = page(BOTH, tmp_path)
    assert found.open == []
    assert found.source.isascii()
    assert found.source.startswith("<!doctype html>")
    assert not [attrs for _, attrs in found.tags if attrs.get("src")]
    assert all(str(attrs["href"]).startswith("data:") for attrs in found.of("link"))
    assert all(str(attrs["href"]).startswith("#") for attrs in found.of("a"))
    assert not re.search(r"url\(|@import", found.source)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", found.source)  # the name of a format, not an address


def test_only_the_pages_own_script_and_style_may_run(tmp_path: Path) -> None:
    found = page(BOTH, tmp_path)
    told = policy(found)
    assert "default-src 'none'" in told
    assert "unsafe" not in told
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", found.source, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in told
    assert not [attrs for _, attrs in found.tags for name in attrs if name.startswith("on") or name == "style"]


def test_the_headline_is_that_of_the_terminal(tmp_path: Path) -> None:
    text = page(BOTH, tmp_path).visible()
    for results in (BOTH.results, BOTH.baseline_results or ()):
        figures = arm_figures(results)
        assert figures.suite is not None
        assert numbers.rate(figures.suite.rate) in text
        assert numbers.interval((figures.suite.low, figures.suite.high)) in text
        assert f"coverage {figures.usable}/{figures.planned}" in text
        assert f"{numbers.rate(figures.worst)} had the lost attempts failed" in text
    for told in (
        "claude-code:claude-sonnet-4-5",
        "claude-haiku-4-5",
        "pytest-caliper 0.1.0",
        "4 per task and arm",
        "no evidence",
    ):
        assert told in text


def test_every_attempt_has_its_square_its_data_and_its_link(tmp_path: Path) -> None:
    found = page(BOTH, tmp_path)
    squares = [attrs for attrs in found.classed("attempt") if "data-block" in attrs]
    records = [r for results in (BOTH.results, BOTH.baseline_results or ()) for t in results for r in t.attempts]
    assert len(squares) == len(records) == len(found.blocks()) == 20
    assert len({attrs["id"] for attrs in squares}) == 20
    assert len(found.of("span", title="not run")) == 4
    (failed,) = found.of("a", id="task-001/attempt-2")
    assert failed["href"] == "#task-001/attempt-2"
    assert failed["class"] == "attempt fail"
    assert failed["aria-label"] == "Attempt 2 failed"
    assert found.block("task-001/attempt-2")["attempt"]["reason"] == "assert port == 8080"
    (lost,) = found.of("a", id="task-002/baseline-4")
    assert lost["class"] == "attempt unusable base"
    assert found.block("task-002/baseline-4")["attempt"]["outcome"] == "timeout"


def test_reasons_stand_in_the_table_equal_ones_together(tmp_path: Path) -> None:
    other = b.record("F", attempt=3, reason="assert host == 'x'")
    task = b.task("FFFP")
    task = replace(task, attempts=(*task.attempts[:2], other, task.attempts[3]))
    text = page(b.run(task), tmp_path).visible()
    assert "attempts 1 2 assert port == 8080" in text
    assert "attempt 3 assert host == 'x'" in text


def test_many_reasons_are_not_all_told(tmp_path: Path) -> None:
    task = b.task("F" * 40)
    reasons = [replace(r, reason=f"reason {min(r.key.attempt, 9)}") for r in task.attempts]
    found = page(b.run(replace(task, attempts=tuple(reasons))), tmp_path)
    text = found.visible()
    assert "and 24 more reason 9" in text
    assert "6 more failing attempts, for 6 other reasons" in text
    assert not found.classed("dense")
    assert len(page(b.run(b.task("F" * 41)), tmp_path).classed("dense")) == 1


def test_failures_of_the_baseline_are_no_failures_of_the_skill(tmp_path: Path) -> None:
    found = page(BOTH, tmp_path)
    counts = {attrs["data-filter"]: attrs for attrs in found.of("button") if "data-filter" in attrs}
    text = found.visible()
    assert re.search(r"All 20 Failures 3 Cheats 1 Unusable 2", text)
    assert list(counts) == ["all", "failures", "cheat", "unusable"]


def test_what_one_attempt_shows(tmp_path: Path) -> None:
    record = b.record(
        "F",
        attempt=1,
        assert_passed=True,
        judge_votes=(False, None, True),
        durations=Durations(setup=0.2, agent=20.0, assert_=0.012, judge=3.0),
        changed_files=(
            ChangedFile(path="a.py", change="modified", size=4, text="new\n", before="old\n"),
            ChangedFile(path="b.bin", change="added", size=1),
            ChangedFile(path="c", change="deleted", size=0, before="gone"),
        ),
        cleanup_error="rm: no",
        transcript_truncated=True,
        retries=2,
        redactions=1,
        skills_used=("commit",),
    )
    turns = [
        {"role": "assistant", "content": "Looking."},
        {"role": "tool_use", "content": "", "tool_name": "Bash", "tool_input": {"timeout": 5, "command": "make\nmake test"}},
        {"role": "tool_result", "content": "", "tool_name": "Bash", "tool_output": "ok\r\nok"},
    ]
    task = replace(b.task("F"), attempts=(record,))
    block = page(b.run(task), tmp_path, turns).block("task-001/attempt-1")
    shown = block["attempt"]
    assert shown["checks"] == [
        {"check": "assert", "passed": True, "text": ""},
        {
            "check": "judge",
            "passed": False,
            "text": "The message has no type.",
            "votes": [False, None, True],
            "model": "claude-haiku-4-5",
        },
    ]
    assert [(f["path"], f["change"], f["size"], f["text"], f["before"]) for f in shown["files"]] == [
        ("a.py", "modified", "4 bytes", "new\n", "old\n"),
        ("b.bin", "added", "1 byte", None, None),
        ("c", "deleted", "", None, "gone"),
    ]
    facts = dict(shown["facts"])
    assert facts["Time"] == "22s in all · setup 0.2s · agent 20s · assert 12ms · judge 3.0s"
    assert facts["Tokens"] == "1.0K in · 40K read from cache · 10K written to cache · 2.0K out"
    assert facts["Retries"] == "2"
    assert facts["Redacted"] == "1 secret"
    assert shown["warnings"] == ["The task's cleanup failed: rm: no", "The transcript is not complete."]
    assert block["turns"] == [
        {"role": "assistant", "text": "Looking."},
        {
            "role": "tool_use",
            "tool": "Bash",
            "about": "make make test",
            "input": [["timeout", "5"], ["command", "make\nmake test"]],
        },
        {"role": "tool_result", "tool": "Bash", "output": "ok\nok"},
    ]


def hostile_run() -> Run:
    said = HOSTILE
    texts = ("reason", "output", "assert_evidence", "autorater_reasoning", "cleanup_error", "fatal", "model", "judge_model")
    record = b.record(
        "F",
        assert_passed=False,
        cli_version=said,
        judge_cli_version=said,
        cheat_evidence=(said,),
        skills_reported=(said,),
        skills_used=(said,),
        mcp_reported=(said,),
        changed_files=(ChangedFile(path=said, change="modified", size=1, text=said, before=said),),
        **dict.fromkeys(texts, said),
    )
    key = replace(record.key, task_id=said)
    attempts = (
        replace(record, key=key),
        replace(record, key=replace(key, attempt=2), outcome="cheat"),
        replace(record, key=replace(key, attempt=3), outcome="infra_error"),
    )
    task = TaskResult(
        task_id=said, task_name=said, arm="skill", planned=3, attempts=attempts, prompt=said, expect=said, assert_=said
    )
    made = b.run(task, spec=said, backend=said, model=said, judge_backend=said, judge_model=said, pytest_caliper=said)
    return replace(made, meta=replace(made.meta, selected_tasks=(said,), cli_version=said, judge_cli_version=said, id="x"))


HOSTILE_TURNS = [
    {"role": "user", "content": HOSTILE},
    {
        "role": "tool_use",
        "content": HOSTILE,
        "tool_name": HOSTILE,
        "tool_input": {HOSTILE: {HOSTILE: [HOSTILE]}, "command": HOSTILE},
    },
    {"role": "tool_result", "content": HOSTILE, "tool_name": HOSTILE, "tool_output": HOSTILE},
    {"role": "assistant", "content": HOSTILE},
]


@pytest.mark.parametrize("compared", [False, True])
def test_hostile_words_stay_words(tmp_path: Path, compared: bool) -> None:
    out = io.StringIO()
    path = saved(hostile_run(), tmp_path / "run", HOSTILE_TURNS)
    if compared:
        write_html_comparison(saved(BOTH, tmp_path / "before"), path, out)
    else:
        write_html(path, out)
    found = Page(out.getvalue())
    clean = Page(_plain_page(tmp_path, compared))
    assert found.open == []
    assert found.comments == []
    assert {tag for tag, _ in found.tags} <= {tag for tag, _ in clean.tags} | {"noscript"}
    assert not found.of("img")
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    assert len(re.findall(r"<script[ >]", found.source)) == len(found.blocks()) + 1
    assert found.source.isascii()
    for block in found.blocks():
        _nothing_unseen(block)
    for _, text in found.texts:
        _nothing_unseen(text)
    for _, attrs in found.tags:
        _nothing_unseen(list(attrs.values()))
    assert "\\u202egpj.exe\\u2069" in found.visible()
    assert "<img src=x onerror=window.pwned=1>" in found.visible()


def _plain_page(tmp_path: Path, compared: bool) -> str:
    out = io.StringIO()
    path = saved(b.run(b.task("FCU"), selected_tasks=("x",)), tmp_path / "plain")
    if compared:
        write_html_comparison(saved(BOTH, tmp_path / "again"), path, out)
    else:
        write_html(path, out)
    return out.getvalue()


def _nothing_unseen(value: Any) -> None:
    """No control character, bidirectional override, line separator or surrogate in any text."""
    if isinstance(value, str):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", value), ascii(
            value
        )
    elif isinstance(value, dict):
        _nothing_unseen([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            _nothing_unseen(item)


def test_markup_is_made_at_one_place() -> None:
    assert (
        element("p", "<b>", Markup("<i>"), class_='"x"', hidden=True, id=None)
        == '<p class="&quot;x&quot;" hidden>&lt;b&gt;<i></p>'
    )
    assert escaped("é\x00\ud800") == "&#233;\\x00\\ud800"
    assert escaped(escaped("<")) == "&lt;"
    text = script_json(["</script>", "<!--", "&", "\u2028é"])
    assert not re.search("[<>&]", text)
    assert text.isascii()
    assert json.loads(text) == ["</script>", "<!--", "&", "\u2028é"]
    with pytest.raises(ValueError, match="compliant"):
        script_json(float("nan"))


def test_a_page_fits_every_encoding(tmp_path: Path) -> None:
    path = saved(b.run(b.task("F", name="Grüße an 世界 👋", reason="ß ✗")), tmp_path, [{"role": "assistant", "content": "世界"}])
    with open(tmp_path / "page.html", "w", encoding="ascii") as out:
        write_html(path, out)
    found = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Grüße an 世界 👋" in found.visible()
    assert found.blocks()[0]["turns"][0]["text"] == "世界"


@pytest.mark.parametrize(
    ("tool_input", "about"),
    [
        ({"description": "Lists", "command": "ls  -l\n"}, "ls -l"),
        ({"old": 1, "file_path": "/a"}, "/a"),
        ({"other": "x", "n": 2}, "x"),
        ({"n": 2, "command": ["ls"]}, ""),
        ({}, ""),
        ({"command": "x" * 1_000_000}, "x" * 200 + "…"),
    ],
)
def test_a_call_is_told_in_a_line(tool_input: dict[str, Any], about: str) -> None:
    assert call_summary(tool_input) == about


def test_a_turn_says_no_more_than_it_has() -> None:
    assert turn_json(Turn(role="tool_result", tool_output="")) == {"role": "tool_result", "output": ""}


def test_a_run_without_tasks_or_baseline_or_verdict_has_a_page(tmp_path: Path) -> None:
    empty = page(b.run(), tmp_path / "empty")
    assert empty.blocks() == []
    assert numbers.UNKNOWN in empty.visible()
    single = page(b.run(b.task("PF")), tmp_path / "single")
    assert "With the skill" not in single.visible()
    assert "Δ" not in single.visible()
    lost = page(b.run(b.task("UU-"), interrupted=True), tmp_path / "lost").visible()
    assert "interrupted: 2 of 3 planned attempts ran" in lost
    assert "UNMEASURED" in lost


def test_a_bar_is_told_with_its_verdict(tmp_path: Path) -> None:
    task = replace(b.task("PPF"), bar=Bar(rate=Fraction(4, 5), policy="point", min_coverage=Fraction(1, 2)))
    found = page(b.run(task), tmp_path)
    assert "bar 80%: missed" in found.visible()
    assert found.classed("note")[0]["class"] == "note bad"


AFTER = b.run(
    b.task("PPPPPPPP", name="Writes a message"),
    b.task("PF", number=2, name="New one"),
    b.task("PP", number=3, name="Changed"),
    id="after",
    timestamp="2026-11-21T10:00:00Z",
    model="claude-opus-5",
)
BEFORE = b.run(
    b.task("FFFFFFFF", name="Writes a message"),
    b.task("PF", number=2, name="Old one"),
    replace(b.task("PP", number=3, name="Changed"), prompt="Another prompt."),
    id="before",
)


def test_two_runs_side_by_side(tmp_path: Path) -> None:
    out = io.StringIO()
    write_html_comparison(saved(BEFORE, tmp_path / "a"), saved(AFTER, tmp_path / "b"), out)
    found = Page(out.getvalue())
    text = found.visible()
    assert found.open == []
    assert text.index("Before 0.0%") < text.index("After 100.0%")
    assert "+100.0 pts" in text
    assert "better" in text
    assert "the engines differ: claude-code:claude-sonnet-4-5 → claude-code:claude-opus-5" in text
    assert "not comparable: prompt changed" in text
    assert "only before: no task of this name in the other run" in text
    assert "only after: no task of this name in the other run" in text
    assert found.block("before/task-001/attempt-3")["attempt"]["outcome"] == "task_fail"
    assert found.block("after/task-001/attempt-3")["attempt"]["outcome"] == "pass"
    assert len(found.blocks()) == 24
    assert {attrs["data-of"] for attrs in found.of("pre") if "data-of" in attrs} == {"before/", "after/"}


def test_transcripts_are_streamed(tmp_path: Path) -> None:
    """Twenty times the attempts take no more memory than the records themselves do."""
    turns = [{"role": "tool_result", "content": "", "tool_name": "Bash", "tool_output": "x" * 50_000}] * 4
    path = saved(b.run(*(b.task("PF" * 10, number=n) for n in range(1, 6))), tmp_path, turns)

    class Sink(io.StringIO):
        size = 0

        def write(self, text: str) -> int:
            self.size += len(text)
            return len(text)

        def writelines(self, lines: Any) -> None:
            for line in lines:
                self.write(line)

    out = Sink()
    write_html(path, out)  # everything is imported
    tracemalloc.start()
    write_html(path, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert out.size > 2 * 100 * 200_000
    assert peak < 4_000_000


def test_a_damaged_transcript_is_told_as_one(tmp_path: Path) -> None:
    path = saved(b.run(b.task("P")), tmp_path, [{"role": "assistant", "content": "x"}])
    path.write_bytes(path.read_bytes().replace(b'{"role": "assistant"', b'{"role" "assistant"'))
    with pytest.raises(RunFileError, match="damaged transcript"):
        write_html(path, io.StringIO())


def test_the_record_is_told_completely() -> None:
    """A field that is added to records is shown, or named here as one that is not."""
    from pytest_caliper.reporting.html import attempts

    source = Path(attempts.__file__).read_text(encoding="utf-8")
    not_shown = {"started", "task_name", "transcript_path", "foreign"}
    missing = [name for name in AttemptRecord.__dataclass_fields__ if f".{name}" not in source and name not in not_shown]
    assert missing == []


RECORDED = sorted((Path(__file__).parents[1] / "recordings/caliper_eval").rglob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_caliper_eval_have_pages(path: Path) -> None:
    out = io.StringIO()
    write_html(path, out)
    found = Page(out.getvalue())
    assert found.open == []
    links = [attrs["data-block"] for attrs in found.classed("attempt") if "data-block" in attrs]
    assert links
    assert len(links) == len(found.blocks())
    out = io.StringIO()
    write_html_comparison(path, path, out)
    assert "both are the same run" in Page(out.getvalue()).visible()
