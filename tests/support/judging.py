"""Whether a report tells what a case's manifest says, and whether the program ran as without gradwhy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forkserver import Finished
from gradwhy.flow import Finding, Report, Severity, Source, Span

RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
LOUD = (Severity.ERROR, Severity.WARNING)
QUIET_CAUSES = {"frozen", "unused", "saturated", "not-updated"}
"""Causes that may rightly be no more than a note."""

MOST_NAMES = 9
MOST_FINDINGS = 2
MOST_LINES = 4
LONGEST_SPAN = 5
MOST_EXTRA_WORDS = 6
"""How many words a reported name may have beside the expected ones."""

CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
ERROR_LINE = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b")


@dataclass(frozen=True, slots=True)
class Case:
    """One program of a manifest, and the right answer."""

    id: str
    framework: str
    file: Path
    fixed_file: Path | None
    symptom: str
    sources: tuple[str, ...]
    healthy: tuple[str, ...]
    causes: frozenset[str]
    lines: frozenset[int]
    severities: frozenset[Severity]

    @property
    def is_control(self) -> bool:
        return self.symptom == "ok"


def read_cases(manifest: Path) -> Iterator[Case]:
    for raw in json.loads(manifest.read_text(encoding="utf-8")):
        yield _case(raw, manifest.parent)


def _case(raw: dict[str, Any], folder: Path) -> Case:
    causes = frozenset([raw["cause"], *raw.get("accept", [])])
    usual = RANK if causes & QUIET_CAUSES else LOUD
    return Case(
        id=raw["id"],
        framework=raw["framework"],
        file=folder / raw["file"],
        fixed_file=folder / raw["fixed_file"] if raw.get("fixed_file") else None,
        symptom=raw["symptom"],
        sources=tuple(raw["sources"]),
        healthy=tuple(raw.get("healthy", [])),
        causes=causes,
        lines=frozenset(raw["break_lines"]),
        severities=frozenset(map(Severity, raw["severity"])) if "severity" in raw else frozenset(usual),
    )


# --- names


def words(name: str) -> list[str]:
    """`encoder.layers[0].outKernel` as encoder, layers, 0, out, kernel."""
    return re.findall(r"[a-z0-9]+", CAMEL.sub("_", name).lower())


def is_same(expected: str, reported: str) -> bool:
    """Whether a reported name says the expected one: all of its words, and not many more."""
    want, have = words(expected), words(reported)
    return set(want) <= set(have) and len(have) <= len(want) + MOST_EXTRA_WORDS


def is_about(name: str, source: Source) -> bool:
    return any(is_same(name, given) for given in (source.name, *source.aliases)[:MOST_NAMES])


def loud(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity in LOUD]


# --- the rules


def judge(case: Case, report: Report) -> list[str]:
    """What is wrong with the answer: one line a fault, none if all is right."""
    if case.is_control:
        return [*_healthy_faults(case, report), *(f"control: {_told(f)}" for f in loud(report))]
    faults = list(_healthy_faults(case, report))
    for name in case.sources:
        faults += _answer_faults(case, name, report)
    return faults


def _healthy_faults(case: Case, report: Report) -> Iterator[str]:
    for finding in loud(report):
        for source in finding.sources:
            is_expected = any(is_about(name, source) for name in case.sources)
            if not is_expected and any(is_same(name, source.name) for name in case.healthy):
                yield f"healthy: {source.name} is reported as {finding.cause}"


def _answer_faults(case: Case, name: str, report: Report) -> Iterator[str]:
    found = [finding for finding in report.findings if any(is_about(name, source) for source in finding.sources)]
    if not found:
        yield f"missed: nothing is said about {name}"
        return
    first = min(found, key=lambda finding: RANK[finding.severity])
    if first.cause not in case.causes:
        yield f"cause: {name} is {first.cause}, expected {' or '.join(sorted(case.causes))}"
    if first.severity not in case.severities:
        yield f"severity: {name} is {first.severity}, expected {' or '.join(sorted(case.severities))}"
    if sum(finding.severity == first.severity for finding in found) > MOST_FINDINGS:
        yield f"shotgun: more than {MOST_FINDINGS} findings of severity {first.severity} about {name}"
    yield from _place_faults(case, name, [s for s in (first.place, *(cut.span for cut in first.cuts)) if s])


def _place_faults(case: Case, name: str, spans: list[Span]) -> Iterator[str]:
    if any((span.end_line or span.line) - span.line >= LONGEST_SPAN for span in spans):
        yield f"span: a span about {name} is longer than {LONGEST_SPAN} lines"
    lines = {span.line for span in spans if Path(span.file).name == case.file.name}
    if len(lines) > MOST_LINES:
        yield f"shotgun: {name} is cut at {sorted(lines)}"
    if case.lines and not lines & case.lines:
        yield f"line: {name} is cut at {sorted(lines)}, expected {sorted(case.lines)}"


def judge_transparency(plain: Finished, observed: Finished) -> list[str]:
    """How the observed program differs from the plain one."""
    faults = []
    if plain.status != observed.status:
        told = last_error(observed.err) or observed.err.strip()[-200:]
        faults.append(f"transparent: exit status {plain.status} became {observed.status}: {told}")
    if plain.out != observed.out:
        faults.append("transparent: standard output differs")
    error = last_error(plain.err)
    if plain.status and error and error not in observed.err:
        faults.append(f"transparent: the error {error!r} is gone")
    return faults


def last_error(err: str) -> str | None:
    """The last line of a traceback in what a program wrote to standard error."""
    lines = [line for line in err.splitlines() if ERROR_LINE.match(line)]
    return lines[-1] if lines else None


def _told(finding: Finding) -> str:
    return f"{finding.cause} is reported for {', '.join(source.name for source in finding.sources)}"
