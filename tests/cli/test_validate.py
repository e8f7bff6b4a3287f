"""`caliper validate` and `caliper schema`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_caliper.cli import main
from pytest_caliper.cli.run import respelled

GOOD = "tasks:\n  - {name: A, prompt: write /tmp/app.config.json, expect: it is there}\n"
BAD = "tasks:\n  - {nmae: A, prompt: x, expect: y}\n  - {name: B, prompt: x}\n"


def test_a_good_spec_is_valid_and_shared_paths_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.eval.yaml"
    path.write_text(GOOD)
    assert main(["validate", str(path)]) == 0
    out = capsys.readouterr().out
    assert f"{path}: valid, 1 task\n" in out
    assert f"{path}:2: names /tmp/app.config.json, outside its work directory; its attempts run one at a time (warning)" in out


def test_all_mistakes_of_all_files_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.eval.yaml").write_text(BAD)
    assert main(["validate", str(tmp_path / "a.eval.yaml"), str(tmp_path / "b.eval.yaml"), str(tmp_path / "no.eval.yaml")]) == 1
    lines = capsys.readouterr().out.split("\n")
    for name in ("a", "b"):
        assert any(line.startswith(f"{tmp_path}/{name}.eval.yaml:2: ") and "`name`" in line for line in lines), lines
        assert any(line.startswith(f"{tmp_path}/{name}.eval.yaml:3: ") for line in lines)
    assert any("no.eval.yaml" in line for line in lines)


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["properties"].keys() >= {"skill", "skills", "sandbox", "mcp", "tasks"}


def test_run_respells_our_options_and_passes_the_others() -> None:
    words = ["s.eval.yaml", "--k", "3", "--baseline", "--model=codex:gpt", "--verbose", "-k", "name", "--workers", "2", "-n2"]
    assert respelled(words) == [
        *("--caliper", "s.eval.yaml", "--caliper-k", "3", "--caliper-baseline", "--caliper-model=codex:gpt"),
        *("--verbose", "-k", "name", "--caliper-workers", "2", "-n2"),
    ]


def test_help_of_run_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    assert "--judge-model TARGET" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["nonsense"], ["validate"]])
def test_bad_usage_is_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "usage: caliper" in capsys.readouterr().err


def test_mistakes_and_warnings_name_the_file_as_it_was_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "bad.eval.yaml").write_text(BAD)
    (tmp_path / "sub" / "odd.eval.yaml").write_text("tasks:\n  - {name: A, prompt: x, assert: assert True}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "bad.eval.yaml", "sub/odd.eval.yaml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith("(warning)") for line in lines)
    assert all(line.startswith(("bad.eval.yaml:", "sub/odd.eval.yaml:")) for line in lines), lines
    monkeypatch.chdir(tmp_path / "sub")
    main(["validate", "../bad.eval.yaml"])
    assert all(line.startswith("../bad.eval.yaml:") for line in capsys.readouterr().out.splitlines())
