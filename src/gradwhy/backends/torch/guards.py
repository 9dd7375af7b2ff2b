"""Reads of `.grad` that ask nothing: `if p.grad is not None`."""

from __future__ import annotations

import ast
from functools import lru_cache
from types import CodeType

from gradwhy.source.locate import path_to
from gradwhy.source.positions import span_of


@lru_cache(maxsize=4096)
def is_guarded(code: CodeType, lasti: int) -> bool:
    """Whether what is read at `lasti` is only compared with None, to decide what is done next."""
    around = _around(code, lasti)
    return bool(around) and _decides(around[0], around[1:])


@lru_cache(maxsize=4096)
def is_compared(code: CodeType, lasti: int) -> bool:
    """Whether what is read at `lasti` is compared with None, whatever for."""
    return bool(_around(code, lasti))


def _around(code: CodeType, lasti: int) -> list[ast.AST]:
    """The comparison with None of what is read at `lasti`, and the syntax around it; empty where it is not compared."""
    span = span_of(code, lasti)
    path = path_to(span) if span is not None and span.column is not None else ()
    if len(path) < 2:
        return []
    read, compared, *around = reversed(path)
    is_compared = isinstance(compared, ast.Compare) and compared.left is read and _is_with_none(compared)
    return [compared, *around] if is_compared else []


def _is_with_none(compared: ast.Compare) -> bool:
    other = compared.comparators
    return (
        len(other) == 1
        and isinstance(compared.ops[0], (ast.Is, ast.IsNot))
        and isinstance(other[0], ast.Constant)
        and other[0].value is None
    )


def _decides(part: ast.AST, around: list[ast.AST]) -> bool:
    """Whether the value of `part` decides what runs next, and goes nowhere else."""
    for outer in around:
        if isinstance(outer, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return outer.test is part
        if isinstance(outer, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return any(condition is part for generator in outer.generators for condition in generator.ifs)
        if not isinstance(outer, (ast.BoolOp, ast.UnaryOp)):
            return False
        part = outer
    return False
