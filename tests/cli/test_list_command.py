"""`caliper list`: which specs and runs there are, wherever one stands and whatever else lies there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import run, task

from pytest_caliper.runs.journal import Journal
from pytest_caliper.runs.reading import load_run
from pytest_caliper.runs.skimming import skim_run
from pytest_caliper.runs.store import save_run

FAILING = task("FFF", arm="baseline")


def test_specs_with_their_runs_and_latest_rate(saved, caliper, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    saved.run("evals/commit", task("FFF"), day=1)
    saved.run("evals/commit", task("PPF"), day=2)
    saved.run("pr", task("PPP"), day=3, backend="codex", model=None)
    told = caliper("list")
    assert told.status == 0
    head, commit, pull = told.out.splitlines()
    assert head.split() == ["Spec", "Runs", "Rate", "95%", "interval", "Latest", "(UTC)", "Engine"]
    assert commit.split() == [
        *("evals/commit", "2", "66.7%", "[20.8,", "93.9]", "2026-07-02", "10:00"),
        "claude-code:claude-sonnet-4-5",
    ]
    assert pull.split()[:3] == ["pr", "1", "100.0%"]
    assert pull.split()[-1] == "codex"


def test_runs_of_a_spec_the_newest_first(saved, caliper) -> None:
    saved.run("commit", task("FFF"), day=1)
    saved.run("commit", task("PPU"), day=2)
    saved.run("commit", task("PPP"), day=3, baseline=(FAILING,))
    told = caliper("list", "commit")
    title, _, head, *rows = told.out.splitlines()
    assert title == "commit, engine claude-code:claude-sonnet-4-5"
    assert [row.split()[0] for row in rows[:3]] == ["2026-07-03", "2026-07-02", "2026-07-01"]
    assert "Skill Δ pts" in head
    assert rows[0].split()[2:] == ["100.0%", "[43.9,", "100.0]", "3/3", "3/3", "+100.0", "day-3"]
    assert rows[1].split()[-3:] == ["2/2", "2/3", "day-2"]
    assert rows[-1] == "Trend  ▁██  3 complete runs, oldest first"


def test_partial_and_interrupted_runs_are_marked_and_no_part_of_the_trend(saved, caliper) -> None:
    saved.run("commit", task("PPP"), day=1)
    saved.run("commit", task("FFF"), day=2, interrupted=True)
    saved.run("commit", task("F--"), day=3, partial=True)
    saved.run("commit", task("PPP"), day=4, selected_tasks=("A",))
    rows = caliper("list", "commit").out.splitlines()[3:]
    assert [row.split("day-")[1] for row in rows[:4]] == ["4  1 task of more", "3  partial", "2  interrupted", "1"]
    assert rows[-1].startswith("Trend  ██  2 complete runs")
    assert [word for word in caliper("list").out.splitlines()[1].split()][1:3] == ["2", "100.0%"]
    assert caliper("list").out.splitlines()[1].split()[-1] == "2"


def test_a_killed_session_is_told_with_the_way_to_go_on(saved, caliper) -> None:
    saved.run("commit", task("PPP"))
    directory = saved.root / ".caliper/results/commit"
    journal = Journal.create(directory, "2026-07-05T10-00-00Z-killed", {"k": 3})
    assert "under way: .caliper/results/commit/2026-07-05T10-00-00Z-killed.jsonl" in caliper("list", "commit").out
    journal.close()
    out = caliper("list", "commit").out
    assert "did not end: .caliper/results/commit/2026-07-05T10-00-00Z-killed.jsonl" in out
    assert "--resume-from .caliper/results/commit/2026-07-05T10-00-00Z-killed.jsonl" in out
    assert caliper("list").out.splitlines()[1].split()[-1] == "1"


def test_a_journal_beside_its_interrupted_run_counts_once(saved, caliper) -> None:
    path = saved.run("commit", task("P--"), interrupted=True)
    Journal.create(path.parent.parent, path.stem, {"k": 3}).close()
    listed = json.loads(caliper("list", "--format", "json").out)["specs"]
    assert [(spec["runs"], spec["unfinished"], spec["latest"]) for spec in listed] == [(0, 1, None)]


@pytest.mark.parametrize("place", [".", "evals", "evals/deep/er"])
def test_results_are_found_from_any_sub_directory(saved, caliper, monkeypatch, place) -> None:
    saved.run("evals/commit", task("PPP"))
    (saved.root / place).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(saved.root / place)
    assert "evals/commit" in caliper("list").out
    assert "day-1" in caliper("list", "commit").out


def test_the_search_ends_at_the_repository(saved, caliper, monkeypatch) -> None:
    saved.run("commit", task("PPP"))
    inner = saved.root / "vendored"
    (inner / ".git").mkdir(parents=True)
    monkeypatch.chdir(inner)
    told = caliper("list")
    assert told.status == 2
    assert told.err.startswith(f"caliper: no saved runs in {inner} or above it; ")
    assert "--results" in told.err


def test_another_results_directory(saved, caliper, tmp_path) -> None:
    save_run(run(task("PPP")), tmp_path / "elsewhere" / "evals" / "commit")
    assert "evals/commit" in caliper("list", "--results", str(tmp_path / "elsewhere")).out
    assert "7f3a" in caliper("list", "commit", "--results", str(tmp_path / "elsewhere")).out
    assert caliper("list", "--results", "nowhere").status == 2


class TestNames:
    """What a spec may be called."""

    @pytest.fixture
    def two(self, saved):
        saved.run("evals/commit", task("PPP"))
        saved.run("more/commit", task("FFF"))
        (saved.root / "evals").mkdir()
        (saved.root / "evals" / "commit.eval.yaml").write_text("tasks: []\n")
        return saved

    @pytest.mark.parametrize(
        "name", ["evals/commit", "evals/commit.eval.yaml", "./evals/commit.eval.yaml", ".caliper/results/evals/commit"]
    )
    def test_a_directory_tells_specs_of_one_name_apart(self, two, caliper, name) -> None:
        assert "100.0%" in caliper("list", name).out

    def test_an_absolute_path_too(self, two, caliper, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert "100.0%" in caliper("list", str(two.root / "evals/commit.eval.yaml")).out

    def test_a_spec_that_is_gone_still_has_its_runs(self, two, caliper) -> None:
        assert "0.0%" in caliper("list", "more/commit.eval.yaml").out

    def test_several_are_listed(self, two, caliper) -> None:
        told = caliper("list", "commit")
        assert told.status == 2
        assert told.err == "caliper: commit: there are several: evals/commit, more/commit; name one with its directory\n"

    def test_the_one_in_this_directory_is_meant(self, two, caliper, monkeypatch) -> None:
        monkeypatch.chdir(two.root / "evals")
        assert caliper("list", "commit").out.startswith("evals/commit")
        assert caliper("list", "../more/commit").out.startswith("more/commit")

    def test_a_name_at_the_root_goes_before_one_below(self, two, caliper) -> None:
        two.run("commit", task("PPF"))
        assert caliper("list", "commit").out.startswith("commit,")

    def test_a_near_miss_is_asked_about(self, two, caliper) -> None:
        assert "did you mean evals/comit" not in caliper("list", "evals/comit").err
        assert "did you mean evals/commit" in caliper("list", "evals/comit").err
        assert "there are evals/commit, more/commit" in caliper("list", "zzz").err

    def test_a_spec_that_never_ran(self, two, caliper) -> None:
        (two.root / "new.eval.yaml").write_text("tasks: []\n")
        assert "caliper run new.eval.yaml" in caliper("list", "new.eval.yaml").err

    def test_tests_in_python_that_never_ran(self, two, caliper) -> None:
        (two.root / "test_new.py").write_text("def test_it(caliper): ...\n")
        assert "pytest test_new.py --caliper" in caliper("list", "test_new.py").err

    def test_a_spec_called_partial_is_no_partial_run(self, two, caliper) -> None:
        two.run("partial_", task("PPP"))
        assert caliper("list", "partial").status == 0
        two.run("partial/inner", task("PPP"))
        assert "partial/inner" in caliper("list").out


def test_damaged_and_foreign_files_are_named_and_break_nothing(saved, caliper) -> None:
    saved.run("commit", task("PPF"), day=1)
    directory = saved.root / ".caliper/results/commit"
    whole = saved.run("commit", task("FFF"), day=9).read_bytes()
    for day, content in (
        (2, b""),
        (3, b"{}"),
        (4, whole[:-40]),
        (5, whole[:300]),
        (6, b"[1]"),
        (7, b"\xff\xfe"),
        (8, b'{"schema_version": 99}\n'),
    ):
        (directory / f"2026-07-{day:02}T10-00-00Z-x.json").write_bytes(content)
    (directory / "notes.json").write_text("{}")
    (directory / "2026-07-30T10-00-00Z-d.json").mkdir()
    told = caliper("list", "commit")
    assert told.status == 0
    assert [line.split()[-1] for line in told.out.splitlines()[3:5]] == ["day-9", "day-1"]
    assert sorted(line.split("/")[-1].split(".json")[0] for line in told.err.splitlines()) == [
        f"2026-07-0{day}T10-00-00Z-x" for day in range(2, 9)
    ]
    (directory / "2026-07-09T10-00-00Z-day-9.json").unlink()
    assert caliper("list").out.splitlines()[1].split()[2] == "66.7%"


def test_an_empty_place_says_what_to_do(saved, caliper) -> None:
    (saved.root / ".caliper/results").mkdir(parents=True)
    told = caliper("list")
    assert (told.status, told.out) == (0, "")
    assert "caliper run SPEC" in told.err
    assert json.loads(caliper("list", "--format", "json").out)["specs"] == []


def test_json_has_the_numbers(saved, caliper) -> None:
    saved.run("commit", task("PPU"), baseline=(FAILING,))
    (listed,) = json.loads(caliper("list", "--format", "json").out)["specs"]
    (only,) = json.loads(caliper("list", "commit", "--format", "json").out)["runs"]
    assert listed["latest"] | {"file": only["file"]} == only
    assert (listed["name"], listed["spec"], listed["runs"]) == ("commit", "commit.eval.yaml", 1)
    assert (only["rate"], only["successes"], only["usable"], only["planned"]) == (1.0, 2, 2, 3)
    assert (only["skill_delta"], only["baseline"], only["id"]) == (1.0, True, "day-1")


def test_markdown_is_a_table(saved, caliper) -> None:
    saved.run("commit", task("PPF"))
    assert caliper("list", "--format", "md").out.splitlines()[2].startswith("| `commit` | `1` | `66.7%` |")
    assert "| `day-1` |" in caliper("list", "commit", "--format", "md").out


def test_last(saved, caliper) -> None:
    for day in range(1, 6):
        saved.run("commit", task("PPF"), day=day)
    out = caliper("list", "commit", "--last", "2").out
    assert ["day-5" in out, "day-4" in out, "day-3" in out] == [True, True, False]


@pytest.mark.parametrize("words", [("--last", "-1"), ("--last", "x"), ("--format", "junit"), ("a", "b")])
def test_bad_usage(saved, caliper, words) -> None:
    with pytest.raises(SystemExit) as stopped:
        caliper("list", *words)
    assert stopped.value.code == 2


@pytest.mark.parametrize("columns", ["40", "60", "80", "200"])
def test_no_line_is_wider_than_it_may_be(saved, caliper, monkeypatch, columns) -> None:
    saved.run("commit", task("PPF"), day=1, baseline=(FAILING,))
    saved.run("commit", task("PPP"), day=2, backend="opencode", model="vendor/a-model-with-a-name")
    monkeypatch.setenv("COLUMNS", columns)
    for words in (("list",), ("list", "commit"), ("history", "commit"), ("compare", "commit")):
        assert max(map(len, caliper(*words).out.splitlines())) <= int(columns), words


def test_hostile_names_are_shown_harmless(saved, caliper) -> None:
    saved.run("commit", task("PPF"), backend="co\x1b[31mdex\n::error::x", model=None)
    saved.run("evil\x1b]0;x\x07", task("PPF"))
    for words in (("list",), ("list", "commit"), ("list", "--format", "md")):
        out = caliper(*words).out
        assert "\x1b" not in out
        assert "\x07" not in out
        assert not any(line.startswith("::") for line in out.splitlines())


# -- the process ----------------------------------------------------------------------------------------------------------------


def command(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}}
    code = "import sys; from pytest_caliper.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=cwd, env={**clean, **env}, capture_output=True, timeout=120, check=False
    )


def test_a_console_without_our_characters_gets_ascii(saved) -> None:
    saved.run("commit", task("PPF", name="Grüße ✓"), day=1)
    saved.run("commit", task("PFF", name="Grüße ✓"), day=2)
    for words in (
        ("list", "commit"),
        ("history", "commit"),
        ("compare", "commit"),
        ("report", "commit"),
        ("--help",),
        ("run", "--help"),
    ):
        done = command(*words, cwd=saved.root, PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
        assert b"\\u2713" not in done.stdout or words[0] != "list"


def test_colours_only_where_they_are_wanted(saved) -> None:
    saved.run("commit", task("PPF"), day=1)
    saved.run("commit", task("PFF"), day=2)
    for words in (("list",), ("compare", "commit"), ("report", "commit")):
        assert b"\x1b" not in command(*words, cwd=saved.root).stdout
        assert b"\x1b" in command(*words, cwd=saved.root, FORCE_COLOR="1").stdout
        assert b"\x1b" not in command(*words, cwd=saved.root, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_reader_that_goes_away_is_no_error(saved) -> None:
    saved.run("commit", task("PPF", output="x" * 500_000))
    code = "import sys; from pytest_caliper.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "report", "commit", "--format", "json"]
    # Python itself loses the rest of a text, and the fault with it, when it may not buffer.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(words, cwd=saved.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(timeout=120) == 141
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "words", [("list",), ("list", "commit"), ("history", "commit"), ("compare", "commit", "--format", "json")]
)
def test_reading_commands_import_nothing_heavy(saved, words) -> None:
    saved.run("commit", task("PPF"), day=1)
    saved.run("commit", task("PFF"), day=2)
    heavy = "pytest _pytest pydantic yaml rich psutil asyncio"
    code = (
        "import sys; from pytest_caliper.cli import main; main(); "
        f"print(*[name for name in {heavy.split()} if name in sys.modules], sep=' ', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=saved.root, capture_output=True, timeout=120, check=True)
    assert done.stderr.split() == []


# -- counts without texts -------------------------------------------------------------------------------------------------------


def test_counting_passes_over_transcripts_and_agrees_with_reading(saved, tmp_path) -> None:
    side = tmp_path / "turns.jsonl"
    trap = '\n{"attempt": 9, "outcome": "pass"}\n], "transcript_truncated": {"task_id": '
    side.write_text(
        json.dumps({"role": "assistant", "content": trap}) + "\n" + json.dumps({"role": "user", "content": "x" * 10_000}) + "\n"
    )
    empty = tmp_path / "none.jsonl"
    empty.write_text("")
    path = saved.run(
        "commit",
        task("PFC", name='A ", "attempts": [ "outcome": "pass"', transcript_path=str(side)),
        task("UT-", number=2, name="B", transcript_path=str(empty), output=trap),
        task("---", number=3, name="C"),
        baseline=(task("FPJ", name="A", arm="baseline", transcript_path=str(side)),),
    )
    counts, whole = skim_run(path), load_run(path)
    assert counts.meta == whole.meta
    for counted, read in ((counts.results, whole.results), (counts.baseline_results, whole.baseline_results)):
        assert [(c.task_id, c.task_name, c.planned, c.ran, c.usable, c.successes) for c in counted] == [
            (r.task_id, r.task_name, r.planned, len(r.attempts), r.usable, r.successes) for r in read
        ]


def test_a_file_that_went_through_another_program_is_counted_too(saved) -> None:
    path = saved.run("commit", task("PFC"), task("PU-", number=2, name="B"), baseline=(task("FFF", arm="baseline"),))
    before = skim_run(path)
    document = json.loads(path.read_text())
    for text in (json.dumps(document), json.dumps(document, indent=2), json.dumps(document, separators=(",", ":"))):
        path.write_text(text)
        assert skim_run(path) == before
