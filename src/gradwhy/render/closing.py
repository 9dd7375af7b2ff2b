"""The single lines that a run prints beside its findings. They need no Rich, which most runs so never import."""

from __future__ import annotations

from gradwhy.flow import Report
from gradwhy.texts import say


def closing_line(report: Report, language: str) -> str:
    """What was asked and found."""
    if report.questions:
        return say(
            "closing/findings",
            language,
            questions=len(report.questions),
            sources=sum(len(q.sources) for q in report.questions),
            findings=len(report.findings),
        )
    return say("closing/no-question" if report.frameworks else "closing/no-framework", language)


def failure_line(problem: str, language: str) -> str:
    """What of ours has failed."""
    return say("closing/failed", language, problem=problem)
