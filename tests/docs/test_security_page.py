"""What the page on security says that runs nothing, runs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
CALIPER = ("-c", "from pytest_caliper.cli import main; raise SystemExit(main())")
SPEC = """\
tasks:
  - name: Tells on itself
    prompt: Do nothing.
    setup: touch {mark}
    cleanup: touch {mark}
    solution: touch {mark}; echo done
    assert: |
      from pathlib import Path
      Path({mark!r}).touch()
      assert attempt.answer
"""


def ran(tmp_path: Path, *command: str) -> bool:
    """Whether anything of a spec ran in that command, which must end well."""
    mark = tmp_path / "ran"
    (tmp_path / "my.eval.yaml").write_text(SPEC.format(mark=str(mark)))
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return mark.exists()


def test_what_reads_a_spec_runs_nothing_of_it(tmp_path: Path) -> None:
    assert "caliper validate my.eval.yaml\npytest my.eval.yaml --collect-only -q\n" in PAGE
    assert not ran(tmp_path, *CALIPER, "validate", "my.eval.yaml")
    assert not ran(tmp_path, "-m", "pytest", "my.eval.yaml", "--collect-only", "-q", "-p", "no:cacheprovider")


def test_a_check_runs_setup_and_assert(tmp_path: Path) -> None:
    assert "`caliper check` runs setup, asserts and solutions." in " ".join(PAGE.split())
    assert ran(tmp_path, *CALIPER, "check", "my.eval.yaml", "--no-judge")
