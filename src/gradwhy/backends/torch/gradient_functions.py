"""The text of the gradient functions that the program wrote: where one gives nothing, where it forbids a second derivative."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

from gradwhy.backends.torch.trail import Call
from gradwhy.flow import Span
from gradwhy.source.files import SourceFile, read, shown_path
from gradwhy.source.locate import span_of_syntax
from gradwhy.source.positions import is_user_code
from gradwhy.source.statements import in_same_scope

_ONCE = "once_differentiable"


def code_of(function_class: Any) -> CodeType | None:
    """The code of the `backward` of a subclass of `torch.autograd.Function`, whatever decorates it; None if it is not the user's."""
    backward = inspect.unwrap(getattr(function_class, "backward", None) or code_of)
    code = getattr(backward, "__code__", None)
    return code if isinstance(code, CodeType) and is_user_code(code) else None


def none_span(code: CodeType, slot: int) -> Span | None:
    """The `return` that gives None for the input at `slot`; the last one where it cannot be told by the text."""
    file, function = _definition(code)
    if file is None or function is None:
        return None
    returns = [part for part in _statements(function) if isinstance(part, ast.Return)]
    giving = [part for part in returns if _gives_none(part.value, slot)]
    chosen = (giving or returns)[-1:]
    return span_of_syntax(file, chosen[0], shown_path(code.co_filename)) if chosen else None


def once_span(call: Call) -> Span | None:
    """The decorator by which an op's gradient function may be differentiated no second time."""
    file, function = _definition(call.backward) if call.backward is not None else (None, None)
    if file is None or function is None or call.backward is None:
        return None
    for decorator in function.decorator_list:
        name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
        if name == _ONCE:
            return span_of_syntax(file, decorator, shown_path(call.backward.co_filename))
    return None


def _definition(code: CodeType) -> tuple[SourceFile | None, ast.FunctionDef | None]:
    file = read(code.co_filename)
    tree = file.tree if file is not None else None
    for part in ast.walk(tree) if tree is not None else ():
        if isinstance(part, ast.FunctionDef) and part.name == code.co_name:
            first = min([part.lineno, *(decorator.lineno for decorator in part.decorator_list)])
            if first == code.co_firstlineno:
                return file, part
    return file, None


def _statements(function: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from in_same_scope(statement)


def _gives_none(value: ast.expr | None, slot: int) -> bool:
    if isinstance(value, ast.Tuple):
        value = value.elts[slot] if slot < len(value.elts) else None
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
