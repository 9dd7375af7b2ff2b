"""Where in the source something stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source text.

    Lines count from 1, columns in characters from 1, `end_column` is one past the last character.
    The three optional parts are None together where only the line is known.
    """

    file: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """One user frame of a call chain: the span that was running, and the function it stands in."""

    span: Span
    function: str
