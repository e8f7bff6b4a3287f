"""The page of one run; with a baseline, both arms side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import ArmFigures, BaselineFigures, arms_of, baseline_figures, paired
from pytest_caliper.reporting.html.model import TONES, Card, Fact, Line, Note, Page, Row, Source, Tone, Verdict
from pytest_caliper.reporting.notes import task_notes
from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.summary import engine_text, judge_text, notices_of
from pytest_caliper.reporting.totals import (
    attempts_fact,
    flawless_fact,
    tokens_fact,
    verdict_text,
    wall_fact,
    worst_case_fact,
)
from pytest_caliper.runs.names import parse_timestamp
from pytest_caliper.runs.records import Run, TaskResult

WIDE = Style(width=1_000_000, color=False, unicode=True)
"""The browser breaks lines, and has every mark."""
_NOTE_TONES: Mapping[str, Tone] = {"green": "good", "red": "bad"}
_ARM_TITLES = {"": "Success rate", "skill": "With the skill", "no skill": "Without the skill"}


def page_of(run: Run, path: Path) -> Page:
    """Everything that the terminal tells of a run, and its attempts to open."""
    arms = arms_of(run)
    compared = baseline_figures(run)
    return Page(
        title=run.meta.spec,
        kind="Skill evaluation",
        facts=run_facts(run, path),
        notices=notices_of(run, arms),
        cards=[card(_ARM_TITLES[name], arm) for name, arm in arms],
        verdict=None if compared is None else _verdict(compared, tasks=len(paired(run))),
        rows=[_row(run, pair, compared) for pair in paired(run)],
        sources=[Source(path=path, run=run)],
    )


def run_facts(run: Run, path: Path) -> list[Fact]:
    """What ran, when, and with which versions."""
    meta = run.meta
    when = parse_timestamp(meta.timestamp).strftime("%Y-%m-%d %H:%M:%S UTC")
    versions = [f"pytest-caliper {meta.pytest_caliper}"] if meta.pytest_caliper else []
    if meta.cli_version is not None:
        versions.append(f"{meta.backend} {meta.cli_version}")
    if meta.judge_cli_version not in {None, meta.cli_version}:
        versions.append(f"judge's {meta.judge_backend} {meta.judge_cli_version}")
    facts = [
        ("Skill", ", ".join(_skill(run)) or "none"),
        ("Engine", engine_text(run)),
        ("Judge", judge_text(run).removeprefix("judge ")),
        ("Attempts", f"{meta.k} per task" + (" and arm" if meta.baseline else "")),
        ("Run at", when),
        ("Versions", " · ".join(versions)),
        ("Run file", path.name),
    ]
    return [(name, text) for name, text in facts if text]


def _skill(run: Run) -> list[str]:
    return [f"{skill.name} ({skill.git_sha[:7]})" if skill.git_sha else skill.name for skill in run.skills]


def card(title: str, arm: ArmFigures) -> Card:
    """The headline of one arm."""
    suite = arm.suite
    facts = [
        ("Attempts", attempts_fact(arm)),
        ("Worst case", worst_case_fact(arm)),
        ("Flawless", flawless_fact(arm)),
        ("Tokens", tokens_fact(arm)),
        ("Wall", wall_fact(arm)),
    ]
    return Card(
        title=title,
        rate=suite.rate if suite else None,
        interval=(suite.low, suite.high) if suite else None,
        facts=[(name, text) for name, text in facts if text],
    )


def _verdict(compared: BaselineFigures, *, tasks: int) -> Verdict:
    comparison = compared.comparison
    sentence = verdict_text(compared, tasks=tasks, style=WIDE).plain
    if comparison is None:
        return Verdict(delta=numbers.UNKNOWN, word="not measured", tone="unsure", sentence=sentence)
    return Verdict(
        delta=numbers.points(comparison.delta), word=comparison.word, tone=TONES[comparison.word], sentence=unbroken(sentence)
    )


def unbroken(sentence: str) -> str:
    """The sentence with every `p = 0.04` and `+1.0 pts` in one piece."""
    for piece in (" = ", " < ", " pts"):
        sentence = sentence.replace(piece, piece.replace(" ", "\u00a0"))
    return sentence


def noted(run: Run, results: Sequence[TaskResult]) -> list[Note]:
    """The notes of one task, with the tones that they have on the terminal."""
    notes = [
        Note(text=note.plain.removeprefix("! "), tone=_NOTE_TONES.get(str(note.style), "unsure"))
        for note in task_notes(run, results, WIDE, verbosity=0)
    ]
    if unchecked := sum(len(result.not_checked) for result in results):
        notes.append(Note(text=f"{numbers.plural(unchecked, 'attempt')} without any check: not counted, not shown"))
    return notes


def _row(run: Run, pair: tuple[TaskResult | None, TaskResult | None], compared: BaselineFigures | None) -> Row:
    known = [result for result in pair if result is not None]
    labels = ("", "") if compared is None else ("skill", "no skill")
    change = None if compared is None else compared.changes.get(known[0].task_id)
    return Row(
        task_id=known[0].task_id,
        name=known[0].task_name,
        lines=[
            Line(label=label, result=result, judged=result.arm == "skill")
            for label, result in zip(labels, pair, strict=True)
            if result is not None
        ],
        delta="" if compared is None else numbers.signed(change.delta if change else None),
        word=(change.word or "") if change else "",
        notes=noted(run, known),
    )
