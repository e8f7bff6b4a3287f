"""`caliper report`: a saved run again, found by any of its names, in every format."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from builders import task

from pytest_caliper.runs.journal import Journal


def test_the_summary_as_after_the_run_and_why_attempts_failed(saved, caliper) -> None:
    saved.run("commit", task("PFC", assert_passed=None), task("PPP", number=2, name="Signs off"))
    told = caliper("report", "commit")
    assert told.status == 0
    lines = told.out.splitlines()
    assert lines[0].startswith("commit.eval.yaml")
    assert "Attempts    4/6 passed · coverage 6/6" in lines
    assert "Saved       .caliper/results/commit/2026-07-01T10-00-00Z-day-1.json" in lines
    assert "── Writes a conventional commit message, attempt-2 ─" in told.out
    assert "commit.eval.yaml::Writes a conventional commit message::attempt-2: assert port == 8080" in lines
    assert "  The message has no type." in lines
    assert "── Writes a conventional commit message, attempt-3 ─" in told.out
    assert "attempt-1 ─" not in told.out


def test_many_failures_are_cut_until_all_are_asked_for(saved, caliper) -> None:
    saved.run("commit", task("F" * 9))
    short, whole = caliper("report", "commit").out, caliper("report", "commit", "--verbose").out
    assert short.count("The agent's answer:") == 5
    assert short.endswith("4 more failing attempts: --verbose shows all, --format html with transcripts\n")
    assert whole.count("The agent's answer:") == 9


def test_lost_attempts_and_the_baseline_are_no_failures_of_the_skill(saved, caliper) -> None:
    saved.run("commit", task("PPU"), baseline=(task("FFF", arm="baseline"),))
    out = caliper("report", "commit").out
    assert "The agent's answer:" not in out
    assert "1 of 3 lost" in out
    assert "better with the skill" in out or "no evidence of a difference" in out


class TestWhichRun:
    """What a run may be called."""

    @pytest.fixture
    def three(self, saved):
        for day, strip in enumerate(("FFF", "PFF", "PPP"), 1):
            saved.run("evals/commit", task(strip), day=day)
        return saved

    @pytest.mark.parametrize(
        ("name", "rate"),
        [
            ("commit", "100.0%"),
            ("evals/commit", "100.0%"),
            ("commit~1", "33.3%"),
            ("evals/commit.eval.yaml~2", "0.0%"),
            ("day-2", "33.3%"),
            (".caliper/results/evals/commit/2026-07-01T10-00-00Z-day-1.json", "0.0%"),
            (".caliper/results/evals/commit", "100.0%"),
        ],
    )
    def test_it_is_found(self, three, caliper, name, rate) -> None:
        assert f"  {rate}" in caliper("report", name).out

    def test_partial_and_interrupted_runs_are_never_the_latest_but_have_names(self, three, caliper) -> None:
        three.run("evals/commit", task("F--"), day=8, partial=True)
        path = three.run("evals/commit", task("F--"), day=9, interrupted=True)
        assert "day-3" in caliper("report", "commit").out
        assert "interrupted: 1 of 3 planned attempts ran" in caliper("report", "day-9").out
        assert "interrupted: 1 of 3 planned attempts ran" in caliper("report", str(path)).out

    @pytest.mark.parametrize("kept", [slice(0), slice(50), slice(-200), slice(-3)])
    def test_a_damaged_latest_run_is_named_and_the_one_before_is_shown(self, three, caliper, kept) -> None:
        path = three.root / ".caliper/results/evals/commit/2026-07-03T10-00-00Z-day-3.json"
        path.write_bytes(path.read_bytes()[kept])
        told = caliper("report", "commit")
        assert told.status == 0
        assert "left out" in told.err
        assert "day-3.json" in told.err
        assert "day-2" in told.out

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("commit~3", "caliper: evals/commit~3: there is no such run, evals/commit has 3 complete runs"),
            ("comit", "did you mean evals/commit?"),
            ("no.json", "caliper: no.json: there is no such file"),
            ("day", "several runs have an id that begins so"),
        ],
    )
    def test_what_is_not_there_is_status_2(self, three, caliper, name, says) -> None:
        told = caliper("report", name)
        assert (told.status, told.out) == (2, "")
        assert says in told.err
        assert told.err.count("\n") == 1

    def test_a_journal_is_told_how_to_go_on(self, three, caliper) -> None:
        journal = Journal.create(three.root / ".caliper/results/evals/commit", "2026-07-05T10-00-00Z-x", {"k": 3})
        journal.close()
        told = caliper("report", str(journal.path))
        assert told.status == 2
        assert f"caliper run SPEC --resume-from {journal.path}" in told.err

    def test_only_an_unfinished_run(self, saved, caliper) -> None:
        saved.run("commit", task("F--"), interrupted=True)
        told = caliper("report", "commit")
        assert told.status == 2
        assert "commit: no complete run; 1 unfinished or partial, such as .caliper/results/commit/partial/" in told.err

    @pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"run": 3}', b"[" * 100_000])
    def test_a_file_that_is_no_run_is_one_line(self, saved, caliper, content) -> None:
        (saved.root / "x.json").write_bytes(content)
        for name in ("text", "json", "md", "junit", "html"):
            told = caliper("report", "x.json", "--format", name)
            assert told.status == 2
            assert told.err.startswith("caliper: x.json: ")
            assert told.err.count("\n") == 1


# -- formats --------------------------------------------------------------------------------------------------------------------


def test_json_is_the_file_with_totals(saved, caliper, tmp_path) -> None:
    side = tmp_path / "turns.jsonl"
    side.write_text(json.dumps({"role": "assistant", "content": "\x1b[2J hi"}) + "\n")
    path = saved.run("commit", task("PFU", transcript_path=str(side)), baseline=(task("FF", arm="baseline"),))
    out = caliper("report", "commit", "--format", "json").out
    report, kept = json.loads(out), json.loads(path.read_bytes())
    assert {name: report[name] for name in kept} == kept
    assert report["task_results"][0]["attempts"][0]["transcript"] == [{"role": "assistant", "content": "\x1b[2J hi"}]
    assert "\x1b" not in out
    # What caliper-eval 0.9.0 prints for the same attempts.
    assert (
        report["usage_totals"]
        | {
            **{"input_tokens": 3000, "output_tokens": 6000, "cache_read_tokens": 120_000, "cache_creation_tokens": 30_000},
            **{
                "wall_seconds": 60.0,
                "attempts": 3,
                "tokens_reported": True,
                "unusable_tokens": 53_000,
                "unusable_wall_seconds": 20.0,
            },
            **{
                "unusable_attempts": 1,
                "total_tokens": 159_000,
                "prompt_tokens": 153_000,
                "usable_attempts": 2,
                "usable_wall_seconds": 40.0,
            },
        }
        == report["usage_totals"]
    )
    assert report["baseline_usage_totals"]["attempts"] == 2
    assert report["figures"]["rate"] == 0.5
    assert report["figures"]["worst_case"] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert report["verdict"]["word"] == "no evidence"


def test_json_of_a_run_without_tokens_or_baseline(saved, caliper) -> None:
    saved.run("commit", task("PPP", usage=None))
    report = json.loads(caliper("report", "commit", "--format", "json").out)
    assert report["usage_totals"]["tokens_reported"] is False
    assert report["usage_totals"]["total_tokens"] == 0
    assert (report["baseline_figures"], report["verdict"]) == (None, None)


def test_nan_of_other_writers_becomes_null(saved, caliper) -> None:
    path = saved.run("commit", task("PPP"))
    document = json.loads(path.read_bytes())
    document["aggregate"]["avg_score"] = float("nan")
    path.write_text(json.dumps(document))
    assert json.loads(caliper("report", "commit", "--format", "json").out)["aggregate"]["avg_score"] is None


def test_the_other_formats(saved, caliper) -> None:
    saved.run("commit", task("PFF"))
    assert caliper("report", "commit", "--format", "md").out.startswith("<!-- pytest-caliper:")
    assert ET.fromstring(caliper("report", "commit", "--format", "junit").out).tag == "testsuites"
    page = caliper("report", "commit", "--format", "html").out
    assert page.lower().startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")


@pytest.mark.parametrize("name", ["text", "json", "md", "junit", "html"])
def test_output_goes_to_a_file_that_is_there_whole(saved, caliper, name) -> None:
    saved.run("commit", task("PFF", name="Grüße ✓"))
    told = caliper("report", "commit", "--format", name)
    assert caliper("report", "commit", "--format", name, "--output", "sub/out").out == ""
    assert (saved.root / "sub" / "out").read_text(encoding="utf-8") == told.out
    assert [path.name for path in (saved.root / "sub").iterdir()] == ["out"]


def test_a_place_that_cannot_be_written_is_named(saved, caliper) -> None:
    saved.run("commit", task("PFF"))
    (saved.root / "file").write_text("x")
    told = caliper("report", "commit", "--output", "file/out")
    assert told.status == 2
    assert told.err.startswith("caliper: file/out: cannot be written: ")


def test_a_broken_transcript_leaves_no_half_page(saved, caliper, tmp_path) -> None:
    side = tmp_path / "turns.jsonl"
    side.write_text(json.dumps({"role": "assistant", "content": "hi"}) + "\n")
    path = saved.run("commit", task("PFF", transcript_path=str(side)))
    path.write_bytes(
        path.read_bytes().replace(b'{"role": "assistant", "content": "hi"}', b'{"role": "assistant", "content": "hi')
    )
    told = caliper("report", "commit", "--format", "html", "--output", "page.html")
    assert told.status == 2
    assert not (saved.root / "page.html").exists()
    assert told.err.count("\n") == 1


def test_hostile_text_is_shown_harmless(saved, caliper) -> None:
    bad = "\x1b[31m\u202e\n::error::x\u2028"
    saved.run("commit", task("F", output=bad, reason=bad, name=f"A{bad}", autorater_reasoning=bad, expect=bad), backend=f"c{bad}")
    out = caliper("report", "commit", "--verbose").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert not any(line.lstrip().startswith("::") for line in out.splitlines())
