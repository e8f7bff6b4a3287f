"""What a secret looks like: which variables hold one, how a value may be spelled, and tokens known by their shape."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

MIN_LENGTH = 6
"""Characters; shorter values would be found in ordinary words."""

_KEY_PARTS = frozenset(
    {"KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASS", "PASSPHRASE", "PWD", "PW"}
    | {"CREDENTIAL", "CREDENTIALS", "CREDS", "AUTH", "PAT", "COOKIE", "BEARER", "AUTHORIZATION", "SIGNATURE", "JWT"}
)
_KEY_ENDINGS = (
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
    "CREDENTIALS",
    "PASSPHRASE",
)
_PLACE_PARTS = frozenset(
    {"SOCK", "SOCKET", "FILE", "FILES", "PATH", "DIR", "HELPER", "PROGRAM", "COMMAND", "TYPE", "METHOD", "MODE", "URL", "URI"}
    | {"ENDPOINT", "HOST", "PORT", "USER", "USERNAME", "NAME", "DOMAIN", "ISSUER", "REGION", "VERSION", "ENABLED", "REQUIRED"}
)
"""Last parts of names that say where a secret is or how it is had, not what it is: SSH_AUTH_SOCK."""
_AMOUNT_PARTS = frozenset({"MAX", "MIN", "LIMIT", "COUNT", "NUM", "BUDGET", "TTL", "TIMEOUT", "LENGTH", "SIZE", "THRESHOLD"})
"""Parts of names of numbers: MAX_OUTPUT_TOKENS."""
_NOT_KEYS = frozenset({"PWD", "OLDPWD", "XAUTHORITY", "KEYBOARD"})
_COMMON = frozenset(
    {
        "true",
        "false",
        "none",
        "null",
        "enabled",
        "disabled",
        "default",
        "optional",
        "required",
        "always",
        "never",
        "auto",
        "basic",
    }
    | {
        "bearer",
        "localhost",
        "unknown",
        "undefined",
        "production",
        "development",
        "staging",
        "system",
        "public",
        "private",
        "anonymous",
    }
    | {"secret", "password", "passwd", "changeme", "oauth2", "keyring", "keychain"}
)


def is_key_name(name: str) -> bool:
    """Whether a variable of this name holds a secret: `GH_TOKEN`, `PGPASSWORD`; not `MONKEY`, not `SSH_AUTH_SOCK`."""
    upper = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    parts = [part for part in re.split(r"[^A-Z0-9]+", upper) if part]
    if not parts or upper in _NOT_KEYS or parts[-1] in _PLACE_PARTS or _AMOUNT_PARTS.intersection(parts):
        return False
    return any(part in _KEY_PARTS or part.endswith(_KEY_ENDINGS) for part in parts)


def secret_values(env: Mapping[str, str], referenced: Iterable[str]) -> dict[str, str]:
    """Value -> the name it is told by: the referenced variables first, then those named like keys, by name.

    Left out is what cannot be told from ordinary text: short values, common words, and paths.
    """
    names = [*dict.fromkeys(referenced), *sorted(name for name in env if is_key_name(name))]
    out: dict[str, str] = {}
    for name in names:
        value = scrubbed(env.get(name, "")).strip().strip("'\"")
        if _can_be_told(value):
            for text in (value, *_KEY_LINE.findall(value)):
                out.setdefault(text, name)
    return out


_KEY_LINE = re.compile(r"^[A-Za-z0-9+/=_-]{16,}$", re.MULTILINE)
"""A line of a PEM file, which tools print with line numbers between."""


def _can_be_told(value: str) -> bool:
    if len(value) < MIN_LENGTH or value.lower() in _COMMON or len(set(value)) < 3:
        return False
    path = re.fullmatch(r"(~|/[\w.@+-]+)(?:/[\w.@+-]+)*/?(?::[\w.@+/-]*)*", value)
    # A base64 secret may look like a path too, but it does not begin with a directory that exists.
    return path is None or not (path[1] == "~" or Path(path[1]).is_dir())


def spellings(value: str) -> Iterator[str]:
    """The forms in which tools print `value`: itself, inside JSON (twice too), URL-quoted, as HTML, repr, and inside base64."""
    yield value
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    for quoted in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), quoted)
    yield html.escape(value)
    yield repr(value)[1:-1]
    yield value.replace("/", "\\/")
    yield from _in_base64(value.encode("utf-8"))


def _in_base64(value: bytes) -> Iterator[str]:
    """What base64 of any text with `value` in it must contain, for each of the three places where it may begin (RFC 4648, 4)."""
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(value)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            inner = encode(b"\0" * before + value).decode("ascii")[first:last]
            if len(inner) >= 8:
                yield inner


def scrubbed(text: str) -> str:
    """`text` without lone surrogates, which neither UTF-8 nor execnet can carry; each becomes U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_SURROGATE = re.compile("[\ud800-\udfff]")
