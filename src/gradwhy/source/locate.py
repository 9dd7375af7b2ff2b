"""From a span to the syntax that stands there, and back."""

from __future__ import annotations

import ast

from gradwhy.flow import Span
from gradwhy.source.files import SourceFile, read

Position = tuple[int, int]
"""A line, and an offset in it in UTF-8 bytes, as `ast` counts."""

_DECORATED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def path_to(span: Span) -> tuple[ast.AST, ...]:
    """The syntax around the span, from the module down to the smallest that covers it; empty where it cannot be read.

    For a span without columns the path ends at the innermost statement that holds the line.
    """
    file = read(span.file)
    tree = file.tree if file else None
    if file is None or tree is None:
        return ()
    bounds = _bounds(file, span)
    path: list[ast.AST] = [tree]
    while (inner := _covering_child(path[-1], *bounds, statements_only=span.column is None)) is not None:
        path.append(inner)
    return tuple(path)


def expression_at(span: Span) -> ast.expr | None:
    """The smallest expression that covers exactly, or just, the span."""
    if span.column is None:
        return None
    path = path_to(span)
    return next((part for part in _innermost_first(path) if isinstance(part, ast.expr)), None)


def call_at(span: Span) -> ast.Call | None:
    """The call at the span: the expression itself, or the call whose callee it is."""
    if span.column is None:
        return None
    path = [part for part in path_to(span) if isinstance(part, (ast.expr, ast.stmt))]
    if not path:
        return None
    if isinstance(path[-1], ast.Call):
        return path[-1]
    if len(path) > 1 and isinstance(path[-2], ast.Call) and path[-2].func is path[-1]:
        return path[-2]
    # The keyword or argument list of a call that was written over several lines, or `await f()`, `x = f()`.
    inside = getattr(path[-1], "value", None)
    return inside if isinstance(inside, ast.Call) and _starts_at(inside, span) else None


def statement_at(span: Span) -> ast.stmt | None:
    """The innermost statement that covers the span."""
    return next((part for part in _innermost_first(path_to(span)) if isinstance(part, ast.stmt)), None)


def span_of_syntax(file: SourceFile, part: ast.AST, shown: str) -> Span:
    """Where an expression or a statement stands."""
    line, offset, end_line, end_offset = _extent(part)
    return Span(shown, line, file.column(line, offset), end_line, file.column(end_line, end_offset))


def header_span(file: SourceFile, statement: ast.stmt, shown: str) -> Span:
    """A statement's span without the body it may hold: what a `with` opens, what a `for` goes over, a definition's name."""
    parts = header_parts(statement)
    if not parts:
        return span_of_syntax(file, statement, shown)
    first, last = span_of_syntax(file, parts[0], shown), span_of_syntax(file, parts[-1], shown)
    return Span(shown, first.line, first.column, last.end_line, last.end_column)


def header_parts(statement: ast.stmt) -> list[ast.expr]:
    """The expressions in the header of a compound statement, in the order of the text."""
    match statement:
        case ast.With() | ast.AsyncWith():
            return [item.context_expr for item in statement.items]
        case ast.For() | ast.AsyncFor():
            return [statement.target, statement.iter]
        case ast.If() | ast.While():
            return [statement.test]
        case ast.Match():
            return [statement.subject]
    return []


def callee_name(call: ast.Call) -> str:
    """The last part of the name of what is called: `c` of `c(...)`, `a.b.c(...)` and `f(...).c(...)`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def text_of(file: SourceFile, part: ast.AST) -> str:
    """The source text of an expression or a statement."""
    line, offset, end_line, end_offset = _extent(part)
    start, end = file.column(line, offset) - 1, file.column(end_line, end_offset) - 1
    if line == end_line:
        return file.line(line)[start:end]
    between = [file.line(number) for number in range(line + 1, end_line)]
    return "\n".join([file.line(line)[start:], *between, file.line(end_line)[:end]])


def _innermost_first(path: tuple[ast.AST, ...]) -> tuple[ast.AST, ...]:
    return path[::-1]


def _starts_at(part: ast.AST, span: Span) -> bool:
    return _extent(part)[0] >= span.line


def _bounds(file: SourceFile, span: Span) -> tuple[Position, Position]:
    if span.column is None or span.end_line is None or span.end_column is None:
        text = file.line(span.line)
        return (span.line, len(text.encode()) - len(text.lstrip().encode())), (span.line, len(text.rstrip().encode()))
    start = (span.line, file.offset(span.line, span.column))
    return start, (span.end_line, file.offset(span.end_line, span.end_column))


def _extent(part: ast.AST) -> tuple[int, int, int, int]:
    """The lines and offsets of a part; a decorated definition starts at its first decorator."""
    first = part.decorator_list[0] if isinstance(part, _DECORATED) and part.decorator_list else part
    line, offset = first.lineno, first.col_offset  # type: ignore[attr-defined]
    return line, offset, part.end_lineno or line, part.end_col_offset or 0  # type: ignore[attr-defined]


def _covering_child(part: ast.AST, start: Position, end: Position, *, statements_only: bool) -> ast.AST | None:
    for child in ast.iter_child_nodes(part):
        if not hasattr(child, "lineno"):
            # `arguments`, `comprehension`, `withitem` and their like have no position of their own.
            inner = _covering_child(child, start, end, statements_only=statements_only)
            if inner is not None:
                return inner
        elif statements_only and isinstance(child, ast.expr):
            continue
        else:
            line, offset, end_line, end_offset = _extent(child)
            if statements_only:
                if line <= start[0] <= end_line:
                    return child
            elif (line, offset) <= start and end <= (end_line, end_offset):
                return child
    return None


def in_same_function(one: Span, other: Span) -> bool:
    """Whether two spans stand in the text of the same function, or both in the same module outside of all functions."""
    return one.file == other.file and _function_of(one) == _function_of(other)


def _function_of(span: Span) -> int:
    """The line of the innermost function whose text holds the span, 0 for none."""
    holders = [p for p in path_to(span) if isinstance(p, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    return holders[-1].lineno if holders else 0


def is_within(inner: Span, outer: Span) -> bool:
    """Whether one span of a file lies inside another one; both must have columns."""
    starts = (inner.line, inner.column or 0) >= (outer.line, outer.column or 0)
    return starts and (inner.end_line or inner.line, inner.end_column or 0) <= (
        outer.end_line or outer.line,
        outer.end_column or 0,
    )
