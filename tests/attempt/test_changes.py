"""What an agent did to files is told, and can be done again."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_caliper.attempt import snapshot as snapshots
from pytest_caliper.attempt.changes import (
    EffectsTooLarge,
    FileEffect,
    UnsafeEffect,
    apply_effects,
    changed_files,
    file_effects,
    snapshot,
)
from pytest_caliper.runs.records import ChangedFile

as_root = os.geteuid() == 0


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


def put(path: Path, data: bytes | str = "x", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    path.chmod(mode)
    return path


def told(files: tuple[ChangedFile, ...]) -> list[tuple[str, str, str | None]]:
    return [(file.path, file.change, file.text) for file in files]


def test_added_modified_and_deleted_files_sorted_by_path(work: Path) -> None:
    put(work / "same.txt")
    put(work / "b.txt", "old")
    put(work / "z/gone.txt")
    before = snapshot(work)
    put(work / "b.txt", "new text")
    put(work / "a/new é.txt", "hello\n")
    (work / "z/gone.txt").unlink()
    assert changed_files(before, work) == (
        ChangedFile(path="a/new é.txt", change="added", size=6, text="hello\n"),
        ChangedFile(path="b.txt", change="modified", size=8, text="new text", before="old"),
        ChangedFile(path="z/gone.txt", change="deleted", size=0, before="x"),
    )


def test_what_the_agent_found_is_kept_of_small_texts_only(work: Path) -> None:
    put(work / "binary.bin", b"\0\1")
    put(work / "large.txt", "x" * (snapshots.MAX_KEPT + 1))
    (work / "link").symlink_to("large.txt")
    before = snapshot(work)
    for name in ("binary.bin", "large.txt", "link"):
        (work / name).unlink()
        put(work / name, "new")
    found = {file.path: file.before for file in changed_files(before, work)}
    assert found == {"binary.bin": None, "large.txt": None, "link": "symbolic link to large.txt"}


def test_what_is_kept_is_bounded_and_takes_nothing_from_what_the_judge_reads(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        put(work / name, "old!!")
    monkeypatch.setattr(snapshots, "MAX_KEPT_TOTAL", 10)
    before = snapshot(work)
    for name in "abc":
        put(work / name, "new")
    files = changed_files(before, work, max_total=9)
    assert [file.text for file in files] == ["new"] * 3
    assert [file.before for file in files] == ["old!!", None, None]
    assert [file.before for file in changed_files(before, work)] == ["old!!", "old!!", None]


def test_nothing_happened(work: Path) -> None:
    put(work / "a/b.txt")
    before = snapshot(work)
    assert changed_files(before, work) == ()
    assert file_effects(before, work) == []


def test_a_rewrite_of_equal_size_and_time_is_seen(work: Path) -> None:
    path = put(work / "a.txt", "old")
    times = path.stat()
    before = snapshot(work)
    path.write_text("new")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert told(changed_files(before, work)) == [("a.txt", "modified", "new")]


def test_a_rewrite_within_one_tick_of_the_clock_is_seen(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems tell times in ticks; every time of the file is the same as before, and so is its inode."""
    path = put(work / "a.txt", "old")
    before = snapshot(work)
    path.write_text("new")
    now = path.stat()
    entry = before.entries["a.txt"]
    frozen = snapshots.Entry(
        mode=entry.mode, size=3, mtime_ns=now.st_mtime_ns, ctime_ns=now.st_ctime_ns, inode=now.st_ino, digest=entry.digest
    )
    before = snapshots.Snapshot(entries={"a.txt": frozen}, taken_ns=before.taken_ns)
    assert told(changed_files(before, work)) == [("a.txt", "modified", "new")]


def test_a_file_that_was_only_touched_did_not_change(work: Path) -> None:
    path = put(work / "a.txt", "old")
    before = snapshot(work)
    os.utime(path, (1, 1))
    put(work / "b.txt", "old").replace(path)
    assert changed_files(before, work) == ()


def test_a_large_file_is_told_by_its_times(work: Path) -> None:
    path = put(work / "big.bin", bytes(snapshots.MAX_DIGESTED + 1))
    before = snapshot(work)
    assert before.entries["big.bin"].digest is None
    assert changed_files(before, work) == ()
    os.utime(path, (1, 1))
    assert told(changed_files(before, work)) == [("big.bin", "modified", None)]


def test_a_mode_is_a_change(work: Path) -> None:
    path = put(work / "run.sh", "#!/bin/sh\n", 0o644)
    before = snapshot(work)
    path.chmod(0o755)
    assert told(changed_files(before, work)) == [("run.sh", "modified", "#!/bin/sh\n")]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain\r\n", "plain\r\n"),
        ("é\u2028\x1b[1m".encode(), "é\u2028\x1b[1m"),
        (b"\xef\xbb\xbfbom", "bom"),
        ("wide".encode("utf-16"), "wide"),
        (
            "caf\xe9 in the old way, which is text all the same".encode("latin-1"),
            "caf\ufffd in the old way, which is text all the same",
        ),
        (b"PNG\0\x01", None),
        (bytes(range(128, 256)), None),
        (b"\x01\x02\x03\x04ab", None),
    ],
)
def test_text_is_told_from_binary(work: Path, data: bytes, text: str | None) -> None:
    before = snapshot(work)
    put(work / "f", data)
    (file,) = changed_files(before, work)
    assert (file.text, file.size, file.truncated) == (text, len(data), False)


@pytest.mark.parametrize(("letter", "length"), [("x", 50), ("é", 50), ("😀", 50), ("x", 10), ("😀", 10)])
def test_long_texts_are_cut_and_say_so(work: Path, letter: str, length: int) -> None:
    before = snapshot(work)
    put(work / "f", letter * length)
    (file,) = changed_files(before, work, max_text=10)
    assert file.text == letter * 10
    assert file.truncated is (length > 10)
    assert file.size == len((letter * length).encode())


def test_all_texts_together_are_bounded(work: Path) -> None:
    before = snapshot(work)
    for name in "abc":
        put(work / name, name * 10)
    files = changed_files(before, work, max_total=15)
    assert [(file.text, file.truncated) for file in files] == [("a" * 10, False), ("b" * 5, True), ("", True)]


def test_what_tools_made_gives_way_to_what_the_agent_wrote(work: Path) -> None:
    before = snapshot(work)
    for number in range(20):
        put(work / f"node_modules/m{number}/index.js")
    put(work / "src/z.js")
    put(work / "a.js")
    paths = [file.path for file in changed_files(before, work, max_files=5)]
    assert paths == sorted(paths)
    assert len(paths) == 5
    assert {"a.js", "src/z.js"} <= set(paths)


def test_links_are_told_and_not_followed(work: Path, tmp_path: Path) -> None:
    put(tmp_path / "outside/secret.txt", "secret")
    before = snapshot(work)
    (work / "dir").symlink_to(tmp_path / "outside")
    (work / "loop").symlink_to("loop")
    (work / "gone").symlink_to("./nowhere//x")
    assert told(changed_files(before, work)) == [
        ("dir", "added", f"symbolic link to {tmp_path}/outside"),
        ("gone", "added", "symbolic link to ./nowhere//x"),
        ("loop", "added", "symbolic link to loop"),
    ]
    before = snapshot(work)
    (work / "gone").unlink()
    (work / "gone").symlink_to("elsewhere")
    assert told(changed_files(before, work)) == [("gone", "modified", "symbolic link to elsewhere")]


def test_a_file_that_becomes_a_directory_and_the_other_way_round(work: Path) -> None:
    put(work / "f")
    put(work / "d/x")
    before = snapshot(work)
    (work / "f").unlink()
    put(work / "f/inner", "i")
    shutil.rmtree(work / "d")
    put(work / "d", "file")
    assert told(changed_files(before, work)) == [("d", "modified", "file"), ("d/x", "deleted", None), ("f/inner", "added", "i")]


def test_pipes_and_sockets_are_left_out(work: Path) -> None:
    before = snapshot(work)
    os.mkfifo(work / "pipe")
    assert changed_files(before, work) == ()
    assert snapshots.read_regular(work / "pipe") is None  # and nobody waits for a writer


@pytest.mark.skipif(as_root, reason="root may read everything")
def test_what_cannot_be_read_has_no_text(work: Path) -> None:
    put(work / "closed/inner.txt")
    before = snapshot(work)
    put(work / "secret.txt", "x", 0o000)
    (work / "closed").chmod(0o000)
    try:
        assert told(changed_files(before, work)) == [("secret.txt", "added", None)]
    finally:
        (work / "closed").chmod(0o700)


def test_files_below_a_directory_that_was_closed_are_not_taken_for_deleted(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(work / "closed/inner.txt")
    before = snapshot(work)
    scandir = os.scandir

    def refusing(path: Path) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(snapshots.os, "scandir", refusing)
    assert changed_files(before, work) == ()


def test_a_work_directory_that_is_gone(work: Path) -> None:
    put(work / "a/b.txt")
    before = snapshot(work)
    shutil.rmtree(work)
    assert told(changed_files(before, work)) == [("a/b.txt", "deleted", None)]
    assert snapshot(work).entries == {}


def test_a_deep_tree_and_a_full_one_end(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(work)
    deep = "/".join(["d" * 50] * 60)
    put(work / deep / "f.txt")
    assert [file.path for file in changed_files(before, work)] == [f"{deep}/f.txt"]
    monkeypatch.setattr(snapshots, "MAX_ENTRIES", 10)
    full = snapshot(work)
    assert len(full.entries) == 10
    assert not full.complete
    assert changed_files(full, work) == ()  # what was not seen before is not called new


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_repository_is_one_entry(work: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=work, check=True, capture_output=True)

    before = snapshot(work)
    git("init", "-q")
    put(work / "a.txt", "a")
    assert told(changed_files(before, work)) == [(".git", "added", None), ("a.txt", "added", "a")]
    before = snapshot(work)
    git("add", "a.txt")
    git("commit", "-qm", "first")
    assert told(changed_files(before, work)) == [(".git", "modified", None)]
    assert any(effect.path.startswith(".git/objects/") for effect in file_effects(before, work))
    shutil.rmtree(work / ".git")
    assert told(changed_files(before, work)) == [(".git", "deleted", None)]


def tree(root: Path) -> dict[str, object]:
    """Everything below `root`, comparable."""
    out: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        found = path.lstat()
        kind = "link" if path.is_symlink() else "dir" if path.is_dir() else "file"
        content = os.readlink(path) if kind == "link" else None if kind == "dir" else path.read_bytes()
        out[str(path.relative_to(root))] = (kind, 0 if kind == "link" else stat.S_IMODE(found.st_mode), content)
    return out


def agent(work: Path) -> None:
    """Does everything that can be done to files."""
    put(work / "new/deep/file.bin", b"\x00\xff", 0o600)
    put(work / "kept.txt", "changed", 0o755)
    (work / "gone/inner.txt").unlink()
    (work / "gone").rmdir()
    (work / "empty").mkdir()
    (work / "file").unlink()
    put(work / "file/now/dir.txt")
    shutil.rmtree(work / "dir")
    put(work / "dir", "now a file")
    (work / "link").unlink()
    (work / "link").symlink_to("kept.txt")
    (work / "became").unlink()
    (work / "became").symlink_to("/nowhere")
    (work / "unlinked").unlink()
    put(work / "unlinked", "now a file")
    put(work / "locked/in.txt")
    (work / "locked").chmod(0o555)


def given_tree(work: Path) -> None:
    work.mkdir(exist_ok=True)
    for name in ("kept.txt", "gone/inner.txt", "file", "dir/a/b", "became", "same"):
        put(work / name, name)
    (work / "link").symlink_to("same")
    (work / "unlinked").symlink_to("same")


def test_what_an_agent_did_can_be_done_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    given_tree(first)
    given_tree(second)
    before = snapshot(first)
    agent(first)
    try:
        effects = file_effects(before, first)
        assert [effect.path for effect in effects] == sorted(effect.path for effect in effects)
        apply_effects(reversed(effects), second)
        assert tree(second) == tree(first)
        apply_effects(effects, second)  # again, over itself
        assert tree(second) == tree(first)
    finally:
        for place in (first, second):
            (place / "locked").chmod(0o755)


names = st.sampled_from(["a", "b", "a/x", "a/y", "b/x", "a/x/deep"])
steps = st.lists(st.tuples(st.sampled_from(["file", "dir", "link", "remove", "mode"]), names, st.binary(max_size=4)), max_size=8)


def play(work: Path, moves: list[tuple[str, str, bytes]]) -> None:
    for what, name, data in moves:
        place = work / name
        try:
            if what == "remove" and place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            elif what == "remove":
                place.unlink()
            elif what == "file" and not place.is_symlink():
                place.write_bytes(data)
            elif what == "dir":
                place.mkdir()
            elif what == "link":
                place.symlink_to("nowhere")
            elif not place.is_symlink():
                place.chmod(0o755 if place.is_dir() else 0o600)
        except OSError:
            continue


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps, steps)
def test_any_moves_can_be_done_again(
    tmp_path_factory: pytest.TempPathFactory, earlier: list[tuple[str, str, bytes]], later: list[tuple[str, str, bytes]]
) -> None:
    base = tmp_path_factory.mktemp("moves")
    first, second = base / "first", base / "second"
    for place in (first, second):
        place.mkdir()
        play(place, earlier)
    before = snapshot(first)
    play(first, later)
    apply_effects(file_effects(before, first), second)
    assert tree(second) == tree(first)
    assert bool(changed_files(before, first)) <= bool(file_effects(before, first))


@pytest.mark.parametrize("path", ["", "/etc/x", "../x", "a/../../x", "a//b", "./a", "a/.", "a\0b", "..", "a/"])
@pytest.mark.parametrize("change", ["added", "deleted"])
def test_paths_that_lead_out_are_refused_before_anything_is_done(work: Path, path: str, change: str) -> None:
    effects = [
        FileEffect(path="fine.txt", change="added", mode=0o644, data=b"x"),
        FileEffect(path=path, change=change, mode=0o644, data=b"x"),
    ]  # type: ignore[arg-type]
    with pytest.raises(UnsafeEffect, match="not a path below"):
        apply_effects(effects, work)
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    "effects",
    [
        [FileEffect(path="link/x.txt", change="added", mode=0o644, data=b"x")],
        [FileEffect(path="link/kept.txt", change="deleted", mode=0o644)],
        [FileEffect(path="link/kept.txt", change="modified", mode=0o644, data=b"x")],
        [FileEffect(path="link/d", change="added", mode=stat.S_IFDIR | 0o755)],
        [FileEffect(path="link/l", change="added", mode=stat.S_IFLNK | 0o777, link="x")],
        [
            FileEffect(path="new", change="added", mode=stat.S_IFLNK | 0o777, link=".."),
            FileEffect(path="new/x.txt", change="added", mode=0o644, data=b"x"),
        ],
    ],
    ids=repr,
)
def test_nothing_is_written_through_a_link(work: Path, tmp_path: Path, effects: list[FileEffect]) -> None:
    put(tmp_path / "outside/kept.txt", "kept")
    (work / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafeEffect, match="symbolic link"):
        apply_effects(effects, work)
    assert tree(tmp_path / "outside") == {"kept.txt": ("file", 0o644, b"kept")}
    assert not (tmp_path / "x.txt").exists()


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(work: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside.txt", "kept")
    (work / "f").symlink_to(outside)
    apply_effects([FileEffect(path="f", change="modified", mode=0o600, data=b"new")], work)
    assert outside.read_text() == "kept"
    assert tree(work) == {"f": ("file", 0o600, b"new")}


def test_a_directory_that_is_not_empty_is_not_overwritten(work: Path) -> None:
    put(work / "d/x")
    with pytest.raises(UnsafeEffect, match="not empty"):
        apply_effects([FileEffect(path="d", change="modified", mode=0o644, data=b"")], work)


def test_special_permission_bits_are_not_restored(work: Path) -> None:
    apply_effects([FileEffect(path="f", change="added", mode=stat.S_IFREG | 0o4755, data=b"x")], work)
    assert stat.S_IMODE((work / "f").stat().st_mode) == 0o755


def test_deleting_what_is_not_there_is_fine(work: Path) -> None:
    apply_effects([FileEffect(path="a/b", change="deleted", mode=0o644)], work)
    assert list(work.iterdir()) == []


def test_too_much_to_record_names_the_largest(work: Path) -> None:
    before = snapshot(work)
    put(work / "small.txt")
    put(work / "big.bin", bytes(3 * 1024 * 1024))
    with pytest.raises(
        EffectsTooLarge, match=r"hold 3\.0 MiB, more than 1\.0 MiB .* the largest: big\.bin \(3\.0 MiB\), small\.txt"
    ):
        file_effects(before, work, max_bytes=1024 * 1024)


@pytest.mark.parametrize("name", ["a\nb", "ü", " space ", "\\back", "\u2028", os.fsdecode(b"\xff\xfe")], ids=ascii)
def test_odd_names(tmp_path: Path, name: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    before = snapshot(first)
    try:
        put(first / name / name, "x")
    except OSError:
        pytest.skip("the file system does not take this name")
    assert told(changed_files(before, first)) == [(f"{name}/{name}", "added", "x")]
    apply_effects(file_effects(before, first), second)
    assert tree(second) == tree(first)


def test_a_file_that_vanishes_while_it_is_looked_at(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(work / "a.txt")
    before = snapshot(work)
    put(work / "b.txt")
    read: Callable[..., bytes | None] = snapshots.read_regular

    def racing(path: Path, limit: int | None = None) -> bytes | None:
        path.unlink()
        return read(path, limit)

    monkeypatch.setattr("pytest_caliper.attempt.changes.read_regular", racing)
    assert told(changed_files(before, work)) == [("b.txt", "added", None)]


def test_what_lies_behind_a_link_in_the_place_of_work_is_not_the_attempts(work: Path, tmp_path: Path) -> None:
    """An agent that replaces `work/` must not bring files of the user's into the run file and the cassette."""
    put(work / "mine", "x")
    before = snapshot(work)
    put(tmp_path / "outside/secret", "not the attempt's")
    shutil.rmtree(work)
    work.symlink_to(tmp_path / "outside")
    assert [(file.path, file.change, file.text) for file in changed_files(before, work)] == [("mine", "deleted", None)]
    assert [(effect.path, effect.data) for effect in file_effects(before, work)] == [("mine", None)]
