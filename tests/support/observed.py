"""A program that was run plain and under gradwhy, and what the report says of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from forkserver import Finished, ForkServer
from gradwhy.flow import Finding, Report, Severity, from_json

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\ntorch.manual_seed(0)\n"
MARK = "  # here"
HOW = ("plain", "observed")


@dataclass(frozen=True, slots=True)
class Ran:
    """One program that was run plain and observed; `marked` are its lines that end in `# here`."""

    plain: Finished
    observed: Finished
    report: Report
    marked: frozenset[int]

    @property
    def loud(self) -> list[Finding]:
        return [found for found in self.report.findings if found.severity is not Severity.NOTE]

    def told(self, source: str) -> Finding:
        """The one finding of more than a note about a source."""
        (found,) = [f for f in self.loud if any(source in (s.name, *s.aliases) for s in f.sources)]
        return found

    def lines(self, source: str) -> set[int]:
        """Every line to which the finding about a source points as its cut."""
        found = self.told(source)
        return {span.line for span in (found.place, *(cut.span for cut in found.cuts)) if span is not None}


def run_both(server: ForkServer, file: Path, text: str) -> Ran:
    """Run a program plain and observed: nothing may differ, and nothing of ours may fail."""
    lines = (HEAD + text).splitlines()
    marked = frozenset(number for number, line in enumerate(lines, 1) if line.endswith(MARK))
    file.write_text("\n".join(line.removesuffix(MARK) for line in lines) + "\n", encoding="utf-8")
    plain, observed = (run.result() for run in [server.submit(f"entries:{how}", file, name=file.name) for how in HOW])
    assert (plain.status, plain.out) == (observed.status, observed.out), observed.err
    report = from_json(Report, json.loads((observed.folder / "report.json").read_text(encoding="utf-8")))
    assert not report.warnings
    return Ran(plain, observed, report, marked)
