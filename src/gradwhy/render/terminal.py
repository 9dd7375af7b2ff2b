"""Findings and reports as text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text as Styled

from gradwhy.flow import AskedQuestion, Finding, Passage, Report, Severity, Span, Step, Text
from gradwhy.render.cells import wrapped
from gradwhy.render.closing import closing_line, failure_line
from gradwhy.render.screens import Screen
from gradwhy.render.snippets import GUTTER, Mark, Quote, bare_row
from gradwhy.source import files
from gradwhy.texts import harmless, render_text, say

Lines = Callable[[str], dict[int, str]]
"""The lines of a file that can be quoted, by number; none where it cannot be read."""

SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold green"}
_SECONDARY = "bold blue"
_HELP = "bold cyan"
_WORD = "bold"
_LONG_PATH = 8


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a finding's text needs from its report: the question it answers, the files to quote, the rank that saw it."""

    question: AskedQuestion | None = None
    lines: Lines | None = None
    rank: int | None = None

    @staticmethod
    def of(report: Report, finding: Finding) -> Surroundings:
        question = next((q for q in report.questions if q.id == finding.question), None)
        return Surroundings(question, lines_of(report), report.process.rank if report.process else None)


def lines_of(report: Report) -> Lines:
    """The lines to quote: as the report holds them, else as they stand on disk."""

    def lines(file: str) -> dict[int, str]:
        quoted = report.files.get(file)
        if quoted is not None:
            return {int(number): line for number, line in quoted.lines.items() if number.isdecimal()}
        return lines_on_disk(file)

    return lines


def lines_on_disk(file: str) -> dict[int, str]:
    source = files.read(file)
    return dict(enumerate(source.lines, 1)) if source else {}


def finding_rows(finding: Finding, screen: Screen, around: Surroundings) -> list[Styled]:
    """A finding as it is printed, row by row."""
    return _Drawing(finding, screen, around).rows()


def report_rows(report: Report, screen: Screen) -> list[Styled]:
    """All findings of a report, an empty row after each, and its closing line."""
    rows: list[Styled] = []
    for finding in report.findings:
        rows += [*finding_rows(finding, screen, Surroundings.of(report, finding)), Styled()]
    for problem in report.warnings:
        rows += _lines(failure_line(problem, screen.language), screen)
    if report.exit_status is None:
        rows += _lines(say("closing/unfinished", screen.language), screen)
    return rows + _lines(closing_line(report, screen.language), screen)


def _lines(text: str, screen: Screen) -> list[Styled]:
    return [Styled(piece) for piece in wrapped(text, screen.width)]


class _Drawing:
    def __init__(self, finding: Finding, screen: Screen, around: Surroundings) -> None:
        self._finding = finding
        self._screen = screen
        self._around = around
        self._framework = around.question.framework if around.question else None
        self._style = SEVERITY_STYLES[finding.severity]
        self._marks = self._all_marks()
        self._files = list(dict.fromkeys(m.span.file for m in self._marks))
        lines = around.lines or lines_on_disk
        self._lines = {file: lines(file) for file in self._files}
        last_lines = [m.span.end_line or m.span.line for m in self._marks if m.span.line in self._lines[m.span.file]]
        self._digits = len(str(max(last_lines, default=1)))

    def rows(self) -> list[Styled]:
        rows = self._headline()
        for number, file in enumerate(self._files):
            rows += self._file(file, is_first=number == 0)
        rows += self._path()
        for note in self._notes():
            rows += self._remark("frame/remark", note)
        rows += self._help()
        rows += self._example()
        return rows + self._remark("frame/learn-more", f"gradwhy explain {self._finding.cause}")

    def _say(self, key: str, **values: str | int) -> str:
        return say(key, self._screen.language, **values)

    def _words(self, text: Text) -> str:
        return render_text(text, self._screen.language, self._framework)

    def _headline(self) -> list[Styled]:
        head = self._say(f"frame/{self._finding.severity.value}", cause=self._finding.cause)
        body = self._words(self._finding.headline)
        return _led([(head, self._style)], body, self._screen.width, style=_WORD, indent=4)

    def _all_marks(self) -> list[Mark]:
        """The labels, the one at the finding's place first and as the primary one; a place without a label is marked, too."""
        place = self._finding.place
        said = [(label.span, self._words(label.text)) for label in self._finding.labels]
        if place is not None and all(span != place for span, _ in said):
            said.insert(0, (place, ""))
        is_first_file = place.file if place else None
        said.sort(key=lambda s: s[0].file != is_first_file)
        return [Mark(s, t, self._style if s == place else _SECONDARY, s == place) for s, t in said]

    def _file(self, file: str, is_first: bool) -> list[Styled]:
        marks = [m for m in self._marks if m.span.file == file]
        lead = next((m for m in marks if m.is_primary), marks[0])
        rows = [] if is_first else [bare_row(self._digits)]
        quotable = [m for m in marks if m.span.line in self._lines[file]]
        if not quotable:
            return rows + [row for m in marks for row in self._arrow(m, is_first and m is lead, m.text)]
        rows += self._arrow(lead, is_first, "")
        rows.append(bare_row(self._digits))
        return rows + Quote(self._lines[file], quotable, digits=self._digits, width=self._screen.width).rows()

    def _arrow(self, mark: Mark, is_first: bool, text: str) -> list[Styled]:
        arrow = " " * (self._digits + 1) + ("--> " if is_first else "::: ")
        rank = self._around.rank
        where = _where(mark.span) + (self._say("frame/rank", rank=rank) if rank is not None and is_first else "")
        if not text:
            return [Styled().append(arrow, style=GUTTER).append(where)]
        lead = self._say("frame/place-and-text", place=where)
        return _led([(arrow, GUTTER)], lead + text, self._screen.width, indent=len(arrow))

    def _path(self) -> list[Styled]:
        steps = self._finding.path
        if len(steps) < 2:
            return []
        pieces = self._pieces(steps)
        return self._remark_of_pieces(self._say("frame/path"), pieces)

    def _pieces(self, steps: tuple[Step, ...]) -> list[str]:
        """The path in pieces that stay on one line each: the source, then an arrow and a step."""
        kept = _kept_steps(steps)
        pieces: list[str] = []
        arrow = ""
        left_out = 0
        for index, step in enumerate(steps):
            if index not in kept:
                left_out += 1
                continue
            if left_out:
                pieces.append(f"-> {self._say('frame/steps-left-out', steps=left_out)}")
                arrow, left_out = "-> ", 0
            pieces.append(arrow + self._step(steps, index))
            arrow = "-> " if step.passage is Passage.FLOWS else "-x- "
        target = harmless(self._finding.target)
        return [*pieces, f"= {target}" if arrow == "-> " else f"-x- {target}"] if target else pieces

    def _step(self, steps: tuple[Step, ...], index: int) -> str:
        step = steps[index]
        name = harmless(step.name or step.op if index == 0 else step.op)
        is_at_cut = step.passage is not Passage.FLOWS or (index > 0 and steps[index - 1].passage is not Passage.FLOWS)
        if index == 0 or not is_at_cut or step.span is None:
            return name
        if step.span.file == (self._finding.place or step.span).file:
            return self._say("frame/at-line", step=name, line=step.span.line)
        return self._say("frame/at-line-of", step=name, line=step.span.line, file=step.span.file)

    def _remark_of_pieces(self, head: str, pieces: Iterable[str]) -> list[Styled]:
        lead = f" {'':>{self._digits}} = "
        indent = len(lead) + cell_len(head)
        lines = [""]
        for piece in pieces:
            joined = f"{lines[-1]} {piece}" if lines[-1] else piece
            if lines[-1] and indent + cell_len(joined) > self._screen.width:
                lines.append(piece)
            else:
                lines[-1] = joined
        first = Styled().append(lead, style=GUTTER).append(head, style=_WORD).append(lines[0])
        return [first, *(Styled(" " * indent + line) for line in lines[1:])]

    def _notes(self) -> list[str]:
        notes = [self._words(note) for note in self._finding.notes]
        question = self._around.question
        if self._finding.times < 2 or question is None:
            return notes
        names = {s.name for s in self._finding.sources}
        first = min((s.first_wrong for s in question.sources if s.name in names and s.first_wrong), default=1)
        key = "notes/repetition" if first == 1 else "notes/repetition-later"
        return [*notes, self._say(key, times=self._finding.times, asked=question.times, first=first)]

    def _remark(self, key: str, text: str) -> list[Styled]:
        lead, head = f" {'':>{self._digits}} = ", self._say(key)
        return _led([(lead, GUTTER), (head, _WORD)], text, self._screen.width, indent=len(lead) + cell_len(head))

    def _help(self) -> list[Styled]:
        if self._finding.help is None:
            return []
        head = self._say("frame/help")
        return _led([(head, _HELP)], self._words(self._finding.help), self._screen.width, indent=cell_len(head))

    def _example(self) -> list[Styled]:
        if not self._finding.example:
            return []
        head = self._say("frame/example")
        said = self._say("frame/advice", target=self._finding.target)
        rows = _led([(head, _HELP)], said, self._screen.width, indent=cell_len(head))
        return rows + [Styled("    " + harmless(line)) for line in self._finding.example.splitlines()]


def _led(lead: list[tuple[str, str]], text: str, width: int, *, indent: int, style: str = "") -> list[Styled]:
    """A text after its lead, wrapped, the further lines indented; code in backticks stands out."""
    taken = sum(cell_len(part) for part, _ in lead)
    first, *more = wrapped(text, width - indent, width - taken)
    lines = [(Styled.assemble(*lead), first), *((Styled(" " * indent), line) for line in more)]
    is_code = False
    for row, line in lines:
        for part in re.split("(`)", line):
            is_quote = part == "`"
            row.append(part, style=style or (_WORD if is_code or is_quote else ""))
            is_code ^= is_quote
    return [row for row, _ in lines]


def _where(span: Span) -> str:
    column = f":{span.column}" if span.column is not None else ""
    return f"{harmless(span.file)}:{span.line}{column}"


def _kept_steps(steps: tuple[Step, ...]) -> frozenset[int]:
    """The steps of a path that are shown: all of a short one, else its ends and what is beside its cuts."""
    count = len(steps)
    if count <= _LONG_PATH:
        return frozenset(range(count))
    kept = {0, 1, count - 2, count - 1}
    for index, step in enumerate(steps):
        if step.passage is not Passage.FLOWS:
            kept |= {index, min(index + 1, count - 1)}
    # A single step takes no more room than the words that it was left out.
    return frozenset(kept | {i for i in range(count) if i - 1 in kept and i + 1 in kept})
