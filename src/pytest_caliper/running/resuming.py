"""Going on with a run that did not end: which one, whether it may be continued, and what of it is known already.

Only the controller decides. It tells xdist workers which attempts to leave alone (`told`), and reports the known ones itself.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_caliper.announcing import announce
from pytest_caliper.collection import AttemptFailed
from pytest_caliper.runs.errors import RunFileError
from pytest_caliper.runs.journal import SUFFIX, Journal, is_in_use, read_journal
from pytest_caliper.runs.place import PARTIAL
from pytest_caliper.runs.reading import iter_transcript, load_meta, load_run
from pytest_caliper.runs.records import AttemptKey, AttemptRecord
from pytest_caliper.spec.model import SpecError
from pytest_caliper.spec.names import node_name

if TYPE_CHECKING:
    from pytest_caliper.running.planning import SessionId, SpecPlan
    from pytest_caliper.spec.model import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfinished:
    """A run to continue."""

    source: Path
    """The journal or run file that it was found in."""
    contract: Mapping[str, Any]
    """What it was made under, as `Session` writes it."""
    planned: frozenset[AttemptKey]
    """The attempts that were selected when it began."""
    bars: frozenset[str]
    """Ids of the tasks whose bars were to decide."""
    records: Mapping[AttemptKey, AttemptRecord]
    """What of them is known. An attempt that told of a lost login or the like is not: it runs again."""
    journal: Journal | None
    """Locked and open for more; None when the run is continued as a new one (its file may be whole, or lie elsewhere)."""

    @property
    def name(self) -> str:
        """Stem of its files."""
        return self.source.stem


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """An attempt without an item: as `AttemptItem` to those who report it."""

    config: pytest.Config
    plan: SpecPlan
    task: Task
    key: AttemptKey

    @property
    def path(self) -> Path:
        return self.plan.spec.path

    @property
    def name(self) -> str:
        if (place := self.plan.places.get(self.key)) is not None:
            return place.name
        return f"{'attempt' if self.key.arm == 'skill' else 'baseline'}-{self.key.attempt}"

    @property
    def nodeid(self) -> str:
        if (place := self.plan.places.get(self.key)) is not None:
            return place.nodeid
        return f"{spec_nodeid(self.config, self.path)}::{node_name(self.task.name, self.task.task_id)}::{self.name}"

    @property
    def location(self) -> tuple[str, int | None, str]:
        """As pytest gives it for the item."""
        if (place := self.plan.places.get(self.key)) is not None:
            return place.location
        from _pytest.pathlib import bestrelpath  # what pytest makes its own locations with

        shown = bestrelpath(self.config.rootpath, self.path)
        return shown, self.task.line, f"{node_name(self.task.name, self.task.task_id)}.{self.name}"

    @property
    def location_text(self) -> str:
        return f"{self.location[0]}:{self.task.line + 1}"


def spec_nodeid(config: pytest.Config, path: Path) -> str:
    """The node id of a spec: relative to the rootdir, the whole path outside it."""
    return (path.relative_to(config.rootpath) if path.is_relative_to(config.rootpath) else path).as_posix()


class Resuming:
    """The runs that this session continues; made when `--caliper-resume` or `--caliper-resume-from` was given."""

    def __init__(self, config: pytest.Config, session_id: SessionId, source: Path | None) -> None:
        self._config, self._session_id, self._source = config, session_id, source
        self._found: dict[str, Unfinished | None] = {}
        self.plans: dict[str, SpecPlan] = {}
        """Of the specs that have a run to continue."""

    def find(self, plan: SpecPlan) -> Unfinished | None:
        """The run of this spec that is continued, looked for once. Raises pytest.UsageError where it cannot be read."""
        path = str(plan.spec.path)
        if path not in self._found:
            unfinished = self._look(plan)
            self._found[path] = unfinished
            if unfinished is not None:
                self.plans[path] = plan
                if unfinished.journal is not None:
                    self._session_id.continued[path] = unfinished.name
        return self._found[path]

    @property
    def looked(self) -> bool:
        """Whether any spec was asked for yet."""
        return bool(self._found)

    def told(self) -> dict[str, Any]:
        """For xdist workers: node id of a spec -> name of its files and the attempts that are known."""
        return {
            spec_nodeid(self._config, self.plans[path].spec.path): {
                "name": self._session_id.continued.get(path),
                "known": [[key.task_id, key.arm, key.attempt] for key in unfinished.records],
            }
            for path, unfinished in self._found.items()
            if unfinished is not None
        }

    def close(self) -> None:
        """Give the journals back that nobody took."""
        for unfinished in self._found.values():
            if unfinished is not None and unfinished.journal is not None:
                unfinished.journal.close()

    def _look(self, plan: SpecPlan) -> Unfinished | None:
        if self._source is not None:
            return self._from(self._source, plan)
        for journal in unfinished_runs(plan.results):
            try:
                return _continued(journal, plan)
            except BlockingIOError:  # another session took it since the look
                continue
            except (OSError, RunFileError) as error:
                raise pytest.UsageError(f"--caliper-resume: {error}") from error
        return None

    def _from(self, source: Path, plan: SpecPlan) -> Unfinished:
        if self._found:
            raise pytest.UsageError("--caliper-resume-from names one run, but several specs were selected: name its spec alone")
        try:
            if source.suffix != SUFFIX:
                beside = [place / f"{source.stem}{SUFFIX}" for place in (source.parent, source.parent.parent)]
                source = next((journal for journal in beside if journal.is_file()), source)
            if source.suffix != SUFFIX:
                return _copied(source, plan)
            if source.parent.resolve() != plan.results.resolve():
                return _copied_journal(source, plan)
            return _continued(source, plan)
        except BlockingIOError:
            raise pytest.UsageError(f"--caliper-resume-from: {source} belongs to a session that still runs") from None
        except (OSError, RunFileError) as error:
            raise pytest.UsageError(f"--caliper-resume-from: {error}") from error


def tell(config: pytest.Config) -> Mapping[str, Any]:
    """Find the runs to continue before any worker collects, and what the workers must know. Raises pytest.UsageError."""
    from pytest_caliper.running.named_specs import named_specs
    from pytest_caliper.state import state_of

    state = state_of(config)
    if state.resuming is None:
        return {}
    if not state.resuming.looked:
        for path in named_specs(config):
            with contextlib.suppress(SpecError):  # the workers report it as a collection error
                state.resuming.find(state.open_spec(path))
        if not state.resuming.plans:
            raise pytest.UsageError("--caliper-resume: there is no unfinished run; leave the option out to start one")
    return state.resuming.told()


def known_as_told(
    config: pytest.Config, plan: SpecPlan, told: Mapping[str, Any], session_id: SessionId
) -> frozenset[AttemptKey] | None:
    """In an xdist worker: the attempts of a spec that the controller knows; None when it continues no run of it."""
    entry = told.get(spec_nodeid(config, plan.spec.path))
    if entry is None:
        return None
    spec = str(plan.spec.path)
    if entry["name"] is not None:
        session_id.continued[spec] = entry["name"]
    return frozenset(AttemptKey(spec=spec, task_id=task, arm=arm, attempt=attempt) for task, arm, attempt in entry["known"])


def unfinished_runs(results: Path) -> Iterator[Path]:
    """Journals of runs that did not end and that no living session writes, the newest first.

    What a session left that was killed between writing its run file and removing the journal is removed.
    """
    try:
        journals = sorted((path for path in results.glob(f"*{SUFFIX}") if path.is_file()), reverse=True)
    except OSError:
        return
    for journal in journals:
        if is_in_use(journal):
            continue
        if _is_empty(journal):  # killed before its first line: there is nothing to go on with
            with contextlib.suppress(OSError):
                journal.unlink()
            continue
        if not _is_over(journal):
            yield journal
            continue
        with contextlib.suppress(OSError):
            journal.unlink()
        shutil.rmtree(journal.with_suffix(".parts"), ignore_errors=True)


def _is_empty(journal: Path) -> bool:
    try:
        return journal.stat().st_size == 0
    except OSError:
        return False


def _is_over(journal: Path) -> bool:
    """Whether its run file was written whole before the session could remove the journal."""
    if (journal.parent / f"{journal.stem}.json").is_file():
        return True
    apart = journal.parent / PARTIAL / f"{journal.stem}.json"
    try:
        return apart.is_file() and not load_meta(apart).interrupted
    except RunFileError:
        return False


def _continued(path: Path, plan: SpecPlan) -> Unfinished:
    journal = Journal.reopen(path)
    try:
        header, records = read_journal(path)
        return _unfinished(path, header, records, plan, journal)
    except BaseException:
        journal.close()
        raise


def _copied_journal(path: Path, plan: SpecPlan) -> Unfinished:
    if is_in_use(path):
        raise BlockingIOError
    header, records = read_journal(path)
    return _unfinished(path, header, records, plan, None)


def _copied(path: Path, plan: SpecPlan) -> Unfinished:
    """From a run file. Its transcripts stay there until the run is saved again."""
    run = load_run(path)
    if not run.meta.contract:
        raise RunFileError(path, "does not say what it was made under; only runs of pytest-caliper can be continued")
    arms = [*run.results, *(run.baseline_results or ())]
    keys = [
        {"task_id": result.task_id, "arm": result.arm, "attempt": attempt}
        for result in arms
        for attempt in sorted({*range(1, result.planned + 1), *(record.key.attempt for record in result.attempts)})
    ]
    planned = [[key["task_id"], key["arm"], key["attempt"]] for key in keys]
    records = [record for result in arms for record in result.attempts]
    bars = [result.task_id for result in run.results if result.bar is not None]
    return _unfinished(path, {"contract": run.meta.contract, "planned": planned, "bars": bars}, records, plan, None)


def _unfinished(
    path: Path, header: Mapping[str, Any], records: Iterable[AttemptRecord], plan: SpecPlan, journal: Journal | None
) -> Unfinished:
    spec = str(plan.spec.path)
    try:
        planned = frozenset(
            AttemptKey(spec=spec, task_id=str(task), arm=arm, attempt=int(attempt)) for task, arm, attempt in header["planned"]
        )
        contract = dict(header["contract"])
        bars = frozenset(map(str, header.get("bars") or ()))
    except (KeyError, TypeError, ValueError) as error:
        raise RunFileError(path, f"does not say which attempts it was to have ({error!r})") from error
    known = {}
    for record in records:
        mine = replace(record, key=replace(record.key, spec=spec), transcript_path=_moved(record, path))
        if mine.key not in planned:
            raise RunFileError(
                path, f"has an attempt that was never planned ({mine.key.arm} {mine.key.attempt} of {mine.key.task_id})"
            )
        if record.fatal is None:
            known[mine.key] = mine
    return Unfinished(source=path, contract=contract, planned=planned, bars=bars, records=known, journal=journal)


def _moved(record: AttemptRecord, source: Path) -> str | None:
    """Where the transcript lies if the results have moved since."""
    if record.transcript_path is None or Path(record.transcript_path).is_file():
        return record.transcript_path
    return str(source.with_suffix(".parts") / Path(record.transcript_path).name)


def bring_transcripts(unfinished: Unfinished, directory: Path) -> Mapping[AttemptKey, AttemptRecord]:
    """The known records with their transcripts as side files of this session. A damaged transcript is left out."""
    brought = {}
    for key, record in unfinished.records.items():
        name = f"{key.task_id}-{key.arm}-{key.attempt}.jsonl"
        target = directory / name
        whole = True
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with open(target, "w", encoding="ascii") as out:
                for turn in _turns(unfinished.source, record):
                    out.write(json.dumps(turn, ensure_ascii=True) + "\n")
        except (OSError, RunFileError):
            whole = False
        brought[key] = replace(record, transcript_path=str(target), transcript_truncated=record.transcript_truncated or not whole)
    return brought


def _turns(source: Path, record: AttemptRecord) -> Iterator[Mapping[str, Any]]:
    if source.suffix != SUFFIX:
        for turn in iter_transcript(source, record.key.arm, record.key.task_id, record.key.attempt):
            yield turn.to_json()
    elif record.transcript_path is not None:
        with open(record.transcript_path, encoding="ascii") as lines:
            for line in lines:
                with contextlib.suppress(ValueError):
                    yield json.loads(line)


def differences(
    unfinished: Unfinished, contract: Mapping[str, Any], planned: Collection[AttemptKey], plan: SpecPlan
) -> list[str]:
    """Why the run cannot be continued under this contract, a sentence each; a larger k is no reason."""
    before, out = unfinished.contract, []
    tasks = {task.task_id: task.name for task in plan.spec.tasks}
    changed = [
        tasks.get(task_id, task_id)
        for task_id in {**before.get("tasks", {}), **dict(contract["tasks"])}
        if before.get("tasks", {}).get(task_id) != contract["tasks"].get(task_id)
    ]
    if changed:
        out.append(f"the task{'s' if len(changed) > 1 else ''} {', '.join(map(repr, changed))} changed")
    elif before.get("spec") != contract["spec"]:
        out.append("the spec changed outside its tasks")
    if before.get("skill") != contract["skill"]:
        out.append("the skill changed")
    for name, word in (("engine", "engine"), ("judge", "judge"), ("judge_votes", "number of judge votes")):
        if before.get(name) != contract[name]:
            out.append(f"the {word} was {before.get(name)}, now it is {contract[name]}")
    if before.get("baseline") != contract["baseline"]:
        out.append(f"{_baseline(before.get('baseline'))}, now it {_baseline(contract['baseline']).removeprefix('it ')}")
    if bool(before.get("user_customizations")) != bool(contract["user_customizations"]):
        word = "with" if before.get("user_customizations") else "without"
        out.append(f"it was made {word} --caliper-user-customizations")
    if before.get("timeout_s") != contract["timeout_s"]:
        out.append(f"--caliper-timeout was {before.get('timeout_s')}, now it is {contract['timeout_s']}")
    if (old := int(before.get("k") or 0)) > int(contract["k"]):
        out.append(f"k was {old}, now it is {contract['k']} (a larger k would extend it)")
    if not out:
        out += _selection_differs(unfinished, planned, old, tasks)
    if not out and unfinished.planned - {key for task in plan.spec.tasks for key in plan.keys(task)}:
        out.append("it plans attempts that this spec cannot have")
    if not out and unfinished.journal is None and frozenset(planned) == frozenset(unfinished.records):
        out.append("nothing of it is missing; a larger --caliper-k extends it")
    return out


def _baseline(said: object) -> str:
    if isinstance(said, str):
        return f"it takes its baseline {said}"
    return "it measures a baseline" if said else "it has no baseline"


def _selection_differs(
    unfinished: Unfinished, planned: Collection[AttemptKey], old_k: int, tasks: Mapping[str, str]
) -> list[str]:
    missing = unfinished.planned - frozenset(planned)
    added = {key for key in planned if key not in unfinished.planned and key.attempt <= old_k}
    names = [tasks.get(key.task_id, key.task_id) for key in sorted(missing or added, key=lambda k: (k.task_id, k.arm, k.attempt))]
    listed = ", ".join(map(repr, dict.fromkeys(names)))
    if missing:
        return [f"its selection of attempts had {len(missing)} that this one leaves out ({listed}): select what it had"]
    if added:
        return [f"its selection of attempts left out {len(added)} that this one has ({listed}): select what it had"]
    return []


def report_known(config: pytest.Config, plan: SpecPlan, records: Sequence[AttemptRecord]) -> None:
    """Report attempts of an earlier session as pytest would have: the ends of both sessions are then alike."""
    from pytest_caliper.reports import failure_representation, failure_text, tell_of

    tasks = {task.task_id: task for task in plan.spec.tasks}
    for record in records:
        known = Known(config=config, plan=plan, task=tasks[record.key.task_id], key=record.key)
        failed = record.usable and record.outcome != "pass" and record.key.arm == "skill"
        representation = None
        if failed:
            try:
                raise AttemptFailed(record, failure_text(known, record))
            except AttemptFailed:
                representation = failure_representation(known, record, pytest.ExceptionInfo.from_current())
        announce(
            config,
            nodeid=known.nodeid,
            location=known.location,
            outcome="failed" if failed else "passed" if record.usable else "skipped",
            longrepr=representation,
            duration_s=record.wall_seconds,
            started=record.started,
            finish=lambda report, known=known, record=record: tell_of(known, record, report),  # type: ignore[misc]
        )
