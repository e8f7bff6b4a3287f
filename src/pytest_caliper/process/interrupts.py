"""Work that Ctrl-C must not leave half done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def uninterrupted(work: Callable[[], T], *, on_interrupt: Callable[[int], None] = lambda _: None) -> T:
    """The result of `work`, done where no signal handler can cut it short.

    Handlers (Ctrl-C) raise in the main thread only, so there the work is done by another one. Each interrupt calls `on_interrupt`
    with its number, from 1; the first is raised when the work is done.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def target() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
            errors.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=target, name="caliper-process", daemon=True).start()
    except RuntimeError:  # the interpreter ends: no thread can begin, and no test is running that a handler could interrupt
        return work()
    interrupts: list[BaseException] = []
    while not done.is_set():
        try:
            done.wait()
        except BaseException as interrupt:  # noqa: BLE001 - raised below
            interrupts.append(interrupt)
            on_interrupt(len(interrupts))
    if interrupts:
        raise interrupts[0]
    if errors:
        raise errors[0]
    return results[0]
