"""Whether the answer to a question goes to an optimizer."""

from __future__ import annotations

import ast

from gradwhy.flow import Span
from gradwhy.source.locate import path_to
from gradwhy.source.statements import bound_by

_APPLYING = frozenset({"apply_gradients", "apply", "step", "update", "minimize"})


def is_applied(span: Span) -> bool:
    """Whether a call in the question's own function hands the answer, by name or directly, to an optimizer's update."""
    path = path_to(span)
    if not path:
        return False
    scopes = [p for p in path if isinstance(p, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef))]
    statements = [p for p in path if isinstance(p, ast.stmt)]
    if any(_applies(p) for p in path):
        return True
    names = set(bound_by(statements[-1])) if statements else set()
    for part in ast.walk(scopes[-1]):
        # A name that is made from the answer carries it on: clipped, zipped, scaled.
        if isinstance(part, ast.Assign) and part.lineno > span.line and _reads(part.value) & names:
            names |= set(bound_by(part))
    return any(_applies(p) and _reads(p) & names for p in ast.walk(scopes[-1]))


def _applies(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _APPLYING


def _reads(part: ast.AST) -> set[str]:
    return {p.id for p in ast.walk(part) if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Load)}
