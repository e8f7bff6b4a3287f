"""The user's Gemini CLI login, and the isolated home that an attempt gets instead of the user's own.

Only what is needed to reach the model crosses over: credentials, the kind of login, the default model. Never MCP servers,
extensions, hooks, memories (GEMINI.md), commands, policies or skills.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_caliper.backends.environment import host_home, matches
from pytest_caliper.backends.private_files import read_bytes, read_object, write_bytes, write_object

DEFAULT_MODEL = "gemini-2.5-pro"
"""Asked for when nobody names a model. The CLI's own choice is a router that asks a second model before each turn (recorded)."""

LOGIN_REMEDY = "log in with `gemini` (Sign in with Google), or set GEMINI_API_KEY"

PASSED: tuple[str, ...] = (
    *("GEMINI_API_KEY", "GEMINI_API_KEY_AUTH_MECHANISM", "GEMINI_CLI_CUSTOM_HEADERS", "GEMINI_CLI_USE_COMPUTE_ADC"),
    *("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE", "GOOGLE_API_KEY", "GOOGLE_GENAI_*", "GOOGLE_CLOUD_*", "GOOGLE_GEMINI_BASE_URL"),
    *("GOOGLE_VERTEX_BASE_URL", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"),
    *("GCLOUD_PROJECT", "CLOUDSDK_CONFIG"),
)
"""Variables that say how the model is reached. `GEMINI_CLI_HOME`, `GEMINI_SYSTEM_MD` and the IDE's stay outside."""

_API_KEY, _GOOGLE, _VERTEX, _COMPUTE = "gemini-api-key", "oauth-personal", "vertex-ai", "compute-default-credentials"
_OAUTH_FILE, _ENCRYPTED_FILE = "oauth_creds.json", "gemini-credentials.json"
_CREDENTIAL_FILES = (_OAUTH_FILE, "google_accounts.json", _ENCRYPTED_FILE)
_BUILTIN_SKILLS = ("antigravity-support", "skill-creator")
_MAX_ATTEMPTS = 2
"""Of one request. The CLI's own 10 take 4 minutes when a rate limit persists (recorded)."""
_DOTENV_LINE = re.compile(r"\s*(?:export\s+)?([\w.-]+)\s*=\s*('[^']*'|\"[^\"]*\"|[^#]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class GeminiLogin:
    """How the user's Gemini CLI reaches its model."""

    environment: Mapping[str, str]
    """Variables for the attempt: the host's, then those of the user's `.env`."""
    auth_type: str | None
    """The CLI's `security.auth.selectedType`; None when there is no sign of any login."""
    problem: str | None
    """Why this cannot work, in one line with the remedy; None when it may."""
    model: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Credential files below `.gemini`, as they are."""
    max_attempts: int = _MAX_ATTEMPTS


def read_login(env: Mapping[str, str], *, now: float) -> GeminiLogin:
    """The login by the host's environment `env` and the user's files, at `now` (seconds since the epoch).

    Raises EngineError when a file is damaged or cannot be read.
    """
    directory = config_directory(env)
    settings = read_object(directory / "settings.json", "repair it")
    known = {
        **(_dotenv(directory / ".env") or _dotenv(directory.parent / ".env")),
        **{name: value for name, value in env.items() if value},
    }
    environment = {name: value for name, value in known.items() if value and matches(name, PASSED)}
    files = {name for name in _CREDENTIAL_FILES if (directory / name).exists()}
    kinds = _candidates(settings, environment, files)
    auth_type, problem = _first_usable(kinds, lambda kind: _problem(kind, environment, files, directory, now))
    needed = files if auth_type == _GOOGLE else files & {_ENCRYPTED_FILE} if "GEMINI_API_KEY" not in environment else ()
    if auth_type == _VERTEX and "GOOGLE_APPLICATION_CREDENTIALS" not in environment:
        gcloud = Path(environment.get("CLOUDSDK_CONFIG") or host_home(env) / ".config" / "gcloud")
        if (path := gcloud / "application_default_credentials.json").exists():  # a replaced HOME would hide it
            environment["GOOGLE_APPLICATION_CREDENTIALS"] = str(path)
    return GeminiLogin(
        environment=environment,
        auth_type=auth_type,
        problem=problem,
        model=known.get("GEMINI_MODEL") or _text(_at(settings, "model", "name")) or DEFAULT_MODEL,
        files={name: data for name in sorted(needed) if (data := read_bytes(directory / name)) is not None},
        max_attempts=_attempts(_at(settings, "general", "maxAttempts")),
    )


def config_directory(env: Mapping[str, str]) -> Path:
    """Where the user's Gemini CLI keeps everything."""
    return Path(env.get("GEMINI_CLI_HOME") or host_home(env)) / ".gemini"


def write_home(login: GeminiLogin, home: Path, settings: Mapping[str, Any]) -> None:
    """Write the login and `settings` (further keys of settings.json) below `home`, readable by its owner alone."""
    directory = home / ".gemini"
    for name, data in login.files.items():
        write_bytes(directory / name, data)
    auth = {"security": {"auth": {"selectedType": login.auth_type}}} if login.auth_type is not None else {}
    write_object(
        directory / "settings.json",
        {
            "general": {
                "enableAutoUpdate": False,
                "enableAutoUpdateNotification": False,
                "maxAttempts": login.max_attempts,
            },
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "advanced": {"ignoreLocalEnv": True},  # the CLI looks for `.env` in every directory above `work/` too
            **auth,
            **settings,
        },
    )


def builtin_skills(ours: set[str]) -> list[str]:
    """The CLI's own skills, to be disabled: all but those of the spec that have the same name."""
    return [name for name in _BUILTIN_SKILLS if name not in ours]


def _candidates(settings: Mapping[str, Any], environment: Mapping[str, str], files: set[str]) -> list[str]:
    """Kinds of login in the order of their say: the settings' (the CLI's own rule), then what the environment and files hold.

    The CLI itself takes a base URL for a kind of its own, which its validation then refuses (recorded): it is no login here.
    """
    chosen = _text(_at(settings, "security", "auth", "selectedType")) or _text(settings.get("selectedAuthType"))
    signs = (
        (chosen, chosen is not None),
        (_GOOGLE, environment.get("GOOGLE_GENAI_USE_GCA") == "true"),
        (_VERTEX, environment.get("GOOGLE_GENAI_USE_VERTEXAI") == "true"),
        (_API_KEY, "GEMINI_API_KEY" in environment),
        (_COMPUTE, environment.get("GEMINI_CLI_USE_COMPUTE_ADC") == "true"),
        (_GOOGLE, _OAUTH_FILE in files),
        (_VERTEX, "GOOGLE_API_KEY" in environment),
        (_API_KEY, _ENCRYPTED_FILE in files),
    )
    return [kind for kind, seen in signs if seen and kind is not None]


def _first_usable(kinds: list[str], problem_of: Callable[[str], str | None]) -> tuple[str | None, str | None]:
    """(the first kind of login that may work, None), else (the first of all, its problem)."""
    refused: tuple[str | None, str | None] | None = None
    for kind in kinds:
        if (problem := problem_of(kind)) is None:
            return kind, None
        refused = refused or (kind, problem)
    return refused or (None, f"Gemini CLI is not logged in: {LOGIN_REMEDY}")


def _problem(kind: str, environment: Mapping[str, str], files: set[str], directory: Path, now: float) -> str | None:
    """Why this kind of login cannot work; None when it may. An encrypted file, which only the CLI can read, may hold anything."""
    if kind == _API_KEY and "GEMINI_API_KEY" not in environment and _ENCRYPTED_FILE not in files:
        return (
            "Gemini CLI is set to use an API key and has none here: set GEMINI_API_KEY (one in the keychain is not carried over)"
        )
    if kind == _VERTEX and not _vertex(environment):
        return (
            "Gemini CLI is set to use Vertex AI, which is not configured: set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, "
            "or GOOGLE_API_KEY"
        )
    if kind != _GOOGLE or _ENCRYPTED_FILE in files or _google(environment):
        return None
    oauth = read_object(directory / _OAUTH_FILE, LOGIN_REMEDY)
    if oauth.get("refresh_token"):  # Google's are good for many uses, so that an attempt may renew its copy
        return None
    if not oauth.get("access_token"):
        return f"Gemini CLI is not logged in: {LOGIN_REMEDY}"
    expires = oauth.get("expiry_date")
    if isinstance(expires, (int, float)) and expires / 1000 <= now:
        return "the login of Gemini CLI has expired: run `gemini` once, which renews it, or set GEMINI_API_KEY"
    return None


def _vertex(environment: Mapping[str, str]) -> bool:
    project = environment.get("GOOGLE_CLOUD_PROJECT") or environment.get("GOOGLE_CLOUD_PROJECT_ID")
    return "GOOGLE_API_KEY" in environment or bool(project and environment.get("GOOGLE_CLOUD_LOCATION"))


def _google(environment: Mapping[str, str]) -> bool:
    """Google's login has other sources than the CLI's own file."""
    return "GOOGLE_CLOUD_ACCESS_TOKEN" in environment or "GOOGLE_APPLICATION_CREDENTIALS" in environment


def _dotenv(path: Path) -> dict[str, str]:
    """Variables of a `.env` file, as the CLI reads it: `NAME=value`, quotes taken off, comments and odd lines left out."""
    text = (read_bytes(path) or b"").decode("utf-8", "replace")
    found = [match for line in text.splitlines() if (match := _DOTENV_LINE.match(line)) is not None]
    return {match[1]: _unquoted(match[2].strip()) for match in found}


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text


def _attempts(wish: Any) -> int:
    """The user's own limit when it is the smaller one."""
    known = isinstance(wish, int) and not isinstance(wish, bool) and wish > 0
    return min(int(wish), _MAX_ATTEMPTS) if known else _MAX_ATTEMPTS


def _at(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
