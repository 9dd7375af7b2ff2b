"""Quoted source with labels under the exact spans, the way compilers show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text as Styled

from gradwhy.flow import Span
from gradwhy.render.cells import ShownLine, Window, shown_line, window, wrapped

GUTTER = "bold blue"
_TIGHT = 36
"""A label with less room than this beside its span is written below it."""
_WHOLE = 6
"""A span of more lines than this is shown by its ends."""

Fragment = tuple[int, str, str]
"""A cell, the text that begins there, and its style."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A span to point at, and what to say there."""

    span: Span
    text: str
    style: str
    is_primary: bool

    @property
    def sign(self) -> str:
        return "^" if self.is_primary else "-"


@dataclass(frozen=True, slots=True)
class _Placed:
    """A mark on lines that exist: `first` and `last` are columns from 1, `last` one past the end on `end_line`."""

    mark: Mark
    line: int
    first: int
    end_line: int
    last: int

    @property
    def has_lines_between(self) -> bool:
        return self.end_line > self.line


class Quote:
    """One file's lines with marks, drawn in a gutter of `digits` and a terminal of `width` cells.

    `lines` are the lines that can be shown, by number. A mark on a line that is not among them is left out.
    """

    def __init__(self, lines: dict[int, str], marks: Sequence[Mark], *, digits: int, width: int) -> None:
        self._lines = lines
        self._digits = digits
        placed = [p for m in marks if (p := _placed(m, lines)) is not None]
        self._singles = [p for p in placed if not p.has_lines_between]
        self._slots = _slots([p for p in placed if p.has_lines_between])
        self._margin = 2 * (1 + max(self._slots.values(), default=-1))
        self._room = width - digits - 4
        self._code = self._room - self._margin

    def rows(self) -> list[Styled]:
        """The rows to print, from the first line shown to the last label."""
        rows: list[Styled] = []
        before: int | None = None
        for number in self._shown():
            if before is not None and number > before + 1:
                rows.append(self._left_out(before))
            rows += self._line(number)
            before = number
        return rows

    def _shown(self) -> list[int]:
        wanted = {p.line for p in self._singles}
        for placed in self._slots:
            whole = range(placed.line, placed.end_line + 1)
            wanted |= set(whole if len(whole) <= _WHOLE else [*whole[:2], *whole[-2:]])
        # Where a single line lies between two shown ones, it takes no more room than the mark that it was left out.
        wanted |= {n + 1 for n in wanted if n + 2 in wanted}
        return sorted(wanted & set(self._lines))

    def _shown_line(self, number: int) -> ShownLine:
        return shown_line(self._lines[number])

    def _line(self, number: int) -> list[Styled]:
        here = [p for p in self._singles if p.line == number]
        starting = [p for p in self._slots if p.line == number]
        ending = [p for p in self._slots if p.end_line == number]
        seen = self._window(number, here, starting + ending)
        slashes = {p for p in starting if not self._lines[number][: p.first - 1].strip()}
        bars = self._bars(number, including=frozenset(slashes))
        code_bars = [(cell, "/" if p in slashes else "|", p.mark.style) for p, (cell, _, _) in bars.items()]
        rows = [self._row(str(number), [*code_bars, (self._margin, seen.text, "")])]
        open_bars = list(bars.values())
        rows += [self._row("", open_bars + fragments) for fragments in self._below(seen, here)]
        for placed in starting:
            if placed not in slashes:
                rows.append(self._row("", self._elbow(placed, seen, placed.first, open_bars)))
                open_bars.append(self._bar(placed))
        for placed in ending:
            others = [b for b in open_bars if b != self._bar(placed)]
            rows += self._end(placed, seen, others)
            open_bars = others
        return rows

    def _window(self, number: int, here: list[_Placed], ends: list[_Placed]) -> Window:
        line = self._shown_line(number)
        stretches = [_cells(line, p) for p in sorted(here, key=lambda p: not p.mark.is_primary)]
        stretches += [(c := line.cell(p.first if p.line == number else p.last - 1), c + 1) for p in ends]
        return window(line, self._code, stretches)

    def _below(self, seen: Window, here: list[_Placed]) -> list[list[Fragment]]:
        """The rows under a line: the underlines, and the labels beside or below them, the rightmost first."""
        if not here:
            return []
        line = self._shown_line(here[0].line)
        drawn = sorted(((self._seen(line, p, seen), p.mark) for p in here), key=lambda d: (d[0][0], d[1].is_primary))
        signs = [
            (first, mark.sign * max(1, last - first), mark.style)
            for (first, last), mark in sorted(drawn, key=lambda d: d[1].is_primary)
        ]
        hanging = [(first, mark) for (first, _), mark in drawn if mark.text]
        rows: list[list[Fragment]] = [_over(signs)]
        (first, last), rightmost = drawn[-1]
        beside = self._beside(first, last, rightmost.text)
        if rightmost.text and beside and last == max(d[0][1] for d in drawn):
            hanging.pop()
            rows[0].append((last + 1, beside[0], rightmost.style))
            rows += [[*_connectors(hanging), (last + 1, more, rightmost.style)] for more in beside[1:]]
        if hanging and len(rows) == 1 and sum(bool(m.text) for _, m in drawn) > 1:
            rows.append(_connectors(hanging))
        while hanging:
            first, mark = hanging.pop()
            cell, pieces = self._hung(first, mark.text)
            rows += [[*_connectors([h for h in hanging if h[0] < cell]), (cell, p, mark.style)] for p in pieces]
        return [[(self._margin + cell, text, style) for cell, text, style in row] for row in rows]

    def _seen(self, line: ShownLine, placed: _Placed, seen: Window) -> tuple[int, int]:
        first, last = _cells(line, placed)
        shown_first = min(seen.at(first), self._code - 1)
        return shown_first, max(seen.at(last), shown_first + 1)

    def _beside(self, first: int, last: int, text: str) -> list[str]:
        """A label's lines to the right of its span; empty where it takes fewer of them below it."""
        room = self._code - last - 1
        if cell_len(text) <= room:
            return [text]
        lines = wrapped(text, room) if room >= _TIGHT else []
        return lines if len(lines) <= len(self._hung(first, text)[1]) else []

    def _hung(self, cell: int, text: str) -> tuple[int, list[str]]:
        """Where a label begins that is written below its span, and its lines."""
        needed = min(cell_len(text), self._code, max(_TIGHT, self._code - cell))
        cell = max(0, min(cell, self._code - needed))
        return cell, wrapped(text, self._code - cell)

    def _bar(self, placed: _Placed) -> Fragment:
        return 2 * self._slots[placed], "|", placed.mark.style

    def _bars(self, number: int, including: frozenset[_Placed]) -> dict[_Placed, Fragment]:
        """The bars beside a line, of the marks that began above it, or on it at its first character."""
        return {p: self._bar(p) for p in self._slots if p.line < number <= p.end_line or p in including}

    def _elbow(self, placed: _Placed, seen: Window, column: int, bars: list[Fragment]) -> list[Fragment]:
        """The line from a bar to the character where the mark begins or ends."""
        number = placed.line if column == placed.first else placed.end_line
        corner = 2 * self._slots[placed] + 1
        cell = self._margin + min(seen.at(self._shown_line(number).cell(column)), self._code - 1)
        outer = [b for b in bars if b[0] < corner]
        return [*outer, (corner, "_" * (cell - corner) + placed.mark.sign, placed.mark.style)]

    def _end(self, placed: _Placed, seen: Window, bars: list[Fragment]) -> list[Styled]:
        line = self._shown_line(placed.end_line)
        at = min(seen.at(line.cell(placed.last - 1)), self._code - 1)
        corner = 2 * self._slots[placed] + 1
        cell = self._margin + at
        style = placed.mark.style
        outer = [b for b in bars if b[0] < corner]
        first: list[Fragment] = [*outer, self._bar(placed), (corner, "_" * (cell - corner) + placed.mark.sign, style)]
        text = placed.mark.text
        if not text:
            return [self._row("", first)]
        beside = self._beside(at, at + 1, text)
        if beside:
            rows = [[*first, (cell + 2, beside[0], style)]]
            rows += [[*bars, (cell + 2, piece, style)] for piece in beside[1:]]
        else:
            start, pieces = self._hung(at, text)
            rows = [first, *([*bars, (self._margin + start, piece, style)] for piece in pieces)]
        return [self._row("", row) for row in rows]

    def _left_out(self, after: int) -> Styled:
        bars = [self._bar(p) for p in self._slots if p.line <= after < p.end_line]
        return _filled(" ...".ljust(self._digits + 4), bars)

    def _row(self, number: str, fragments: list[Fragment]) -> Styled:
        return _filled(f" {number:>{self._digits}} | ", fragments)


def bare_row(digits: int) -> Styled:
    """An empty row of the gutter."""
    return Styled().append(f" {'':>{digits}} |", style=GUTTER)


def _filled(gutter: str, fragments: list[Fragment]) -> Styled:
    row, cell = Styled().append(gutter, style=GUTTER), 0
    for begins, text, style in sorted(fragments, key=lambda f: f[0]):
        if begins >= cell and text:
            row.append(" " * (begins - cell)).append(text, style=style)
            cell = begins + cell_len(text)
    row.rstrip()
    return row


def _placed(mark: Mark, lines: dict[int, str]) -> _Placed | None:
    span = mark.span
    end_line = span.end_line or span.line
    if span.line not in lines:
        return None
    text = lines[span.line]
    if span.column is None or end_line not in lines or end_line < span.line:
        indent = len(text) - len(text.lstrip())
        return _Placed(mark, span.line, indent + 1, span.line, len(text.rstrip()) + 1)
    end_column = span.end_column or span.column + 1
    if end_line == span.line:
        end_column = max(end_column, span.column + 1)
    elif end_column <= 1:
        # It ends before the first character of its last line: at the end of the line before.
        end_line -= 1
        end_column = len(lines.get(end_line, "")) + 1
    return _Placed(mark, span.line, span.column, end_line, end_column)


def _cells(line: ShownLine, placed: _Placed) -> tuple[int, int]:
    return line.cell(placed.first), line.cell(placed.last)


def _slots(placed: list[_Placed]) -> dict[_Placed, int]:
    """A column of the margin for each mark over several lines; marks that share a line have different ones."""
    slots: dict[_Placed, int] = {}
    for mark in sorted(placed, key=lambda p: (p.line, -p.end_line)):
        taken = {slots[p] for p in slots if p.end_line >= mark.line}
        slots[mark] = next(n for n in range(len(slots) + 1) if n not in taken)
    return slots


def _over(signs: list[Fragment]) -> list[Fragment]:
    """The underlines as fragments that do not overlap; a later one is drawn over an earlier one."""
    cells: dict[int, tuple[str, str]] = {}
    for first, text, style in signs:
        cells |= {first + i: (sign, style) for i, sign in enumerate(text)}
    drawn: list[Fragment] = []
    for cell, (sign, style) in sorted(cells.items()):
        if drawn and drawn[-1][0] + len(drawn[-1][1]) == cell and drawn[-1][1:] == (sign * len(drawn[-1][1]), style):
            drawn[-1] = (drawn[-1][0], drawn[-1][1] + sign, style)
        else:
            drawn.append((cell, sign, style))
    return drawn


def _connectors(hanging: list[tuple[int, Mark]]) -> list[Fragment]:
    return [(cell, "|", mark.style) for cell, mark in dict(hanging).items()]
