"""Every example of README, docs, examples and skills holds: commands run, specs load, code compiles. doc_project.py has the rules.

Above a block, an HTML comment may say `not run: <reason>`, `checked by: <test file>`, `setup: <shell line>`, `status: <number>`,
`agent: <what the agent does, a shell line>` or `file: <name>` (else a first line `# name.ext` names the file).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_pages import CHECKED, ROOT, RUN, blocks, pages
from doc_project import Project, covered

every_page = pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())


@every_page
def test_the_examples_of_a_page_hold(page: Path, tmp_path: Path) -> None:
    wrong = Project(tmp_path, page).follow()
    if wrong:
        pytest.fail("\n\n".join(map(str, wrong)), pytrace=False)


@every_page
def test_every_block_is_executed_validated_or_excused(page: Path) -> None:
    assert [f"{block}: {said}" for block in blocks(page) if (said := covered(block)) is not None] == []


def test_the_pages_are_there_and_most_of_their_commands_run() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in pages()}
    assert {"README.md", "docs/spec.md", "examples/quickstart/README.md", "skills/grill-skill/SKILL.md"} <= names
    assert not any(part.startswith(".") for name in names for part in name.split("/"))
    every = [block for page in pages() for block in blocks(page)]
    shell = [block for block in every if block.tag in RUN]
    assert len([block for block in every if block.tag in CHECKED]) > 20
    assert len([block for block in shell if block.not_run is None]) > len([block for block in shell if block.not_run])
