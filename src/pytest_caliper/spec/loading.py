"""Reads a `.eval.yaml` file. All of its mistakes are reported at once, each with the line where it stands."""

from __future__ import annotations

from pathlib import Path

from pytest_caliper.spec import complaints, parts, tree
from pytest_caliper.spec.findings import Findings
from pytest_caliper.spec.model import Spec
from pytest_caliper.spec.source import read_source


def load_spec(path: Path) -> Spec:
    """The spec at `path`, with warnings for what is allowed and probably not meant.

    Raises SpecError with every mistake of the file, in the order of their lines; those within an assert script name that
    script and come last. Only bytes that are no YAML mapping at all are reported alone.
    """
    path = path.absolute()
    findings = Findings(path)
    source = read_source(path, findings)
    root = tree.compose(source, findings)
    complaints.note_shape_errors(root, findings)
    skills = parts.skills(root, findings)
    sandbox = parts.sandbox(root, findings)
    engine_default, judge_default = parts.engine_defaults(root, findings)
    tasks = parts.tasks(root, source, findings)
    findings.raise_errors()
    return Spec(
        path=path,
        skills=skills,
        tasks=tasks,
        sandbox=sandbox,
        mcp=parts.mcp_servers(root),
        engine_default=engine_default,
        judge_default=judge_default,
        warnings=findings.warnings,
        digest=source.digest,
        bar=parts.bar(root),
    )
