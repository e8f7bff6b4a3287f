"""Why an attempt ended as it did, in the words of its checks."""

from __future__ import annotations

from pytest_caliper.runs.records import AttemptKey, AttemptRecord


def attempt_name(key: AttemptKey) -> str:
    """The last part of the attempt's node id: `attempt-2` or `baseline-2`."""
    return f"{'attempt' if key.arm == 'skill' else 'baseline'}-{key.attempt}"


def says(record: AttemptRecord) -> list[str]:
    """What the attempt's checks said, the deciding one first; raw texts of the record, at least one."""
    parts = []
    if not record.usable or record.outcome == "cheat":
        parts.append(f"{record.outcome}: {record.reason}" if record.reason else record.outcome)
    parts += [f"cheat: {evidence}" for evidence in record.cheat_evidence if evidence not in (record.reason or "")]
    if record.assert_passed is False:
        parts.append(f"assert failed: {record.assert_evidence or record.reason or 'no evidence kept'}")
    elif record.assert_passed:
        parts.append("assert passed")
    if record.autorater_passed is not None or record.autorater_reasoning is not None:
        verdict = {True: "judge: yes", False: "judge: no", None: "judge"}[record.autorater_passed]
        parts.append(f"{verdict}: {record.autorater_reasoning}" if record.autorater_reasoning else verdict)
    return parts or [record.reason or record.outcome]
