"""The table of tasks: readable without the script, and what the script's views hang on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import planned, spend, status_word
from pytest_caliper.reporting.html.attempts import KINDS, OUTCOME_WORDS, attempt_key, attempt_title
from pytest_caliper.reporting.html.markup import Markup, element, escaped, joined, on_one_line, opening, preformatted
from pytest_caliper.reporting.html.model import TONES, Line, Row
from pytest_caliper.reporting.style import MARKS, NOT_RUN
from pytest_caliper.runs.records import AttemptKey, AttemptRecord, TaskResult
from pytest_caliper.scoring import success_rate, wilson

_REASON_CHARS = 300
_REASONS = 3
"""Different reasons told per line, the commonest first."""
_LINKS = 8
_DENSE = 40
"""Attempts from which on they are drawn small."""
_HEADERS = (
    ("Attempts", ""),
    ("Rate", "num"),
    ("95% interval", "wide"),
    ("Status", ""),
    ("Tokens", "num wide"),
    ("Wall", "num wide"),
)

Blocks = dict[tuple[str, AttemptKey], str]
"""(prefix, key) of every attempt -> id of the block that holds it."""


def task_table(rows: Sequence[Row], blocks: Blocks) -> Iterator[Markup]:
    """The table, a piece per task."""
    labelled = any(line.label for row in rows for line in row.lines)
    compared = any(row.delta for row in rows)
    columns = [("", "arm")] * labelled + list(_HEADERS) + [("Δ pts", "num")] * compared
    yield opening("table", class_="tasks" if labelled else "tasks unlabelled", id="tasks", role="table")
    yield element("caption", "Every task and its attempts", class_="unseen")
    headers = (element("th", name, class_=kind or None, scope="col", role="columnheader") for name, kind in columns)
    yield element("thead", element("tr", *headers, role="row"), role="rowgroup")
    for row in rows:
        yield _task(row, blocks, labelled=labelled, compared=compared, columns=len(columns))
    yield Markup("</table>")


def _task(row: Row, blocks: Blocks, *, labelled: bool, compared: bool, columns: int) -> Markup:
    name = element(
        "th",
        element("span", row.task_id, class_="id"),
        element("span", on_one_line(row.name), class_="name"),
        element("span", row.word, class_=f"word {TONES[row.word]}") if row.word else None,
        colspan=columns,
        scope="rowgroup",
        role="rowheader",
    )
    lines = [_line(row, i, line, blocks, labelled=labelled, compared=compared) for i, line in enumerate(row.lines)]
    below = joined(_reasons(row), *(element("p", note.text, class_=f"note {note.tone}") for note in row.notes), _asked(row))
    return element(
        "tbody",
        element("tr", name, class_="head", role="row"),
        *lines,
        element("tr", element("td", below, colspan=columns, role="cell"), class_="below", role="row"),
        class_="task",
        role="rowgroup",
        data_name=f"{row.task_id} {on_one_line(row.name)}",
    )


def _line(row: Row, number: int, line: Line, blocks: Blocks, *, labelled: bool, compared: bool) -> Markup:
    result = line.result
    cost = spend(result.attempts)
    tokens = numbers.tokens(cost.total_tokens) + ("" if cost.complete or cost.total_tokens is None else "+")
    status = status_word(result) if planned(result) else ""
    limits = wilson(result.successes, result.usable)
    cells = [
        element("td", _strip(row, line, blocks), role="cell", class_="attempts"),
        element("td", numbers.rate(success_rate(result.successes, result.usable)), class_="num rate", role="cell"),
        element("td", interval_bar(success_rate(result.successes, result.usable), limits), class_="wide", role="cell"),
        element("td", element("span", status, class_=f"status {status.lower()}") if status else None, role="cell"),
        element("td", tokens, class_="num wide", role="cell"),
        element("td", numbers.duration(cost.wall_s), class_="num wide", role="cell"),
    ]
    if labelled:
        cells.insert(0, element("th", line.label, scope="row", role="rowheader", class_="arm"))
    if compared:
        cells.append(
            element("td", row.delta if number == row.delta_at else None, class_=f"num delta {_sign(row.delta)}", role="cell")
        )
    return element("tr", *cells, class_="line", role="row")


def _sign(delta: str) -> str:
    return {"+": "good", "-": "bad"}.get(delta[:1], "")


def interval_bar(rate: float | None, limits: tuple[float, float] | None) -> Markup:
    """The interval as a bar on a line from 0 to 100 %, and in numbers."""
    if rate is None or limits is None:
        return element("span", numbers.UNKNOWN, class_="muted")
    low, high = (f"{100 * limit:.1f}%" for limit in limits)
    bar = element(
        "svg",
        element("line", x1="0", x2="100%", y1="50%", y2="50%", class_="axis"),
        element("line", x1=low, x2=high, y1="50%", y2="50%", class_="span"),
        element("circle", cx=f"{100 * rate:.1f}%", cy="50%", r="4.5"),
        class_="interval",
        aria_hidden="true",
    )
    return joined(bar, element("span", numbers.interval(limits), class_="limits"))


def mark(kind: str) -> Markup:
    """The shape of an outcome; drawn once on the page."""
    return element("svg", element("use", href=f"#mark-{kind}"), class_="mark", aria_hidden="true")


def _strip(row: Row, line: Line, blocks: Blocks) -> Markup:
    result = line.result
    squares = [_square(record, line, blocks) for record in result.attempts]
    missing = planned(result) - len(result.attempts)
    squares += [
        element("span", mark("missing"), class_="attempt missing", title="not run", role="img", aria_label="not run")
    ] * missing
    label = f"Attempts of {on_one_line(row.name)}" + (f", {line.label}" if line.label else "")
    dense = " dense" if len(squares) > _DENSE else ""
    return element("span", *squares, class_=f"strip{dense}", role="group", aria_label=label) if squares else escaped(NOT_RUN)


def _square(record: AttemptRecord, line: Line, blocks: Blocks) -> Markup:
    kind = KINDS[record.outcome]
    said = f"{attempt_title(record.key)} {OUTCOME_WORDS[record.outcome]}"
    return element(
        "a",
        mark(kind),
        element("span", MARKS[record.outcome], class_="unseen", aria_hidden="true"),
        href=f"#{attempt_key(record.key, line.prefix)}",
        id=attempt_key(record.key, line.prefix),
        class_=f"attempt {kind}" + ("" if line.judged else " base"),
        data_block=blocks.get((line.prefix, record.key)),
        title=said + (f": {_cut(record.reason)}" if record.reason else ""),
        aria_label=said,
    )


def _cut(text: str) -> str:
    line = on_one_line(text[: 8 * _REASON_CHARS])
    return line if len(line) <= _REASON_CHARS else f"{line[:_REASON_CHARS]}…"


def _reasons(row: Row) -> Markup | None:
    """Why attempts failed, equal reasons together: what most readers open the page for. Lost ones are among the notes."""
    items = [item for line in row.lines if line.judged for item in _reasons_of(line)]
    return element("ul", *items, class_="why") if items else None


def _reasons_of(line: Line) -> Iterator[Markup]:
    found: dict[tuple[str, str], list[AttemptRecord]] = {}
    for record in line.result.attempts:
        if record.outcome in {"task_fail", "cheat"}:
            reason = _cut(record.reason or "no reason was kept")
            found.setdefault((KINDS[record.outcome], reason), []).append(record)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    for (kind, reason), records in ordered[:_REASONS]:
        links = [f"{line.label} " if line.prefix else "", "attempts " if len(records) > 1 else "attempt "]
        links += [_link(record, line) for record in records[:_LINKS]]
        more = f" and {len(records) - _LINKS} more" if len(records) > _LINKS else None
        where = element("span", *links, more, class_="which")
        yield element("li", mark(kind), where, reason, class_=kind)
    if len(ordered) > _REASONS:
        rest = ordered[_REASONS:]
        count = numbers.plural(sum(len(records) for _, records in rest), "more failing attempt")
        yield element("li", f"{count}, for {numbers.plural(len(rest), 'other reason')}", class_="rest")


def _link(record: AttemptRecord, line: Line) -> Markup:
    return joined(element("a", str(record.key.attempt), href=f"#{attempt_key(record.key, line.prefix)}"), " ")


_PARTS = (("Prompt", "prompt"), ("expect:", "expect"), ("assert:", "assert"))


def _asked(row: Row) -> Markup | None:
    """Prompt and checks; those of each run where they are not the same."""
    told: list[Markup] = []
    for name, part in _PARTS:
        texts = [(line, _part(line.result, part)) for line in row.lines]
        if len({text for _, text in texts}) == 1:
            texts = texts[:1]
        for line, text in texts:
            if text:
                label = name if len(texts) == 1 else f"{name} {line.label}"
                body = preformatted(text, data_part=part, data_of=None if len(texts) == 1 else line.prefix)
                told.append(joined(element("dt", label), element("dd", body)))
    return element("details", element("summary", "Prompt and checks"), element("dl", *told), class_="asked") if told else None


def _part(result: TaskResult, name: str) -> str:
    return {"prompt": result.prompt, "expect": result.expect, "assert": result.assert_}[name] or ""
