"""The page on troubleshooting has every message of the source, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doc_messages import Message, every_text, messages

PAGE = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"
FAULTS = re.compile(r"(process|scoring|reporting|runs)/|attempt/lifecycle\.py|running/(idle|ahead)\.py")
"""Where an exception of Python is a fault of ours, or a reason that another message quotes in brackets."""


def is_a_fault(message: Message) -> bool:
    kinds = {"ValueError", "TypeError", "RuntimeError", "AssertionError", "KeyboardInterrupt"}
    return message.kind in kinds and FAULTS.match(message.module) is not None


def code(text: str) -> list[str]:
    """The code in a text, whatever its fence."""
    return [match[2].strip() for match in re.finditer(r"(`+)(.+?)\1(?!`)", text.replace("\\|", "|"))]


def entries() -> list[str]:
    """What the page quotes of messages: in headings, in the first column of tables, and at the beginning of paragraphs."""
    text = PAGE.read_text(encoding="utf-8")
    (_, tables) = text.split("\n## Options and what is named\n")
    rows = [row.split(" | ")[0] for row in re.findall(r"^\| (`.*) \|$", tables, re.M)]
    headings = re.findall(r"^### (.*`.*)$", text, re.M)
    first = re.findall(r"^`[^`]+`", text.split("\n## Options and what is named\n")[0], re.M)
    return [quoted for part in (*rows, *headings, *first) for quoted in code(part)]


def test_every_message_has_an_entry() -> None:
    told = "\n".join(" ".join(entry.split()) for entry in entries())
    missing = [
        f"{message.where}: {message.text}" for message in messages() if message.telling not in told and not is_a_fault(message)
    ]
    assert not missing, "docs/troubleshooting.md lacks an entry for\n" + "\n".join(missing)


def test_every_entry_is_a_message() -> None:
    source = every_text()
    parts = [(entry, part.strip()) for entry in entries() for part in entry.split("…") if part.strip()]
    assert len(parts) > 500
    known = {"caliper", "assert:"}
    gone = [entry for entry, part in parts if part not in source and part not in known and not re.fullmatch(r"[^a-z]*", part)]
    assert not gone, "docs/troubleshooting.md explains what the source does not say any more:\n" + "\n".join(gone)


def test_every_entry_says_what_to_do() -> None:
    rows = re.findall(r"^\| (`.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) > 150
    assert [row for row in rows if not re.search(r" \| \S.{4,} \|$", row)] == []


def test_the_search_sees_messages_of_all_kinds() -> None:
    found = {message.module for message in messages()}
    assert {
        "options.py",
        "spec/complaints.py",
        "backends/claude_errors.py",
        "attempt/outcome.py",
        "session.py",
        "cli/merge.py",
    } <= found
    assert len(messages()) > 550


@pytest.mark.parametrize("family", ["process/", "scoring/", "runs/"])
def test_families_that_are_left_out_exist(family: str) -> None:
    assert any(is_a_fault(message) for message in messages() if message.module.startswith(family))
