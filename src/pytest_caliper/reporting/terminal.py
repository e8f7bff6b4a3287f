"""The summary at the end of a session, as one string for pytest's terminal reporter.

Nothing here needs rich; a full summary imports it when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.bars import bar_verdict
from pytest_caliper.reporting.figures import ArmFigures, arm_figures, baseline_figures
from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.text import one_line
from pytest_caliper.runs.records import Run

__all__ = ["Style", "render_summary"]


def render_summary(runs: Sequence[Run], *, style: Style, verbosity: int) -> str:
    """Text of all runs, each line ended by a newline; empty without runs.

    Below 0 `verbosity` gives one line per spec; from 1 on every attempt's judge reasons and the chances of several attempts are
    added, from 2 on the reasons are not shortened. ANSI codes are in it only with `style.color`.
    """
    if verbosity < 0:
        return "".join(f"{_quiet(run, style)}\n" for run in runs)
    from pytest_caliper.reporting.layout import to_string
    from pytest_caliper.reporting.summary import run_lines

    return "\n".join(to_string(run_lines(run, style, verbosity), style) for run in runs)


def _quiet(run: Run, style: Style) -> str:
    """`x.eval.yaml: 83.3% [43.6, 97.0] 5/6 usable 6/6`: rate, interval, successes/usable, usable/planned."""
    parts = [_quiet_arm(arm_figures(run.results))]
    figures = baseline_figures(run)
    if figures is not None and run.baseline_results is not None:
        parts.append(f"no skill {_quiet_arm(arm_figures(run.baseline_results))}")
        comparison = figures.comparison
        parts.append(f"Δ {numbers.points(comparison.delta)} {comparison.word}" if comparison else "Δ —")
    if run.meta.shard is not None:
        parts.append(f"shard {run.meta.shard.get('index')} of {run.meta.shard.get('of')}")
    verdicts = [verdict for result in run.results if (verdict := bar_verdict(result)) is not None]
    if verdicts:
        parts.append(f"bars {sum(verdict.reached for verdict in verdicts)}/{len(verdicts)} met")
    parts += [word for word, true in (("partial", run.meta.partial), ("interrupted", run.meta.interrupted)) if true]
    return style.foreign(one_line(run.meta.spec)) + style.own(f": {'; '.join(parts)}")


def _quiet_arm(arm: ArmFigures) -> str:
    suite = arm.suite
    measured = f"{numbers.rate(suite.rate)} {numbers.interval((suite.low, suite.high))}" if suite else numbers.UNKNOWN
    return f"{measured} {arm.successes}/{arm.usable} usable {arm.usable}/{arm.planned}"
