"""Below the table: the verdict on the skill, and what all tasks together came to."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import ArmFigures, Arms, BaselineFigures, paired, spend
from pytest_caliper.reporting.layout import wrapped
from pytest_caliper.reporting.style import WORD_STYLES, Style
from pytest_caliper.reporting.text import one_line
from pytest_caliper.runs.records import Run, Usage
from pytest_caliper.scoring import Comparison, Over

_KEY = 12
_WORDS = {"better": "better with the skill", "worse": "worse with the skill", "no evidence": "no evidence of a difference"}


def verdict_lines(compared: BaselineFigures, *, tasks: int, style: Style) -> list[Text]:
    """The difference that the skill makes, with its interval, in words."""
    return _fact("Skill", verdict_text(compared, tasks=tasks, style=style), style)


def verdict_text(compared: BaselineFigures, *, tasks: int, style: Style) -> Text:
    """`Δ +33.3 pts [+10.6, +72.9]: better with the skill (p = 0.018)`, on one line, with what limits it and how to learn more."""
    comparison = compared.comparison
    if comparison is None:
        return Text(style.own("Δ — no task was measured with and without the skill"))
    return difference_text(comparison, _WORDS, tasks=tasks, where="both arms", style=style)


def difference_text(comparison: Comparison, words: Mapping[str, str], *, tasks: int, where: str, style: Style) -> Text:
    """The difference of two sides, with its interval, in `words`; `where` names the sides, and `tasks` are all there are."""
    limits = numbers.signed_interval((comparison.low, comparison.high))
    line = Text(style.own(f"Δ {numbers.points(comparison.delta)} {limits}: "))
    line.append(words[comparison.word], style=WORD_STYLES[comparison.word])
    line.append(f" ({numbers.p_value(comparison.p)})")
    if comparison.tasks < tasks:
        line.append(f", over the {comparison.tasks} of {tasks} tasks measured in {where}")
    if advice := _advice(comparison):
        line.append(f"; {advice}")
    return line


def _advice(comparison: Comparison) -> str | None:
    more = comparison.more
    if isinstance(more, Over):
        return f"a difference this small takes {more} attempts per task and arm to tell"
    return f"about {numbers.plural(more, 'more attempt')} per task and arm would tell" if more else None


def fact_lines(run: Run, arms: Arms, style: Style) -> list[Text]:
    """Counts and coverage, worst case, tokens, wall time, unusable spend and the file."""
    lines: list[Text] = []
    for key, tell in (
        ("Attempts", attempts_fact),
        ("Flawless", flawless_fact),
        ("Worst case", worst_case_fact),
        ("Tokens", tokens_fact),
        ("Wall", wall_fact),
    ):
        told = [(name, text) for name, arm in arms if (text := tell(arm))]
        width = max((len(name) for name, _ in told), default=0)
        for i, (name, text) in enumerate(told):
            lines += _fact("" if i else key, Text(style.own(text)), style, arm=f"{name:<{width}}  " if name else "")
    lines += _judge_tokens(run, style)
    lines += _unusable_spend(run, style)
    return lines + _saved(run, style)


def attempts_fact(arm: ArmFigures) -> str:
    """`8/9 passed · coverage 9/12 · 1 unusable · 2 not run`."""
    parts = [f"{arm.successes}/{arm.usable} passed", f"coverage {arm.usable}/{arm.planned}"]
    if arm.unusable:
        parts.append(f"{arm.unusable} unusable")
    if missing := arm.lost - arm.unusable:
        parts.append(f"{missing} not run")
    return " · ".join(parts)


def flawless_fact(arm: ArmFigures) -> str:
    """How many tasks passed every attempt."""
    return f"{arm.flawless} of {numbers.plural(arm.tasks, 'task')} passed every attempt"


def worst_case_fact(arm: ArmFigures) -> str | None:
    """What the rate could have been with the lost attempts; None when none was lost."""
    if not arm.lost or arm.worst is None or arm.best is None:
        return None
    return f"{numbers.rate(arm.worst)} had the lost attempts failed, {numbers.rate(arm.best)} had they passed"


def tokens_fact(arm: ArmFigures) -> str:
    """`436K in / 1.3K out`."""
    cost = arm.spend
    if cost.total_tokens is None:
        return numbers.UNKNOWN
    text = f"{numbers.tokens(cost.prompt_tokens)} in / {numbers.tokens(cost.output_tokens)} out"
    return text if cost.complete else f"{text} (at least: not every attempt told)"


def wall_fact(arm: ArmFigures) -> str:
    """`6.7s · 0.7s per attempt`."""
    total = numbers.duration(arm.spend.wall_s)
    each = arm.usable_spend.wall_per_attempt_s
    return total if each is None else f"{total} · {numbers.duration(each)} per attempt"


def _judge_tokens(run: Run, style: Style) -> list[Text]:
    """What the judge used in both arms, apart from the agents; nothing where its CLI does not tell."""
    results = [result for pair in paired(run) for result in pair if result is not None]
    used = Usage.sum(record.judge_usage for result in results for record in result.attempts)
    if used is None or not used.total_tokens:
        return []
    text = f"{numbers.tokens(used.prompt_tokens)} in / {numbers.tokens(used.output_tokens)} out, not counted above"
    return _fact("Judge", Text(style.own(text)), style)


def _unusable_spend(run: Run, style: Style) -> list[Text]:
    """What was spent on attempts that do not count, in both arms together."""
    results = [result for pair in paired(run) for result in pair if result is not None]
    cost = spend(record for result in results for record in result.attempts if not record.usable)
    if not cost.attempts:
        return []
    amounts = f"{numbers.tokens(cost.total_tokens)} tokens, {numbers.duration(cost.wall_s)}"
    count = numbers.plural(cost.attempts, "attempt")
    text = f"⊘ unusable spend: {amounts} ({count}, not counted in the average)"
    return wrapped(Text(style.own(text), style="yellow"), style, indent="  ", first=Text())


def _saved(run: Run, style: Style) -> list[Text]:
    if run.saved is None:
        return _fact("Saved", Text("nowhere"), style)
    path = Text(style.foreign(one_line(run.saved)))
    if _KEY + path.cell_len <= style.width:
        return _fact("Saved", path, style)
    return [Text("Saved", style="dim"), path]  # in one piece, whatever the width: so it can be copied


def _fact(key: str, text: Text, style: Style, arm: str = "") -> list[Text]:
    head = Text().append(f"{key:<{_KEY}}", style="dim").append(arm)
    return wrapped(text, style, indent=" " * head.cell_len, first=head)
