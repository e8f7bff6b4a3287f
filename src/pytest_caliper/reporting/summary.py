"""One run on the terminal: does it work, how sure is that, what does the skill add, what did it cost."""

from __future__ import annotations

from rich.text import Text

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import Arms, arms_of, baseline_figures, paired
from pytest_caliper.reporting.foreign import foreign_notices
from pytest_caliper.reporting.layout import wrapped
from pytest_caliper.reporting.style import Style
from pytest_caliper.reporting.table import legend, table_lines
from pytest_caliper.reporting.text import one_line
from pytest_caliper.reporting.totals import fact_lines, verdict_lines
from pytest_caliper.runs.records import AttemptRecord, Run


def run_lines(run: Run, style: Style, verbosity: int) -> list[Text]:
    """Every line of one run's summary, none wider than the style's width (of 40 columns or more)."""
    arms = arms_of(run)
    compared = baseline_figures(run)
    lines = _title(run, style)
    lines += [line for notice in notices_of(run, arms) for line in _notice(notice, style)]
    lines.append(Text())
    if paired(run):
        lines += [*table_lines(run, arms, compared, style, verbosity), *legend(run, style), Text()]
    if compared is not None:
        lines += verdict_lines(compared, tasks=len(paired(run)), style=style)
    return lines + fact_lines(run, arms, style)


def _title(run: Run, style: Style) -> list[Text]:
    meta = run.meta
    spec = Text(style.foreign(one_line(meta.spec)), style="bold")
    facts = [f"k={meta.k}", f"engine {engine_text(run)}", judge_text(run)]
    rest = Text(style.own(" · ").join(style.foreign(fact) for fact in facts))
    if spec.cell_len + 2 + rest.cell_len <= style.width:
        return [Text().append_text(spec).append("  ").append_text(rest)]
    return [*wrapped(spec, style), *wrapped(rest, style)]


def engine_text(run: Run) -> str:
    """The engine asked for, with the concrete model where the default was."""
    meta = run.meta
    if meta.model is not None:
        return one_line(f"{meta.backend}:{meta.model}")
    used = _models(run)
    return one_line(f"{meta.backend} ({used[0]})" if len(used) == 1 else meta.backend)


def judge_text(run: Run) -> str:
    """The judge, and what a reader must know of it; one harmless line."""
    meta = run.meta
    if meta.judge_backend is None:
        if meta.foreign and any(record.autorater_passed is not None for record in _records(run)):
            return "judge unknown"  # files of caliper-eval before 0.8
        return "no judge was needed" if _measured(run) else "no judge ran"
    judge = one_line(f"judge {meta.judge_backend}" + ("" if meta.judge_model is None else f":{meta.judge_model}"))
    if not any(record.autorater_passed is not None for record in _records(run)):
        judge += " (gave no verdict)"
    same = meta.judge_backend == meta.backend and meta.judge_model in (*_models(run), meta.model)
    return f"{judge} (the engine under test)" if same else judge


def _records(run: Run) -> list[AttemptRecord]:
    return [record for pair in paired(run) for result in pair if result is not None for record in result.attempts]


def _models(run: Run) -> list[str]:
    return sorted({record.model for record in _records(run) if record.model is not None})


def _measured(run: Run) -> bool:
    return any(result.usable for pair in paired(run) for result in pair if result is not None)


def notices_of(run: Run, arms: Arms) -> list[str]:
    """What a reader must know before the numbers."""
    meta, told = run.meta, [one_line(notice) for notice in foreign_notices(run)]
    if meta.interrupted:
        ran, asked = sum(a.spend.attempts for _, a in arms), sum(a.planned for _, a in arms)
        told.append(f"interrupted: {ran:,} of {asked:,} planned attempts ran")
    if meta.user_customizations:
        told.append("with the user's own skills, memories and settings: the numbers hold for this machine alone")
    if meta.replay:
        told.append("replayed from cassettes: no agent and no judge ran")
    if meta.shard is not None:
        told.append(f"shard {meta.shard.get('index')} of {meta.shard.get('of')}: caliper merge joins all shards into one run")
    if meta.baseline_from is not None:
        source = meta.baseline_from
        told.append(one_line(f"the baseline is that of run {source.id} of {source.timestamp} ({source.file})"))
    if meta.partial:
        told.append("partial: attempts were left out; saved apart, never taken for the latest run")
    if meta.selected_tasks is not None:
        names = ", ".join(one_line(name) for name in meta.selected_tasks)
        told.append(f"only {numbers.plural(len(meta.selected_tasks), 'task')} selected: {names}")
    records = [record for pair in paired(run) for result in pair if result is not None for record in result.attempts]
    told += dict.fromkeys(f"stopped: {one_line(record.fatal)}" for record in records if record.fatal is not None)
    return told


def _notice(text: str, style: Style) -> list[Text]:
    return wrapped(Text(style.foreign(text), style="yellow"), style, indent="  ", first=Text("! ", style="yellow"))
