"""The format of a spec: the one place that says which keys there are, what they hold and what they mean.

Private pydantic models, separate from the public data in `model`. What needs the disk, Python or several keys at once is
checked in `parts`; the texts of mistakes are in `complaints`.
"""

from __future__ import annotations

import re
import warnings
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from pytest_caliper.spec.env_refs import REFERENCE, malformed
from pytest_caliper.spec.findings import shown
from pytest_caliper.spec.rates import PATTERN, parse_rate
from pytest_caliper.spec.tree import NotText, kind_of

SCHEMA_ID = "urn:pytest-caliper:eval-spec"
NOT_YET = ("activates", "history")
"""Keys of later formats: refused by name."""
BRANCHES = frozenset({"<text>", "<mapping>", "<stdio>", "<remote>"})
"""Names of the alternatives of a value. Pydantic puts them into an error's `loc`, where they stand for no key."""
TRANSPORTS = ("stdio", "http", "sse")
_SERVER_NAME = "[A-Za-z0-9_-]+"
_HEADER_NAME = "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
"""A token of RFC 9110, section 5.6.2."""
_ENV_NAME = r"[^=]*[^=\s][^=]*"
_URL = r"^(https?://|\$\{)"


def complaint(message: str) -> PydanticCustomError:
    """A mistake in house words: what is wrong and what to do, told after the name of the key."""
    return PydanticCustomError("caliper", "{message}", {"message": message})


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "blank")
    return text


def compile_pattern(text: str) -> re.Pattern[str]:
    """A `forbidden_files` pattern. Raises re.error, OverflowError or RecursionError when it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a FutureWarning of `re` is no mistake
        return re.compile(text)


def _regex(text: str) -> str:
    try:
        compile_pattern(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise complaint(f"is not a regular expression ({error}): fix {shown(text)}, or escape it with backslashes") from error
    return text


def _well_formed(text: str) -> str:
    if (wrong := malformed(text)) is not None:
        raise complaint(f"holds {shown(wrong)}, which names no variable: write `${{NAME}}`; defaults are not supported")
    return text


def _no_reference(text: str) -> str:
    if "${" in text:
        raise complaint("holds `${`, which only works in `env:`, `headers:` and `url:`: pass the value through one of these")
    return text


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")) and not REFERENCE.match(text):
        raise complaint(f"is {shown(text)}, not a web address: start it with `https://` or `http://`")
    return text


def _env_name(text: str) -> str:
    if not text.strip() or "=" in text:
        raise complaint("is not the name of a variable: use letters, digits and `_`")
    return _no_reference(text)


def _server_name(text: str) -> str:
    if not re.fullmatch(_SERVER_NAME, text):
        raise complaint("is not a server name: use letters, digits, `_` and `-`")
    return text


def _header_name(text: str) -> str:
    if not re.fullmatch(_HEADER_NAME, text):
        raise complaint("is not the name of a header: use letters, digits and `-`")
    return text


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise complaint("has several lines, and a header has one: put it on one line (`>-` joins lines)")
    return text


def rate_text(value: Any) -> str | None:
    """A rate as it is written in the spec, text or a number; None for anything else."""
    if isinstance(value, NotText):
        return value.written if value.kind == "number" else None
    return value if isinstance(value, str) else None


def _rate(value: Any) -> Any:
    written = rate_text(value)
    if value is None:
        return None
    try:
        parse_rate(written or "")
    except ValueError as error:
        what = shown(written) if written is not None else kind_of(value)
        raise complaint(f"is {what}, not a rate: write one {error}") from error
    return value


def _branch(value: Any) -> str:
    return "<mapping>" if isinstance(value, (dict, list)) else "<text>"


def _transport(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind is None or kind == "stdio":
        return "<stdio>"
    return "<remote>" if kind in TRANSPORTS else None


def _text(pattern: str, complaint: str) -> WithJsonSchema:
    """A text for editors, with what they say when it does not match; JavaScript and Python read `pattern` alike."""
    return WithJsonSchema({"type": "string", "pattern": pattern, "patternErrorMessage": complaint})


def _deprecated(instead: str) -> dict[str, Any]:
    """A key that is still read; editors mark it and do not offer it."""
    return {"deprecated": True, "deprecationMessage": f"deprecated: {instead}"}


_NO_REFERENCE = r"^(?![\s\S]*\$\{)"
_REFERENCE_COMPLAINT = "`${` only works in `env:`, `headers:` and `url:`"
_CHECKS = "a task needs `expect:`, `assert:` or both"
_PATH_COMPLAINT = "write the path, or a mapping with `path:`"

Text = Annotated[str, AfterValidator(_not_blank), _text(r"\S", "is empty")]
Regex = Annotated[Text, AfterValidator(_regex)]
Literally = Annotated[str, AfterValidator(_no_reference), _text(_NO_REFERENCE, _REFERENCE_COMPLAINT)]
WithVars = Annotated[str, AfterValidator(_well_formed)]
Rate = Annotated[
    Any,
    PlainValidator(_rate),
    WithJsonSchema(
        {
            "type": ["number", "string", "null"],
            "exclusiveMinimum": 0,
            "maximum": 1,
            "pattern": f"^({PATTERN})$",
            "patternErrorMessage": "a rate is a number above 0 and at most 1, or 80%, or 4/5",
        }
    ),
]
ServerName = Annotated[str, AfterValidator(_server_name)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
EnvName = Annotated[str, AfterValidator(_env_name)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class EngineModel(_Strict):
    """The engine that grades, as caliper-eval 0.4 wrote it."""

    model_config = ConfigDict(title="Judge (deprecated)", json_schema_extra={"deprecated": True})

    backend: Text | None = Field(None, title="Backend", description="Default for `--caliper-judge-model BACKEND`.")
    model: Text | None = Field(None, title="Model", description="Default for `--caliper-judge-model BACKEND:MODEL`.")


class SkillModel(_Strict):
    """The skill under test."""

    model_config = ConfigDict(title="Skill")

    path: Text | None = Field(
        None,
        title="Path",
        description="A `SKILL.md`, the directory that holds it, or a lone command `.md`. Relative to the spec. "
        "Leave it out to measure the bare agent.",
    )
    backend: Text | None = Field(
        None,
        title="Backend (deprecated)",
        description="Default for `--caliper-model BACKEND`; pass the option instead.",
        json_schema_extra=_deprecated("pass `--caliper-model BACKEND`"),
    )
    model: Text | None = Field(
        None,
        title="Model (deprecated)",
        description="Default for `--caliper-model BACKEND:MODEL`; pass the option instead.",
        json_schema_extra=_deprecated("pass `--caliper-model BACKEND:MODEL`"),
    )


class SkillPathModel(_Strict):
    """One of several skills."""

    model_config = ConfigDict(title="Skill path")

    path: Text = Field(title="Path", description="A `SKILL.md`, its directory, or a lone command `.md`. Relative to the spec.")


SkillValue = Annotated[Annotated[Text, Tag("<text>")] | Annotated[SkillModel, Tag("<mapping>")], Discriminator(_branch)]
SkillItem = Annotated[Annotated[Text, Tag("<text>")] | Annotated[SkillPathModel, Tag("<mapping>")], Discriminator(_branch)]


class SandboxModel(_Strict):
    """What each attempt gets to see."""

    model_config = ConfigDict(title="Sandbox")

    extra_path: list[Text] | None = Field(
        None, title="Extra PATH", description="Directories put before PATH in each attempt, in order. Relative to the spec."
    )
    forbidden_files: list[Regex] | None = Field(
        None,
        title="Forbidden files",
        description="Regular expressions (Python's `re`, searched). An attempt that reads a matching path is a cheat. "
        "The spec itself and saved results are always forbidden.",
    )


class StdioServerModel(_Strict):
    """A local MCP server, started for each attempt."""

    model_config = ConfigDict(title="Local MCP server (stdio)")

    type: Literal["stdio"] | None = Field(None, title="Type", description="`stdio`, which is the default.")
    command: Annotated[Text, AfterValidator(_no_reference), _text(_NO_REFERENCE + r"[\s\S]*\S", _REFERENCE_COMPLAINT)] = Field(
        title="Command", description="The program to start. One that starts with `./` or `../` is relative to the spec."
    )
    args: list[Literally] | None = Field(
        None, title="Arguments", description="Those that start with `./` or `../` are relative to the spec."
    )
    env: dict[EnvName, WithVars] | None = Field(
        None, title="Environment", description="Variables of the server. `${VAR}` is taken from your environment when it runs."
    )


class RemoteServerModel(_Strict):
    """A hosted MCP server."""

    model_config = ConfigDict(title="Remote MCP server")

    type: Literal["http", "sse"] = Field(title="Type", description="`http` or `sse`.")
    url: Annotated[Text, AfterValidator(_well_formed), AfterValidator(_url), _text(_URL, "is no web address: https://…")] = Field(
        title="URL", description="Address of the server. `${VAR}` is taken from your environment when it runs."
    )
    headers: dict[HeaderName, Annotated[WithVars, AfterValidator(_one_line)]] | None = Field(
        None, title="Headers", description="Usually authorisation. `${VAR}` is taken from your environment when it runs."
    )


McpServerValue = Annotated[
    Annotated[StdioServerModel, Tag("<stdio>")] | Annotated[RemoteServerModel, Tag("<remote>")], Discriminator(_transport)
]


class TaskModel(_Strict):
    """One prompt with at least one check."""

    model_config = ConfigDict(
        title="Task", json_schema_extra={"anyOf": [{"required": [key], "errorMessage": _CHECKS} for key in ("expect", "assert")]}
    )

    name: Text = Field(
        title="Name", description="Unique in the spec. It becomes part of pytest's id and matches tasks across runs."
    )
    prompt: Text = Field(title="Prompt", description="What the agent is asked.")
    expect: Text = Field(
        default_factory=str,
        title="Expectation",
        description="When the answer counts as right, in natural language. A model judges it from the whole transcript.",
    )
    assert_: Text = Field(
        default_factory=str,
        alias="assert",
        title="Assertion",
        description="Python that must hold, or the path of a `.py` script. It runs in the attempt's working directory; "
        "`attempt` is what the agent did.",
    )
    setup: Text | None = Field(
        None, title="Setup", description="Shell command that runs before the agent, in its working directory."
    )
    solution: Text | None = Field(
        None,
        title="Solution",
        description="Shell command that does the task. Only `caliper check` runs it, after `setup`: then `assert` must pass.",
    )
    cleanup: Text | None = Field(None, title="Cleanup", description="Shell command that always runs at the end of an attempt.")
    bar: Rate = Field(None, title="Bar", description="The rate that this task is to reach, instead of the spec's `bar`.")


class SpecModel(_Strict):
    """What is tested and how success is judged; never which engine runs it."""

    model_config = ConfigDict(
        title="pytest-caliper spec",
        json_schema_extra={
            "if": {"required": ["skill", "skills"]},
            "then": {"properties": {"skills": False}, "errorMessage": "use either `skill:` or `skills:`"},
        },
    )

    skill: SkillValue | None = Field(None, title="Skill", description="The skill under test; absent or null for the bare agent.")
    skills: list[SkillItem] | None = Field(
        None, title="Skills", description="Several skills, all installed together. Use either `skill` or `skills`."
    )
    judge: EngineModel | None = Field(
        None,
        title="Judge (deprecated)",
        description="Default for `--caliper-judge-model`; pass the option instead.",
        json_schema_extra=_deprecated("pass `--caliper-judge-model`"),
    )
    sandbox: SandboxModel | None = Field(None, title="Sandbox", description="What each attempt gets to see.")
    mcp: dict[ServerName, McpServerValue] | None = Field(
        None, title="MCP servers", description="Servers the agent may use, in both arms, by name."
    )
    bar: Rate = Field(
        None,
        title="Bar",
        description="The rate that each task is to reach with the skill, such as 0.8 or 4/5. Then failing attempts are "
        "tolerated, and this decides. Without it every failing attempt fails.",
    )
    tasks: list[TaskModel] = Field(title="Tasks", description="What the agent is asked, one attempt at a time.", min_length=1)


def shape_errors(data: Any) -> list[ErrorDetails]:
    """What pydantic finds wrong with plain data as `tree.compose` makes it; empty when its shape is right."""
    try:
        SpecModel.model_validate(data)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


_KEYS: dict[tuple[str, ...], type[BaseModel]] = {
    (): SpecModel,
    ("skill",): SkillModel,
    ("skills", "*"): SkillPathModel,
    ("judge",): EngineModel,
    ("sandbox",): SandboxModel,
    ("tasks", "*"): TaskModel,
}


def keys_at(loc: tuple[str | int, ...]) -> tuple[str, ...]:
    """The keys that a mapping at `loc` may have, in the order of the documentation; those of both kinds for a server."""
    if loc[:1] == ("mcp",) and len(loc) == 2:
        models: list[type[BaseModel]] = [StdioServerModel, RemoteServerModel]
    else:
        models = [_KEYS[tuple("*" if isinstance(part, int) else part for part in loc)]]
    return tuple(dict.fromkeys(field.alias or name for model in models for name, field in model.model_fields.items()))


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a spec, for editors that complete and check YAML.

    `errorMessage`, `patternErrorMessage` and `deprecationMessage` are known to the servers of VS Code; others pass over them.
    """
    schema = SpecModel.model_json_schema(by_alias=True)
    models = schema["$defs"]
    for model in (schema, *models.values()):
        for field in model["properties"].values():
            field.pop("default", None)  # always null: absent
    skill, skills = schema["properties"]["skill"], schema["properties"]["skills"]
    _flatten(skill)
    skill |= {"if": {"type": "object"}, "then": {"$ref": "#/$defs/SkillModel"}}  # names the wrong key of a mapping
    skills["anyOf"][0]["items"]["oneOf"][0]["errorMessage"] = _PATH_COMPLAINT
    for field, name in (
        (schema["properties"]["mcp"], _SERVER_NAME),
        (models["StdioServerModel"]["properties"]["env"], _ENV_NAME),
        (models["RemoteServerModel"]["properties"]["headers"], _HEADER_NAME),
    ):
        field["anyOf"][0]["propertyNames"] = {"pattern": f"^{name}$"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, **schema}


def _flatten(field: dict[str, Any]) -> None:
    """One list of alternatives, which editors choose the best from, where an optional union is a union in a union."""
    field["anyOf"] = [kind for choice in field["anyOf"] for kind in choice.get("oneOf", [choice])]
