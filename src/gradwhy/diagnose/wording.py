"""The user's own words for what stands in a span."""

from __future__ import annotations

import ast

from gradwhy.flow import Op, Span, Text
from gradwhy.source.files import read
from gradwhy.source.locate import expression_at, span_of_syntax, statement_at

_LONGEST = 48


def shortened(text: str, longest: int = _LONGEST) -> str:
    """`text` on one line, cut at the end if need be."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def op_words(op: Op, span: Span | None) -> str:
    """The op as the user wrote it: the function that is called at `span`, else the operator's text, else its name."""
    expression = expression_at(span) if span and span.column else None
    if isinstance(expression, ast.Call):
        return shortened(ast.unparse(expression.func))
    if isinstance(expression, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.Subscript)):
        return shortened(ast.unparse(expression))
    return op.name


def step_words(op: Op, span: Span | None) -> str:
    """The short name of an op in a path: the user's call where library code stands in between, else the op's name."""
    if not op.is_user_code and span and span.column:
        expression = expression_at(span)
        if isinstance(expression, ast.Call):
            return shortened(ast.unparse(expression.func), 28)
    return op.name


def text(key: str, **values: str | int | float | None) -> Text:
    """A text by its key, with the values that are known."""
    return Text(key, {name: value for name, value in values.items() if value is not None})


def name_span(span: Span, name: str) -> Span | None:
    """Where `name` is read in the statement at `span`, the first time."""
    file, statement = read(span.file), statement_at(span)
    if file is None or statement is None:
        return None
    for part in ast.walk(statement):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            return span_of_syntax(file, part, span.file)
    return None
