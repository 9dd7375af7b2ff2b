"""Where the program's text makes a leaf, and where it would have used one."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise
from types import CodeType

from gradwhy.flow import Span
from gradwhy.source import files, locate, positions
from gradwhy.source.statements import in_same_scope

_FARTHEST = 6
"""How many assignments, calls and returns are followed from a leaf's holder to the leaf."""

Key = str | int

_STEP = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(-?\d+))\]|\.([A-Za-z_]\w*)")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def keys_of(expression: str) -> tuple[str, tuple[Key, ...]]:
    """The name that an expression such as `params['dense'].bias` begins with, and the keys that follow."""
    name = re.match(r"[A-Za-z_]\w*", expression)
    if name is None:
        return "", ()
    keys: list[Key] = []
    for single, double, number, attribute in _STEP.findall(expression[name.end() :]):
        keys.append(int(number) if number else single or double or attribute)
    return name[0], tuple(keys)


def made_at(expression: str, reader: tuple[CodeType, int], line: int | None) -> Span | None:
    """The expression that made what `expression` means above `line` in the reader's file; None where it is not spelt out."""
    file = files.read(reader[0].co_filename)
    if file is None or file.tree is None:
        return None
    name, keys = keys_of(expression)
    if not name or not keys:
        return None
    part = _Text(file.tree).find(name, keys, reader[0].co_name, line)
    return locate.span_of_syntax(file, part, files.shown_path(file.path)) if part is not None else None


class _Text:
    """A module whose assignments are followed to the expression that made one part of a value."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._functions = {f.name: f for f in ast.walk(tree) if isinstance(f, _FUNCTIONS)}
        self._classes = {c.name: c for c in ast.walk(tree) if isinstance(c, ast.ClassDef)}

    def find(self, name: str, keys: tuple[Key, ...], function: str, line: int | None) -> ast.expr | None:
        for scope in (self._functions.get(function), self._tree):
            value = self._assigned(scope, name, line) if scope is not None else None
            if value is not None and scope is not None:
                return self._within(value, keys, scope, _FARTHEST)
        return None

    def _assigned(self, scope: ast.AST, name: str, line: int | None = None) -> ast.expr | None:
        """What a scope last gives to a name above a line."""
        found = None
        for part in in_same_scope(scope):
            if not isinstance(part, (ast.Assign, ast.AnnAssign)) or part.value is None:
                continue
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            if any(ast.unparse(t) == name for t in targets) and (line is None or part.lineno < line):
                found = part.value
        return found

    def _within(self, value: ast.expr, keys: Sequence[Key], scope: ast.AST, steps: int) -> ast.expr | None:
        """The part of an expression that the keys lead to."""
        if not keys:
            return value
        if not steps:
            return None
        first, rest = keys[0], keys[1:]
        match value:
            case ast.Dict():
                for key, part in zip(value.keys, value.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == first:
                        return self._within(part, rest, scope, steps - 1)
            case ast.List() | ast.Tuple() if isinstance(first, int) and -len(value.elts) <= first < len(value.elts):
                return self._within(value.elts[first], rest, scope, steps - 1)
            case ast.Name():
                given = self._assigned(scope, value.id) or self._assigned(self._tree, value.id)
                return self._within(given, keys, scope, steps - 1) if given is not None else None
            case ast.Call():
                return self._of_call(value, keys, scope, steps)
        return None

    def _of_call(self, call: ast.Call, keys: Sequence[Key], scope: ast.AST, steps: int) -> ast.expr | None:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name == "dict":
            given = next((k.value for k in call.keywords if k.arg == keys[0]), None)
            return self._within(given, keys[1:], scope, steps - 1) if given is not None else None
        if (made_by := self._functions.get(name)) is not None:
            returned = [p.value for p in in_same_scope(made_by) if isinstance(p, ast.Return) and p.value is not None]
            return self._within(returned[-1], keys, made_by, steps - 1) if returned else None
        if (cls := self._classes.get(name)) is not None:
            for method in cls.body:
                given = self._assigned(method, f"self.{keys[0]}") if isinstance(method, _FUNCTIONS) else None
                if given is not None:
                    return self._within(given, keys[1:], method, steps - 1)
        return None


def handed_out(frames: Sequence[tuple[CodeType, int]]) -> int:
    """How many of the innermost frames only return what they computed to the one that called them by name."""
    for number, (inner, outer) in enumerate(pairwise(frames)):
        span, called = positions.span_of(*inner), positions.span_of(*outer)
        call = locate.call_at(called) if called is not None else None
        is_returned = span is not None and isinstance(locate.statement_at(span), ast.Return)
        if not is_returned or call is None or locate.callee_name(call) != inner[0].co_name:
            return number
    return max(len(frames) - 1, 0)


def header_of(function: CodeType) -> Span | None:
    """The decorators of a function, or the line on which it begins where it has none."""
    file = files.read(function.co_filename)
    for part in ast.walk(file.tree) if file is not None and file.tree is not None else ():
        if isinstance(part, _FUNCTIONS) and part.name == function.co_name and part.decorator_list:
            first = part.decorator_list[0]
            if function.co_firstlineno in (first.lineno, part.lineno):
                return locate.span_of_syntax(file, first, files.shown_path(file.path))  # type: ignore[arg-type, union-attr]
    return None


def kept_at(frames: Sequence[tuple[CodeType, int]]) -> Span | None:
    """The statement that kept a value, made where `frames` stand, outside of the function; else where it was made."""
    for code, lasti in frames:
        span, file = positions.span_of(code, lasti), files.read(code.co_filename)
        statement = locate.statement_at(span) if span is not None else None
        if span is None or statement is None or file is None or file.tree is None:
            continue
        function = next((p for p in reversed(locate.path_to(span)) if isinstance(p, _FUNCTIONS)), None)
        names = {ast.unparse(t) for t in getattr(statement, "targets", ())}
        for part in in_same_scope(function) if function is not None else ():
            if part.lineno >= statement.lineno if hasattr(part, "lineno") else False:
                if _keeps(part, names, is_itself=part is statement):
                    return locate.span_of_syntax(file, part, files.shown_path(file.path))
    return positions.span_of(*frames[0]) if frames else None


_KEEPING = frozenset({"append", "add", "update", "extend", "insert", "setdefault", "put", "__setitem__"})


def _keeps(part: ast.AST, names: set[str], *, is_itself: bool) -> bool:
    """Whether a statement puts what stands under one of `names` where it outlives the function."""
    if isinstance(part, ast.Assign):
        is_outside = any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in part.targets)
        return is_outside and (is_itself or _mentions(part.value, names))
    is_call = isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)
    if is_call and locate.callee_name(part.value) in _KEEPING:  # type: ignore[attr-defined]
        return is_itself or any(_mentions(a, names) for a in part.value.args)  # type: ignore[attr-defined]
    return False


def _mentions(part: ast.expr, names: set[str]) -> bool:
    return any(isinstance(p, (ast.Name, ast.Attribute)) and ast.unparse(p) in names for p in ast.walk(part))


def unreached(function: CodeType, name: str, keys: Sequence[Key]) -> Span | None:
    """The condition that stands before every use of a leaf in the file of `function`; None where there is no such one."""
    file = files.read(function.co_filename)
    if file is None or file.tree is None:
        return None
    parents = {child: parent for parent in ast.walk(file.tree) for child in ast.iter_child_nodes(parent)}
    for key in keys or (name,):
        reads = [part for part in ast.walk(file.tree) if _reads(part, key, is_name=not keys)]
        conditions = [_condition(part, parents, file.tree, 3) for part in reads]
        if conditions and all(conditions):
            first = next(c for c in conditions if c is not None)
            return locate.span_of_syntax(file, first, files.shown_path(file.path))
    return None


def _reads(part: ast.AST, key: Key, *, is_name: bool) -> bool:
    if not isinstance(getattr(part, "ctx", None), ast.Load):
        return False
    if is_name:
        return isinstance(part, ast.Name) and part.id == key
    if isinstance(part, ast.Subscript):
        return isinstance(part.slice, ast.Constant) and part.slice.value == key
    return isinstance(part, ast.Attribute) and part.attr == key


def _condition(part: ast.AST, parents: dict[ast.AST, ast.AST], tree: ast.AST, calls: int) -> ast.expr | None:
    """The innermost condition in whose branch a piece of syntax stands, or a call of the function that it stands in."""
    below = part
    while (above := parents.get(below)) is not None:
        if isinstance(above, (ast.If, ast.IfExp, ast.While)) and below is not above.test:
            return above.test
        if isinstance(above, _FUNCTIONS):
            early = _left_early(above, part)
            if early is not None or not calls:
                return early
            called = [c for c in ast.walk(tree) if isinstance(c, ast.Call) and locate.callee_name(c) == above.name]
            conditions = [_condition(c, parents, tree, calls - 1) for c in called]
            return conditions[0] if conditions and all(conditions) else None
        below = above
    return None


def _left_early(function: ast.AST, part: ast.AST) -> ast.expr | None:
    """The condition under which a function returns before it comes to a piece of its syntax."""
    for statement in getattr(function, "body", ()):
        if statement.lineno >= part.lineno:  # type: ignore[attr-defined]
            return None
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return):
            return statement.test
    return None
