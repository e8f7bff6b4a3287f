"""One transient line below what pytest has written: on a terminal, while attempts run, and gone whenever pytest writes.

The cursor stands where pytest left it before and after every change, so that pytest goes on as if nothing was there. All moves
are relative: they hold when the screen scrolls.
"""

from __future__ import annotations

import os
import sys
import threading
import unicodedata
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from pytest_caliper.reporting.text import ascii_only, one_line
from pytest_caliper.terminal import STATUS_LINE

INTERVAL_S = 1.0
_LEAST_WIDTH = 40


def can_show(config: pytest.Config) -> bool:
    """Whether a line below pytest's own can come and go: on a terminal that moves its cursor, which pytest alone writes to."""
    option = config.option
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return (
        type(reporter).__module__ == "_pytest.terminal"  # pytest-sugar and its kin draw lines of their own
        and config.get_verbosity() >= 0
        and option.capture in {"fd", "sys"}
        and not (option.usepdb or getattr(option, "trace", False) or getattr(option, "setupshow", False))
        and not (config.getini("log_cli") or option.log_cli_level)
        and not any(os.environ.get(name) for name in ("CI", "TEAMCITY_VERSION", "PYCHARM_HOSTED"))
        and os.environ.get("TERM", "dumb") != "dumb"
        and sys.stdout.isatty()
        and os.isatty(1)
    )


class StatusLine:
    """Shows `text()` once a second in a thread of its own, on a copy of standard output that pytest's capture does not get.

    `column` is where pytest's cursor is, `width` the terminal's; `column() >= width()` means that nobody knows.
    """

    def __init__(
        self, text: Callable[[], str], *, column: Callable[[], int], width: Callable[[], int], unicode: bool, out: int
    ) -> None:
        self._text, self._column, self._width, self._unicode = text, column, width, unicode
        self._out = os.dup(out)
        self._lock = threading.RLock()
        self._shown: str | None = None
        self._held = True
        """From the start, and whenever others may write, until pytest is known to have written all that it wanted."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="caliper-status", daemon=True)

    def start(self) -> None:
        """Begin to show it."""
        self._thread.start()

    @contextmanager
    def away(self, *, hold: bool = False) -> Iterator[None]:
        """While pytest writes. With `hold` nothing is shown afterwards either, until the next time without it."""
        with self._lock:
            self._clear()
            self._held = True
            yield
            self._held = hold

    def show(self) -> None:
        """Write the line, or another one in its place."""
        text = self._text()
        with self._lock, suppress(OSError):  # a terminal that is gone
            column, width = self._column(), self._width()
            if self._held or self._over.is_set() or column >= width or width < _LEAST_WIDTH or not _in_foreground(self._out):
                return
            line = fitting(text if self._unicode else ascii_only(text), width - 1)
            if line and line != self._shown:
                self._write(f"\n\r\x1b[K{line}\x1b[A\r{_right(column)}")
                self._shown = line

    def close(self) -> None:
        """Take it away for good. Doing it again changes nothing."""
        if self._over.is_set():
            return
        self._over.set()
        with self._lock:
            self._clear()
        if self._thread.is_alive():
            self._thread.join(2.0)
        os.close(self._out)

    def _run(self) -> None:
        while not self._over.wait(INTERVAL_S):
            self.show()

    def _clear(self) -> None:
        if self._shown is not None:
            self._shown = None
            with suppress(OSError):
                self._write(f"\n\r\x1b[K\x1b[A\r{_right(self._column())}")

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._out, data) :]


class Manners:
    """Plugin object: takes the line away whenever pytest is about to write."""

    def __init__(self, line: StatusLine, writer: Any) -> None:
        self._line, self._writer = line, writer

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """The file's name, or the test's with -v."""
        return (yield from self._away())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, object, object]:
        """A letter or a word."""
        return (yield from self._away())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self) -> Generator[None, object, object]:
        """The percentage."""
        return (yield from self._away())

    @pytest.hookimpl(wrapper=True, tryfirst=True, optionalhook=True)
    def pytest_testnodedown(self) -> Generator[None, object, object]:
        """xdist goes on to tell that it replaces the worker."""
        return (yield from self._away(hold=True))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_enter_pdb(self) -> Generator[None, object, object]:
        """A `breakpoint()` somewhere."""
        return (yield from self._away(hold=True))

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """The end."""
        self._line.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self) -> None:
        """The end."""
        self._line.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The end."""
        self._line.close()

    def _away(self, *, hold: bool = False) -> Generator[None, object, object]:
        with self._line.away(hold=hold):
            result = yield
            self._writer.flush()
        return result


@contextmanager
def status_line(config: pytest.Config, text: Callable[[], str], *, unicode: bool) -> Iterator[None]:
    """Show the line for as long as the block runs; only where `can_show`."""
    writer = config.get_terminal_writer()
    line = StatusLine(text, column=lambda: writer.width_of_current_line, width=lambda: writer.fullwidth, unicode=unicode, out=1)
    manners = Manners(line, writer)
    config.pluginmanager.register(manners, "caliper-status")
    config.stash[STATUS_LINE] = line
    line.start()
    try:
        yield
    finally:
        del config.stash[STATUS_LINE]
        line.close()
        config.pluginmanager.unregister(manners)


def fitting(text: str, columns: int) -> str:
    """The text made harmless, on one line, cut to so many columns; wide characters count as two."""
    text = one_line(text)
    used = 0
    for place, char in enumerate(text):
        used += _columns(char)
        if used > columns:
            kept = text[:place]
            while kept and _width(kept) > columns - 3:
                kept = kept[:-1]
            return kept + "..."
    return text


def _width(text: str) -> int:
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char) or char in "\u200c\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _right(column: int) -> str:
    return f"\x1b[{column}C" if column else ""


def _in_foreground(out: int) -> bool:
    """Whether the terminal is ours: `pytest &` must not draw into what somebody else does there."""
    try:
        return os.tcgetpgrp(out) == os.getpgrp()
    except OSError:  # no terminal of this session
        return True
