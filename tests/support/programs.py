"""Programs written for a test, with what must be said of them: of every finding the severity, cause, names, file and line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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


def misjudged(report: Report, said: Iterable[Said], texts: Mapping[str, str]) -> list[str]:
    """What a report says and must not, or does not say and must. `texts` holds the program's files by their names."""
    left = list(said)
    faults = []
    for finding in report.findings:
        told = _told(finding, {s.mark for s in said}, texts)
        match = next((s for s in left if replace(s, severity=told.severity) == told and _is_as_grave(s, told)), None)
        if match is None:
            faults.append(f"said: {told}")
        else:
            left.remove(match)
    return faults + [f"not said: {s}" for s in left]


def _is_as_grave(expected: Said, told: Said) -> bool:
    return expected.severity == told.severity or (expected.severity == "loud" and told.severity in ("error", "warning"))


def _told(finding: Finding, marks: set[str], texts: Mapping[str, str]) -> Said:
    """A finding, with the mark that stands at its place, else with the file and line."""
    names = tuple(sorted(source.name for source in finding.sources))
    at = finding.place
    line = texts[at.file].split("\n")[at.line - 1] if at is not None and at.file in texts else ""
    where = f"{at.file}:{at.line}" if at is not None else "nowhere"
    mark = next((m for m in marks if line.rstrip().endswith(f"# {m}")), where)
    return Said(str(finding.severity), finding.cause, names, mark)


class Runs:
    """Programs that run side by side: all are begun at once, and each test waits for its own."""

    def __init__(self, server: ForkServer, programs: list[Program]) -> None:
        self._runs = {p.id: server.submit("entries:observed", p.text, timeout=300) for p in programs}

    def of(self, program: Program) -> Finished:
        return self._runs[program.id].result()


def faults_of(program: Program, finished: Finished) -> list[str]:
    """What is wrong with the answer, and with how the program ended."""
    faults = misjudged(report_in(finished.folder), program.said, {"program.py": program.text})
    if finished.status != (1 if program.problem else 0) or program.problem not in finished.err:
        faults.append(f"ended: {finished.status} {finished.err[-300:]}")
    return faults
