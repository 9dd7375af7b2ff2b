"""What a value decided by the program's text: which lines ran, or how often, because it was as it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradwhy.flow import Span
from gradwhy.source.files import SourceFile, read
from gradwhy.source.locate import path_to, span_of_syntax
from gradwhy.source.statements import bound_by, dotted, in_same_scope

Lines = tuple[int, int]
"""The first line and the last one."""

_MOST_NAMES = 3
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = (ast.Return, ast.Break, ast.Continue)


def chosen_lines(span: Span) -> tuple[Lines, ...]:
    """The lines that ran as the Python value at `span` said: branches, loops, and the statements that read it.

    A value that was given a name is followed to where the function reads that name. Nothing says that those lines do depend on
    it in what they compute: whoever asks has to see that they took part.
    """
    file = read(span.file)
    return () if file is None else tuple(dict.fromkeys(_chosen(file, span, frozenset())))


def _chosen(file: SourceFile, span: Span, seen: frozenset[str]) -> Iterator[Lines]:
    path = path_to(span)
    home = next((part for part in reversed(path) if isinstance(part, (*_FUNCTIONS, ast.Module))), None)
    for outer, inner in zip(reversed(path[:-1]), reversed(path), strict=False):
        if isinstance(inner, ast.stmt):
            break
        match outer:
            case ast.If() | ast.While():
                yield from _branches(outer, home)
                return
            case ast.For() | ast.AsyncFor():
                yield from _extent(outer.body)
                return
    statement = next((part for part in reversed(path) if isinstance(part, ast.stmt)), None)
    if statement is None or home is None or isinstance(statement, (ast.Assert, *_FUNCTIONS)):
        return
    yield from _extent([statement])
    for name in bound_by(statement):
        if name not in seen and len(seen) < _MOST_NAMES:
            for reader in _readers(home, name, statement):
                yield from _chosen(file, span_of_syntax(file, reader, span.file), seen | {name})


def _branches(statement: ast.If | ast.While, home: ast.AST | None) -> Iterator[Lines]:
    yield from _extent(statement.body)
    yield from _extent(statement.orelse)
    inside = [*statement.body, *statement.orelse]
    if any(isinstance(part, _LEAVES) for one in inside for part in in_same_scope(one)):
        # What follows ran because the function, or the loop, was not left here.
        last = getattr(home, "end_lineno", None)
        yield (statement.end_lineno or statement.lineno) + 1, last if last is not None else 1 << 30


def _extent(statements: list[ast.stmt]) -> Iterator[Lines]:
    if statements:
        yield statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno


def _readers(home: ast.AST, name: str, after: ast.stmt) -> Iterator[ast.AST]:
    """Where the function's own text reads a name below the statement that gave it its value."""
    for part in in_same_scope(home):
        is_read = dotted(part) == name and isinstance(getattr(part, "ctx", None), ast.Load)
        if is_read and part.lineno > (after.end_lineno or after.lineno):  # type: ignore[attr-defined]
            yield part
