"""`assert:` checks: where their lines stand, and whether they are Python that checks anything."""

from __future__ import annotations

import ast
import importlib.util
import operator
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from pytest_caliper.spec.files import is_file, resolve
from pytest_caliper.spec.findings import Findings, shown
from pytest_caliper.spec.model import Assertion
from pytest_caliper.spec.remarks import always_holds, remark
from pytest_caliper.spec.source import Source
from pytest_caliper.spec.tree import Node

# Properties of a node (https://yaml.org/spec/1.1/#c-ns-properties) with the blanks and comments after them.
_PROPERTIES = re.compile(r"(?:[&!][^\s]*(?:\s+|(?<=\s)#[^\n]*)*)*")

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


def read_assertion(node: Node, source: Source, findings: Findings) -> Assertion | None:
    """The check of an `assert:` value, or None when the value is no text (told elsewhere) or a script is missing.

    Notes what is wrong with its Python, at the line of the file that holds it.
    """
    text = node.data
    if not isinstance(text, str) or not text.strip() or node.scalar is None:
        return None
    assertion = _script(node, text.strip(), findings) if is_script(text) else _inline(node.scalar, source, findings.path)
    if assertion is not None:
        _check(assertion, _last_line(node.scalar, assertion), findings)
    return assertion


def is_script(text: str) -> bool:
    """True when an `assert:` is the path of a script: one line that ends in `.py`."""
    text = text.strip()
    return text.endswith(".py") and len(text.splitlines()) == 1


def _script(node: Node, text: str, findings: Findings) -> Assertion | None:
    path = resolve(findings.path.parent, text)
    if not is_file(path):
        what = f"`assert` names the script {shown(text)}, which does not exist: fix the path or create it"
        findings.error(node.line, what + (" (a single line that ends in `.py` is a path)" if " " in text else ""))
        return None
    try:
        source = importlib.util.decode_source(path.read_bytes())
    except (OSError, ValueError) as error:  # ValueError: its bytes do not fit its encoding
        findings.error(node.line, f"`assert` names the script {shown(text)}, which cannot be read ({_brief(error)}): fix it")
    except (SyntaxError, LookupError) as error:  # its coding line
        findings.error(1, f"the assert script has an unknown encoding ({_brief(error)}): save it as UTF-8", path=path)
    else:
        return Assertion(source=source, path=path, line=0, column=0, is_script=True)
    return None


def _inline(scalar: yaml.ScalarNode, source: Source, path: Path) -> Assertion:
    """Lines and columns of a literal block and of a one-liner are exact; anything else stands at the line where it begins."""
    text: str = scalar.value
    matched = _PROPERTIES.match(source.text, scalar.start_mark.index)
    begin = matched.end() if matched else scalar.start_mark.index
    line = source.line_at(begin)
    column = 0
    text, margin = _dedent(text)
    if scalar.style == "|":
        line += 1
        column = _block_column(text, source.lines[line:])
    elif scalar.style != ">" and "\n" not in text:
        column = source.column_at(begin) + (1 if scalar.style else 0) + margin
    in_lines = scalar.style == "|" or "\n" not in text.rstrip()
    return Assertion(source=text, path=path, line=line, column=column, is_script=False, in_lines=in_lines)


def _dedent(text: str) -> tuple[str, int]:
    """`text` without the spaces that all its lines start with, as `|2` leaves them, and their number."""
    full = [line for line in text.split("\n") if line.strip()]
    margin = min(len(line) - len(line.lstrip(" ")) for line in full)
    return re.sub(f"(?m)^ {{1,{margin}}}", "", text) if margin else text, margin


def _block_column(text: str, lines: list[str]) -> int:
    """Columns by which the file's `lines` are indented, compared with the lines of `text` that are read from them."""
    for own, whole in zip(text.split("\n"), lines, strict=False):
        if own.strip() and whole.endswith(own):
            return len(whole) - len(own)
    return 0


def _last_line(scalar: yaml.ScalarNode, assertion: Assertion) -> int:
    """1-based last line that a remark may name: that of a text which ends too early lies beyond it.

    Only scripts and literal blocks have their lines one below the other.
    """
    lines = len(assertion.source.rstrip().split("\n")) if assertion.is_script or scalar.style == "|" else 1
    return assertion.line + max(lines, 1)


def _check(assertion: Assertion, last_line: int, findings: Findings) -> None:
    """Note Python that does not compile, that checks nothing, or that always holds."""

    def line_of(lineno: int | None) -> int:
        return min(assertion.line + max(lineno or 1, 1), last_line)

    path = assertion.path
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own remarks on style are no mistakes of the spec
            tree = ast.parse(assertion.source, filename="<assert>")
            compile(tree, "<assert>", "exec", dont_inherit=True)
    except SyntaxError as error:
        quoted = f" in {shown(error.text.strip())}" if error.text and error.text.strip() else ""
        findings.error(line_of(error.lineno), f"`assert` is not valid Python ({error.msg}){quoted}: fix it", path=path)
        return
    except (ValueError, RecursionError, MemoryError) as error:
        findings.error(line_of(1), f"`assert` cannot be compiled ({_brief(error)}): make it simpler", path=path)
        return
    if all(_is_idle(statement) for statement in tree.body):
        first = line_of(tree.body[0].lineno if tree.body else 1)
        findings.error(first, "`assert` checks nothing: add an `assert` statement, or delete the key", path=path)
        return
    for statement in _always_true(tree):
        why = always_holds(statement.test, _holds)
        what = f"because {why}" if why else "so it checks nothing: compare something that the agent can get wrong"
        findings.warn(line_of(statement.lineno), f"this assert always holds, {what}", path=path)
    directory = path.parent if assertion.is_script else findings.path.parent
    remark(tree, directory, lambda line, message: findings.warn(line_of(line), message, path=path))


def _is_idle(statement: ast.stmt) -> bool:
    """True for `pass`, `...`, docstrings and other lone constants."""
    return isinstance(statement, ast.Pass) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def _always_true(tree: ast.Module) -> list[ast.Assert]:
    """Those on a tuple and the like anywhere, and the constant ones of a check that has no other statement."""
    constant = [one for one in tree.body if isinstance(one, ast.Assert) and _holds(one.test)]
    others = [
        one
        for one in tree.body
        if one not in constant and not _is_idle(one) and not isinstance(one, (ast.Import, ast.ImportFrom))
    ]
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Assert) and not _is_literal(one.test)]
    found = [one for one in found if always_holds(one.test, _holds)]
    return found if others else list(dict.fromkeys([*constant, *found]))


def _is_literal(test: ast.expr) -> bool:
    """True for a condition other than a tuple that is made of literals."""
    return not isinstance(test, ast.Tuple) and not any(isinstance(node, ast.Name) for node in ast.walk(test))


def _holds(test: ast.expr) -> bool:
    """True when a condition is made of literals and is true."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(_value(test))
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False


def _value(node: ast.expr) -> Any:
    """The value of literals, comparisons and `and`, `or`, `not` of them. Raises ValueError for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand)
    if isinstance(node, ast.BoolOp):
        values = [bool(_value(part)) for part in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Compare):
        sides = [_value(side) for side in (node.left, *node.comparators)]
        pairs = zip(node.ops, sides, sides[1:], strict=False)
        return all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs)
    return ast.literal_eval(node)


def _brief(error: BaseException) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
