"""Programs written for a test, with what must be said of them: of every finding the severity, cause, names, file and line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from forkserver import Finished, ForkServer
from gradwhy.flow import Finding, Report, from_json


@dataclass(frozen=True, slots=True)
class Said:
    """One finding. `mark` stands in a comment at the end of the line at which it is placed: `# cut`, by default.

    Severity "loud": an error or a warning, where others test which.
    """

    severity: str
    cause: str
    names: tuple[str, ...]
    mark: str = "cut"


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and everything that must be said of it. `problem`: the beginning of the error that ends it."""

    id: str
    text: str
    said: tuple[Said, ...]
    problem: str = ""


def report_in(folder: Path) -> Report:
    return from_json(Report, json.loads((folder / "report.json").read_text(encoding="utf-8")))


def check_told(report: Report, said: Iterable[Said], texts: Mapping[str, str]) -> None:
    """Fail where a report says anything else than what must be said. `texts` holds the program's files by their names."""
    found = sorted(_told(finding, {s.mark for s in said}, texts) for finding in report.findings)
    wanted = sorted((s.cause, s.names, s.mark) for s in said)
    assert [told[:3] for told in found] == wanted
    severities = {(s.cause, s.names, s.mark): s.severity for s in said}
    for *what, severity in found:
        expected = severities[tuple(what)]
        assert severity == expected or (expected == "loud" and severity in ("error", "warning"))


def _told(finding: Finding, marks: set[str], texts: Mapping[str, str]) -> tuple[str, tuple[str, ...], str, str]:
    """A finding's cause, names, place and severity; the place as the mark that stands there, else as file and line."""
    names = tuple(sorted(source.name for source in finding.sources))
    at = finding.place
    assert at is not None
    line = texts[at.file].split("\n")[at.line - 1] if at.file in texts else ""
    mark = next((m for m in marks if line.rstrip().endswith(f"# {m}")), f"{at.file}:{at.line}")
    return finding.cause, names, mark, str(finding.severity)


class Runs:
    """Programs that run side by side: all are begun at once, and each test waits for its own."""

    def __init__(self, server: ForkServer, programs: list[Program]) -> None:
        self._runs = {p.id: server.submit("entries:observed", p.text, timeout=300) for p in programs}

    def of(self, program: Program) -> Finished:
        return self._runs[program.id].result()


def check(program: Program, finished: Finished) -> None:
    """Fail where the report says anything else than what must be said, or where the program ends otherwise."""
    check_told(report_in(finished.folder), program.said, {"program.py": program.text})
    assert finished.status == (1 if program.problem else 0), finished.err
    assert program.problem in finished.err
