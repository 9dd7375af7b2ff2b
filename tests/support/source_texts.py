"""Source texts for the tests of `gradwhy.source`: a text becomes a file, a piece of it a span."""

from __future__ import annotations

from gradwhy.flow import Span
from gradwhy.source import files


def given(text: str, file: str = "given.py") -> str:
    """Let `file` hold `text`."""
    files.supply(file, text.encode())
    return file


def span(text: str, piece: str, *, file: str = "given.py", nth: int = 0) -> Span:
    """Where the `nth` occurrence of `piece` stands in `text`."""
    start = -1
    for _ in range(nth + 1):
        start = text.index(piece, start + 1)
    (line, column), (end_line, end_column) = _position(text, start), _position(text, start + len(piece))
    return Span(file, line, column, end_line, end_column)


def piece(text: str, place: Span | None) -> str | None:
    """The text at a span: what `span` undoes."""
    if place is None or place.column is None or place.end_line is None or place.end_column is None:
        return None
    lines = text.split("\n")[place.line - 1 : place.end_line]
    lines[-1] = lines[-1][: place.end_column - 1]
    lines[0] = lines[0][place.column - 1 :]
    return "\n".join(lines)


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
