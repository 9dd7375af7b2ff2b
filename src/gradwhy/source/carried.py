"""What an expression carries of a question's answer: gradients that may be missing, or such as were checked first."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum


class Carried(Enum):
    """One gradient, or any structure of gradients."""

    RAW = "raw"
    """It may be None."""
    CHECKED = "checked"
    """The program has made sure that it is not None, or has put something in its stead."""


@dataclass(frozen=True, slots=True)
class Row:
    """A tuple, such as a gradient with its variable; a field without a gradient is None."""

    fields: tuple[Shape | None, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Something that gives rows when it is iterated: what `zip` makes."""

    fields: tuple[Shape | None, ...]


Shape = Carried | Row | Rows
Carriers = dict[str, Shape]
"""The source text of names, attributes and subscripts, and what each carries."""

RAW, CHECKED = Carried.RAW, Carried.CHECKED


def holds(shape: Shape | None, carried: Carried) -> bool:
    """Whether the shape is, or has a field that is, `carried`."""
    if isinstance(shape, (Row, Rows)):
        return any(holds(field, carried) for field in shape.fields)
    return shape is carried


def element_of(shape: Shape | None) -> Shape | None:
    """What iteration gives."""
    return Row(shape.fields) if isinstance(shape, Rows) else shape


def field_of(shape: Shape | None, index: ast.expr) -> Shape | None:
    """What a subscript gives."""
    if isinstance(shape, Row):
        position = index.value if isinstance(index, ast.Constant) else None
        known = isinstance(position, int) and -len(shape.fields) <= position < len(shape.fields)
        return shape.fields[position] if known and isinstance(position, int) else _whole(shape)
    return shape if isinstance(index, ast.Slice) else element_of(shape)


def joined(shapes: list[Shape | None]) -> Shape | None:
    """What a value carries that is any one of several: a missing gradient outweighs a checked one."""
    present = [shape for shape in shapes if shape is not None]
    rows = [shape for shape in present if isinstance(shape, (Row, Rows))]
    if rows and len(rows) == len(present) and len({(type(row), len(row.fields)) for row in rows}) == 1:
        columns = zip(*(row.fields for row in rows), strict=True)
        return type(rows[0])(tuple(joined(list(column)) for column in columns))
    if any(holds(shape, RAW) for shape in present):
        return RAW
    return CHECKED if present else None


def checked(shape: Shape | None) -> Shape | None:
    """The shape after the program has made sure of it."""
    if isinstance(shape, (Row, Rows)):
        return type(shape)(tuple(checked(field) for field in shape.fields))
    return None if shape is None else CHECKED


def bind(target: ast.expr, shape: Shape | None, carriers: Carriers) -> None:
    """Let the names of an assignment's target carry their parts of `shape`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for position, part in enumerate(target.elts):
            bind(part, _part(shape, position, target.elts), carriers)
    elif isinstance(target, ast.Starred):
        bind(target.value, shape, carriers)
    elif shape is None:
        carriers.pop(ast.unparse(target), None)
    else:
        carriers[ast.unparse(target)] = shape


def check(subject: ast.expr, carriers: Carriers) -> None:
    """Note that the program has made sure of `subject`."""
    text = ast.unparse(subject)
    if isinstance(subject, ast.Subscript) and isinstance(subject.slice, ast.Constant):
        owner = carriers.get(ast.unparse(subject.value))
        position = subject.slice.value
        if isinstance(owner, Row) and isinstance(position, int) and -len(owner.fields) <= position < len(owner.fields):
            fields = list(owner.fields)
            fields[position] = checked(fields[position])
            carriers[ast.unparse(subject.value)] = Row(tuple(fields))
    carriers[text] = checked(carriers.get(text)) or CHECKED


def _part(shape: Shape | None, position: int, elements: list[ast.expr]) -> Shape | None:
    if not isinstance(shape, Row):
        return element_of(shape)
    if len(shape.fields) != len(elements) or any(isinstance(element, ast.Starred) for element in elements):
        return _whole(shape)
    return shape.fields[position]


def _whole(shape: Row) -> Shape | None:
    return joined([field for field in shape.fields if field is not None])
