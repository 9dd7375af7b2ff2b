"""What was computed around a function for its sake: globals, attributes of its object, arguments, by the program's text.

Like `reading`, which follows one function's own text, this only says where a value may have been computed. Whether anything
left its framework there is for whoever asks to see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from gradwhy.flow import Span
from gradwhy.host.reading import makers_in
from gradwhy.source.files import read
from gradwhy.source.locate import expression_at, path_to, statement_at
from gradwhy.source.statements import dotted, in_same_scope, last_name

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST_STEPS = 64
_MOST_CALLS = 3
"""A function that is called from more places than this says too little about any of them."""

Named = tuple[str, tuple[ast.AST, ...]]
"""A name, and the scopes in which it is looked up: the module first, the function that reads it last."""


@lru_cache(maxsize=1024)
def lines_around(span: Span) -> frozenset[int]:
    """The lines of the file, outside of the function at `span`, at which what its expression reads got its value."""
    file = read(span.file)
    tree = file.tree if file else None
    part = (expression_at(span) if span.column else None) or statement_at(span)
    if tree is None or part is None:
        return frozenset()
    scopes = tuple(p for p in path_to(span) if isinstance(p, (ast.Module, ast.ClassDef, *_FUNCTIONS)))
    home = scopes[-1]
    lines: set[int] = set()
    seen: set[tuple[str, int]] = set()
    todo: list[Named] = [(name, scopes) for name in _names(part)]
    while todo and len(seen) < _MOST_STEPS:
        name, known_in = todo.pop(0)
        if (name, id(known_in[-1])) in seen:
            continue
        seen.add((name, id(known_in[-1])))
        for value, statement, scopes_there in _givers(tree, name, known_in):
            if scopes_there[-1] is not home:
                lines.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
                lines.add(statement.lineno)
            todo.extend((fed, scopes_there) for fed in _names(value))
    return frozenset(lines)


def _givers(
    tree: ast.Module, name: str, scopes: tuple[ast.AST, ...]
) -> Iterator[tuple[ast.expr, ast.stmt | ast.expr, tuple[ast.AST, ...]]]:
    """The expressions that give a name its value, each with where it stands and the scopes around it."""
    owner, _, attribute = name.rpartition(".")
    if owner:
        yield from _attribute_givers(owner, attribute, scopes)
        return
    for depth in range(len(scopes), 0, -1):
        scope = scopes[depth - 1]
        if isinstance(scope, ast.ClassDef):
            continue
        made = [(v, s) for v, s in makers_in(scope, name) if isinstance(v, ast.expr)]
        if made:
            yield from ((value, statement, scopes[:depth]) for value, statement in made)
            return
        if isinstance(scope, _FUNCTIONS) and name in _parameters(scope.args):
            yield from _argument_givers(tree, scope, name, scopes[: depth - 1])
            return


def _attribute_givers(
    owner: str, attribute: str, scopes: tuple[ast.AST, ...]
) -> Iterator[tuple[ast.expr, ast.stmt, tuple[ast.AST, ...]]]:
    """The assignments `self.name = ...` in the methods of the class around."""
    for depth in range(len(scopes), 0, -1):
        scope = scopes[depth - 1]
        if not isinstance(scope, ast.ClassDef):
            continue
        for method in (part for part in scope.body if isinstance(part, _FUNCTIONS)):
            for part in in_same_scope(method):
                if isinstance(part, ast.Assign) and any(dotted(t) == f"{owner}.{attribute}" for t in part.targets):
                    yield part.value, part, (*scopes[:depth], method)
        return


def _argument_givers(
    tree: ast.Module, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, around: tuple[ast.AST, ...]
) -> Iterator[tuple[ast.expr, ast.expr, tuple[ast.AST, ...]]]:
    """The arguments with which the file calls a function, or makes an object of its class."""
    method_of = around[-1] if around and isinstance(around[-1], ast.ClassDef) else None
    called = method_of.name if isinstance(method_of, ast.ClassDef) and function.name == "__init__" else function.name
    places = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    position = places.index(name) - (method_of is not None) if name in places else None
    calls = [c for c in _calls(tree, (tree,)) if last_name(c[0].func) == called]
    for call, scopes in calls if len(calls) <= _MOST_CALLS else ():
        given = next((k.value for k in call.keywords if k.arg == name), None)
        if given is None and position is not None and 0 <= position < len(call.args):
            given = call.args[position]
        if given is not None and not isinstance(given, ast.Starred):
            yield given, call, scopes


def _calls(part: ast.AST, scopes: tuple[ast.AST, ...]) -> Iterator[tuple[ast.Call, tuple[ast.AST, ...]]]:
    """The calls in a text, each with the scopes around it."""
    for child in ast.iter_child_nodes(part):
        if isinstance(child, ast.Call):
            yield child, scopes
        is_scope = isinstance(child, (ast.ClassDef, *_FUNCTIONS))
        yield from _calls(child, (*scopes, child) if is_scope else scopes)


def _parameters(given: ast.arguments) -> set[str]:
    return {argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _names(part: ast.AST) -> Iterator[str]:
    """The names, and attributes such as `self.w`, that are read in `part`; methods that are called are none."""
    if isinstance(part, ast.stmt) and hasattr(part, "body"):
        return
    name = dotted(part)
    if name is not None:
        if isinstance(getattr(part, "ctx", None), ast.Load):
            yield name
        return
    for child in ast.iter_child_nodes(part):
        if isinstance(part, ast.Call) and child is part.func:
            # `w.numpy()` reads `w`.
            if isinstance(child, ast.Attribute):
                yield from _names(child.value)
            continue
        yield from _names(child)
