"""What counts mean: rates, their intervals, and whether two arms differ. Pure functions of whole numbers.

Formulas and their sources stand at each function. The same counts give the same numbers, always.
"""

from __future__ import annotations

from pytest_caliper.scoring._counts import Table
from pytest_caliper.scoring.bars import BarPolicy, BarVerdict, BarWord, attempts_to_settle, flawless_needed, judge_bar
from pytest_caliper.scoring.comparison import ALPHA, Comparison, TaskChange, Word, compare_arms, compare_tasks
from pytest_caliper.scoring.exact import ExactTest, boschloo, holm, stratified_exact
from pytest_caliper.scoring.intervals import Interval, SuiteDelta, SuiteRate, suite_delta, suite_rate, wilson
from pytest_caliper.scoring.power import Over, attempts_needed
from pytest_caliper.scoring.rates import Bounds, bounds, pass_at, pass_at_k, pass_hat, pass_hat_k, success_rate

__all__ = [
    "ALPHA",
    "BarPolicy",
    "BarVerdict",
    "BarWord",
    "Bounds",
    "Comparison",
    "ExactTest",
    "Interval",
    "Over",
    "SuiteDelta",
    "SuiteRate",
    "Table",
    "TaskChange",
    "Word",
    "attempts_needed",
    "attempts_to_settle",
    "boschloo",
    "bounds",
    "compare_arms",
    "compare_tasks",
    "flawless_needed",
    "holm",
    "judge_bar",
    "pass_at",
    "pass_at_k",
    "pass_hat",
    "pass_hat_k",
    "stratified_exact",
    "success_rate",
    "suite_delta",
    "suite_rate",
    "wilson",
]
