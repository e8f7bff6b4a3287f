"""Reading the user's configuration, and writing what holds secrets."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pytest_caliper.backends.private_files import parse_object, read_bytes, read_object, write_bytes, write_object
from pytest_caliper.contracts import EngineError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('// one\n{"a": "http://x", /* two\n */ "b": "/* no */", "c": ["\\"// no",],}', None),
        ("", {}),
        ("// nothing\n", {}),
        ("[1]", {}),
        ('{"a": ",]"}', {"a": ",]"}),
    ],
)
def test_json_with_comments_and_trailing_commas(text: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonc"
    path.write_text(text, encoding="utf-8")

    expected = {"a": "http://x", "b": "/* no */", "c": ['"// no']} if value is None else value

    assert read_object(path, "repair it") == expected


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert read_object(tmp_path / "none.json", "x") == {}
    assert read_bytes(tmp_path / "none.json") is None
    (tmp_path / "file").touch()
    assert read_bytes(tmp_path / "file" / "below") is None


@pytest.mark.parametrize("text", ['{"a": ', "{'a': 1}", "{" * 100_000])
def test_a_damaged_file_is_named_with_its_line_and_the_remedy(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(f"/* a\nb */\n{text}")

    with pytest.raises(EngineError, match=r"c\.json: not valid JSON \(.*\): log in again"):
        read_object(path, "log in again")


def test_errors_name_the_line_behind_comments() -> None:
    with pytest.raises(EngineError, match="line 3 column"):
        parse_object('/* a\nb */ {"a":\n nope}', "X", "repair it")


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="make it readable"):
        read_bytes(tmp_path)


def test_files_are_their_owners_alone_and_may_be_written_again(tmp_path: Path) -> None:
    """A throttled agent is started a second time in the same home."""
    path = tmp_path / "a" / "b" / "c.json"

    write_bytes(path, b"old")
    write_object(path, {"new": 1})

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == '{\n  "new": 1\n}'


def test_a_link_is_replaced_and_never_written_through(tmp_path: Path) -> None:
    (tmp_path / "secret.json").symlink_to(tmp_path / "stolen")

    write_bytes(tmp_path / "secret.json", b"x")

    assert not (tmp_path / "stolen").exists()
    assert not (tmp_path / "secret.json").is_symlink()
