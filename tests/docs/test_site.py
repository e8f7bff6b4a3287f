"""The site builds without a warning, and the generated pages are those that the code writes today."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("caliper_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["spec-reference.md", "command-reference.md"])
def test_a_generated_page_is_what_the_code_says(generate: ModuleType, name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == generate.PAGES[name](), "run: python docs/generate.py"


def test_every_generated_page_is_compared(generate: ModuleType) -> None:
    assert set(generate.PAGES) == {"spec-reference.md", "command-reference.md"}


def build(docs: Path, place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--no-color", "-q", "-b", "html"]
    return subprocess.run(
        [*command, "-d", str(place / "doctrees"), str(docs), str(place / "html")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def sphinx() -> None:
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason="the dependency group docs is not installed")


@pytest.fixture(scope="module")
def site(sphinx: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    place = tmp_path_factory.mktemp("site")
    done = build(DOCS, place)
    assert done.returncode == 0, done.stdout
    return place / "html"


def test_the_site_builds_without_a_warning_and_has_every_page(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.glob("**/*.md")}
    assert {page for page in pages if not (site / page).is_file()} == set()


def test_the_navigation_has_the_sections_of_the_index(site: Path) -> None:
    html = (site / "index.html").read_text(encoding="utf-8")
    for section in ("Start", "Write specs", "Run", "Read results", "Automate", "Extend", "Reference", "Decisions"):
        assert f'<span class="caption-text">{section}</span>' in html


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in ("index.html", "spec.html", "quickstart.html"):
        html = (site / page).read_text(encoding="utf-8")
        assert 'src="http' not in html
        assert 'rel="stylesheet" type="text/css" href="http' not in html


def test_broken_links_and_lost_pages_fail_the_build(tmp_path: Path, sphinx: None) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(DOCS / "conf.py", docs)
    shutil.copytree(DOCS / "_static", docs / "_static")
    (docs / "index.md").write_text("# Index\n\n## Start\n\n- [A](a.md)\n- [B](b.md): is not there\n")
    (docs / "a.md").write_text("# A\n\n[x](index.md#nowhere) [y](../README.md#outside-is-text) ![z](none.svg)\n")
    (docs / "lost.md").write_text("# Lost\n")

    done = build(docs, tmp_path)

    assert done.returncode == 1
    warnings = sorted(line.rpartition("[")[2].rstrip("]") for line in done.stdout.splitlines() if "WARNING" in line)
    assert warnings == ["image.not_readable", "myst.xref_missing", "myst.xref_missing", "toc.not_included", "toc.not_readable"]
