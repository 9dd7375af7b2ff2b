"""What feeds a host value, by the text of the function in which it came back.

The last and weakest link between a value that left its framework and one that came back: no object, memory or number
was seen to be the same, but the function's text says that the one was computed from the other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from gradwhy.flow import Span
from gradwhy.source.files import SourceFile, read, shown_path
from gradwhy.source.locate import expression_at, path_to, span_of_syntax, statement_at
from gradwhy.source.positions import is_user_code, span_of
from gradwhy.source.statements import in_same_scope

_LEAVING_CALLS = frozenset({"float", "int", "list", "tuple"})
_LEAVING_METHODS = frozenset({"numpy", "item", "tolist", "eval", "convert_to_numpy"})
_LEAVING_MODULES = frozenset({"np", "numpy", "onp", "math", "scipy", "cv2"})
_ADDING_METHODS = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
_MOST_STEPS = 64


@dataclass(frozen=True, slots=True)
class Leaving:
    """A call that turns its arguments into host values: by its text, or, where `function` names a plain function, perhaps inside.

    `arguments` are the spans of those arguments, and of the object whose method it is, that have no name of their own.
    """

    span: Span
    arguments: tuple[Span, ...]
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Feeding:
    """The names that a value was computed from, each with the span that reads it, and the lines of that computation.

    `calls` are the calls in it that may have turned values into host values, those nearest to the value first.
    """

    names: tuple[tuple[str, Span], ...]
    lines: frozenset[int]
    calls: tuple[Leaving, ...] = ()

    def covers(self, code: CodeType, lasti: int) -> bool:
        """Whether the instruction stands in a statement of the computation."""
        span = span_of(code, lasti)
        return span is not None and span.line in self.lines


@lru_cache(maxsize=4096)
def feeding_names(code: CodeType, lasti: int, only: frozenset[str] | None = None) -> Feeding | None:
    """What feeds the expression that runs at `lasti` of `code`; None where its text cannot be read.

    `only` holds the names to follow where not everything that the expression reads is meant. Where it reads none of them, what
    is meant is computed in the expression itself.
    """
    span = span_of(code, lasti)
    file = read(span.file) if span else None
    if span is None or file is None:
        return None
    expression, statement = expression_at(span) if span.column else None, statement_at(span)
    if statement is None:
        return None
    return _Reader(file, span, _scope_of(span)).trace(expression or statement, statement, only)


@lru_cache(maxsize=1024)
def leaving_inside(code: CodeType) -> tuple[Leaving, ...]:
    """The calls in a user's function that turn values into host values on the way to what it returns, the last ones first."""
    file = read(code.co_filename) if is_user_code(code) else None
    if file is None or file.tree is None:
        return ()
    for part in ast.walk(file.tree):
        if isinstance(part, (ast.FunctionDef, ast.Lambda)) and part.lineno == code.co_firstlineno:
            returned = [r for r in ast.walk(part) if isinstance(r, ast.Return) and r.value is not None]
            reader = _Reader(file, span_of_syntax(file, part, shown_path(file.path)), part)
            found = [reader.trace(r.value, r, None).calls for r in returned if r.value is not None]
            if isinstance(part, ast.Lambda):
                found = [reader.trace(part.body, None, None).calls]
            return tuple(call for calls in found for call in calls if call.function is None)
    return ()


class _Reader:
    """Follows assignments backwards through one function's text."""

    def __init__(self, file: SourceFile, at: Span, scope: ast.AST) -> None:
        self.file, self.at, self.scope = file, at, scope
        self.names: dict[str, Span] = {}
        self.lines: set[int] = set()
        self.calls: dict[Leaving, None] = {}

    def trace(self, part: ast.AST, statement: ast.stmt | None, only: frozenset[str] | None) -> Feeding:
        todo = [(name, reader) for name, reader in _reads(part) if only is None or name in only]
        if only is None or not todo:
            self.note(statement)
            self.note_calls(part)
        seen: set[str] = set()
        while todo and len(seen) < _MOST_STEPS:
            name, reader = todo.pop(0)
            self.names.setdefault(name, span_of_syntax(self.file, reader, self.at.file))
            if name in seen:
                continue
            seen.add(name)
            for source, made_at in self.makers(name):
                self.note(made_at)
                self.note_calls(source)
                for fed, reads in _reads(source):
                    if fed == name:
                        self.names[name] = span_of_syntax(self.file, reads, self.at.file)
                    todo.append((fed, reads))
        return Feeding(tuple(self.names.items()), frozenset(self.lines), tuple(self.calls))

    def note_calls(self, part: ast.AST) -> None:
        for call in (p for p in ast.walk(part) if isinstance(p, ast.Call)):
            function = call.func.id if isinstance(call.func, ast.Name) and not _leaves(call) else None
            if function is None and not _leaves(call):
                continue
            given = [*call.args, *(k.value for k in call.keywords)]
            if isinstance(call.func, ast.Attribute) and call.func.attr in _LEAVING_METHODS:
                given.append(call.func.value)
            spans = (
                span_of_syntax(self.file, a, self.at.file) for a in given if not isinstance(a, (ast.Name, ast.Constant))
            )
            leaving = Leaving(span_of_syntax(self.file, call, self.at.file), tuple(spans), function)
            self.calls.setdefault(leaving)

    def note(self, statement: ast.stmt | None) -> None:
        if statement is None:
            return
        if isinstance(statement, (ast.For, ast.While, ast.With, ast.If, ast.FunctionDef, ast.ClassDef)):
            self.lines.add(statement.lineno)
        else:
            self.lines.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))

    def makers(self, name: str) -> Iterator[tuple[ast.AST, ast.stmt]]:
        """The expressions that give `name` its value, or add to it, with their statements."""
        return _makers(ast.walk(self.scope), name)


def makers_in(scope: ast.AST, name: str) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """The expressions that give `name` its value in the scope's own text, or add to it, with their statements."""
    return _makers(in_same_scope(scope), name)


def _makers(parts: Iterable[ast.AST], name: str) -> Iterator[tuple[ast.AST, ast.stmt]]:
    for part in parts:
        match part:
            case ast.Assign(targets=targets, value=value) if any(_binds(t, name) for t in targets):
                yield value, part
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _binds(target, name):
                yield value, part
            case ast.AugAssign(target=target, value=value) if _binds(target, name):
                yield value, part
            case ast.For(target=target, iter=value) if _binds(target, name):
                yield value, part
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr), args=args)) if (
                attr in _ADDING_METHODS and _is_name(owner, name)
            ):
                for argument in args:
                    yield argument, part


def _scope_of(span: Span) -> ast.AST:
    """The function, or the module, whose own text holds the span."""
    path = path_to(span)
    functions = [p for p in path if isinstance(p, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return functions[-1] if functions else path[0]


def _reads(part: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names and dotted names read in `part`, each with the innermost call that takes it out of its framework."""
    yield from _reads_within(part, None)


def _reads_within(part: ast.AST, leaving: ast.AST | None) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(part, ast.Call):
        # A function of the user's own may hold the call that leaves; one of a framework does not.
        leaving = part if leaving is None or _leaves(part) or isinstance(part.func, ast.Name) else leaving
        if isinstance(part.func, ast.Attribute):
            yield from _reads_within(part.func.value, leaving)
        for argument in [*part.args, *(k.value for k in part.keywords)]:
            yield from _reads_within(argument, leaving)
        return
    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
        yield part.id, leaving or part
        return
    for child in ast.iter_child_nodes(part):
        yield from _reads_within(child, leaving)


def _leaves(part: ast.AST) -> bool:
    """Whether a call, as far as its text says, gives a host value."""
    if not isinstance(part, ast.Call):
        return False
    if isinstance(part.func, ast.Name):
        return part.func.id in _LEAVING_CALLS
    if isinstance(part.func, ast.Attribute):
        return part.func.attr in _LEAVING_METHODS or _root(part.func.value) in _LEAVING_MODULES
    return False


def _root(part: ast.expr) -> str | None:
    """The name that a dotted expression begins with."""
    while isinstance(part, ast.Attribute):
        part = part.value
    return part.id if isinstance(part, ast.Name) else None


def _binds(target: ast.expr, name: str) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_binds(t, name) for t in target.elts)
    if isinstance(target, ast.Subscript):
        return _is_name(target.value, name)
    if isinstance(target, ast.Starred):
        return _binds(target.value, name)
    return _is_name(target, name)


def _is_name(part: ast.expr, name: str) -> bool:
    return isinstance(part, ast.Name) and part.id == name


def resolved(name: str, frame: Any) -> Any:
    """What a plain name means in a live frame; None where it is not bound."""
    return frame.f_locals.get(name, frame.f_globals.get(name))


CallFinder = Callable[[str], Any]


def inner_exit(reader: Span, find: CallFinder) -> Span | None:
    """Where, inside the user's own function that is called at `reader`, values leave; None if it is no such call."""
    expression = expression_at(reader) if reader.column else None
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
        inside = leaving_inside_function(find(expression.func.id))
        return first_of(inside) if inside else None
    return None


def first_of(calls: tuple[Leaving, ...]) -> Span:
    """Where the first of some calls stands in the text."""
    return min((call.span for call in calls), key=lambda span: (span.line, span.column or 0))


def leaving_inside_function(function: Any) -> tuple[Leaving, ...]:
    """`leaving_inside` of a function object; nothing for anything else."""
    code = getattr(function, "__code__", None)
    return leaving_inside(code) if isinstance(code, CodeType) else ()
