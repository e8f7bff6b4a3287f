"""The page of two runs, read before -> after: skill arms only, tasks matched by name, what else differs said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.comparing import ComparedTask, RunComparison, Side, compare_runs
from pytest_caliper.reporting.html.model import TONES, Card, Fact, Line, Note, Page, Row, Source, Verdict
from pytest_caliper.reporting.html.one_run import WIDE, noted, run_facts, unbroken
from pytest_caliper.reporting.totals import attempts_fact, difference_text, tokens_fact, wall_fact, worst_case_fact
from pytest_caliper.runs.reading import load_run
from pytest_caliper.runs.records import TaskResult

_WORDS = {"better": "better", "worse": "worse", "no evidence": "no evidence of a difference"}
_TOLD_OF_SIDES = ("Skill", "Engine", "Judge", "Run at", "Versions", "Run file")


def page_of(before: Path, after: Path) -> Page:
    """Two run files as one page. Raises RunFileError."""
    comparison = compare_runs(load_run(before), load_run(after))
    paths = (before, after)
    sides = (comparison.before, comparison.after)
    return Page(
        title=comparison.after.run.meta.spec,
        kind="Two runs compared",
        facts=(),
        notices=(),
        cards=[_card(side, path, all_tasks=len(comparison.tasks)) for side, path in zip(sides, paths, strict=True)],
        verdict=_verdict(comparison),
        rows=list(_rows(comparison)),
        sources=[
            Source(path=path, run=side.run, prefix=_prefix(side), arms=("skill",))
            for side, path in zip(sides, paths, strict=True)
        ],
        differences=[difference.text for difference in comparison.differences],
    )


def _prefix(side: Side) -> str:
    return f"{side.label}/"


def _card(side: Side, path: Path, *, all_tasks: int) -> Card:
    """The side over the tasks that the difference is about; what it cost is of all its attempts."""
    suite = side.compared.suite
    ran = dict(run_facts(side.run, path))
    facts: list[Fact | None] = [
        ("Attempts", attempts_fact(side.compared)),
        _optional("Worst case", worst_case_fact(side.compared)),
        ("Tasks", f"{side.compared.tasks} of {numbers.plural(all_tasks, 'common task')} compared"),
        ("Tokens", tokens_fact(side.figures)),
        ("Wall", wall_fact(side.figures)),
        *((name, ran[name]) for name in _TOLD_OF_SIDES if name in ran),
    ]
    return Card(
        title=side.label.capitalize(),
        rate=suite.rate if suite else None,
        interval=(suite.low, suite.high) if suite else None,
        facts=[fact for fact in facts if fact is not None],
    )


def _optional(name: str, text: str | None) -> Fact | None:
    return None if text is None else (name, text)


def _verdict(comparison: RunComparison) -> Verdict:
    found = comparison.comparison
    if found is None:
        sentence = "No task asks for the same and was measured on both sides."
        return Verdict(delta=numbers.UNKNOWN, word="nothing can be compared", tone="unsure", sentence=sentence)
    sentence = difference_text(found, _WORDS, tasks=len(comparison.tasks), where="both", style=WIDE).plain
    if comparison.delta_bounds is not None:
        limits = numbers.signed_interval((comparison.delta_bounds.low, comparison.delta_bounds.high))
        sentence += f". With every lost attempt one way or the other Δ lies within {limits} pts"
    return Verdict(
        delta=numbers.points(found.delta), word=_WORDS[found.word], tone=TONES[found.word], sentence=unbroken(sentence)
    )


def _rows(comparison: RunComparison) -> Iterator[Row]:
    for task in comparison.tasks:
        sides = ((comparison.before, task.before), (comparison.after, task.after))
        yield Row(
            task_id=task.after.task_id,
            name=task.name,
            lines=[_line(side, result) for side, result in sides],
            delta=numbers.signed(task.delta),
            delta_at=1,
            word=(task.change.word or "") if task.change else "",
            notes=[*_remarks(task), *(note for side, result in sides for note in _notes(side, result))],
        )
    for side, results in ((comparison.before, comparison.unmatched_before), (comparison.after, comparison.unmatched_after)):
        for result in results:
            yield Row(
                task_id=result.task_id,
                name=result.task_name,
                lines=[_line(side, result)],
                notes=[Note(text=f"only {side.label}: no task of this name in the other run"), *_notes(side, result)],
            )


def _line(side: Side, result: TaskResult) -> Line:
    return Line(label=side.label, result=result, prefix=_prefix(side))


def _remarks(task: ComparedTask) -> Iterator[Note]:
    if task.changed:
        yield Note(text=f"not comparable: {' and '.join(task.changed)} changed")
    elif not task.measured:
        yield Note(text="not measured on both sides")


def _notes(side: Side, result: TaskResult) -> Iterator[Note]:
    for note in noted(side.run, [result]):
        yield Note(text=f"{side.label}: {note.text}", tone=note.tone)
