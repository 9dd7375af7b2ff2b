"""Whether a change touches no statement but those on its own lines."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradwhy.fix.situation import blocks_of
from gradwhy.flow import Edit
from gradwhy.source.edits import line_range, lines_of

_BODIES = frozenset({"body", "orelse", "finalbody", "handlers", "cases", "decorator_list"})


def is_local(before: bytes, after: bytes, edits: Iterable[Edit]) -> bool:
    """Whether both texts are Python and the same but for the statements on the lines that the edits name."""
    old_lines: set[int] = set()
    new_lines: set[int] = set()
    shift = 0
    for edit in sorted(edits, key=line_range):
        start, end = line_range(edit)
        added = len(lines_of(edit.text))
        old_lines |= set(range(start, end))
        new_lines |= set(range(start + shift, start + shift + added))
        shift += added - (end - start)
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return _outline(old.body, old_lines) == _outline(new.body, new_lines)


def _outline(block: list[ast.stmt], touched: set[int]) -> list[object]:
    """The statements of a block that no edit touches; of a compound one whose header is touched, its blocks."""
    kept: list[object] = []
    for statement in block:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        whole = set(range(first, (statement.end_lineno or first) + 1))
        inner = [_outline(held, touched) for held in blocks_of(statement)]
        if whole <= touched or (not inner and whole & touched):
            continue
        if not inner:
            kept.append(ast.dump(statement))
            continue
        body = next(held for held in blocks_of(statement))
        header = set(range(statement.lineno, max(body[0].lineno, statement.lineno + 1)))
        kept.append(
            (
                type(statement).__name__ if header & touched else _header(statement),
                [ast.dump(d) for d in decorators if not touched & set(range(d.lineno, (d.end_lineno or d.lineno) + 1))],
                inner,
            )
        )
    return kept


def _header(statement: ast.stmt) -> str:
    """A compound statement without its blocks."""
    parts = [type(statement).__name__]
    for name, value in ast.iter_fields(statement):
        if name in _BODIES:
            continue
        values = value if isinstance(value, list) else [value]
        parts += [f"{name}={ast.dump(each) if isinstance(each, ast.AST) else each!r}" for each in values]
    return " ".join(parts)
