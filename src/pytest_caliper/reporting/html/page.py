"""The page as one file: markup, style, script, and every attempt as data that is parsed when it is opened."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib import resources
from typing import TextIO

from pytest_caliper.reporting import numbers
from pytest_caliper.reporting.figures import planned
from pytest_caliper.reporting.html.attempts import KINDS, attempt_json, turn_json
from pytest_caliper.reporting.html.markup import Markup, element, escaped, joined, on_one_line, opening, script_json
from pytest_caliper.reporting.html.model import Card, Page, Source, Verdict
from pytest_caliper.reporting.html.tasks import Blocks, interval_bar, mark, task_table
from pytest_caliper.reporting.style import MEANINGS
from pytest_caliper.runs.reading import iter_transcripts
from pytest_caliper.runs.records import AttemptKey, AttemptRecord

_WITHOUT_SCRIPT = "! Opening an attempt needs JavaScript; all numbers and reasons are here without it."
_SLOTS = ("policy", "style", "title", "marks", "body", "script", "blocks")


def write_page(page: Page, out: TextIO) -> None:
    """Write the page, its transcripts one turn at a time.

    Raises RunFileError, after a part of the page was written, when a transcript is damaged.
    """
    blocks = _blocks(page)
    slots = {
        "policy": escaped(content_policy()),
        "style": style(),
        "script": script(),
        "title": escaped(f"{on_one_line(page.title)} · pytest-caliper"),
        "marks": Markup(_asset("marks.svg")),
    }
    template = _asset("page.html")
    for name in _SLOTS:
        before, found, template = template.partition(f"{{{{{name}}}}}")
        if not found:
            raise AssertionError(f"the template has no place for {name}")
        out.write(before)
        if name == "body":
            out.writelines(_body(page, blocks))
        elif name == "blocks":
            out.writelines(_data(page, blocks))
        else:
            out.write(slots[name])
    out.write(template)


def content_policy() -> str:
    """Nothing is loaded, sent or framed; the page's own script and style run, told by their hashes, and no others."""
    return (
        f"default-src 'none'; script-src '{_hash(script())}'; style-src '{_hash(style())}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def script() -> Markup:
    """The page's script, as it stands between its tags."""
    return Markup(f"\n{_asset('page.js')}")


def style() -> Markup:
    """The page's style, as it stands between its tags."""
    return Markup(f"\n{_asset('page.css')}")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets").joinpath(name).read_text(encoding="ascii")


def _blocks(page: Page) -> Blocks:
    found = ((source.prefix, record.key) for source in page.sources for record in _records(source))
    return {key: f"data-{number}" for number, key in enumerate(found)}


def _records(source: Source) -> Iterator[AttemptRecord]:
    results = (*source.run.results, *(source.run.baseline_results or ()))
    return (record for result in results if result.arm in source.arms for record in result.attempts)


def _data(page: Page, blocks: Blocks) -> Iterator[str]:
    """A block per attempt, `{"attempt": …, "turns": […]}`, and nothing between them but line breaks."""
    for source in page.sources:
        records = {record.key: record for record in _records(source)}
        spec = source.run.meta.spec
        for arm, task_id, number, turns in iter_transcripts(source.path):
            record = records.pop(AttemptKey(spec=spec, task_id=task_id, arm=arm, attempt=number), None)
            if record is None:
                continue
            yield opening("script", type="application/json", id=blocks[source.prefix, record.key])
            yield f'{{"attempt":{script_json(attempt_json(record))},"turns":['
            for place, turn in enumerate(turns):
                yield f"{',' if place else ''}\n{script_json(turn_json(turn))}"
            yield "]}</script>\n"


def _body(page: Page, blocks: Blocks) -> Iterator[Markup]:
    yield element(
        "header",
        element("button", "Dark", type="button", id="theme", hidden=True),
        element("p", page.kind, class_="kind"),
        element("h1", on_one_line(page.title)),
        element("dl", *(_fact(name, on_one_line(text)) for name, text in page.facts), class_="facts") if page.facts else None,
        class_="top",
    )
    yield from (element("p", "! ", notice, class_="notice") for notice in page.notices)
    cards = [_card(card) for card in page.cards]
    if page.verdict is not None:
        cards.append(_verdict(page.verdict))
    yield element("section", *cards, class_="cards", aria_label="Results")
    if page.differences:
        items = (element("li", on_one_line(text)) for text in page.differences)
        yield element("section", element("h2", "What else differs"), element("ul", *items), class_="differences")
    yield _toolbar(page)
    yield element("noscript", element("p", _WITHOUT_SCRIPT, class_="notice"))
    yield _legend(page)
    if page.rows:
        yield from task_table(page.rows, blocks)
    yield element("p", "No task matches.", id="none", class_="muted", hidden=True)


def _fact(name: str, text: str) -> Markup:
    return element("div", element("dt", name), element("dd", text))


def _card(card: Card) -> Markup:
    limits = None if card.interval is None else (card.interval[0], card.interval[1])
    facts = (_fact(name, on_one_line(text)) for name, text in card.facts)
    return element(
        "div",
        element("h2", card.title),
        element("p", numbers.rate(card.rate), class_="big"),
        element("p", interval_bar(card.rate, limits), element("span", " 95% interval", class_="muted"), class_="sure"),
        element("dl", *facts),
        class_="card",
    )


def _verdict(verdict: Verdict) -> Markup:
    return element(
        "div",
        element("h2", "Difference"),
        element("p", verdict.delta, class_="big"),
        element("p", element("span", verdict.word, class_=f"word {verdict.tone}"), class_="sure"),
        element("p", verdict.sentence, class_="sentence"),
        class_=f"card verdict {verdict.tone}",
    )


def _toolbar(page: Page) -> Markup:
    lines = [line for row in page.rows for line in row.lines]
    records = [record for line in lines for record in line.result.attempts]
    judged = [record for line in lines if line.judged for record in line.result.attempts]
    filters = (
        ("all", "All", len(records)),
        ("failures", "Failures", sum(record.outcome in {"task_fail", "cheat"} for record in judged)),
        ("cheat", "Cheats", sum(record.outcome == "cheat" for record in records)),
        ("unusable", "Unusable", sum(not record.usable for record in records)),
    )
    buttons = (
        element(
            "button",
            label,
            element("span", str(count), class_="count"),
            type="button",
            data_filter=name,
            aria_pressed="true" if name == "all" else "false",
            disabled=not count,
        )
        for name, label, count in filters
    )
    keys = (("j k", "next, previous"), ("Enter", "open"), ("f", "failures"), ("/", "search"), ("Esc", "close"))
    told = (joined(element("kbd", key), f" {text} ") for key, text in keys)
    return element(
        "div",
        opening("input", type="search", id="search", placeholder="Search tasks", aria_label="Search tasks", autocomplete="off"),
        element("span", *buttons, class_="filters", role="group", aria_label="Show"),
        element("span", id="status", role="status", class_="muted"),
        element("span", *told, class_="keys"),
        class_="toolbar",
        role="search",
        hidden=True,
    )


def _legend(page: Page) -> Markup:
    results = [line.result for row in page.rows for line in row.lines]
    used = {"pass", "fail"} | {KINDS[record.outcome] for result in results for record in result.attempts}
    kinds = [meaning for meaning in MEANINGS.values() if meaning in used]
    items = [element("span", element("span", mark(kind), class_=f"attempt {kind}"), kind) for kind in kinds]
    if any(planned(result) > len(result.attempts) for result in results):
        items.append(element("span", element("span", mark("missing"), class_="attempt missing"), "not run"))
    return element(
        "p",
        element(
            "span",
            "Each square is one attempt. ",
            element("span", "Open one to see why it ended so.", class_="scripted"),
            class_="lead",
        ),
        *items,
        class_="legend",
    )
