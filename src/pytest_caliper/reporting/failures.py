"""The text of one failed attempt for pytest's FAILURES section.

Plain text whatever the style's colours: pytest copies it into JUnit files, IDE panes and logs. Lines are not wrapped, so that
values and paths can be copied.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.text import clip, one_line, printable
from pytest_caliper.runs.records import AttemptRecord, ChangedFile

_ANSWER_CHARS, _ANSWER_LINES = 3_000, 40
_CHECK_CHARS, _CHECK_LINES = 6_000, 80
_FILES = 20

Section = tuple[str, str]


def render_failure(record: AttemptRecord, *, location: str, expect: str | None, transcript: str | None, style: Style) -> str:
    """Why the attempt failed, from the answer to the evidence, without a final newline.

    `location` is the task's `path/spec.eval.yaml:8`, with which the first line starts so that IDEs link it; `expect` is the
    task's text; `transcript` says, for people, where the transcript lies.
    """
    reason = one_line(record.reason) if record.reason else record.outcome
    lines = [f"{one_line(location)}: {reason}"]
    for title, body in sections(record, expect, transcript):
        lines += ["", title, *(f"  {line}".rstrip() for line in body.split("\n"))]
    return style.foreign("\n".join(lines))


def sections(
    record: AttemptRecord,
    expect: str | None,
    transcript: str | None = None,
    *,
    limit: tuple[int, int] = (_CHECK_CHARS, _CHECK_LINES),
) -> Iterator[Section]:
    """What a failure is understood from: titles of ours with harmless texts, each within `limit` (characters, lines)."""
    chars, lines = limit
    yield "The agent's answer:", _shown(record.output, min(chars, _ANSWER_CHARS), min(lines, _ANSWER_LINES)) or "(none)"
    if record.cheat_evidence:
        yield "What it must not do, and did:", "\n".join(one_line(evidence) for evidence in record.cheat_evidence)
    if record.assert_passed is False:
        yield "assert, failed:", _shown(record.assert_evidence or "(no evidence kept)", chars, lines)
    if record.autorater_passed is False:
        if expect is not None:
            yield "expect, failed:", _shown(expect, chars, lines)
        yield "The judge's reasons:", _shown(record.autorater_reasoning or "(none given)", chars, lines)
    if record.changed_files:
        yield "Changed files:", _changed(record.changed_files)
    if record.cleanup_error is not None:
        yield "The task's cleanup failed too:", _shown(record.cleanup_error, chars, lines)
    if transcript is not None:
        more = " (its end was cut off)" if record.transcript_truncated else ""
        yield "Transcript:", f"{one_line(transcript)}{more}"


def _shown(text: str, chars: int, lines: int) -> str:
    """The text made harmless and short, and marked where it was cut."""
    kept, cut = clip(text.replace("\r\n", "\n").strip("\n"), chars=chars, lines=lines)
    shown = printable(kept)
    return f"{shown}\n[cut here: {numbers.plural(cut, 'more character')}]" if cut else shown


def _changed(files: tuple[ChangedFile, ...]) -> str:
    lines = [_file(file) for file in files[:_FILES]]
    if len(files) > _FILES:
        lines.append(f"and {numbers.plural(len(files) - _FILES, 'more file')}")
    return "\n".join(lines)


def _file(file: ChangedFile) -> str:
    size = "" if file.change == "deleted" else f" ({numbers.plural(file.size, 'byte')})"
    return f"{file.change:<8} {one_line(file.path)}{size}"
