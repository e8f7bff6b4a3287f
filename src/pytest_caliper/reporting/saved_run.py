"""A saved run shown again: the summary as it stood after the run, then why attempts failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.comparison_json import figures_json, verdict_json
from pytest_caliper.reporting.evidence import attempt_name
from pytest_caliper.reporting.failures import render_failure
from pytest_caliper.reporting.figures import arm_figures, baseline_figures
from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.terminal import render_summary
from pytest_caliper.reporting.text import one_line
from pytest_caliper.reporting.usage import usage_totals
from pytest_caliper.runs.jsontext import plain
from pytest_caliper.runs.records import AttemptRecord, Run, TaskResult

FAILURES = 5
"""Failing attempts shown in full below verbosity 1."""


def render_run(run: Run, *, style: Style, verbosity: int) -> str:
    """The text, each line ended by a newline. From `verbosity` 1 on every failing attempt is shown, not the first few."""
    failing = list(_failing(run))
    shown = failing if verbosity >= 1 else failing[:FAILURES]
    parts = [render_summary([run], style=style, verbosity=verbosity)]
    parts += [_failure(run, result, record, style) for result, record in shown]
    if len(shown) < len(failing):
        more = numbers.plural(len(failing) - len(shown), "more failing attempt")
        parts.append(f"{more}: --verbose shows all, --format html with transcripts\n")
    return "\n".join(parts)


def derived_json(run: Run) -> dict[str, Any]:
    """What `report --format json` adds to the file: caliper-eval's `usage_totals` (of the skill arm), and ours.

    `baseline_usage_totals`, `figures` and `baseline_figures` (see `figures_json`) and `verdict`, null without a baseline.
    """
    base = run.baseline_results
    compared = baseline_figures(run)
    added: dict[str, Any] = plain(
        {
            "usage_totals": usage_totals(run.results),
            "baseline_usage_totals": None if base is None else usage_totals(base),
            "figures": figures_json(arm_figures(run.results)),
            "baseline_figures": None if base is None else figures_json(arm_figures(base)),
            "verdict": None if compared is None or compared.comparison is None else verdict_json(compared.comparison),
        }
    )
    return added


def _failing(run: Run) -> Iterator[tuple[TaskResult, AttemptRecord]]:
    """Usable attempts with the skill that did not pass; what was lost stands in the summary."""
    pairs = ((result, record) for result in run.results for record in result.attempts)
    return ((result, record) for result, record in pairs if record.usable and record.outcome != "pass")


def _failure(run: Run, result: TaskResult, record: AttemptRecord, style: Style) -> str:
    name = style.foreign(f"{one_line(result.task_name)}, {attempt_name(record.key)}")
    location = f"{run.meta.spec}::{result.task_name}::{attempt_name(record.key)}"
    text = render_failure(record, location=location, expect=result.expect, transcript=None, style=style)
    return f"{_ruled(name, style)}\n{text}\n"


def _ruled(name: str, style: Style) -> str:
    line = style.own("──")
    rest = max(2, style.width - len(name) - 4)
    text = f"{line} {name} {style.own('─') * rest}"
    return f"\x1b[1m{text}\x1b[0m" if style.color else text
