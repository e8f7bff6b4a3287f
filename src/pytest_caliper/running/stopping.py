"""When to begin nothing more: an arm of a task whose infrastructure is down, a session whose tokens are spent.

Pure bookkeeping, told of attempts in the order of their ends. What runs is never stopped from here.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from pytest_caliper.runs.records import Arm, AttemptKey, AttemptRecord

LOST = frozenset({"infra_error", "timeout"})


class Refused(Exception):
    """The attempt must not begin; the text says why."""


@dataclass(frozen=True, slots=True)
class ArmOf:
    """One arm of one task."""

    spec: str
    task_id: str
    arm: Arm

    @classmethod
    def of(cls, key: AttemptKey) -> ArmOf:
        return cls(key.spec, key.task_id, key.arm)


class Stopping:
    """Thread-safe. `fail_fast` 0 and `max_tokens` None never stop anything."""

    def __init__(self, *, fail_fast: int, max_tokens: int | None) -> None:
        self._fail_fast, self._max_tokens = fail_fast, max_tokens
        self._lock = threading.Lock()
        self._in_a_row: dict[ArmOf, int] = {}
        self._aborted: dict[ArmOf, str] = {}
        self._running: set[AttemptKey] = set()
        self._begun_pairs: set[Hashable] = set()
        self._measured = 0
        self.tokens = 0
        """What the attempts and their judges have used so far, as far as it is known."""
        self.unmeasured = 0
        """Attempts that did not say what they used."""
        self.spent = False
        """Whether an attempt was refused for want of tokens."""

    @property
    def limits(self) -> bool:
        """Whether anything can be refused."""
        return bool(self._fail_fast or self._max_tokens is not None)

    def begins(self, key: AttemptKey) -> str | None:
        """An attempt is about to begin. -> why it must not, one line; None when it may (and then it counts as running)."""
        with self._lock:
            reason = self._refusal(key)
            if reason is None:
                self._count(key)
            return reason

    def has_begun(self, key: AttemptKey) -> None:
        """An attempt has begun, whether it was let or not: it counts as running."""
        with self._lock:
            self._count(key)

    def aborted(self, key: AttemptKey) -> bool:
        """Whether the arm of the attempt begins nothing any more, not even the other half of a pair."""
        with self._lock:
            return ArmOf.of(key) in self._aborted

    def ended(self, record: AttemptRecord) -> None:
        """An attempt has ended; call it in the order of their ends, once each."""
        with self._lock:
            self._running.discard(record.key)
            used = [usage.total_tokens for usage in (record.usage, record.judge_usage) if usage is not None]
            self.tokens += sum(used)
            if record.usage is None:
                self.unmeasured += 1
            else:
                self._measured += 1
            arm = ArmOf.of(record.key)
            self._in_a_row[arm] = self._in_a_row.get(arm, 0) + 1 if record.outcome in LOST else 0
            if self._fail_fast and self._in_a_row[arm] >= self._fail_fast:
                times = f"{self._fail_fast} times in a row" if self._fail_fast > 1 else "once"
                self._aborted.setdefault(arm, f"aborted: {record.outcome} came {times} (--caliper-fail-fast {self._fail_fast})")

    def cancelled(self, key: AttemptKey) -> None:
        """An attempt that had begun was cut short and makes no record."""
        with self._lock:
            self._running.discard(key)

    def refused(self, keys: Iterable[AttemptKey]) -> dict[AttemptKey, str]:
        """Which of these attempts would not be let begin now, and why."""
        with self._lock:
            return {key: reason for key in keys if (reason := self._refusal(key)) is not None}

    def _count(self, key: AttemptKey) -> None:
        self._running.add(key)
        self._begun_pairs.add(key.pair)

    def _refusal(self, key: AttemptKey) -> str | None:
        reason = self._aborted.get(ArmOf.of(key))
        if reason is not None or self._max_tokens is None:
            return reason
        if key.pair in self._begun_pairs:
            return None  # half a pair would tell nothing
        if not self.spent:
            each = self.tokens / self._measured if self._measured else 0.0
            self.spent = self.tokens + each * (len(self._running) + 1) > self._max_tokens
        if self.spent:
            return f"not begun: {self.tokens:,} of {self._max_tokens:,} tokens are used (--caliper-max-tokens)"
        return None
