"""Text in terminal cells: how wide it is, how it wraps, and a source line with the cell of each of its characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from rich.cells import cell_len

from gradwhy.texts import harmless

ELLIPSIS = "…"
_TAB = 4


@cache
def _pieces() -> re.Pattern[str]:
    # Compiled at the first use: its wide ranges take some milliseconds, which a run without a finding need not pay.
    # `code` with the punctuation around it, one wide character (with what must not begin the next line), a run up to a space.
    return re.compile(
        r"\s+"
        r"|[(“「《（]*`[^`]*`[^\s`\u2e80-\uffef]*[，。；：、！？）」》”]*"
        r"|[“「《（]*[\u2e80-\uffef][，。；：、！？）」》”]*"
        r"|[^\s`\u2e80-\uffef]+[，。；：、！？）」》”]*"
        r"|`"
    )


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A source line as the terminal shows it.

    `parts[i]` is what its character `i` is shown as, `cells[i]` where that begins; the last of `cells` is where the line ends.
    """

    parts: Sequence[str]
    cells: Sequence[int]

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def cell(self, column: int) -> int:
        """The cell at which a column, from 1, begins; the line's end where it has no such column."""
        return self.cells[min(max(column - 1, 0), len(self.cells) - 1)]

    def between(self, first: int, last: int) -> str:
        """What stands in the cells from `first` to before `last`; a part of a wide character is a space."""
        shown = ""
        for part, begin, end in zip(self.parts, self.cells, self.cells[1:], strict=False):
            if begin == end:
                # A mark of no width goes with the character before it.
                shown += part if first < begin <= last else ""
            elif begin >= first and end <= last:
                shown += part
            elif begin < last and end > first:
                seen = slice(max(first - begin, 0), last - begin)
                shown += part[seen] if part.isascii() else " " * (min(end, last) - max(begin, first))
        return shown


@lru_cache(256)
def shown_line(line: str) -> ShownLine:
    """The line with its tabs expanded and all that could steer the terminal escaped."""
    if line.isascii() and line.isprintable():
        return ShownLine(line, range(len(line) + 1))
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
    return ShownLine(tuple(parts), tuple(cells))


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
    wanted = _from_the_beginning(_merged(wanted), width, whole)
    pieces = _grown(wanted, width, whole)
    text, before = "", 0
    for first, last in pieces:
        text += (ELLIPSIS if first > before else "") + line.between(first, last)
        before = last
    return Window(text + (ELLIPSIS if before < whole else ""), tuple(pieces))


def _from_the_beginning(pieces: list[Stretch], width: int, whole: int) -> list[Stretch]:
    """The pieces, from the line's own beginning where that is near, and a single one cut at its end where it is too long."""
    first, last = pieces[0]
    start = 0 if first <= width // 3 else first
    if len(pieces) == 1:
        fits = _taken([(start, last)], whole) <= width
        return [(start, last if fits else start + width - (start > 0) - 1)]
    longer = _merged([(start, last), *pieces])
    return longer if _taken(longer, whole) <= width else pieces


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
    for piece in _pieces().findall(text):
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
