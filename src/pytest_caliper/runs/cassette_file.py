"""Cassettes on disk: JSON that is readable in a diff, bounded, and not trusted when it is read."""

from __future__ import annotations

import base64
import json
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_caliper.runs.cassette import (
    CASSETTE_VERSION,
    MAX_BYTES,
    AgentRecording,
    Cassette,
    CassetteError,
    Identity,
    JudgeIdentity,
    JudgeRecording,
    RecordedFile,
    Recording,
)
from pytest_caliper.runs.files import written_whole

_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""What a diff would not show or would obey: control characters, invisible ones, changes of direction."""
_CHANGES = ("added", "modified", "deleted")
_CAUSES = ("exit", "timeout", "cancelled", "output")


def write(cassette: Cassette, path: Path) -> None:
    """Write a cassette, replacing an older one; its directory is created.

    Raises CassetteError naming what is large when it would reach 1,000,000 bytes, OSError when the disk does not take it.
    """
    data = _encode(_to_json(cassette))
    if len(data) >= MAX_BYTES:
        raise CassetteError(f"{path}: {len(data):,} bytes, the limit is {MAX_BYTES:,}; {_largest(cassette)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path, overwrite=True) as out:
        out.write(data)


def read(path: Path) -> Cassette:
    """The cassette in a file. Raises FileNotFoundError, and CassetteError when the file is no whole cassette."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # it comes with a repository: a link to a device would never end
            raise CassetteError(f"{path}: not a regular file; record it again with --caliper-record")
        if status.st_size > 2 * MAX_BYTES:
            raise CassetteError(f"{path}: too large for a cassette; record it again with --caliper-record")
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CassetteError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CassetteError(f"{path}: not JSON ({error}); record it again with --caliper-record") from error
    version = data.get("version") if isinstance(data, dict) else None
    if version != CASSETTE_VERSION:
        raise CassetteError(
            f"{path}: cassette version {version!r}, this pytest-caliper reads {CASSETTE_VERSION}; record it again"
        )
    try:
        return _from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise CassetteError(f"{path}: not a whole cassette ({problem}); record it again with --caliper-record") from error


def _encode(value: Mapping[str, Any]) -> bytes:
    """Indented JSON. Lone surrogates and what cannot be seen are escaped, everything else stands as it is."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode("utf-8", "backslashreplace")


def _largest(cassette: Cassette) -> str:
    size, name = max(_parts(cassette))
    remedy = "let the task write less" if name.startswith("the file") else "let the task print less"
    return f"the largest part is {name} with {size:,} bytes: {remedy}"


def _parts(cassette: Cassette) -> Iterator[tuple[int, str]]:
    yield _size(cassette.agent.stdout), "the agent's stdout"
    yield _size(cassette.agent.stderr), "the agent's stderr"
    yield _size("\n".join(cassette.agent.argv)), "the agent's command line"
    for file in cassette.agent.files:
        yield _size(file.content), f"the file {file.path!r}"
    for number, reply in enumerate(cassette.judge.replies if cassette.judge else (), 1):
        yield _size(reply.stdout) + _size(reply.stderr), f"the judge's reply {number}"


def _size(content: str | bytes | None) -> int:
    return len(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content or b"")


def _to_json(cassette: Cassette) -> dict[str, Any]:
    identity, judge = cassette.identity, cassette.judge
    return {
        "version": cassette.version,
        "recorded_for": {name: getattr(identity, name) for name in Identity.__dataclass_fields__},
        "cli_version": cassette.cli_version,
        "judge_cli_version": cassette.judge_cli_version,
        "agent": {**_recording_to_json(cassette.agent), "files": [_file_to_json(file) for file in cassette.agent.files]},
        "judge": None
        if judge is None
        else {
            "recorded_for": {name: getattr(judge.identity, name) for name in JudgeIdentity.__dataclass_fields__},
            "replies": [_recording_to_json(reply) for reply in judge.replies],
        },
    }


def _recording_to_json(recording: Recording) -> dict[str, Any]:
    return {
        "argv": list(recording.argv),
        "exit_code": recording.exit_code,
        "cause": recording.cause,
        "duration_s": recording.duration_s,
        "stdout": recording.stdout.split("\n"),
        "stderr": recording.stderr.split("\n"),
    }


def _file_to_json(file: RecordedFile) -> dict[str, Any]:
    out: dict[str, Any] = {"path": file.path, "change": file.change}
    if file.mode is not None:
        out["mode"] = f"{file.mode:04o}"
    if file.link is not None:
        out["link"] = file.link
    if file.directory:
        out["directory"] = True
    if isinstance(file.content, str):
        out["text"] = file.content.split("\n")
    elif file.content is not None:
        out["base64"] = base64.b64encode(file.content).decode("ascii")
    return out


def _from_json(data: Mapping[str, Any]) -> Cassette:
    judge = data["judge"]
    return Cassette(
        identity=_identity(data["recorded_for"]),
        cli_version=_text_or_none(data.get("cli_version"), "cli_version"),
        judge_cli_version=_text_or_none(data.get("judge_cli_version"), "judge_cli_version"),
        agent=AgentRecording(**_recording(data["agent"]), files=_files(data["agent"]["files"])),
        judge=None
        if judge is None
        else JudgeRecording(
            identity=JudgeIdentity(**{n: _text(judge["recorded_for"][n], n) for n in JudgeIdentity.__dataclass_fields__}),
            replies=tuple(Recording(**_recording(reply)) for reply in judge["replies"]),
        ),
    )


def _identity(data: Mapping[str, Any]) -> Identity:
    texts = {name: _text(data[name], name) for name in ("task_id", "engine", "prompt", "skill")}
    return Identity(
        **texts,
        arm=_one_of(data["arm"], ("skill", "baseline"), "arm"),
        attempt=_integer(data["attempt"], "attempt"),
        setup=_text_or_none(data.get("setup"), "setup"),
    )


def _recording(data: Mapping[str, Any]) -> dict[str, Any]:
    duration = data["duration_s"]
    if isinstance(duration, bool) or not isinstance(duration, (int, float)):
        raise TypeError("duration_s is no number")
    return {
        "argv": tuple(_text(word, "argv") for word in data["argv"]),
        "exit_code": _integer(data["exit_code"], "exit_code"),
        "cause": _one_of(data["cause"], _CAUSES, "cause"),
        "duration_s": float(duration),
        "stdout": _lines(data["stdout"], "stdout"),
        "stderr": _lines(data["stderr"], "stderr"),
    }


def _files(data: Iterable[Mapping[str, Any]]) -> tuple[RecordedFile, ...]:
    files = tuple(map(_file, data))
    links = {PurePosixPath(file.path) for file in files if file.link is not None}
    for file in files:
        if links.intersection(PurePosixPath(file.path).parents):
            raise ValueError(f"the path {file.path!r} lies behind a link")
    return files


def _file(data: Mapping[str, Any]) -> RecordedFile:
    change = _one_of(data["change"], _CHANGES, "change")
    content: str | bytes | None = None
    if "text" in data:
        content = _lines(data["text"], "text")
    elif "base64" in data:
        content = base64.b64decode(_text(data["base64"], "base64"), validate=True)
    elif change != "deleted" and "link" not in data and data.get("directory") is not True:
        raise ValueError(f"the content of {data['path']!r} is missing")
    mode = int(_text(data["mode"], "mode"), 8) & 0o777 if "mode" in data else None
    return RecordedFile(
        path=_inside(_text(data["path"], "path")),
        change=change,
        mode=mode,
        content=content,
        link=_text_or_none(data.get("link"), "link"),
        directory=data.get("directory") is True,
    )


def _inside(path: str) -> str:
    """A cassette comes with a repository: it may not name a file outside the attempt's `work/`."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or pure.parts == () or "\0" in path:
        raise ValueError(f"the path {path!r} leads out of the work directory")
    return path


def _lines(value: Any, name: str) -> str:
    if not isinstance(value, list):
        raise TypeError(f"{name} is no list of lines")
    return "\n".join(_text(line, name) for line in value)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def _text_or_none(value: Any, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _integer(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is no whole number")
    return value


def _one_of(value: Any, words: tuple[str, ...], name: str) -> Any:
    if value not in words:
        raise ValueError(f"{name} is {value!r}")
    return value
