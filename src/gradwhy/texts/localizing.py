"""A report in another language."""

from __future__ import annotations

from dataclasses import replace

from gradwhy.flow import Finding, Report, Text
from gradwhy.texts.filling import render_text


def localize(report: Report, language: str) -> Report:
    """The report with the words of every text filled in, in that language."""
    frameworks = {question.id: question.framework for question in report.questions}
    findings = tuple(_finding(f, language, frameworks.get(f.question)) for f in report.findings)
    return replace(report, language=language, findings=findings)


def _finding(finding: Finding, language: str, framework: str | None) -> Finding:
    def worded(text: Text) -> Text:
        return replace(text, text=render_text(text, language, framework))

    return replace(
        finding,
        headline=worded(finding.headline),
        labels=tuple(replace(label, text=worded(label.text)) for label in finding.labels),
        notes=tuple(worded(note) for note in finding.notes),
        help=worded(finding.help) if finding.help else None,
        fixes=tuple(replace(fix, title=worded(fix.title)) for fix in finding.fixes),
    )
