"""Remarks on checks that are allowed and probably not meant. Each is certain: a false alarm would teach people to skip them.

Whether a check passes on nothing, or on a solution, is tried by the grader check. Here is what can be seen without running it.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pytest_caliper.spec.files import is_directory, is_file
from pytest_caliper.spec.findings import in_line

Warn = Callable[[int, str], None]
"""Takes a 1-based line of the source and what to say about it."""

_PLACEHOLDERS = re.compile(
    "todo|tbd|fixme|xxx|na|none|null|nil|ok|okay|yes|no|y|n|true|false|done|fine|good|correct|success|successful|succeeds"
    "|pass|passes|passed|fail|fails|failed|(it)?(should)?(work|works|worked|pass|passes)"
)
"""What stands in an `expect:` before somebody has thought of one, without blanks and punctuation."""

_MAY_RAISE = frozenset({"unittest", "doctest", "importlib", "runpy", "pydoc", "test"})
"""Modules of the standard library whose functions raise AssertionError, or run code that may."""
_RUNS_CODE = frozenset({"exec", "eval", "__import__"})
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_ABOVE = 8
"""How many directories above the spec a module is looked for in."""

_NO_ASSERT = "nothing can fail this check, as it has no `assert` (other exceptions give no verdict): write `assert CONDITION`"
_NOT_ASSERTED = "this comparison decides nothing: write `assert` before it"
_UNREACHED = "this assert is never reached, as it stands behind {what}: move it up"
_GUARDED = "this block never runs, as a check is not `__main__`: take what it holds out of the `if`"
_UNCALLED = "this assert never runs, as nothing calls `{name}`: call it at the end of the check"


def says_nothing(expect: str | None) -> bool:
    """True for an `expect:` that is punctuation or a placeholder such as `TODO` or `works`."""
    if expect is None:
        return False
    letters = re.sub(r"[\W_]+", "", expect).casefold()
    return not letters or _PLACEHOLDERS.fullmatch(letters) is not None


def remark(tree: ast.Module, directory: Path, warn: Warn) -> None:
    """Warn of what makes the check `tree` decide nothing, and of modules that cannot be imported.

    `directory` is where the check's own modules lie: that of the spec, or of the script.
    """
    for block in _blocks(tree):
        _remark_on_block(block, warn)
    _remark_on_never_failing(tree, warn)
    _remark_on_imports(tree, directory, warn)


def always_holds(test: ast.expr, is_true: Callable[[ast.expr], bool]) -> str | None:
    """Why a condition that looks at something holds all the same, with the remedy; None when it may fail.

    `is_true` tells of a condition that is made of literals whether it holds.
    """
    if isinstance(test, ast.Tuple) and test.elts:
        return "its brackets make a tuple: write `assert condition, message` without them"
    if isinstance(test, ast.GeneratorExp):
        return "a generator is always true: put `all(…)` or `any(…)` around it"
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and any(map(is_true, test.values)):
        return "what stands beside `or` is always true: repeat the comparison, as in `x in text or y in text`"
    return None


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Every list of statements that run one after another."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _remark_on_block(block: list[ast.stmt], warn: Warn) -> None:
    end = next((n for n, statement in enumerate(block) if isinstance(statement, _ENDS)), len(block))
    for statement in block[end + 1 :]:
        if (lost := next(_asserts([statement]), None)) is not None:
            what = f"a `{type(block[end]).__name__.lower()}`"
            warn(lost.lineno, _UNREACHED.format(what=what))
            break
    for statement in block:
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Compare) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)):
            warn(statement.lineno, _NOT_ASSERTED)


def _asserts(nodes: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """What can fail a check, within the nodes."""
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, (ast.Assert, ast.Raise)):
                yield part


def _remark_on_never_failing(tree: ast.Module, warn: Warn) -> None:
    if _calls_elsewhere(tree):
        return
    functions = {one.name: one for one in tree.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    functions = {name: one for name, one in functions.items() if not one.decorator_list}
    live = list(_live(tree, functions))
    if next(_asserts(live), None) is not None:
        return
    if next(_asserts([tree]), None) is None:
        if not any(isinstance(value, (ast.Compare, ast.UnaryOp)) for value in _values(tree)):  # else told already
            warn(tree.body[0].lineno, _NO_ASSERT)
        return
    if guards := list(filter(_is_main_guard, tree.body)):
        warn(guards[0].lineno, _GUARDED)
        return
    for name, function in functions.items():
        if function not in live and (lost := next(_asserts([function]), None)) is not None:
            warn(lost.lineno, _UNCALLED.format(name=in_line(name)))
            return


def _values(tree: ast.Module) -> Iterator[ast.expr]:
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))


def _calls_elsewhere(tree: ast.Module) -> bool:
    """Whether code that is not in the check may fail it: that of a module which is not Python's own, or code in a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _RUNS_CODE:
            return True
        if isinstance(node, ast.ImportFrom) and node.level:
            return True
        for name in _imported(node):
            if name in _MAY_RAISE or name not in sys.stdlib_module_names:
                return True
    return False


def _imported(node: ast.AST) -> list[str]:
    """Names of the top-level packages that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return [node.module.partition(".")[0]]
    return []


def _live(tree: ast.Module, functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef]) -> Iterator[ast.stmt]:
    """The statements of the module that run or may be called: all but guarded ones and functions that nothing names."""
    waiting = dict(functions)
    pending: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.If) and _is_main_guard(statement):
            pending += statement.orelse
        elif statement not in functions.values():
            pending.append(statement)
    while pending:
        statement = pending.pop()
        yield statement
        for name in _named(statement):
            if name in waiting:
                pending.append(waiting.pop(name))


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def _named(statement: ast.stmt) -> Iterator[str]:
    """Whatever may be the name of a function: names, attributes and texts."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _remark_on_imports(tree: ast.Module, directory: Path, warn: Warn) -> None:
    """Only of imports that run for certain, and not where the check changes where modules come from."""
    if any(isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path" for node in ast.walk(tree)):
        return
    if any(name in ("importlib", "site") for node in ast.walk(tree) for name in _imported(node)):
        return
    for statement in tree.body:
        for name in _imported(statement):
            if name not in sys.stdlib_module_names and not _is_found(name, directory):
                what = f"the module `{in_line(name)}` is not found, and without it there is no verdict: "
                warn(statement.lineno, what + "install it where pytest runs, or fix the import")


def _is_found(name: str, directory: Path) -> bool:
    """Whether a module can be imported, or might be when pytest has set up its own search path."""
    if name in sys.modules:
        return True
    try:
        if importlib.util.find_spec(name) is not None:
            return True
    except (ImportError, ValueError, AttributeError):  # somebody's finder: it may know better when it runs
        return True
    return any(_holds(place, name) for place in _places(directory))


def _places(directory: Path) -> Iterator[Path]:
    """The directory, those above it as far as its repository, and what lies directly in each of them."""
    for place in (directory, *directory.parents[:_ABOVE]):
        yield place
        try:
            yield from (inner for inner in place.iterdir() if is_directory(inner))
        except OSError:
            continue
        if (place / ".git").exists():
            return


def _holds(place: Path, name: str) -> bool:
    return is_file(place / f"{name}.py") or is_directory(place / name) or any(place.glob(f"{name}.*.so"))
