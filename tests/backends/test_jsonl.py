"""JSON lines among whatever else agent CLIs print."""

from __future__ import annotations

import pytest

from pytest_caliper.backends import jsonl
from pytest_caliper.backends.jsonl import LineFaults, json_objects


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"a": 1}', [{"a": 1}]),
        (b' \t{"a": 1} \r', [{"a": 1}]),
        (b'{"a": NaN}', [{"a": "NaN"}]),
        (b'{"a": "\xff\xe2\x80\xa8"}', [{"a": "\ufffd\u2028"}]),
        (b'{"a": 1} {"b": 2}', []),
        (b'\x0c{"a": 1}', []),
        (b'\xef\xbb\xbf{"a": 1}', []),
        (b"{" * 100_000, []),
        (b'[{"a": 1}]', []),
        (b"a line", []),
    ],
)
def test_only_lines_that_are_one_object_count(tmp_path, line, found):
    path, faults = tmp_path / "out", LineFaults()
    path.write_bytes(line + b"\n\n  \n" + line)
    assert list(json_objects(path, faults)) == found * 2
    assert faults.garbage == (0 if found else 2)


def test_noise_is_not_parsed(tmp_path, monkeypatch):
    """64 MB of short lines are millions, and each that is parsed for nothing costs as much as ten that are not."""
    monkeypatch.setattr(jsonl, "parse_json", lambda line: pytest.fail(f"{line!r} was parsed"))
    path, faults = tmp_path / "out", LineFaults()
    path.write_bytes(b"noise\n" * 1000)
    assert list(json_objects(path, faults)) == []
    assert faults.garbage == 1000
