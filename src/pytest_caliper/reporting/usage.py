"""What a side of a comparison, or a run, used in all: the `usage_totals` of caliper-eval 0.9."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_caliper.runs.records import AttemptRecord, TaskResult, Usage


def usage_totals(results: Iterable[TaskResult]) -> dict[str, Any]:
    """The totals as JSON, over every attempt: tokens, the agents' own seconds, and the part of both that was not usable.

    Unknown tokens count as nothing; `tokens_reported` is false when no attempt told any.
    """
    records = [record for result in results for record in result.attempts]
    unusable = [record for record in records if not record.usable]
    totals: dict[str, Any] = {
        name: sum(getattr(record.usage, name) or 0 for record in records if record.usage is not None)
        for name in Usage.__dataclass_fields__
    }
    totals |= {
        "wall_seconds": _wall(records),
        "attempts": len(records),
        "tokens_reported": any(map(_told, records)),
        "unusable_tokens": _total(unusable),
        "unusable_wall_seconds": _wall(unusable),
        "unusable_attempts": len(unusable),
        "total_tokens": _total(records),
        "prompt_tokens": sum(record.usage.prompt_tokens for record in records if record.usage is not None),
        "usable_attempts": len(records) - len(unusable),
        "usable_wall_seconds": _wall(record for record in records if record.usable),
    }
    return totals


def _told(record: AttemptRecord) -> bool:
    usage = record.usage
    return usage is not None and any(getattr(usage, name) is not None for name in Usage.__dataclass_fields__)


def _total(records: Iterable[AttemptRecord]) -> int:
    return sum(record.usage.total_tokens for record in records if record.usage is not None)


def _wall(records: Iterable[AttemptRecord]) -> float:
    return sum((record.duration_seconds for record in records), 0.0)
