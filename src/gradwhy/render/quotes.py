"""The source lines that a report takes along, so that it can be shown where the files are not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradwhy.flow import Finding, QuotedFile, Report, Span
from gradwhy.source import files

_AROUND = 1
_LONGEST = 12


def with_quotes(report: Report) -> Report:
    """The report with the lines that its findings show, as they stand on disk; what it quotes already stays as it is."""
    wanted: dict[str, set[int]] = {}
    for finding in report.findings:
        for span in _spans(finding):
            last = min(span.end_line or span.line, span.line + _LONGEST)
            wanted.setdefault(span.file, set()).update(
                range(span.line - _AROUND, last + _AROUND + 1), (span.end_line or span.line,)
            )
    quoted = {file: _quoted(file, lines, report.files.get(file)) for file, lines in wanted.items()}
    return replace(report, files=report.files | {file: found for file, found in quoted.items() if found})


def _spans(finding: Finding) -> Iterable[Span]:
    if finding.place:
        yield finding.place
    for label in finding.labels:
        yield label.span


def _quoted(file: str, lines: set[int], before: QuotedFile | None) -> QuotedFile | None:
    source = files.read(file)
    if source is None:
        return before
    if before is not None and before.sha256 != source.sha256:
        return before
    lines = {n for n in lines if 1 <= n <= len(source.lines)} | {int(n) for n in (before.lines if before else {})}
    return QuotedFile(source.sha256, {str(n): source.line(n) for n in sorted(lines)})
