"""Text in terminal cells: how wide it is, how it wraps, and a source line with the cell of each of its characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len

from gradwhy.texts import harmless

ELLIPSIS = "…"
_TAB = 4
# `code` with the punctuation around it, one wide character (with what must not begin the next line), or a run up to a space.
_PIECES = re.compile(
    r"\s+"
    r"|[(“「《（]*`[^`]*`[^\s`\u2e80-\uffef]*[，。；：、！？）」》”]*"
    r"|[“「《（]*[\u2e80-\uffef][，。；：、！？）」》”]*"
    r"|[^\s`\u2e80-\uffef]+[，。；：、！？）」》”]*"
    r"|`"
)


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A source line as the terminal shows it. `cells[i]` is where its character `i` begins, the last one where it ends."""

    text: str
    cells: tuple[int, ...]

    def cell(self, column: int) -> int:
        """The cell at which a column, from 1, begins; the line's end where it has no such column."""
        return self.cells[min(max(column - 1, 0), len(self.cells) - 1)]


@lru_cache(256)
def shown_line(line: str) -> ShownLine:
    """The line with its tabs expanded and all that could steer the terminal escaped."""
    if line.isascii() and line.isprintable():
        return ShownLine(line, tuple(range(len(line) + 1)))
    parts: list[str] = []
    cells = [0]
    for character in line:
        part = " " * (_TAB - cells[-1] % _TAB) if character == "\t" else harmless(character)
        width = cell_len(part)
        if character == "\ufe0f" and parts:
            # The variation selector makes the emoji before it wide.
            width = cell_len(parts[-1] + part) - cell_len(parts[-1])
        parts.append(part)
        cells.append(cells[-1] + width)
    return ShownLine("".join(parts), tuple(cells))


Stretch = tuple[int, int]
"""Cells of a line, from the first to one past the last."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is shown of a line: `text`, made of the `pieces` of the line with an ellipsis for each gap."""

    text: str
    pieces: tuple[Stretch, ...]

    def at(self, cell: int) -> int:
        """Where in the text a cell of the line is; that of the ellipsis for a cell that is not shown."""
        shown, before = 0, 0
        for first, last in self.pieces:
            if cell < first:
                return shown
            shown += first > before
            if cell <= last:
                return shown + cell - first
            shown += last - first
            before = last
        return shown


def window(line: ShownLine, width: int, stretches: Sequence[Stretch]) -> Window:
    """The parts of a line around the stretches that fit into `width` cells; where not all do, around the first ones."""
    whole = line.cells[-1]
    if whole <= width:
        return Window(line.text, ((0, whole),))
    wanted = list(stretches) or [(0, 0)]
    while len(wanted) > 1 and _taken(_merged(wanted), whole) > width:
        wanted.pop()
    if _taken(wanted, whole) > width:
        first = wanted[0][0]
        wanted = [(first, first + width - (first > 0) - 1)]
    pieces = _grown(_merged(wanted), width, whole)
    text, before = "", 0
    for first, last in pieces:
        text += (ELLIPSIS if first > before else "") + _slice(line.text, first, last)
        before = last
    return Window(text + (ELLIPSIS if before < whole else ""), tuple(pieces))


def _merged(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretches in order; those with a gap no wider than an ellipsis are one."""
    merged: list[Stretch] = []
    for first, last in sorted(stretches):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _taken(pieces: Sequence[Stretch], whole: int) -> int:
    """The cells that the pieces and their ellipses take."""
    gaps = (pieces[0][0] > 0) + (len(pieces) - 1) + (pieces[-1][1] < whole)
    return sum(last - first for first, last in pieces) + gaps


def _grown(pieces: list[Stretch], width: int, whole: int) -> list[Stretch]:
    """The pieces with as much around them as the width allows, a cell on each side in turn."""
    has_grown = True
    while has_grown:
        has_grown = False
        for index in range(2 * len(pieces)):
            wider = _widened(pieces, index // 2, left=index % 2 == 0, whole=whole)
            if wider != pieces and _taken(wider, whole) <= width:
                has_grown = True
                is_joined = len(wider) < len(pieces)
                pieces = wider
                if is_joined:
                    break
    return pieces


def _widened(pieces: list[Stretch], index: int, *, left: bool, whole: int) -> list[Stretch]:
    first, last = pieces[index]
    wider = (max(0, first - 1), last) if left else (first, min(whole, last + 1))
    return _merged([*pieces[:index], wider, *pieces[index + 1 :]])


def wrapped(text: str, width: int, first_width: int | None = None) -> list[str]:
    """The text in lines of at most `width` cells, broken at spaces and between Chinese characters.

    Code in backticks stays in one piece if it fits into a line. The first line may have another width.
    """
    room = width if first_width is None else first_width
    lines = [""]
    for piece in _PIECES.findall(text):
        for part in _parts(piece, width):
            if cell_len(lines[-1] + part.rstrip()) > room and (lines[-1] or room < width):
                lines.append("")
                room = width
            lines[-1] += part if lines[-1] or not part.isspace() or len(lines) == 1 else ""
    return [line.rstrip() for line in lines]


def _parts(piece: str, width: int) -> list[str]:
    """A piece that fits into no line, at its spaces, else anywhere."""
    if cell_len(piece) <= width or piece.isspace():
        return [piece]
    if " " in piece:
        return re.findall(r"\s+|\S+", piece) if max(map(cell_len, piece.split())) <= width else _chopped(piece, width)
    return _chopped(piece, width)


def _chopped(piece: str, width: int) -> list[str]:
    parts, start = [], 0
    for end in range(1, len(piece) + 1):
        if end == len(piece) or cell_len(piece[start : end + 1]) > width:
            parts.append(piece[start:end])
            start = end
    return parts


def _slice(text: str, start: int, end: int) -> str:
    """The cells of a text from `start` to `end`; half of a wide character is a space."""
    if text.isascii():
        return text[start:end]
    cut, cell = "", 0
    for character in text:
        width = cell_len(character)
        if cell >= end:
            break
        if cell >= start and cell + width <= end:
            cut += character
        elif cell + width > start and width:
            cut += " " * (min(cell + width, end) - max(cell, start))
        cell += width
    return cut
