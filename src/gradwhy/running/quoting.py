"""The lines that a report quotes, and the comments on them that silence a finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gradwhy.flow import Finding, QuotedFile, Span
from gradwhy.source.files import read
from gradwhy.source.positions import is_user_file

AROUND = 2
"""How many lines before and after a span are quoted with it."""

_SILENCING = re.compile(r"#\s*gradwhy:\s*ignore(?:\[([^\]]*)\])?(?![\w\[])")


def quoted(findings: Iterable[Finding]) -> dict[str, QuotedFile]:
    """The lines around every span of the findings, by file; only of files that are the user's own."""
    wanted: dict[str, set[int]] = {}
    for span in (span for finding in findings for span in spans_of(finding)):
        lines = range(span.line - AROUND, (span.end_line or span.line) + AROUND + 1)
        wanted.setdefault(span.file, set()).update(lines)
    files: dict[str, QuotedFile] = {}
    for name, numbers in wanted.items():
        file = read(name) if is_user_file(name) else None
        if file is not None:
            lines_there = sorted(number for number in numbers if 0 < number <= len(file.lines))
            files[name] = QuotedFile(file.sha256, {str(number): file.line(number) for number in lines_there})
    return files


def spans_of(finding: Finding) -> Iterator[Span]:
    """Every span that a finding shows."""
    spans = [finding.place, *(label.span for label in finding.labels), *(step.span for step in finding.path)]
    spans += [cut.span for cut in (*finding.cuts, *finding.also_cut)]
    spans += [edit.span for fix in finding.fixes for edit in fix.edits]
    yield from (span for span in spans if span is not None)


def is_silenced(finding: Finding) -> bool:
    """Whether a comment `# gradwhy: ignore` or `# gradwhy: ignore[cause]` stands on a line of its place or its cuts."""
    spans = [finding.place, *(cut.span for cut in finding.cuts)]
    return any(
        finding.cause in causes or not causes for span in spans if span is not None for causes in _silenced(span)
    )


def _silenced(span: Span) -> Iterator[frozenset[str]]:
    """The causes that each comment on the span's lines names; none where it means all."""
    file = read(span.file)
    if file is None:
        return
    for number in range(span.line, (span.end_line or span.line) + 1):
        for comment in _SILENCING.finditer(file.line(number)):
            yield frozenset(cause.strip() for cause in (comment[1] or "").split(",") if cause.strip())
