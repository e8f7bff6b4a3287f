"""Runs one assert in this very process, which is there for nothing else, and says what became of it."""

from __future__ import annotations

import importlib
import io
import linecache
import marshal
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path

from pytest_caliper.judging.assert_request import AssertAnswer, AssertRequest
from pytest_caliper.judging.attempt_view import view_from
from pytest_caliper.judging.bounding import cut_middle

MODULE = "caliper_assert"
"""`__name__` of an assert: never `__main__`."""

MAX_MESSAGE = 5_000
"""Bytes of an exception's text."""
MAX_TRACE = 2_000
_MAX_FRAMES = 12
_MAX_SOURCE = 200


def execute(request: AssertRequest) -> AssertAnswer:
    """Run the assert. Changes directory, environment and `sys.path` of this process.

    AssertionError says that the task failed, and so does pytest.fail with what uses it (pytest.raises). Whatever else leaves
    the code says nothing about the task: no verdict.
    """
    filename = "the assert"
    try:
        enter(request)
        code = marshal.loads(request.code)
        filename = code.co_filename
        module = types.ModuleType(MODULE)
        module.__file__ = filename
        module.__dict__["attempt"] = view_from(request.attempt)
        sys.modules[MODULE] = module  # dataclasses and pickle look their module up there
        exec(code, module.__dict__)
    except BaseException as error:  # noqa: BLE001  whatever leaves the code is the answer
        return AssertAnswer(passed=False if _is_failure(error) else None, evidence=evidence_of(error, filename, request.spec_dir))
    return AssertAnswer(passed=True, evidence="")


def enter(request: AssertRequest) -> None:
    """Make this process look as if it had been started for the assert."""
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    sys.path[:] = request.path
    sys.argv[:] = [MODULE]
    tempfile.tempdir = None  # it remembers the TMPDIR of its first use
    importlib.invalidate_caches()
    for name in ("stdout", "stderr"):
        stream = io.TextIOWrapper(
            io.FileIO(1 if name == "stdout" else 2, "wb", closefd=False),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def flush() -> None:
    """Write out what the assert printed; it may have closed or replaced the streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S112  its output is lost, its verdict is not
            continue


def _is_failure(error: BaseException) -> bool:
    outcomes = sys.modules.get("_pytest.outcomes")
    failed = getattr(outcomes, "Failed", AssertionError)
    return isinstance(error, (AssertionError, failed))


def evidence_of(error: BaseException, filename: str, spec_dir: str) -> str:
    """`file:line: Type: text`, and the lines of code that led there. The line is the innermost one in the assert's own file."""
    frames = list(_frames(error, filename))
    own = [line for name, line, _ in frames if name == filename]
    where = _short(filename, spec_dir) + (f":{own[-1]}" if own else "")
    text = _text(error)
    headline = f"{where}: {type(error).__name__}{f': {text}' if text else ''}"
    if isinstance(error, SystemExit):
        headline += " (an assert that exits gives no verdict: let it reach its end)"
    return f"{cut_middle(headline, MAX_MESSAGE)}\n{cut_middle(_trace(frames, spec_dir), MAX_TRACE)}".rstrip()


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as second:  # noqa: BLE001  the exception is the author's own class
        return f"<its text cannot be shown: {type(second).__name__}>"


def _frames(error: BaseException, filename: str) -> Iterator[tuple[str, int, str]]:
    """(file, line, function) from the first frame of the assert's own file on, outermost first."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != filename:
        trace = trace.tb_next
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno, trace.tb_frame.f_code.co_name
        trace = trace.tb_next


def _trace(frames: list[tuple[str, int, str]], spec_dir: str) -> str:
    lines = []
    half = _MAX_FRAMES // 2
    kept = frames if len(frames) <= _MAX_FRAMES else [*frames[:half], None, *frames[-half:]]
    for frame in kept:
        if frame is None:
            lines.append(f"[… {len(frames) - _MAX_FRAMES} calls cut …]")
            continue
        name, line, function = frame
        if len(frames) > 1:
            lines.append(f"{_short(name, spec_dir)}:{line}{'' if function == '<module>' else f' in {function}'}")
        if source := linecache.getline(name, line).strip():
            lines.append(f"> {source[:_MAX_SOURCE]}")
    return "\n".join(lines)


def _short(filename: str, spec_dir: str) -> str:
    """Relative to the spec's directory where it lies below it: the same on every machine."""
    try:
        return Path(filename).relative_to(spec_dir).as_posix()
    except ValueError:
        return filename
