"""JUnit XML: what is added to the file that pytest writes, and the same shape made from a saved run.

Transcripts and answers are in neither: CI servers keep these files for years and show them to everybody.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from pytest_caliper.reporting.bars import bar_reason, bar_verdict, share
from pytest_caliper.reporting.evidence import attempt_name
from pytest_caliper.reporting.figures import paired, planned
from pytest_caliper.reporting.text import clip, one_line
from pytest_caliper.runs.records import AttemptRecord, Bar, Run, TaskResult
from pytest_caliper.spec.names import node_name

_REASON_CHARS = 1_000

Property = tuple[str, "str | int | float"]


def properties(record: AttemptRecord, *, engine: str) -> list[Property]:
    """What a JUnit file says of an attempt, by names that begin with `caliper.`: plain strings and numbers, all of them known."""
    usage = record.usage
    said: list[tuple[str, str | int | float | None]] = [
        ("caliper.task", one_line(record.task_name)),
        ("caliper.arm", record.key.arm),
        ("caliper.attempt", record.key.attempt),
        ("caliper.outcome", record.outcome),
        ("caliper.engine", one_line(engine)),
        ("caliper.model", None if record.model is None else one_line(record.model)),
        ("caliper.tokens_in", None if usage is None else usage.prompt_tokens),
        ("caliper.tokens_out", None if usage is None else usage.output_tokens),
        ("caliper.duration_seconds", round(record.duration_seconds, 3)),
        ("caliper.wall_seconds", round(record.wall_seconds, 3)),
    ]
    return [(name, value) for name, value in said if value is not None]


def render_junit(run: Run) -> str:
    """The run as pytest's `--junitxml` (family xunit2) shows its attempts, ended by a newline.

    A failure with the skill is a `failure`, or an expected one where a bar decides: the bar is a case of its own then. An
    unusable attempt is `skipped`, and a baseline attempt that failed an expected failure.
    """
    suite = ET.Element("testsuite", name="pytest-caliper", timestamp=run.meta.timestamp)
    cases = [case for pair in paired(run) for result in pair if result is not None for case in _cases(run, result)]
    suite.extend(cases)
    for name, found in (("errors", "error"), ("failures", "failure"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(found) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suite.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")
    root = ET.Element("testsuites", name="pytest tests")
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _cases(run: Run, result: TaskResult) -> Iterator[ET.Element]:
    spec = one_line(run.meta.spec).replace("/", ".")
    classname = f"{spec}.{node_name(result.task_name, result.task_id)}"
    engine = str(run.meta.contract.get("engine") or run.meta.backend)
    for record in result.attempts:
        case = ET.Element(
            "testcase",
            classname=classname,
            name=attempt_name(record.key),
            time=f"{record.wall_seconds:.3f}",
        )
        told = ET.SubElement(case, "properties")
        for name, value in properties(record, engine=engine):
            ET.SubElement(told, "property", name=name, value=str(value))
        ending = _ending(record, result.bar)
        if ending is not None:
            case.append(ending)
        yield case
    ran = {record.key.attempt for record in result.attempts}
    for number in range(1, result.planned + 1) if result.aborted else ():
        if number not in ran and len(ran) < result.planned:
            name = f"{'attempt' if result.arm == 'skill' else 'baseline'}-{number}"
            case = ET.Element("testcase", classname=classname, name=name, time="0.000")
            ET.SubElement(case, "skipped", type="pytest.skip", message="aborted: the attempt was not let begin")
            yield case
    verdict = bar_verdict(result) if planned(result) and result.arm == "skill" else None
    if verdict is not None:
        case = ET.Element("testcase", classname=classname, name="bar", time="0.000")
        if not verdict.reached:
            case.append(_said("failure", bar_reason(verdict)))
        yield case


def _ending(record: AttemptRecord, bar: Bar | None) -> ET.Element | None:
    reason = clip(one_line(record.reason or record.outcome), chars=_REASON_CHARS, lines=1)[0]
    if not record.usable:
        return _said("skipped", f"{record.outcome}: {reason}", type="pytest.skip")
    if record.outcome == "pass":
        return None
    if record.key.arm == "baseline":
        return _said("skipped", f"baseline, without the skill: {record.outcome}", type="pytest.xfail")
    if bar is not None:
        return _said("skipped", f"tolerated: the bar of {share(bar.rate)} decides", type="pytest.xfail")
    return _said("failure", reason if record.outcome == "task_fail" else f"{record.outcome}: {reason}")


def _said(tag: str, message: str, **attributes: str) -> ET.Element:
    element = ET.Element(tag, {**attributes, "message": message})
    element.text = message
    return element
