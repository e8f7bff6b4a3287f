"""Which backends there are, and what a TARGET on the command line means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_caliper.contracts import Backend, Engine, EngineError


def builtin_backends() -> list[Backend]:
    """The backends that come with the package, each a fresh object."""
    from pytest_caliper.backends.api_backend import ClaudeApi, OpenaiApi
    from pytest_caliper.backends.claude_code import ClaudeCode
    from pytest_caliper.backends.codex import Codex
    from pytest_caliper.backends.command import CommandBackend
    from pytest_caliper.backends.gemini import Gemini
    from pytest_caliper.backends.hermes import Hermes
    from pytest_caliper.backends.opencode import OpenCode
    from pytest_caliper.backends.pi import Pi

    return [ClaudeCode(), Codex(), Gemini(), Hermes(), OpenCode(), Pi(), CommandBackend(), ClaudeApi(), OpenaiApi()]


def by_name(backends: Iterable[Backend]) -> dict[str, Backend]:
    """The backends under their names and aliases. Raises EngineError when two claim the same one."""
    out: dict[str, Backend] = {}
    for backend in backends:
        for name in (backend.name, *backend.aliases):
            if (other := out.setdefault(name, backend)) is not backend:
                raise EngineError(
                    f"two backends are called {name!r} ({_origin(other)} and {_origin(backend)}): "
                    "disable one of the plugins that contribute them, or rename its backend"
                )
    return out


def resolve_target(text: str, backends: Mapping[str, Backend], default: str = "claude-code") -> Engine:
    """The engine that `text` names: `backend`, `backend:model`, or a bare model of the backend `default`.

    `backends` is the answer of `by_name`. Models may hold colons (Bedrock's do), so the text splits at its first colon only when
    a backend stands before it. For a backend that `takes_command_line` what follows is taken as it stands, blanks and all.
    Raises EngineError for blank parts and for what looks like a misspelt backend.
    """
    target = text.strip()
    head, colon, tail = target.partition(":")
    name, model = head.strip(), tail.strip()
    if not target:
        raise EngineError("the engine is blank: write a backend (claude-code), a model, or backend:model")
    if colon and not name:
        raise EngineError(f"{text!r}: no backend stands before the colon: write {default}:{model}, or just the model")
    if name in backends:
        if colon and not model:
            raise EngineError(f"{text!r}: no model stands after the colon: write {name} alone for its default model")
        backend = backends[name]
        command = getattr(backend, "takes_command_line", False)
        return Engine(backend=backend.name, model=_model(model, text, command=command) if colon else None)
    if meant := _near_miss(name, backends):
        raise EngineError(f"{text!r}: there is no backend {name!r}: did you mean {meant + colon + model!r}?")
    return Engine(backend=backends[default].name, model=_model(target, text))


def _model(model: str, text: str, *, command: bool = False) -> str:
    """`model`, unless a CLI would take it for an option or split it; a command line may hold spaces."""
    if command and model.isprintable():
        return model
    if model.startswith("-") or any(character.isspace() or not character.isprintable() for character in model):
        raise EngineError(f"{text!r}: {model!r} cannot be a model's name: it starts with a dash or holds blanks")
    return model


def _near_miss(word: str, backends: Iterable[str]) -> str | None:
    """The backend that `word` misspells, or None.

    Words with a digit are models (`claude-2` is one letter from `claude`, and a model). Otherwise case and punctuation do not
    count, and one slip is forgiven in names of 4 letters or more, two in names of 8 or more.
    """
    if any(character.isdigit() for character in word):
        return None
    plain = _letters(word)
    best: tuple[int, str] | None = None
    for name in backends:
        letters = _letters(name)
        allowed = 2 if len(letters) >= 8 else 1 if len(letters) >= 4 else 0
        distance = _edit_distance(plain, letters)
        if distance <= allowed and (best is None or distance < best[0]):
            best = (distance, name)
    return None if best is None else best[1]


def _letters(word: str) -> str:
    return "".join(character for character in word.casefold() if character.isalnum())


def _edit_distance(a: str, b: str) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        earlier, before, row = before, row, [i]
        for j, y in enumerate(b, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _origin(backend: Backend) -> str:
    return f"{type(backend).__module__}.{type(backend).__qualname__}"
