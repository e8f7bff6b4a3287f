"""Where a command's words go: terminals and pipes, of any alphabet, that may be closed at any time."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from pytest_caliper.reporting.style import Style

_PROBE = "✓✗⊘✂Δ—…▁█→"
_PIPE_WIDTH = 80
_LEAST_WIDTH = 40


def say(text: str) -> None:
    """Write to standard output; what its encoding lacks becomes an escape."""
    sys.stdout.write(_encodable(text, sys.stdout))


def complain(problem: str) -> None:
    """One line on standard error, made harmless."""
    from pytest_caliper.reporting.text import one_line

    sys.stderr.write(_encodable(f"caliper: {one_line(problem)}\n", sys.stderr))


def suggest(command: str, *words: object, arguments: argparse.Namespace | None = None) -> None:
    """One line on standard error with what people mostly do next: `command` as it is, then each of `words` quoted.

    Only where both streams are a terminal, and never in CI. With the command's own `arguments`, only where it showed text, and
    with its `--results`.
    """
    shows_text = getattr(arguments, "format", "text") == "text" and getattr(arguments, "output", None) is None
    if not (shows_text and sys.stdout.isatty() and sys.stderr.isatty()) or os.environ.get("CI"):
        return
    from pytest_caliper.reporting.text import one_line

    results = getattr(arguments, "results", None)
    more = [*words, *(() if results is None else ("--results", results))]
    sys.stdout.flush()
    sys.stderr.write(_encodable(one_line(" ".join(["next:", command, *(shlex.quote(str(w)) for w in more)])) + "\n", sys.stderr))


def refuse(error: Exception) -> int:
    """Say why nothing can be shown. -> the exit status 2."""
    complain(str(error))
    return 2


def style(output: Path | None = None) -> Style:
    """What standard output can show, or a file that is written instead: that has all characters, no colours and 80 columns.

    Colours on a terminal only; FORCE_COLOR has them anywhere, and NO_COLOR nowhere, whatever else is set. The width is COLUMNS,
    else the terminal's, else 80.
    """
    tty = output is None and sys.stdout.isatty()
    color = tty and os.environ.get("TERM") != "dumb"
    if os.environ.get("FORCE_COLOR") and output is None:
        color = True
    if os.environ.get("NO_COLOR"):
        color = False
    columns = os.environ.get("COLUMNS", "")
    said = int(columns) if columns.isascii() and columns.isdigit() else 0
    width = said or (shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns if tty else _PIPE_WIDTH)
    return Style(width=max(_LEAST_WIDTH, min(width, 1000)), color=color, unicode=output is not None or _has_marks())


def deliver(write: Callable[[TextIO], object], output: Path | None) -> int:
    """Let `write` fill standard output, or `output`, which is there whole or not at all. -> 0, or 2 when it cannot be written."""
    if output is None:
        write(sys.stdout)
        return 0
    from pytest_caliper.runs.files import written_whole

    try:
        if output.exists() and not output.is_file():  # /dev/stdout must stay what it is
            with open(output, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
                write(out)
            return 0
        output.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(output.resolve(), overwrite=True) as data, _text_of(data) as out:
            write(out)
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"{output}: cannot be written: {error.strerror or error}")
        return 2
    return 0


def deliver_text(text: str, output: Path | None) -> int:
    """As `deliver`, for a text that is there already."""
    return deliver(lambda out: out.write(text if output is not None else _encodable(text, out)), output)


def deliver_json(value: Any, output: Path | None) -> int:
    """As `deliver`, as indented ASCII JSON: whatever the terminal's alphabet, and without anything that it would obey."""
    text = json.dumps(value, indent=2, allow_nan=False)
    # The same JSON, and no workflow command in the log of a CI job: GitHub obeys `##[name]` anywhere on a line.
    return deliver_text(text.replace("##[", "\\u0023#[") + "\n", output)


_UNWRITABLE = {errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EBADF}


@contextlib.contextmanager
def sound_streams() -> Iterator[None]:
    """Let nothing that is written fail for its characters, and end quietly when the reader goes away: `caliper list | head`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  it lives as long as the process
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a test's or an embedder's own stream
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered has nowhere to go; the interpreter would complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + 13) from None  # as if SIGPIPE had ended it
    except KeyboardInterrupt:
        raise SystemExit(128 + 2) from None
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        complain(f"standard output cannot be written: {error.strerror}")
        raise SystemExit(2) from None


@contextlib.contextmanager
def _text_of(data: Any) -> Iterator[TextIO]:
    import io

    out = io.TextIOWrapper(data, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True)
    try:
        yield out
        out.flush()
    finally:
        out.detach()


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _has_marks() -> bool:
    try:
        _PROBE.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
